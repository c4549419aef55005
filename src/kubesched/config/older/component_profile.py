"""The profiles of a component configuration (v1alpha1 to v1beta3), as the scheduler of that time merged them.

Its rule was simpler than today's: the default plugins of a point without those disabled, then those enabled, in the
order of the file. A plugin that stands there twice was refused.

Next: `component_config` for what such a configuration becomes today.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kubesched.config.configuration import KubeSchedulerConfiguration
from kubesched.config.errors import ConfigError, ErrorList
from kubesched.config.load import KIND, load
from kubesched.config.older import names
from kubesched.config.older.component_config import GROUP, convert_component_config
from kubesched.config.older.emulated import EmulatedPlugin, EmulatedProfile
from kubesched.config.older.generations import Generation
from kubesched.config.older.refusal import RefusedConfigurationError

_FILTERS = frozenset(kind for kinds in names.PLUGINS_OF_PREDICATES.values() for kind in kinds if "Check" not in kind)
_SCORES = frozenset(names.PLUGINS_OF_PRIORITIES.values()) - {names.EQUAL_PRIORITY} | {"NodeLabel", "ServiceAffinity"}

_CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
_STAGES = {"filter": "FilterPlugin", "score": "ScorePlugin"}


_PROFILE_FIELDS = ("schedulerName", "plugins", "pluginConfig")
"""Which a v1alpha1 configuration has at its top."""


def settings_around_profiles(config: Mapping[str, Any], generation: Generation) -> KubeSchedulerConfiguration:
    """What the configuration says of everything but plugins. It must be of a version that the scheduler read."""
    known = [f"{GROUP}/{version}" for version in generation.config_versions]
    errors = ErrorList()
    for field, wanted in (("apiVersion", known), ("kind", [KIND])):
        if config.get(field) not in wanted:
            errors.unsupported(field, config.get(field), wanted)
    if errors:
        raise ConfigError(errors)
    without_plugins = {name: item for name, item in config.items() if name not in (*_PROFILE_FIELDS, "profiles")}
    return load(convert_component_config(without_plugins).manifest(), "config")


def profiles_of_component_config(
    config: Mapping[str, Any], standard: EmulatedProfile, generation: Generation
) -> tuple[EmulatedProfile, ...]:
    """`standard` holds the default plugins."""
    given = config.get("profiles") or [{name: config[name] for name in _PROFILE_FIELDS if name in config}]
    errors = ErrorList()
    found = tuple(
        _profile(profile or {}, standard, generation, f"profiles[{index}]", errors)
        for index, profile in enumerate(given)
    )
    if errors:
        raise ConfigError(errors)
    if config.get("disablePreemption"):
        found = tuple(replace(profile, preempts=False) for profile in found)
    weight = config.get("hardPodAffinitySymmetricWeight")
    return found if weight is None else tuple(profile.with_hard_affinity_weight(weight) for profile in found)


def _profile(
    profile: Mapping[str, Any], standard: EmulatedProfile, generation: Generation, path: str, errors: ErrorList
) -> EmulatedProfile:
    plugins = profile.get("plugins") or {}
    args = {entry.get("name", ""): dict(entry.get("args") or {}) for entry in profile.get("pluginConfig") or ()}
    name = profile.get("schedulerName") or standard.scheduler_name
    merged = []
    for point, default, known in (("filter", standard.filters, _FILTERS), ("score", standard.scores, _SCORES)):
        kinds = {names.plugin_name(generation, kind): kind for kind in known}
        found = _merge(plugins.get(point) or {}, default, kinds, f"{path}.plugins.{point}", errors)
        _refuse_twice(found, name, point)
        merged.append(tuple(replace(plugin, args=_defaulted(plugin.kind, args)) for plugin in found))
    filters, scores = merged
    preempts = "DefaultPreemption" in _merged_names(plugins.get("postFilter") or {}, ("DefaultPreemption",))
    return EmulatedProfile(name, filters, scores, preempts=preempts)


def _merge(
    point: Mapping[str, Any],
    default: tuple[EmulatedPlugin, ...],
    kinds: Mapping[str, str],
    path: str,
    errors: ErrorList,
) -> list[EmulatedPlugin]:
    disabled = {entry.get("name") for entry in point.get("disabled") or ()}
    found = [] if "*" in disabled else [plugin for plugin in default if plugin.name not in disabled]
    for index, entry in enumerate(point.get("enabled") or ()):
        name = entry.get("name", "")
        if name not in kinds:
            errors.unsupported(f"{path}.enabled[{index}].name", name, sorted(kinds))
            continue
        found.append(EmulatedPlugin(kinds[name], name, {}, entry.get("weight") or 1))
    return found


def _merged_names(point: Mapping[str, Any], default: tuple[str, ...]) -> list[str]:
    disabled = {entry.get("name") for entry in point.get("disabled") or ()}
    kept = [] if "*" in disabled else [name for name in default if name not in disabled]
    return kept + [entry.get("name", "") for entry in point.get("enabled") or ()]


def _refuse_twice(plugins: list[EmulatedPlugin], scheduler_name: str, point: str) -> None:
    seen: set[str] = set()
    for plugin in plugins:
        if plugin.name in seen:
            problem = f'plugin "{plugin.name}" already registered as "{_STAGES[point]}"'
            where = f"creating profile for scheduler name {scheduler_name}: {problem}"
            raise RefusedConfigurationError(
                f'couldn\'t create scheduler using provider "DefaultProvider": initializing profiles: {where}'
            )
        seen.add(plugin.name)


def _defaulted(kind: str, args: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    found = args.get(kind, {})
    if kind == "RequestedToCapacityRatio" and not found.get("resources"):
        return found | {"resources": _CPU_AND_MEMORY}
    return found
