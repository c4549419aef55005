"""What is allowed in a configuration: every rule of kube-scheduler v1.36, all validation errors at once.

Rules that need to know the plugins (does it exist? does it implement that point?) are in `resolve`.

Next: `validation_args` for the arguments of plugins.
"""

from __future__ import annotations

from typing import Any

from kubesched.k8s.model.label_syntax import label_key_errors
from kubesched.k8s.model.requests import is_extended
from kubesched.scheduler.config.configuration import (
    ClientConnectionConfiguration,
    ExtenderConfiguration,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    plain,
)
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.feature_gates import EMULATED_IN_CONFIG, GateError, check_switches
from kubesched.scheduler.config.plugin_args import ARGS_BY_PLUGIN
from kubesched.scheduler.config.profile import EXTENSION_POINTS, KubeSchedulerProfile, PluginRef, PluginSet
from kubesched.scheduler.config.schema import API_VERSION
from kubesched.scheduler.config.validation_args import validate_args

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
        check_switches(config.gates)
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
