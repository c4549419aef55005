"""From a Policy to the plugins that the scheduler of a version ran for it, quirks included.

Next: `names` for what the names stand for, `emulation` for the other ways to configure an older scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kubesched.older.config import names
from kubesched.older.config.emulated import (
    AlgorithmSource,
    EmulatedPlugin,
    EmulatedProfile,
    Refusals,
    RefusedConfigurationError,
    check_affinity_weight,
    policy_beside,
)
from kubesched.older.config.generations import Generation, OlderGates
from kubesched.older.config.policy import Policy, PredicatePolicy, PriorityPolicy, RatioArgument
from kubesched.older.config.policy_checks import (
    check_policy,
    check_registration,
    check_sum_of_weights,
    label_conflict,
    ratio_problem,
)
from kubesched.scheduler.config.configuration import ExtenderConfiguration

Args = dict[str, Any]


def profile_of_policy(
    policy: Policy, generation: Generation, gates: OlderGates, scheduler_name: str
) -> EmulatedProfile:
    """Raises `RefusedConfigurationError`."""
    check_policy(policy, generation)
    predicates, priorities = names.known_predicates(generation, gates), names.known_priorities(generation, gates)
    check_registration(policy, generation, predicates, priorities)
    if policy.hard_pod_affinity_symmetric_weight:
        source = AlgorithmSource(policy=policy)
        check_affinity_weight(policy.hard_pod_affinity_symmetric_weight, generation, source)
    reader = PolicyReader(policy, generation, gates)
    filters, scores = (
        (reader.predicates(), reader.priorities()) if generation.has_predicates else reader.plugins(scheduler_name)
    )
    check_sum_of_weights((plugin.weight for plugin in scores), generation)
    return EmulatedProfile(
        scheduler_name,
        without_extenders_resources(filters, policy.extenders),
        scores,
        checks_all=policy.always_check_all_predicates and generation.checks_all_on_request,
        beside=policy_beside(generation, filters, scores),
    )


def without_extenders_resources(
    filters: tuple[EmulatedPlugin, ...], extenders: Sequence[ExtenderConfiguration]
) -> tuple[EmulatedPlugin, ...]:
    """Resources that extenders look after by themselves are not checked."""
    ignored = [
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]
    if not ignored:
        return filters
    return tuple(
        replace(plugin, args={**plugin.args, "ignoredResources": ignored})
        if plugin.kind in ("NodeResourcesFit", names.GENERAL_PREDICATES)
        else plugin
        for plugin in filters
    )


def filters_of(predicates: Iterable[str], generation: Generation) -> tuple[EmulatedPlugin, ...]:
    """The filters behind predicates without arguments, in the order of evaluation."""
    wanted = set(predicates)
    ordered = [name for name in names.PLUGINS_OF_PREDICATES if name in wanted]
    if generation.has_predicates:
        return tuple(EmulatedPlugin(_kind_of_predicate(name), name) for name in ordered)
    return tuple(EmulatedPlugin(kind, kind) for name in ordered for kind in names.PLUGINS_OF_PREDICATES[name])


def scores_of(priorities: Mapping[str, int], generation: Generation) -> tuple[EmulatedPlugin, ...]:
    return tuple(
        EmulatedPlugin(kind := names.PLUGINS_OF_PRIORITIES[name], score_name(generation, name, kind), {}, weight)
        for name, weight in sorted(priorities.items())
    )


def score_name(generation: Generation, priority: str, kind: str) -> str:
    """Priorities that were no plugins yet keep their own name."""
    if generation.has_predicates:
        return priority
    not_plugins = (names.SERVICE_SPREADING_PRIORITY, names.RESOURCE_LIMITS_PRIORITY, names.RATIO_PRIORITY)
    if generation.registers_functions and priority in not_plugins:
        return priority
    return names.plugin_name(generation, kind)


def _kind_of_predicate(name: str) -> str:
    return name if name == names.GENERAL_PREDICATES else names.PLUGINS_OF_PREDICATES[name][0]


class PolicyReader:
    """Reads one Policy as one version did."""

    def __init__(self, policy: Policy, generation: Generation, gates: OlderGates) -> None:
        self._policy = policy
        self._generation = generation
        self._gates = gates
        self._node_label: dict[str, list[str]] = {}
        self._service_affinity: dict[str, list[str]] = {}
        self._ratio: Args | None = None
        self._weights: dict[str, int] = {}

    def keys(self) -> tuple[frozenset[str], dict[str, int]]:
        """The names under which its predicates and priorities were registered, with weights."""
        if not self._generation.has_predicates:
            return self._predicate_keys(), self._priority_keys()
        predicates, priorities = self._policy.predicates, self._policy.priorities
        return (
            names.default_predicates(self._generation, self._gates)
            if predicates is None
            else frozenset(predicate.name for predicate in predicates),
            dict(names.default_priorities(self._generation, self._gates))
            if priorities is None
            else {priority.name: priority.weight for priority in priorities},
        )

    # -- each predicate and priority for itself ------------------------------------------------------------------------

    def predicates(self) -> tuple[EmulatedPlugin, ...]:
        """Only those run that have a place in the order, whatever their arguments make of them."""
        mandatory = names.mandatory_predicates(self._generation, self._gates)
        if self._policy.predicates is None:
            return filters_of(names.default_predicates(self._generation, self._gates) | mandatory, self._generation)
        found = {plugin.name: plugin for plugin in filters_of(mandatory, self._generation)}
        for predicate in self._policy.predicates:
            if predicate.name in names.own_order(self._generation):
                found[predicate.name] = _own_predicate(predicate)
        return tuple(found[name] for name in names.own_order(self._generation) if name in found)

    def priorities(self) -> tuple[EmulatedPlugin, ...]:
        if self._policy.priorities is None:
            defaults = scores_of(names.default_priorities(self._generation, self._gates), self._generation)
            return tuple(self._with_affinity_weight(plugin) for plugin in defaults)
        found = {priority.name: self._own_priority(priority) for priority in self._policy.priorities}
        return tuple(self._with_affinity_weight(found[name]) for name in sorted(found))

    def _own_priority(self, priority: PriorityPolicy) -> EmulatedPlugin:
        kind, args = _meaning(priority)
        return EmulatedPlugin(kind, priority.name, args, priority.weight)

    def _with_affinity_weight(self, plugin: EmulatedPlugin) -> EmulatedPlugin:
        weight = self._policy.hard_pod_affinity_symmetric_weight
        if plugin.kind != "InterPodAffinity" or not weight or not self._generation.hard_affinity_weight_of_policy:
            return plugin
        return EmulatedPlugin(plugin.kind, plugin.name, {"hardPodAffinityWeight": weight}, plugin.weight)

    # -- merged into plugins -------------------------------------------------------------------------------------------

    def plugins(self, scheduler_name: str) -> tuple[tuple[EmulatedPlugin, ...], tuple[EmulatedPlugin, ...]]:
        mandatory = names.mandatory_predicates(self._generation, self._gates)
        filters = filters_of(mandatory | self._predicate_keys(), self._generation)
        keys = self._priority_keys()
        self._refuse_conflicts(scheduler_name)
        self._refuse_shapes(scheduler_name)
        self._refuse_twice(filters, scheduler_name)
        scores = tuple(self._score(name, weight) for name, weight in sorted(keys.items()))
        return tuple(self._with_args(plugin) for plugin in filters), tuple(self._with_args(plugin) for plugin in scores)

    def _predicate_keys(self) -> frozenset[str]:
        if self._policy.predicates is None:
            return names.default_predicates(self._generation, self._gates)
        return frozenset(self._predicate_key(predicate) for predicate in self._policy.predicates)

    def _predicate_key(self, predicate: PredicatePolicy) -> str:
        argument = predicate.argument
        is_known = predicate.name in names.known_predicates(self._generation, self._gates)
        if argument is None or (is_known and not self._generation.registers_functions):
            is_alias = predicate.name == names.POD_FITS_PORTS and not self._generation.registers_functions
            return "PodFitsHostPorts" if is_alias else predicate.name
        if argument.service_affinity is not None:
            self._service_affinity.setdefault("affinityLabels", []).extend(argument.service_affinity.labels)
            return names.SERVICE_AFFINITY
        assert argument.labels_presence is not None
        field = "presentLabels" if argument.labels_presence.presence else "absentLabels"
        self._node_label.setdefault(field, []).extend(argument.labels_presence.labels)
        return names.LABEL_PRESENCE

    def _priority_keys(self) -> dict[str, int]:
        if self._policy.priorities is None:
            return dict(names.default_priorities(self._generation, self._gates))
        for priority in self._policy.priorities:
            if priority.name != names.EQUAL_PRIORITY:
                self._add_priority(priority)
        return self._weights

    def _add_priority(self, priority: PriorityPolicy) -> None:
        is_known = priority.name in names.known_priorities(self._generation, self._gates)
        if priority.argument is None or (is_known and not self._generation.registers_functions):
            is_alias = priority.name == names.SERVICE_SPREADING_PRIORITY and not self._generation.registers_functions
            self._weights[names.SELECTOR_SPREAD_PRIORITY if is_alias else priority.name] = priority.weight
            return
        kind, args = _meaning(priority)
        if kind == "RequestedToCapacityRatio":
            self._ratio = args
            self._weights[kind] = priority.weight
            return
        merged = self._node_label if kind == "NodeLabel" else self._service_affinity
        for field, labels in args.items():
            merged.setdefault(field, []).extend(labels)
        before = self._weights.get(kind, 0) if self._generation.sums_custom_weights else 0
        self._weights[kind] = before + priority.weight

    def _score(self, name: str, weight: int) -> EmulatedPlugin:
        kind = names.PLUGINS_OF_PRIORITIES.get(name, name)
        if not self._generation.sums_custom_weights:
            weight *= self._n_merged(kind)
        return EmulatedPlugin(kind, score_name(self._generation, name, kind), {}, weight)

    def _n_merged(self, kind: str) -> int:
        """A plugin that stands for several priorities counts as often."""
        if kind == "NodeLabel":
            fields = ("presentLabelsPreference", "absentLabelsPreference")
            return sum(len(self._node_label.get(field, ())) for field in fields)
        if kind == "ServiceAffinity":
            return len(self._service_affinity.get("antiAffinityLabelsPreference", ()))
        return 1

    def _with_args(self, plugin: EmulatedPlugin) -> EmulatedPlugin:
        args: Args = {}
        match plugin.kind:
            case "NodeLabel":
                args = dict(self._node_label)
            case "ServiceAffinity":
                args = dict(self._service_affinity)
            case "RequestedToCapacityRatio":
                args = self._ratio or {}
        found = EmulatedPlugin(plugin.kind, plugin.name, args, plugin.weight)
        return self._with_affinity_weight(found)

    # -- what the framework of the time refused ------------------------------------------------------------------------

    def _refuse_twice(self, filters: tuple[EmulatedPlugin, ...], scheduler_name: str) -> None:
        """GeneralPredicates beside one of its parts names a plugin twice."""
        with_pre_filter = ("NodeResourcesFit", "NodePorts") if not self._generation.registers_functions else ()
        points = (("PreFilterPlugin", with_pre_filter), ("FilterPlugin", tuple(p.kind for p in filters)))
        for extension_point, kinds in points:
            seen: set[str] = set()
            for plugin in filters:
                if plugin.kind in kinds and plugin.kind in seen:
                    raise self._refuse(
                        scheduler_name, f'plugin "{plugin.kind}" already registered as "{extension_point}"'
                    )
                seen.add(plugin.kind)

    def _refuse_shapes(self, scheduler_name: str) -> None:
        for priority in self._policy.priorities or ():
            ratio = None if priority.argument is None else priority.argument.requested_to_capacity_ratio_arguments
            problem = None if ratio is None else ratio_problem(ratio, self._generation)
            if problem is not None:
                plugin = 'error initializing plugin "RequestedToCapacityRatio"'
                raise self._refuse(scheduler_name, f"{plugin}: {problem}")

    def _refuse_conflicts(self, scheduler_name: str) -> None:
        """A label cannot be both wanted and unwanted."""
        problem = label_conflict(self._node_label)
        if problem is not None:
            raise self._refuse(scheduler_name, f'error initializing plugin "NodeLabel": {problem}')

    def _refuse(self, scheduler_name: str, problem: str) -> RefusedConfigurationError:
        return Refusals(self._generation).framework(scheduler_name, problem)


def _own_predicate(predicate: PredicatePolicy) -> EmulatedPlugin:
    """The argument decides what it does, the name where."""
    argument = predicate.argument
    if argument is None:
        return EmulatedPlugin(_kind_of_predicate(predicate.name), predicate.name)
    if argument.service_affinity is not None:
        args = {"affinityLabels": list(argument.service_affinity.labels)}
        return EmulatedPlugin("ServiceAffinity", predicate.name, args)
    assert argument.labels_presence is not None
    field = "presentLabels" if argument.labels_presence.presence else "absentLabels"
    return EmulatedPlugin("NodeLabel", predicate.name, {field: list(argument.labels_presence.labels)})


def _meaning(priority: PriorityPolicy) -> tuple[str, Args]:
    """The plugin behind a priority, and its arguments."""
    argument = priority.argument
    if argument is None:
        return names.PLUGINS_OF_PRIORITIES[priority.name], {}
    if argument.service_anti_affinity is not None:
        return "ServiceAffinity", {"antiAffinityLabelsPreference": [argument.service_anti_affinity.label]}
    if argument.label_preference is not None:
        preference = argument.label_preference
        field = "presentLabelsPreference" if preference.presence else "absentLabelsPreference"
        return "NodeLabel", {field: [preference.label]}
    assert argument.requested_to_capacity_ratio_arguments is not None
    return "RequestedToCapacityRatio", ratio_args(argument.requested_to_capacity_ratio_arguments)


def ratio_args(argument: RatioArgument) -> Args:
    return {
        "shape": [{"utilization": point.utilization, "score": point.score} for point in argument.shape],
        "resources": [{"name": resource.name, "weight": resource.weight} for resource in argument.resources],
    }
