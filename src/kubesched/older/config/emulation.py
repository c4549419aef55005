"""What an older scheduler would run: from a Policy, an algorithm provider, a component configuration, or nothing.

What a user gave (`GivenConfiguration`) is read as the scheduler of a version read it (`as_of`), or translated
into today's configuration (`as_of_today`).

Next: `policy_profile` and `component_profile` for the two that name plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from kubesched.k8s import loaded_cluster
from kubesched.older.config import names
from kubesched.older.config.component_profile import ComponentProfiles, settings_around_profiles
from kubesched.older.config.conversion import Converted, convert_policy, convert_provider, load_any
from kubesched.older.config.emulated import (
    AUTOSCALER_PROVIDER,
    BIND_TIMEOUT_S,
    DEFAULT_PROVIDER,
    HARD_AFFINITY_WEIGHT,
    PROVIDERS,
    AlgorithmSource,
    EmulatedPlugin,
    EmulatedProfile,
    Emulation,
    PolicyReference,
    Refusals,
    RefusedConfigurationError,
    in_provided_order,
    policy_reference,
    provided_beside,
    provider_of,
)
from kubesched.older.config.generations import Generation, OlderGates, emulated_in_config, feature_gates
from kubesched.older.config.policy import Policy, decode_policy, load_policy
from kubesched.older.config.policy_profile import filters_of, profile_of_policy, scores_of
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.errors import ConfigError, ErrorList, FieldError
from kubesched.scheduler.config.feature_gates import GateError, check_switches
from kubesched.scheduler.config.load import default, parse

DEFAULT_SCHEDULER_NAME = "default-scheduler"


def emulate(
    generation: Generation,
    *,
    policy: Mapping[str, Any] | str | bytes | Policy | None = None,
    provider: str | None = None,
    config: Mapping[str, Any] | None = None,
    gates: Mapping[str, bool] | None = None,
    source: str = "policy",
    reference: PolicyReference | None = None,
) -> Emulation:
    """At most one of `policy`, `provider` and `config`; none of them means the default provider. A configuration that
    names a Policy needs that beside it, and that of some versions may have one of the others beside it. `reference` is
    where the Policy was found."""
    refers = config is not None and provider_of(config) is None
    is_apart = refers or generation.flags_beside_config
    if sum(given is not None for given in (policy, provider)) + (config is not None and not is_apart) > 1:
        raise ConfigError([FieldError("", "only one of policy, algorithm provider and configuration can be given")])
    if config is not None and policy is not None and not refers:
        _check_without_plugins(config)
    read = policy if isinstance(policy, Policy) or policy is None else decode_policy(_plain(policy), source)
    if refers:
        assert config is not None
        reference = reference or policy_reference(config)
        read = read or _policy_that_says_nothing(reference)
    named = provider if config is None or provider is not None else provider_of(config)
    algorithm = AlgorithmSource(DEFAULT_PROVIDER if named is None else named, read, reference)
    found = _emulation(generation, algorithm, config, feature_gates(generation, gates))
    share = found.config.percentage_of_nodes_to_score or generation.default_percentage_of_nodes
    return replace(found, config=msgspec.structs.replace(found.config, percentage_of_nodes_to_score=share))


def _check_without_plugins(config: Mapping[str, Any]) -> None:
    """A Policy takes the place of plugins, and of nothing else."""
    profiles = config.get("profiles") or [{}]
    if len(profiles) > 1 or any((profiles[0] or {}).get(field) for field in ("plugins", "pluginConfig")):
        raise RefusedConfigurationError("cannot set a Plugin config and Policy config")


def _policy_that_says_nothing(reference: PolicyReference | None) -> Policy:
    """`policy: {}` is one; a Policy that is somewhere else must have been read."""
    if reference is not None:
        raise ConfigError([FieldError("algorithmSource.policy", f"the Policy itself is needed: {reference}")])
    return Policy()


def _emulation(
    generation: Generation, source: AlgorithmSource, config: Mapping[str, Any] | None, gates: OlderGates
) -> Emulation:
    around = default() if config is None else settings_around_profiles(config, generation)
    if source.policy is None:
        profile = provider_profile(source.provider, generation, gates)
    else:
        profile = profile_of_policy(source.policy, generation, gates, _scheduler_name(config))
        around = msgspec.structs.replace(around, extenders=source.policy.extenders)
    if config is None:
        return Emulation(generation, (profile,), around, source, gates)
    profiles = ComponentProfiles(config, generation, source, around)
    found = profiles.read(profile)
    return Emulation(
        generation,
        found,
        around,
        source,
        gates,
        bind_timeout_s=BIND_TIMEOUT_S if (seconds := config.get("bindTimeoutSeconds")) is None else seconds,
        hard_affinity_weight=config.get("hardPodAffinitySymmetricWeight") or HARD_AFFINITY_WEIGHT,
        plugins_given=profiles.plugins_given,
        notes=tuple(profiles.notes),
    )


def _scheduler_name(config: Mapping[str, Any] | None) -> str:
    given = config or {}
    [first, *_] = given.get("profiles") or [given]
    return (first or {}).get("schedulerName") or DEFAULT_SCHEDULER_NAME


def provider_profile(provider: str, generation: Generation, gates: OlderGates) -> EmulatedProfile:
    """The set of plugins that a provider's name stood for. Raises `RefusedConfigurationError`."""
    if provider not in PROVIDERS:
        raise Refusals(generation, provider).unknown_provider()
    filters = filters_of(names.default_predicates(generation, gates), generation)
    priorities = dict(names.default_priorities(generation, gates))
    if provider == AUTOSCALER_PROVIDER:
        priorities["MostRequestedPriority"] = priorities.pop("LeastRequestedPriority")
    scores = in_provided_order(scores_of(priorities, generation), generation)
    if not generation.has_predicates and not generation.registers_functions:
        filters = _spread_last(filters, generation)
    beside = provided_beside(generation, filters, scores)
    return EmulatedProfile(DEFAULT_SCHEDULER_NAME, filters, scores, beside=beside)


def _spread_last(filters: tuple[EmulatedPlugin, ...], generation: Generation) -> tuple[EmulatedPlugin, ...]:
    """Where the provider adds spreading by a feature gate, it comes after all others."""
    if not generation.gates:
        return filters
    spread = tuple(plugin for plugin in filters if plugin.kind == "PodTopologySpread")
    return tuple(plugin for plugin in filters if plugin not in spread) + spread


def _plain(policy: Mapping[str, Any] | str | bytes) -> dict[str, Any] | str | bytes:
    return dict(policy) if isinstance(policy, Mapping) else policy


Document = dict[str, Any] | str | bytes


@dataclass(frozen=True)
class GivenConfiguration:
    config: Document | None = None
    policy: Document | None = None
    provider: str | None = None
    feature_gates: Mapping[str, bool] | None = None
    config_source: str = "config"
    policy_source: str = "policy"
    reference: PolicyReference | None = None
    """Where the Policy was found."""
    emulate: str | None = None
    """The version whose decisions are wanted."""

    @classmethod
    def read(
        cls,
        config: loaded_cluster.Document = None,
        policy: loaded_cluster.Document = None,
        provider: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        emulate: str | None = None,
    ) -> GivenConfiguration:
        """From dictionaries, YAML texts or paths, as the library is given them."""
        read_config, config_source = loaded_cluster.read_document(config, "config")
        read_policy, policy_source = loaded_cluster.read_document(policy, "policy")
        return cls(read_config, read_policy, provider, feature_gates, config_source, policy_source, emulate=emulate)

    def policy_reference(self) -> PolicyReference | None:
        """Where the configuration says that its Policy is, if it says so. Raises `ConfigError`."""
        return None if self.config is None else policy_reference(_mapping(self.config, self.config_source))

    def without_policy(self) -> GivenConfiguration:
        """As if no Policy were named: for what must be known before it can be read."""
        config = None if self.config is None else _mapping(self.config, self.config_source)
        if config is not None:
            config = {name: item for name, item in config.items() if name != "algorithmSource"}
        return replace(self, config=config, policy=None, reference=None)

    def as_of(self, generation: Generation) -> Emulation:
        """Raises `RefusedConfigurationError` in the words of that version, `ConfigError` for anything else."""
        return emulate(
            generation,
            policy=self.policy,
            provider=self.provider,
            config=None if self.config is None else _mapping(self.config, self.config_source),
            gates=self.feature_gates,
            source=self.policy_source,
            reference=self.reference,
        )

    def as_of_today(self) -> Converted:
        """Today's configuration, with what was changed or dropped on the way to it."""
        converted = self._converted()
        if (version := emulated_in_config(self.emulate)) is not None:
            converted = replace(converted, config=msgspec.structs.replace(converted.config, emulate=version))
        if not self.feature_gates:
            return converted
        try:
            check_switches(self.feature_gates, converted.config.emulate)
            config = with_gates(converted.config, self.feature_gates)
            check_switches(config.gates, config.emulate)
        except GateError as problem:
            raise ConfigError([FieldError("--feature-gates", error) for error in problem.errors]) from None
        return replace(converted, config=config)

    def _converted(self) -> Converted:
        if sum(given is not None for given in (self.config, self.policy, self.provider)) > 1:
            raise ConfigError([FieldError("", "only one of policy, algorithm provider and configuration can be given")])
        if self.policy is not None:
            return convert_policy(load_policy(self.policy, self.policy_source), self.policy_source)
        if self.provider is not None:
            return convert_provider(self.provider)
        if self.config is None:
            return Converted(default())
        return load_any(self.config, self.config_source)


def _mapping(data: Document, source: str) -> dict[str, Any]:
    errors = ErrorList()
    value = data if isinstance(data, dict) else parse(data, source, errors)
    if errors:
        raise ConfigError(errors, source)
    if not isinstance(value, dict):
        raise ConfigError([FieldError("", "must be an object")], source)
    return value
