"""What an emulated scheduler runs, to be shown: predicates and priorities, or plugins by extension point, with weights.

`/configz`, `kubesched config view --emulate` and `--write-config-to` show the same record. `manifest_of_then` says it
as a file of the scheduler's own version; read again with `--emulate`, it gives the same scheduler, and `losses` tells
what such a file has no words for.

While it started, an older scheduler logged its predicates and priorities; each line has the verbosity of then. What it
printed of memory addresses, or in an order of chance, is printed as JSON, or sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubesched.older.config import names
from kubesched.older.config.component_config import GROUP
from kubesched.older.config.emulated import (
    AUTOSCALER_PROVIDER,
    DEFAULT_PROVIDER,
    EmulatedPlugin,
    EmulatedProfile,
    Emulation,
    points_of,
)
from kubesched.older.config.generations import EVEN_PODS_SPREAD, RESOURCE_LIMITS, TAINT_NODES_BY_CONDITION, Generation
from kubesched.older.config.policy import Policy, PredicatePolicy, PriorityPolicy
from kubesched.older.config.policy_profile import PolicyReader
from kubesched.scheduler.config.configuration import to_manifest
from kubesched.scheduler.config.load import KIND

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
    """What is said of extenders wherever anybody may read it."""
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


_AROUND = ("leaderElection", "clientConnection", "enableProfiling", "enableContentionProfiling")
_BACKOFF = ("podInitialBackoffSeconds", "podMaxBackoffSeconds")


def manifest_of_then(emulation: Emulation) -> dict[str, Any]:
    version = _api_version(emulation)
    found: dict[str, Any] = {"apiVersion": f"{GROUP}/{version}", "kind": KIND}
    today = to_manifest(emulation.config)
    around = {name: today[name] for name in (*_AROUND, "percentageOfNodesToScore")}
    if not emulation.generation.has_predicates:
        around |= {name: today[name] for name in _BACKOFF}
    if version == "v1alpha1":
        return found | _at_the_top(emulation) | around
    if version == "v1alpha2":
        around |= _volumes_and_preemption(emulation)
    found |= around
    found["profiles"] = [_profile_of_then(profile, emulation) for profile in emulation.profiles]
    if emulation.config.extenders:
        found["extenders"] = today["extenders"]
    return found


def losses(emulation: Emulation) -> list[str]:
    """What a Policy said that no file of the version can say."""
    if emulation.source.policy is None or _api_version(emulation) == "v1alpha1":
        return []
    found = []
    if any(profile.checks_all for profile in emulation.profiles):
        found.append("alwaysCheckAllPredicates: has no field in this version")
    ratios = [plugin for plugin in emulation.profiles[0].scores if plugin.kind == "RequestedToCapacityRatio"]
    if any(not plugin.args.get("resources") for plugin in ratios):
        found.append("requestedToCapacityRatioArguments: without resources it scores nothing in a Policy")
    return found


def _api_version(emulation: Emulation) -> str:
    """The newest that it read; a Policy elsewhere can be named by v1alpha1 alone."""
    versions = emulation.generation.config_versions
    names_policy = emulation.source.reference is not None and "v1alpha1" in versions
    return "v1alpha1" if names_policy else versions[-1]


def _at_the_top(emulation: Emulation) -> dict[str, Any]:
    return {
        "schedulerName": emulation.profiles[0].scheduler_name,
        "algorithmSource": emulation.source.manifest(),
        "hardPodAffinitySymmetricWeight": emulation.hard_affinity_weight,
        **_volumes_and_preemption(emulation),
        **emulation.plugins_given,
    }


def _volumes_and_preemption(emulation: Emulation) -> dict[str, Any]:
    return {
        "bindTimeoutSeconds": emulation.bind_timeout_s,
        "disablePreemption": not emulation.profiles[0].preempts,
    }


def _profile_of_then(profile: EmulatedProfile, emulation: Emulation) -> dict[str, Any]:
    weights = {plugin.name: plugin.weight for plugin in profile.scores}
    plugins: dict[str, Any] = {}
    for point, enabled in points_of(profile, emulation.generation).items():
        entries = [{"name": name, **({"weight": weights[name]} if point == "score" else {})} for name in enabled]
        if entries or point in emulation.generation.plugins_beside or point in ("filter", "score"):
            plugins[point] = {"disabled": [{"name": "*"}], **({"enabled": entries} if entries else {})}
    found = {"schedulerName": profile.scheduler_name, "plugins": plugins}
    args = _plugin_config(profile, emulation)
    return found | ({"pluginConfig": args} if args else {})


def _plugin_config(profile: EmulatedProfile, emulation: Emulation) -> list[dict[str, Any]]:
    """Arguments that are not said elsewhere in the file."""
    said = {"ignoredResources"} if emulation.config.extenders else set()
    if "v1alpha2" in emulation.generation.config_versions:
        said.add("bindTimeoutSeconds")
    found: dict[str, dict[str, Any]] = {}
    for plugin in (*profile.filters, *profile.scores):
        args = {name: value for name, value in plugin.args.items() if name not in said}
        if args:
            found.setdefault(plugin.name, {}).update(args)
    return [{"name": name, "args": args} for name, args in sorted(found.items())]


Line = tuple[int, str]
"""(V-level, text)"""


def start_lines(emulation: Emulation) -> Iterator[Line]:
    yield from _lines_of_gates(emulation)
    if emulation.source.policy is None:
        yield 2, f"Creating scheduler from algorithm provider '{emulation.source.provider}'"
        if emulation.generation.registers_functions:
            yield _keys(emulation, *_provided(emulation))
    else:
        yield from _lines_of_policy(emulation, emulation.source.policy)


def _lines_of_gates(emulation: Emulation) -> Iterator[Line]:
    generation, gates = emulation.generation, emulation.gates
    if generation.has_predicates and gates.enabled(TAINT_NODES_BY_CONDITION):
        yield 0, "TaintNodesByCondition is enabled, PodToleratesNodeTaints predicate is mandatory"
    if EVEN_PODS_SPREAD in generation.gates and gates.enabled(EVEN_PODS_SPREAD):
        yield 0, "Registering EvenPodsSpread predicate and priority function"
    if gates.enabled(RESOURCE_LIMITS):
        yield 0, "Registering resourcelimits priority function"
    if not generation.gates:
        yield 0, "Registering SelectorSpread plugin"


def _lines_of_policy(emulation: Emulation, policy: Policy) -> Iterator[Line]:
    generation, gates = emulation.generation, emulation.gates
    extenders = extenders_without_keys(emulation)
    shown = msgspec.to_builtins(policy) | ({"extenders": extenders} if extenders else {})
    yield 2, f"Creating scheduler from configuration: {msgspec.json.encode(shown).decode()}"
    if policy.predicates is None:
        yield 2, f"Using predicates from algorithm provider '{DEFAULT_PROVIDER}'"
    known = names.known_predicates(generation, gates)
    for predicate in policy.predicates or ():
        yield 2, f"Registering predicate: {predicate.name}"
        if _is_reused(predicate, known, emulation):
            yield 2, f"Predicate type {predicate.name} already registered, reusing."
    if policy.priorities is None:
        standard = f"Using priorities from algorithm provider '{DEFAULT_PROVIDER}'"
        yield 2, standard if generation.registers_functions else "Using default priorities"
    known = names.known_priorities(generation, gates)
    for priority in policy.priorities or ():
        if priority.name == names.EQUAL_PRIORITY and not generation.has_predicates:
            yield 2, f"Skip registering priority: {priority.name}"
            continue
        yield 2, f"Registering priority: {priority.name}"
        if _is_reused(priority, known, emulation):
            is_alias = priority.name == names.SERVICE_SPREADING_PRIORITY and not generation.registers_functions
            name = names.SELECTOR_SPREAD_PRIORITY if is_alias else priority.name
            yield 2, f"Priority type {name} already registered, reusing."
    lines = [(2, f"Creating extender with config {msgspec.json.encode(extender).decode()}") for extender in extenders]
    keys = _keys(emulation, *PolicyReader(policy, generation, gates).keys())
    yield from (*lines, keys) if generation.registers_functions else (keys, *lines)


def _is_reused(entry: PredicatePolicy | PriorityPolicy, known: frozenset[str], emulation: Emulation) -> bool:
    """Where an argument makes a new function, a name alone is found."""
    return entry.name in known and (entry.argument is None or not emulation.generation.registers_functions)


def _provided(emulation: Emulation) -> tuple[frozenset[str], Mapping[str, int]]:
    priorities = dict(names.default_priorities(emulation.generation, emulation.gates))
    if emulation.source.provider == AUTOSCALER_PROVIDER:
        priorities["MostRequestedPriority"] = priorities.pop("LeastRequestedPriority")
    return names.default_predicates(emulation.generation, emulation.gates), priorities


def _keys(emulation: Emulation, predicates: frozenset[str], priorities: Mapping[str, int]) -> Line:
    """Sets in the form in which Go prints them; weights stand there from 1.18 on."""
    shown = "{}" if emulation.generation.registers_functions else None
    left = " ".join(f"{name}:{{}}" for name in sorted(predicates))
    right = " ".join(f"{name}:{shown or priorities[name]}" for name in sorted(priorities))
    return 2, f"Creating scheduler with fit predicates 'map[{left}]' and priority functions 'map[{right}]'"
