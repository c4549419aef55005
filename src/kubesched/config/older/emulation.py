"""What an older scheduler would run: from a Policy, an algorithm provider, a component configuration, or nothing.

Next: `policy_profile` and `component_profile` for the two that name plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from kubesched.config.errors import ConfigError, FieldError
from kubesched.config.load import default
from kubesched.config.older import names
from kubesched.config.older.component_profile import profiles_of_component_config, settings_around_profiles
from kubesched.config.older.emulated import EmulatedPlugin, EmulatedProfile, Emulation
from kubesched.config.older.gates import OlderGates, feature_gates
from kubesched.config.older.generations import Generation
from kubesched.config.older.policy import Policy, load_policy
from kubesched.config.older.policy_profile import filters_of, profile_of_policy, scores_of

DEFAULT_PROVIDER = "DefaultProvider"
AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"
PROVIDERS = (AUTOSCALER_PROVIDER, DEFAULT_PROVIDER)

DEFAULT_SCHEDULER_NAME = "default-scheduler"


def emulate(
    generation: Generation,
    *,
    policy: Mapping[str, Any] | str | bytes | Policy | None = None,
    provider: str | None = None,
    config: Mapping[str, Any] | None = None,
    gates: Mapping[str, bool] | None = None,
    source: str = "policy",
) -> Emulation:
    """At most one of `policy`, `provider` and `config`; none of them means the default provider."""
    found = _emulation(generation, policy, provider, config, gates, source)
    share = found.config.percentage_of_nodes_to_score or generation.default_percentage_of_nodes
    return replace(found, config=msgspec.structs.replace(found.config, percentage_of_nodes_to_score=share))


def _emulation(
    generation: Generation,
    policy: Mapping[str, Any] | str | bytes | Policy | None,
    provider: str | None,
    config: Mapping[str, Any] | None,
    gates: Mapping[str, bool] | None,
    source: str,
) -> Emulation:
    if sum(given is not None for given in (policy, provider, config)) > 1:
        raise ConfigError([FieldError("", "only one of policy, algorithm provider and configuration can be given")])
    switches = feature_gates(generation, gates)
    if policy is not None:
        read = policy if isinstance(policy, Policy) else load_policy(_plain(policy), source)
        profile = profile_of_policy(read, generation, switches, DEFAULT_SCHEDULER_NAME)
        return Emulation(generation, (profile,), msgspec.structs.replace(default(), extenders=read.extenders))
    if config is None:
        return Emulation(generation, (provider_profile(provider or DEFAULT_PROVIDER, generation, switches),), default())
    around = settings_around_profiles(config, generation)
    named = (config.get("algorithmSource") or {}).get("provider")
    standard = provider_profile(named or DEFAULT_PROVIDER, generation, switches)
    return Emulation(generation, profiles_of_component_config(config, standard, generation), around)


def provider_profile(provider: str, generation: Generation, gates: OlderGates) -> EmulatedProfile:
    """The set of plugins that a provider's name stood for."""
    if provider not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        message = f'algorithm provider "{provider}" is not registered: there are {known}'
        raise ConfigError([FieldError("algorithmProvider", message)])
    filters = filters_of(names.default_predicates(generation, gates), generation)
    priorities = dict(names.default_priorities(generation, gates))
    if provider == AUTOSCALER_PROVIDER:
        priorities["MostRequestedPriority"] = priorities.pop("LeastRequestedPriority")
    scores = scores_of(priorities, generation)
    if not generation.has_predicates and not generation.registers_functions:
        filters = _spread_last(filters, generation)
    return EmulatedProfile(DEFAULT_SCHEDULER_NAME, filters, scores)


def _spread_last(filters: tuple[EmulatedPlugin, ...], generation: Generation) -> tuple[EmulatedPlugin, ...]:
    """Where the provider adds spreading by a feature gate, it comes after all others."""
    if not generation.gates:
        return filters
    spread = tuple(plugin for plugin in filters if plugin.kind == "PodTopologySpread")
    return tuple(plugin for plugin in filters if plugin not in spread) + spread


def _plain(policy: Mapping[str, Any] | str | bytes) -> dict[str, Any] | str | bytes:
    return dict(policy) if isinstance(policy, Mapping) else policy
