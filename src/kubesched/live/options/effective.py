"""The configuration that counts: defaults or a file, and the flags that override them. And how it is written to a file.

As in kube-scheduler: without a file, the deprecated flags and those of leader election override the defaults; with a
file, those of leader election alone override it. A flag that was not given overrides nothing. What older flags and
files ask for is translated into today's configuration, or emulated.

`--write-config-to` writes profiles as they are used: arguments only of plugins that are enabled, in the order of their
names. Under `--emulate` it is a file of the emulated version, with what that runs in its first lines. The file appears
as a whole or not at all, and only its owner can read it.

Next: `kubesched.scheduler.config.load` for files, `kubesched.older.config` for the translation.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from msgspec.structs import replace as with_fields

from kubesched.k8s.model.kubernetes_yaml import load_document
from kubesched.live.options.command import GivenFlags
from kubesched.live.options.flag import FlagError
from kubesched.live.options.flag_table import FLAGS
from kubesched.older.config import (
    Emulation,
    Generation,
    PolicyConfigMap,
    PolicyFile,
    PolicyReference,
    emulated_in_config,
    generation_of,
)
from kubesched.older.config.emulated import SYSTEM_NAMESPACE, RefusedConfigurationError
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.running import losses, manifest_of_then, summary_lines
from kubesched.scheduler import config
from kubesched.scheduler.config import (
    ConfigError,
    InterPodAffinityArgs,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
)
from kubesched.scheduler.config.configuration import enabled_names
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.load import parse
from kubesched.scheduler.config.validation import validate

_HIGHEST_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class BaseScheduler:
    """Before today's flags. `notes` say what became of something old."""

    configuration: KubeSchedulerConfiguration
    emulation: Emulation | None = None
    notes: tuple[str, ...] = ()
    awaited_policy: PolicyConfigMap | None = None
    """Where a Policy is still to be read from; until then the scheduler is one without it."""


ALGORITHM_FLAGS = (
    *("policy-config-file", "policy-configmap", "policy-configmap-namespace"),
    *("use-legacy-policy-config", "algorithm-provider"),
)
"""Which name a Policy or a provider."""


def algorithm_flags_count(given: GivenFlags) -> bool:
    """Beside a configuration file they do in some older versions only."""
    generation = emulated_generation(given)
    return not given.get("config") or (generation is not None and generation.flags_beside_config)


def _policy_of_flags(given: GivenFlags) -> PolicyReference | None:
    """Where the flags say that there is a Policy: a ConfigMap goes before a file, unless the file shall go first."""
    path, name = given.get("policy-config-file", ""), given.get("policy-configmap", "")
    if given.get("use-legacy-policy-config", False):
        if not path:
            required = "Required value: required when --use-legacy-policy-config is true"
            raise FlagError(f"policyConfigFile: {required}")
        return PolicyFile(path)
    if name:
        return PolicyConfigMap(given.get("policy-configmap-namespace") or SYSTEM_NAMESPACE, name)
    return PolicyFile(path) if path else None


def emulated_generation(given: GivenFlags) -> Generation | None:
    version = given.get("emulate", "")
    if not version:
        return None
    try:
        return generation_of(version)
    except ConfigError as error:
        raise FlagError(f"--{error}") from None


GatePair = tuple[str, str]
"""(component, `Gate=true`)"""


def split_gates(
    pairs: Sequence[GatePair], generation: Generation | None
) -> tuple[dict[str, bool], tuple[GatePair, ...]]:
    """The gates of the emulated version, and what is left for today's."""
    older: dict[str, bool] = {}
    others = []
    for component, text in pairs:
        name, _, switch = (part.strip() for part in text.partition("="))
        if generation is not None and name in generation.gates and switch.lower() in ("true", "false"):
            older[name] = switch.lower() == "true"
        else:
            others.append((component, text))
    return older, tuple(others)


def base_scheduler(
    given: GivenFlags, policy: bytes | None, config: dict[str, Any] | bytes | None, gates: dict[str, bool]
) -> BaseScheduler:
    """`policy` is what was read from the ConfigMap, `config` the content of the configuration file."""
    path = given.get("config", "")
    generation = emulated_generation(given)
    asked = GivenConfiguration(config, None, None, gates or None, config_source=path)
    reference = asked.policy_reference() if generation is not None and path else None
    if algorithm_flags_count(given):
        reference = _policy_of_flags(given)
        provider = None if reference is not None else given.get("algorithm-provider") or None
        asked = dataclasses.replace(asked, provider=provider)
    if policy is None and isinstance(reference, PolicyFile):
        policy = _policy_from_file(reference.path, generation)
    if policy is not None:
        asked = dataclasses.replace(asked, policy=policy, policy_source=str(reference), reference=reference)
    elif isinstance(reference, PolicyConfigMap):
        asked = asked.without_policy()
    awaited = reference if policy is None and isinstance(reference, PolicyConfigMap) else None
    if generation is not None:
        emulation = asked.as_of(generation)
        found = BaseScheduler(emulation.config, emulation, emulation.notes, awaited)
    else:
        converted = asked.as_of_today()
        found = BaseScheduler(converted.config, notes=converted.notes, awaited_policy=awaited)
    return found if path else _with_older_flags(found, given)


def _policy_from_file(path: str, generation: Generation | None) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as problem:
        if generation is not None:
            raise RefusedConfigurationError(f"missing policy config file {path}") from None
        raise FlagError(f"--policy-config-file: open {path}: {problem.strerror}") from None
    except OSError as problem:
        if generation is not None:
            text = f"couldn't read policy config: open {path}: {problem.strerror or problem}"
            raise RefusedConfigurationError(text) from None
        raise FlagError(f"--policy-config-file: open {path}: {problem.strerror or problem}") from None


def _with_older_flags(found: BaseScheduler, given: GivenFlags) -> BaseScheduler:
    name, weight = given.get("scheduler-name"), given.get("hard-pod-affinity-symmetric-weight")
    if weight is not None and not 0 <= weight <= _HIGHEST_WEIGHT:
        raise FlagError(f"--hard-pod-affinity-symmetric-weight: {weight} is not in the range 0-100")
    configuration, emulation = found.configuration, found.emulation
    if name:
        profiles = tuple(with_fields(profile, scheduler_name=name) for profile in configuration.profiles)
        configuration = with_fields(configuration, profiles=profiles)
    if weight is not None:
        configuration = _with_affinity_weight(configuration, weight)
    if emulation is not None:
        emulation = emulation.renamed(name) if name else emulation
        emulation = emulation if weight is None else emulation.with_hard_affinity_weight(weight)
    return dataclasses.replace(found, configuration=configuration, emulation=emulation)


def _with_affinity_weight(configuration: KubeSchedulerConfiguration, weight: int) -> KubeSchedulerConfiguration:
    profiles = []
    for profile in configuration.profiles:
        entries = tuple(
            PluginConfig(entry.name, with_fields(entry.args, hard_pod_affinity_weight=weight))
            if isinstance(entry.args, InterPodAffinityArgs)
            else entry
            for entry in profile.plugin_config
        )
        profiles.append(with_fields(profile, plugin_config=entries))
    return with_fields(configuration, profiles=tuple(profiles))


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
    """Raises `ConfigError` if the file, or what came together, is invalid, `FlagError` if it cannot be read."""
    return effective_scheduler(given).configuration


def effective_scheduler(
    given: GivenFlags,
    policy: bytes | None = None,
    gates: Mapping[str, bool] | None = None,
    switches: Mapping[str, bool] | None = None,
) -> BaseScheduler:
    """The configuration, and the older scheduler that stands in for it, if one was asked for. `policy` was read from a
    ConfigMap; `gates` are those of the emulated version, `switches` those of today's that switch something here."""
    path = given.get("config", "")
    content = _file_content(path, given) if path else None
    base = base_scheduler(given, policy, content, dict(gates or {}))
    configuration = base.configuration if path else _with_flags(base.configuration, given)
    if (version := emulated_in_config(given.get("emulate", ""))) is not None:
        configuration = replace(configuration, emulate=version)
    if switches and base.emulation is None:
        configuration = with_gates(configuration, switches)
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


def configuration_yaml(configuration: KubeSchedulerConfiguration) -> str:
    """The configuration as a manifest that, read again, gives the same scheduler."""
    profiles = tuple(map(_completed, configuration.profiles))
    return config.to_yaml(config.to_manifest(replace(configuration, profiles=profiles)))


def check_written(emulation: Emulation, flag: str) -> None:
    """Raises FlagError if the configuration that is written reads back as another one."""
    text, lost = emulation_yaml(emulation), losses(emulation)
    try:
        written = GivenConfiguration.read(load_document(text), None, None, emulation.gates.values)
        is_same = not lost and emulation_yaml(written.as_of(emulation.generation)) == text
    except ConfigError:
        is_same = False
    if not is_same:
        problem = "; ".join(lost) or "its Policy is somewhere else"
        raise FlagError(f"{flag}: no file of v{emulation.generation.version} can say all of this: {problem}")


def emulation_yaml(emulation: Emulation) -> str:
    """The configuration of the emulated version, under what it runs; read again with `--emulate`, it gives the same."""
    lost = [f"not in this file: {text}" for text in losses(emulation)]
    head = "".join(f"# {line}\n" for line in (*summary_lines(emulation), *lost))
    return f"{head}{config.to_yaml(manifest_of_then(emulation))}"


def write_configuration(
    configuration: KubeSchedulerConfiguration, path: Path, emulation: Emulation | None = None
) -> None:
    """Write the file; whoever calls then exits with 0. Raises `FlagError` if it cannot be written."""
    try:
        _write_whole(path, configuration_yaml(configuration) if emulation is None else emulation_yaml(emulation))
    except OSError as problem:
        raise FlagError(f"--write-config-to: open {path}: {problem.strerror or problem}") from None


def _completed(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    enabled = enabled_names(profile.plugins)
    used = sorted((entry for entry in profile.plugin_config if entry.name in enabled), key=lambda entry: entry.name)
    return replace(profile, plugin_config=tuple(used))


def _write_whole(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():
        # A pipe or a device is written to, not replaced.
        path.write_text(text)
        return
    # Such a file is made with mode 0600, and under a name that nobody can have prepared.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
