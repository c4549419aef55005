"""The scheduler that older flags and files ask for: translated into today's configuration, or emulated.

Next: `effective`, which puts today's flags on top; `kubesched.older.config` for the translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace as with_fields

from kubesched.live.options.command import GivenFlags
from kubesched.live.options.flag import FlagError
from kubesched.older.config import (
    Emulation,
    Generation,
    PolicyConfigMap,
    PolicyFile,
    PolicyReference,
    generation_of,
)
from kubesched.older.config.algorithm_source import SYSTEM_NAMESPACE
from kubesched.older.config.given import GivenConfiguration
from kubesched.older.config.refusal import RefusedConfigurationError
from kubesched.scheduler.config import ConfigError, InterPodAffinityArgs, KubeSchedulerConfiguration, PluginConfig

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
    except ConfigError as mistake:
        raise FlagError(f"--{mistake}") from None


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
        asked = replace(asked, provider=provider)
    if policy is None and isinstance(reference, PolicyFile):
        policy = _policy_from_file(reference.path, generation)
    if policy is not None:
        asked = replace(asked, policy=policy, policy_source=str(reference), reference=reference)
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
    return replace(found, configuration=configuration, emulation=emulation)


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
