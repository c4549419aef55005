"""What an emulated scheduler runs, to be shown: predicates and priorities, or plugins by extension point, with weights.

`/configz`, `kubesched config view --emulate` and `--write-config-to` show the same record. Next: `manifest_of_then` for
the configuration that says it to a scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubesched.older.config import names
from kubesched.older.config.emulated import EmulatedPlugin, EmulatedProfile, Emulation
from kubesched.older.config.extension_points import points_of
from kubesched.older.config.generations import Generation
from kubesched.scheduler.config.configuration import to_manifest

_PREDICATES = {
    kinds[0]: predicate
    for predicate, kinds in names.PLUGINS_OF_PREDICATES.items()
    if predicate != names.GENERAL_PREDICATES
}
_PRIORITIES = {kind: priority for priority, kind in reversed(names.PLUGINS_OF_PRIORITIES.items())}


def running(emulation: Emulation) -> dict[str, Any]:
    """Made of what JSON can hold."""
    generation = emulation.generation
    record: dict[str, Any] = {
        "version": f"v{generation.version}",
        "algorithmSource": emulation.source.manifest(),
        "featureGates": dict(emulation.gates.values),
        "percentageOfNodesToScore": emulation.config.percentage_of_nodes_to_score,
        "profiles": [_profile(profile, generation) for profile in emulation.profiles],
    }
    if emulation.config.extenders:
        record["extenders"] = extenders_without_keys(emulation)
    return record


def extenders_without_keys(emulation: Emulation) -> list[dict[str, Any]]:
    """What is told of extenders wherever anybody may read it."""
    extenders = to_manifest(emulation.config).get("extenders", ())
    return [{name: item for name, item in extender.items() if name != "tlsConfig"} for extender in extenders]


def summary(emulation: Emulation) -> str:
    """How many of what, in one sentence."""
    profiles = emulation.profiles
    what = how_many(profiles[0], emulation.generation) if len(profiles) == 1 else f"{len(profiles)} profiles"
    return f"kube-scheduler v{emulation.generation.version} runs {what} ({emulation.source.described()})."


def how_many(profile: EmulatedProfile, generation: Generation) -> str:
    words = ("predicate", "priority") if generation.has_predicates else ("filter plugin", "score plugin")
    return f"{_count(len(profile.filters), words[0])} and {_count(len(profile.scores), words[1])}"


def summary_lines(emulation: Emulation) -> list[str]:
    """What runs, briefly: for the head of a file."""
    lines = [summary(emulation)]
    for profile in emulation.profiles:
        of = "" if len(emulation.profiles) == 1 else f" of {profile.scheduler_name}"
        what = ("predicates", "priorities") if emulation.generation.has_predicates else ("filters", "scores")
        lines.append(f"{what[0]}{of}: {', '.join(plugin.name for plugin in profile.filters) or 'none'}")
        lines.append(f"{what[1]}{of}: {', '.join(f'{p.name} {p.weight}' for p in profile.scores) or 'none'}")
    return lines


def _count(n: int, word: str) -> str:
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{n} {word if n == 1 else plural}"


def _profile(profile: EmulatedProfile, generation: Generation) -> dict[str, Any]:
    found: dict[str, Any] = {"schedulerName": profile.scheduler_name}
    if generation.has_predicates:
        found["predicates"] = [_entry(plugin) for plugin in profile.filters]
        found["priorities"] = [_entry(plugin) for plugin in profile.scores]
    else:
        found["plugins"] = _plugins(profile, generation)
    found["preempts"] = profile.preempts
    found["checksAllPredicates"] = profile.checks_all
    return found


def _plugins(profile: EmulatedProfile, generation: Generation) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for point, plugins in points_of(profile, generation).items():
        if point == "filter":
            found[point] = [_entry(plugin, predicate=_PREDICATES) for plugin in profile.filters]
        elif point == "score":
            found[point] = [_entry(plugin, priority=_PRIORITIES) for plugin in profile.scores]
        elif plugins:
            found[point] = [{"name": name} for name in plugins]
    return found


def _entry(plugin: EmulatedPlugin, **older_names: Mapping[str, str]) -> dict[str, Any]:
    """With its name of old, if it has one."""
    entry: dict[str, Any] = {"name": plugin.name}
    if plugin.weight:
        entry["weight"] = plugin.weight
    for field, by_kind in older_names.items():
        if plugin.kind in by_kind:
            entry[field] = by_kind[plugin.kind]
    if plugin.args:
        entry["args"] = dict(plugin.args)
    return entry
