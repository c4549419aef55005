"""What an older scheduler was configured to run: plugins by their names of that time, in order, with weights.

Filters and scores do the work that predicates and priorities did; what runs at the other extension points follows from
them.

Filled by `emulation`; `kubesched.older.engine` builds a scheduler from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kubesched.older.config import names
from kubesched.older.config.algorithm_source import AlgorithmSource, Refusals
from kubesched.older.config.generations import Generation, OlderGates
from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration

BIND_TIMEOUT_S = 600
HARD_AFFINITY_WEIGHT = 1
"""Where nothing is said."""

_HIGHEST_AFFINITY_WEIGHT = 100


@dataclass(frozen=True)
class EmulatedPlugin:
    """A filter or a score. `kind` is the plugin that does the work, `name` what it is called in answers."""

    kind: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    weight: int = 0


@dataclass(frozen=True)
class EmulatedProfile:
    scheduler_name: str
    filters: tuple[EmulatedPlugin, ...]
    scores: tuple[EmulatedPlugin, ...]
    checks_all: bool = False
    """Nodes are told every plugin that rejects them."""
    preempts: bool = True
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The plugins of the other extension points, by their names."""

    def with_hard_affinity_weight(self, weight: int) -> EmulatedProfile:
        return replace(self, scores=_with_args(self.scores, "InterPodAffinity", {"hardPodAffinityWeight": weight}))

    def with_bind_timeout(self, seconds: int) -> EmulatedProfile:
        """How long volumes are waited for."""
        return replace(self, filters=_with_args(self.filters, "VolumeBinding", {"bindTimeoutSeconds": seconds}))


@dataclass(frozen=True)
class Emulation:
    """An older scheduler, ready to be built. `config` holds what is not about plugins: extenders, backoff, shares."""

    generation: Generation
    profiles: tuple[EmulatedProfile, ...]
    config: KubeSchedulerConfiguration
    source: AlgorithmSource = field(default_factory=AlgorithmSource)
    gates: OlderGates = field(default_factory=lambda: OlderGates({}))
    bind_timeout_s: int = BIND_TIMEOUT_S
    """`bindTimeoutSeconds` of a configuration, whether a predicate looks at volumes or not."""
    hard_affinity_weight: int = HARD_AFFINITY_WEIGHT
    """`hardPodAffinitySymmetricWeight` of a configuration or a flag; a Policy's own counts more."""
    plugins_given: Mapping[str, Any] = field(default_factory=dict)
    """`plugins` and `pluginConfig` of a v1alpha1 configuration, which add to what the source says."""
    notes: tuple[str, ...] = ()
    """What of the configuration the scheduler of that time passed over."""

    def renamed(self, scheduler_name: str) -> Emulation:
        """The same, for pods that ask for another scheduler by name."""
        return replace(self, profiles=tuple(replace(p, scheduler_name=scheduler_name) for p in self.profiles))

    def with_hard_affinity_weight(self, weight: int) -> Emulation:
        """What a profile says itself about the weight counts more. Raises `RefusedConfigurationError`."""
        check_affinity_weight(weight, self.generation, self.source)
        profiles = tuple(profile.with_hard_affinity_weight(weight) for profile in self.profiles)
        return replace(self, profiles=profiles, hard_affinity_weight=weight)


def check_affinity_weight(weight: int, generation: Generation, source: AlgorithmSource) -> None:
    """Before there were profiles the scheduler itself looked at the weight, whoever gave it, and took no 0."""
    if generation.registers_functions and not 1 <= weight <= _HIGHEST_AFFINITY_WEIGHT:
        provider = source.provider if source.policy is None else None
        problem = f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"
        raise Refusals(generation, provider).scheduler([problem])


def _with_args(plugins: tuple[EmulatedPlugin, ...], kind: str, args: Mapping[str, Any]) -> tuple[EmulatedPlugin, ...]:
    """What a plugin was given already counts more."""
    return tuple(replace(plugin, args={**args, **plugin.args}) if plugin.kind == kind else plugin for plugin in plugins)


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
