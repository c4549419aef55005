"""What is allowed in a configuration: every rule of kube-scheduler v1.36, all validation errors at once.

Rules that need to know the plugins (does it exist? does it implement that point?) are in `resolve`. `validate_args`
reports to an `ErrorList` whatever is wrong with one plugin's arguments; `path` is where they stand. A node affinity
term that could match no node (it is empty) or could count for nothing (its weight is 0) is not checked.
"""

from __future__ import annotations

import re
from typing import Any

from kubesched.k8s.model.core import NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, TopologySpreadConstraint
from kubesched.k8s.model.requests import is_extended
from kubesched.k8s.model.selectors import label_key_errors, label_value_errors
from kubesched.k8s.model.times import Duration
from kubesched.scheduler.config.configuration import (
    EXTENSION_POINTS,
    ClientConnectionConfiguration,
    ExtenderConfiguration,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginRef,
    PluginSet,
    plain,
)
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.feature_gates import EMULATED_IN_CONFIG, GateError, check_switches
from kubesched.scheduler.config.plugin_args import (
    API_VERSION,
    ARGS_BY_PLUGIN,
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)

REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'

_POINTS_CHECKED_FOR_REMOVED = tuple(point for point in EXTENSION_POINTS if not point.startswith("placement"))


def validate(config: KubeSchedulerConfiguration, errors: ErrorList) -> None:
    """Report all that is wrong with a configuration that has its defaults."""
    _client_connection(config.client_connection, errors)
    _leader_election(config.leader_election, errors)
    if config.parallelism <= 0:
        errors.invalid("parallelism", config.parallelism, "should be an integer value greater than zero")
    if not config.profiles:
        errors.required("profiles")
    for index, profile in enumerate(config.profiles):
        _profile(profile, f"profiles[{index}]", errors)
    _unique_scheduler_names(config.profiles, errors)
    _same_queue_sort(config.profiles, errors)
    _percentage(config.percentage_of_nodes_to_score, "percentageOfNodesToScore", errors)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        errors.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        errors.invalid("podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds")
    _extenders(config.extenders, errors)
    _features(config, errors)


def _features(config: KubeSchedulerConfiguration, errors: ErrorList) -> None:
    try:
        check_switches(config.gates, config.emulate)
    except GateError as problem:
        for error in problem.errors:
            errors.add("featureGates", error)
    if config.emulate is not None and config.emulate not in EMULATED_IN_CONFIG:
        errors.unsupported("emulate", config.emulate, list(EMULATED_IN_CONFIG))


def _client_connection(connection: ClientConnectionConfiguration, errors: ErrorList) -> None:
    if connection.burst < 0:
        errors.invalid("clientConnection.burst", connection.burst, "must be non-negative")


def _leader_election(election: LeaderElectionConfiguration, errors: ErrorList) -> None:
    if not election.leader_elect:
        return
    for name, duration in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if duration.nanoseconds <= 0:
            errors.invalid(f"leaderElection.{name}", duration, "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        # Kubernetes shows the deadline here, not the lease.
        shown = election.renew_deadline
        errors.invalid("leaderElection.leaseDuration", shown, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        errors.invalid("leaderElection.resourceLock", election.resource_lock, 'resourceLock value must be "leases"')


def _percentage(percentage: int | None, path: str, errors: ErrorList) -> None:
    if percentage is not None and not 0 <= percentage <= 100:
        errors.invalid(path, percentage, "not in valid range [0-100]")


# -- Profiles ----------------------------------------------------------------------------------------------------------


def _profile(profile: KubeSchedulerProfile, path: str, errors: ErrorList) -> None:
    if not profile.scheduler_name:
        errors.required(f"{path}.schedulerName")
    _percentage(profile.percentage_of_nodes_to_score, f"{path}.percentageOfNodesToScore", errors)
    for point in _POINTS_CHECKED_FOR_REMOVED:
        for index, plugin in enumerate(profile.plugins.at(point).enabled):
            if plugin.name in REMOVED_PLUGINS:
                errors.invalid(f"{path}.plugins.{point}.enabled[{index}]", plugin.name, _REMOVED)
    seen: set[str] = set()
    for index, entry in enumerate(profile.plugin_config):
        entry_path = f"{path}.pluginConfig[{index}]"
        if entry.name in seen:
            errors.duplicate(entry_path, entry.name)
        seen.add(entry.name)
        if entry.name in REMOVED_PLUGINS:
            errors.invalid(entry_path, entry.name, _REMOVED)
        else:
            _args(entry.name, entry.args, f"{entry_path}.args", errors)


def _args(plugin: str, args: Any, path: str, errors: ErrorList) -> None:
    kind = ARGS_BY_PLUGIN.get(plugin)
    if kind is None:
        return
    if isinstance(args, kind):
        validate_args(args, path, errors)
    else:
        errors.invalid(path, plain(args), "has to match plugin args")


def _unique_scheduler_names(profiles: tuple[KubeSchedulerProfile, ...], errors: ErrorList) -> None:
    first: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        earlier = first.setdefault(profile.scheduler_name, index)
        if earlier != index:
            errors.duplicate(f"profiles[{index}].schedulerName", f"profiles[{earlier}].schedulerName")


def _same_queue_sort(profiles: tuple[KubeSchedulerProfile, ...], errors: ErrorList) -> None:
    """There is one queue, so every profile has to sort it alike."""
    if not profiles:
        return
    canon = profiles[0].plugins.queue_sort
    if len(canon.enabled) > 1:
        path = "profiles[0].plugins.queueSort.Enabled"
        errors.invalid(path, len(canon.enabled), "only one queue sort plugin can be enabled")
    name = canon.enabled[0].name if canon.enabled else None
    canon_args = _args_of(profiles[0], name)
    for index, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != canon:
            shown = _plugin_set_shown(profile.plugins.queue_sort)
            errors.invalid(f"profiles[{index}].plugins.queueSort", shown, "must be the same for all profiles")
        for entry in profile.plugin_config:
            if entry.name == name and entry.args != canon_args:
                detail = "queueSort must be the same for all profiles"
                errors.invalid(f"profiles[{index}].pluginConfig.args", plain(entry.args), detail)


def _args_of(profile: KubeSchedulerProfile, plugin: str | None) -> Any:
    return next((entry.args for entry in profile.plugin_config if entry.name == plugin), None)


def _plugin_set_shown(plugins: PluginSet) -> dict[str, Any]:
    """A set as kube-scheduler's messages show it: Go's names for the fields, null for an empty list."""

    def shown(refs: tuple[PluginRef, ...]) -> list[dict[str, Any]] | None:
        return [{"Name": ref.name, "Weight": ref.weight} for ref in refs] or None

    return {"Enabled": shown(plugins.enabled), "Disabled": shown(plugins.disabled)}


# -- Extenders ---------------------------------------------------------------------------------------------------------


def _extenders(extenders: tuple[ExtenderConfiguration, ...], errors: ErrorList) -> None:
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            errors.invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for position, resource in enumerate(extender.managed_resources):
            name_path = f"{path}.managedResources[{position}].name"
            _extended_resource_name(resource.name, name_path, errors)
            if resource.name in seen:
                errors.invalid(name_path, resource.name, "duplicate extender managed resource name")
            seen.add(resource.name)
    n_binders = sum(1 for extender in extenders if extender.bind_verb)
    if n_binders > 1:
        shown = f"found {n_binders} extenders implementing bind"
        errors.invalid("extenders", shown, "only one extender can implement bind")


def _extended_resource_name(name: str, path: str, errors: ErrorList) -> None:
    problems = label_key_errors(name)
    for error in problems:
        errors.invalid(path, name, error)
    if not problems and not is_extended(name):
        errors.invalid(path, name, "is an invalid extended resource name")


_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")


def validate_node_affinity(affinity: NodeAffinity, path: str, errors: ErrorList) -> None:
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        terms_path = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(required.node_selector_terms):
            _term(term, f"{terms_path}[{index}]", errors)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
    for index, weighted in enumerate(preferred):
        if weighted.weight:
            # Kubernetes leaves `.preference` out of these paths.
            preferred_path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            _term(weighted.preference, preferred_path, errors)


def _term(term: NodeSelectorTerm, path: str, errors: ErrorList) -> None:
    for index, requirement in enumerate(term.match_expressions or ()):
        _label_requirement(requirement, f"{path}.matchExpressions[{index}]", errors)
    for index, requirement in enumerate(term.match_fields or ()):
        _field_requirement(requirement, f"{path}.matchFields[{index}]", errors)


def _label_requirement(requirement: NodeSelectorRequirement, path: str, errors: ErrorList) -> None:
    operator, values = requirement.operator, requirement.values or ()
    if operator not in _LABEL_OPERATORS:
        errors.unsupported(f"{path}.operator", operator, _LABEL_OPERATORS)
        return
    if problems := label_key_errors(requirement.key):
        errors.invalid(f"{path}.key", requirement.key, "; ".join(problems))
    shown = None if requirement.values is None else list(values)
    if operator in ("In", "NotIn") and not values:
        errors.invalid(f"{path}.values", shown, "for 'in', 'notin' operators, values set can't be empty")
    if operator in ("Exists", "DoesNotExist") and values:
        errors.invalid(f"{path}.values", shown, "values set must be empty for exists and does not exist")
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.invalid(f"{path}.values", shown, "for 'Gt', 'Lt' operators, exactly one value is required")
        for index, value in enumerate(values):
            if not _is_int64(value):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.invalid(f"{path}.values[{index}]", value, detail)
    for index, value in enumerate(values):
        if problems := label_value_errors(value):
            errors.invalid(f"{path}.values[{index}][{requirement.key}]", value, "; ".join(problems))


def _field_requirement(requirement: NodeSelectorRequirement, path: str, errors: ErrorList) -> None:
    if requirement.operator not in _FIELD_OPERATORS:
        errors.unsupported(f"{path}.operator", requirement.operator, _FIELD_OPERATORS)
    elif len(requirement.values or ()) != 1:
        shown = None if requirement.values is None else list(requirement.values)
        errors.invalid(f"{path}.values", shown, "must have one element")


def _is_int64(text: str) -> bool:
    return re.fullmatch(r"[-+]?[0-9]+", text, re.ASCII) is not None and -(2**63) <= int(text) < 2**63


_SCORING_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_MAX_UTILIZATION = 100
_MAX_SHAPE_SCORE = 10


def validate_args(args: PluginArgs, path: str, errors: ErrorList) -> None:
    match args:
        case DefaultPreemptionArgs():
            _default_preemption(args, path, errors)
        case DynamicResourcesArgs():
            _dynamic_resources(args, path, errors)
        case InterPodAffinityArgs():
            if not 0 <= args.hard_pod_affinity_weight <= 100:
                weight = args.hard_pod_affinity_weight
                errors.invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")
        case NodeAffinityArgs():
            if args.added_affinity is not None:
                validate_node_affinity(args.added_affinity, f"{path}.addedAffinity", errors)
        case NodeResourcesBalancedAllocationArgs():
            _balanced_allocation(args, path, errors)
        case NodeResourcesFitArgs():
            _node_resources_fit(args, path, errors)
        case PodTopologySpreadArgs():
            _pod_topology_spread(args, path, errors)
        case VolumeBindingArgs():
            _volume_binding(args, path, errors)


def _default_preemption(args: DefaultPreemptionArgs, path: str, errors: ErrorList) -> None:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path, absolute_path = f"{path}.minCandidateNodesPercentage", f"{path}.minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        errors.invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        errors.invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        errors.invalid(percentage_path, 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
        errors.invalid(absolute_path, 0, "cannot be zero at the same time as minCandidateNodesPercentage")


def _dynamic_resources(args: DynamicResourcesArgs, path: str, errors: ErrorList) -> None:
    if args.filter_timeout.nanoseconds < 0:
        errors.invalid(f"{path}.filterTimeout", args.filter_timeout, "must be zero or positive")
    if args.binding_timeout < Duration.of_seconds(1):
        errors.invalid(f"{path}.bindingTimeout", args.binding_timeout, "must be at least 1 second")


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str, errors: ErrorList) -> None:
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        if resource.name in seen:
            errors.duplicate(f"{path}.resources[{index}].name", resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            errors.invalid(f"{path}.resources[{index}].weight", resource.weight, "must be 1")


# -- NodeResourcesFit --------------------------------------------------------------------------------------------------


def _node_resources_fit(args: NodeResourcesFitArgs, path: str, errors: ErrorList) -> None:
    for index, resource in enumerate(args.ignored_resources):
        _label_name(resource, f"{path}.ignoredResources[{index}]", errors)
    for index, group in enumerate(args.ignored_resource_groups):
        group_path = f"{path}.ignoredResourceGroups[{index}]"
        if "/" in group:
            errors.invalid(group_path, group, "resource group name can't contain '/'")
        _label_name(group, group_path, errors)
    _scoring_strategy(args.scoring_strategy, f"{path}.scoringStrategy", errors)


def _scoring_strategy(strategy: ScoringStrategy, path: str, errors: ErrorList) -> None:
    if strategy.type not in _SCORING_STRATEGIES:
        errors.unsupported(f"{path}.type", strategy.type, _SCORING_STRATEGIES)
    _resource_weights(strategy.resources, f"{path}.resources", errors)
    ratio, ratio_path = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            errors.forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        errors.required(ratio_path, "must be specified when type is RequestedToCapacityRatio")
    else:
        _function_shape(ratio.shape, f"{ratio_path}.shape", errors)


def _resource_weights(resources: tuple[ResourceSpec, ...], path: str, errors: ErrorList) -> None:
    for index, resource in enumerate(resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            errors.invalid(f"{path}[{index}].weight", resource.weight, detail)


def _function_shape(shape: tuple[UtilizationShapePoint, ...], path: str, errors: ErrorList) -> None:
    if not shape:
        errors.required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            found = shape[index].utilization
            errors.invalid(f"{path}[{index}].utilization", found, "values must be sorted in increasing order")
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= _MAX_UTILIZATION:
            detail = f"not in valid range [0, {_MAX_UTILIZATION}]"
            errors.invalid(f"{path}[{index}].utilization", point.utilization, detail)
        if not 0 <= point.score <= _MAX_SHAPE_SCORE:
            errors.invalid(f"{path}[{index}].score", point.score, f"not in valid range [0, {_MAX_SHAPE_SCORE}]")


# -- PodTopologySpread, VolumeBinding ----------------------------------------------------------------------------------


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str, errors: ErrorList) -> None:
    defaulting = args.defaulting_type
    if defaulting not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        errors.unsupported(f"{path}.defaultingType", defaulting, (SYSTEM_DEFAULTING, LIST_DEFAULTING))
    elif defaulting == SYSTEM_DEFAULTING and args.default_constraints:
        errors.invalid(f"{path}.defaultingType", defaulting, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        constraint_path = f"{path}.defaultConstraints[{index}]"
        _default_constraint(constraint, constraint_path, errors)
        identity = (constraint.topology_key, constraint.when_unsatisfiable)
        if identity in seen:
            errors.duplicate(constraint_path, f"{{{identity[0]}, {identity[1]}}}")
        seen.add(identity)


def _default_constraint(constraint: TopologySpreadConstraint, path: str, errors: ErrorList) -> None:
    if constraint.max_skew <= 0:
        errors.invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        errors.required(f"{path}.topologyKey", "can not be empty")
    else:
        _label_name(constraint.topology_key, f"{path}.topologyKey", errors)
    if not constraint.when_unsatisfiable:
        errors.required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in _WHEN_UNSATISFIABLE:
        errors.unsupported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, _WHEN_UNSATISFIABLE)
    if constraint.label_selector is not None:
        # Kubernetes' own words, grammar included.
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.forbidden(f"{path}.labelSelector", detail)


def _volume_binding(args: VolumeBindingArgs, path: str, errors: ErrorList) -> None:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, detail)
    if args.shape is not None:
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in args.shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        errors.invalid(f"{path}.shape", shown, detail)


def _label_name(name: str, path: str, errors: ErrorList) -> None:
    for error in label_key_errors(name):
        errors.invalid(path, name, error)
