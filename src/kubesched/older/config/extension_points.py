"""The extension points of older schedulers, and which plugins ran where.

Filters and scores do the work that predicates and priorities did; what runs at the other points follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesched.older.config import names
from kubesched.older.config.emulated import EmulatedPlugin, EmulatedProfile
from kubesched.older.config.generations import Generation

FILTERS = frozenset(kind for kinds in names.PLUGINS_OF_PREDICATES.values() for kind in kinds if "Check" not in kind)
SCORES = frozenset(names.PLUGINS_OF_PRIORITIES.values()) - {names.EQUAL_PRIORITY} | {"NodeLabel", "ServiceAffinity"}

_RESOURCE_LIMITS = "NodeResourceLimits"
_IN_ORDER_OF_A_CYCLE = (
    *("queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind", "unreserve"),
)
_FOLLOW_FILTERS = ("preFilter", "reserve", "preBind")


def interface_of(point: str) -> str:
    """The name of what a plugin of this point implements."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def plugins_for(point: str, generation: Generation) -> Mapping[str, str]:
    """All plugins that could run at a point, by name, with the kind that does the work."""
    if point == "filter":
        kinds: Iterable[str] = FILTERS
    elif point == "score":
        has_limits = _RESOURCE_LIMITS in generation.plugins_beside.get("preScore", ())
        kinds = SCORES if has_limits else SCORES - {_RESOURCE_LIMITS}
    else:
        beside = generation.plugins_beside.get(point, ())
        return {name: name for name in (*beside, *(("ServiceAffinity",) if beside and point == "preFilter" else ()))}
    return {names.plugin_name(generation, kind): kind for kind in kinds}


def every_plugin(generation: Generation) -> frozenset[str]:
    return frozenset(name for point in generation.extension_points for name in plugins_for(point, generation))


def provided_beside(
    generation: Generation, filters: Sequence[EmulatedPlugin], scores: Sequence[EmulatedPlugin]
) -> dict[str, tuple[str, ...]]:
    """What a provider runs at the other points, in its own order."""
    found = {}
    for point, plugins in generation.plugins_beside.items():
        running = _followed(point, filters, scores)
        found[point] = tuple(name for name in plugins if running is None or name in running)
    return {point: plugins for point, plugins in found.items() if plugins}


def policy_beside(
    generation: Generation, filters: Sequence[EmulatedPlugin], scores: Sequence[EmulatedPlugin]
) -> dict[str, tuple[str, ...]]:
    """The same for a Policy: each predicate and priority brings its own, in its turn."""
    found = {}
    for point, plugins in generation.plugins_beside.items():
        running, able = _followed(point, filters, scores), plugins_for(point, generation)
        found[point] = plugins if running is None else tuple(name for name in running if name in able)
    return {point: plugins for point, plugins in found.items() if plugins}


def _followed(
    point: str, filters: Sequence[EmulatedPlugin], scores: Sequence[EmulatedPlugin]
) -> tuple[str, ...] | None:
    """Whose plugins a point goes by; None: it has its own."""
    if point == "preScore":
        return _names(scores)
    return _names(filters) if point in _FOLLOW_FILTERS else None


def points_of(profile: EmulatedProfile, generation: Generation) -> dict[str, tuple[str, ...]]:
    """The plugins of every point of the version, in the order of a cycle."""
    found = {**profile.beside, "filter": _names(profile.filters), "score": _names(profile.scores)}
    return {point: found.get(point, ()) for point in _IN_ORDER_OF_A_CYCLE if point in generation.extension_points}


def in_provided_order(scores: Sequence[EmulatedPlugin], generation: Generation) -> tuple[EmulatedPlugin, ...]:
    order = generation.provided_scores
    return tuple(sorted(scores, key=lambda plugin: order.index(plugin.name))) if order else tuple(scores)


def _names(plugins: Sequence[EmulatedPlugin]) -> tuple[str, ...]:
    return tuple(plugin.name for plugin in plugins)
