"""The configuration that counts: defaults or a file, and the flags that override them.

As in kube-scheduler: without a file, the deprecated flags and those of leader election override the defaults; with a
file, those of leader election alone override it. A flag that was not given overrides nothing.

Next: `kubesched.scheduler.config.load` for files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubesched.live.options.command import GivenFlags
from kubesched.live.options.flag import FlagError
from kubesched.live.options.flag_table import FLAGS
from kubesched.live.options.older_scheduler import (
    ALGORITHM_FLAGS,
    BaseScheduler,
    algorithm_flags_count,
    base_scheduler,
)
from kubesched.scheduler.config import ConfigError, KubeSchedulerConfiguration, LeaderElectionConfiguration
from kubesched.scheduler.config.decode import parse
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.validation import validate

_CONNECTION_FIELDS = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_OLDER_ELECTION_FIELDS = {"lock-object-name": "resource_name", "lock-object-namespace": "resource_namespace"}
_PROFILING_FIELDS = {"profiling": "enable_profiling", "contention-profiling": "enable_contention_profiling"}
_ELECTION_FIELDS = {
    "leader-elect": ("leader_elect", "leaderElect"),
    "leader-elect-lease-duration": ("lease_duration", "leaseDuration"),
    "leader-elect-renew-deadline": ("renew_deadline", "renewDeadline"),
    "leader-elect-retry-period": ("retry_period", "retryPeriod"),
    "leader-elect-resource-lock": ("resource_lock", "resourceLock"),
    "leader-elect-resource-name": ("resource_name", "resourceName"),
    "leader-elect-resource-namespace": ("resource_namespace", "resourceNamespace"),
}
_JITTER_FACTOR = 1.2
"""A retry may come later than the retry period by so much."""


def effective_configuration(given: GivenFlags) -> KubeSchedulerConfiguration:
    """Raises `ConfigError` for a mistake in the file or in what came together, `FlagError` if it cannot be read."""
    return effective_scheduler(given).configuration


def effective_scheduler(
    given: GivenFlags, policy: bytes | None = None, gates: Mapping[str, bool] | None = None
) -> BaseScheduler:
    """The configuration, and the older scheduler that stands in for it, if one was asked for. `policy` was read from a
    ConfigMap; `gates` are those of the emulated version."""
    path = given.get("config", "")
    content = _file_content(path, given) if path else None
    base = base_scheduler(given, policy, content, dict(gates or {}))
    configuration = base.configuration if path else _with_flags(base.configuration, given)
    election = replace(configuration.leader_election, **dict(_election_fields(given)))
    configuration = replace(configuration, leader_election=election)
    errors = ErrorList()
    validate(configuration, errors)
    _check_election(election, errors)
    if errors:
        raise ConfigError(errors, path)
    emulation = None if base.emulation is None else dataclasses.replace(base.emulation, config=configuration)
    return dataclasses.replace(base, configuration=configuration, emulation=emulation)


def ignored_flags(given: GivenFlags) -> Iterator[str]:
    """Warnings about flags that say nothing next to a configuration file."""
    if given.get("config"):
        counted = ALGORITHM_FLAGS if algorithm_flags_count(given) else ()
        for flag in FLAGS:
            if flag.name in given and flag.yields_to_config and flag.name not in counted:
                yield f"--{flag.name} is ignored because --config is given"


def _with_flags(configuration: KubeSchedulerConfiguration, given: GivenFlags) -> KubeSchedulerConfiguration:
    connection = replace(configuration.client_connection, **_fields(_CONNECTION_FIELDS, given))
    election = replace(configuration.leader_election, **_fields(_OLDER_ELECTION_FIELDS, given))
    profiling = _fields(_PROFILING_FIELDS, given)
    return replace(configuration, client_connection=connection, leader_election=election, **profiling)


def _file_content(path: str, given: GivenFlags) -> dict[str, Any] | bytes:
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise FlagError(f"--config: open {path}: {problem.strerror or problem}") from None
    repeated = ErrorList()
    value = parse(data, path, repeated)
    overrides = _as_manifest(given)
    election = value.get("leaderElection") or {} if isinstance(value, dict) else None
    if overrides and isinstance(election, dict) and not repeated:
        # What flags override need not be right in the file: the file is checked as if it said what they say.
        return {**value, "leaderElection": {**election, **overrides}}
    return data


def _as_manifest(given: GivenFlags) -> dict[str, Any]:
    """The flags of leader election as a file would have them."""
    return {
        manifest_name: given[flag] if isinstance(given[flag], bool) else str(given[flag])
        for flag, (_, manifest_name) in _ELECTION_FIELDS.items()
        if flag in given
    }


def _election_fields(given: GivenFlags) -> Iterator[tuple[str, Any]]:
    for flag, (name, _) in _ELECTION_FIELDS.items():
        if flag in given:
            yield name, given[flag]


def _fields(names: Mapping[str, str], given: GivenFlags) -> dict[str, Any]:
    return {field: given[flag] for flag, field in names.items() if flag in given}


def _check_election(election: LeaderElectionConfiguration, errors: ErrorList) -> None:
    """Rules that a file cannot break, for there an empty text means the default; and one that is kept at the start."""
    if not election.leader_elect:
        return
    for name in ("resourceNamespace", "resourceName"):
        text = election.resource_name if name == "resourceName" else election.resource_namespace
        if not text:
            errors.required(f"leaderElection.{name}")
    if election.renew_deadline.nanoseconds <= election.retry_period.nanoseconds * _JITTER_FACTOR:
        detail = "renewDeadline must be greater than retryPeriod*JitterFactor"
        errors.invalid("leaderElection.renewDeadline", election.renew_deadline, detail)
