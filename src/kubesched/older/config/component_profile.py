"""The profiles of a component configuration (v1alpha1 to v1beta1), as the scheduler of that time put them together.

From v1.18 on its rule was simpler than today's: the default plugins of a point without those disabled, then those
enabled, in the order of the file. v1.17 only added those enabled, and before that there were no plugins to configure.

Next: `emulated` for what runs where, `component_config` for what such a configuration becomes today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kubesched.older.config.component_config import GROUP, convert_component_config
from kubesched.older.config.emulated import (
    AlgorithmSource,
    EmulatedPlugin,
    EmulatedProfile,
    Refusals,
    check_affinity_weight,
    every_plugin,
    interface_of,
    plugins_for,
    points_of,
)
from kubesched.older.config.generations import Generation
from kubesched.older.config.policy import RatioArgument, RatioResource, ShapePoint
from kubesched.older.config.policy_checks import label_conflict, ratio_problem
from kubesched.older.config.policy_profile import without_extenders_resources
from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration
from kubesched.scheduler.config.errors import ConfigError, ErrorList
from kubesched.scheduler.config.load import KIND, load

_CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
_LENIENT = f"{GROUP}/v1alpha1"
"""Of this version, fields that nobody knew were passed over."""

_PROFILE_FIELDS = ("schedulerName", "plugins", "pluginConfig")
"""Which a v1alpha1 configuration has at its top."""


def settings_around_profiles(config: Mapping[str, Any], generation: Generation) -> KubeSchedulerConfiguration:
    """What the configuration says of everything but plugins. It must be of a version that the scheduler read."""
    known = [f"{GROUP}/{version}" for version in generation.config_versions]
    errors = ErrorList()
    for name, wanted in (("apiVersion", known), ("kind", [KIND])):
        if config.get(name) not in wanted:
            errors.unsupported(name, config.get(name), wanted)
    if generation.flags_beside_config and "algorithmSource" in config:
        errors.add("algorithmSource", 'unknown field "algorithmSource"')
    if errors:
        raise ConfigError(errors)
    about_plugins = (*_PROFILE_FIELDS, "profiles", "algorithmSource")
    without_plugins = {name: item for name, item in config.items() if name not in about_plugins}
    return load(convert_component_config(without_plugins).manifest(), "config")


@dataclass
class ComponentProfiles:
    """Reads the profiles of one configuration as one version did. `notes` tell what it passed over."""

    config: Mapping[str, Any]
    generation: Generation
    source: AlgorithmSource
    around: KubeSchedulerConfiguration
    notes: list[str] = field(default_factory=list)

    @property
    def _refusals(self) -> Refusals:
        return Refusals(self.generation, self.source.provider if self.source.policy is None else None)

    @property
    def plugins_given(self) -> dict[str, Any]:
        """What stands at the top of the file and adds to the plugins there are."""
        adds = self.generation.registers_functions and bool(self.generation.extension_points)
        given = ("plugins", "pluginConfig") if adds else ()
        return {name: self.config[name] for name in given if self.config.get(name)}

    @property
    def _preempts_by_plugin(self) -> bool:
        return "postFilter" in self.generation.plugins_beside

    def read(self, standard: EmulatedProfile) -> tuple[EmulatedProfile, ...]:
        """`standard` holds the plugins of the provider or the Policy. Raises `ConfigError`, in the words of the
        version where it had some."""
        given = self.config.get("profiles") or [
            {name: self.config[name] for name in _PROFILE_FIELDS if name in self.config}
        ]
        self._check_names_of(given)
        found = tuple(
            self._profile(profile or {}, standard, f"profiles[{index}]") for index, profile in enumerate(given)
        )
        if self.config.get("disablePreemption"):
            found = tuple(replace(profile, preempts=False) for profile in found)
        found = self._with_affinity_weight(found)
        seconds = self.config.get("bindTimeoutSeconds")
        return found if seconds is None else tuple(profile.with_bind_timeout(seconds) for profile in found)

    def _check_names_of(self, profiles: Sequence[Any]) -> None:
        errors, seen = ErrorList(), dict[str, int]()
        for index, profile in enumerate(profiles):
            name = (profile or {}).get("schedulerName") or ""
            if name in seen:
                path = f"profiles[{index}].schedulerName"
                errors.add(path, f"Duplicate value: profiles[{seen[name]}].schedulerName")
            seen[name] = index
        if errors:
            raise ConfigError(errors)

    def _with_affinity_weight(self, profiles: tuple[EmulatedProfile, ...]) -> tuple[EmulatedProfile, ...]:
        weight = self.config.get("hardPodAffinitySymmetricWeight")
        if weight is None or (weight == 0 and self.generation.has_predicates):
            return profiles
        check_affinity_weight(weight, self.generation, self.source)
        return tuple(profile.with_hard_affinity_weight(weight) for profile in profiles)

    # -- one profile ---------------------------------------------------------------------------------------------------

    def _profile(self, profile: Mapping[str, Any], standard: EmulatedProfile, path: str) -> EmulatedProfile:
        name = profile.get("schedulerName") or standard.scheduler_name
        if not self.generation.extension_points:
            for given in ("plugins", "pluginConfig"):
                if profile.get(given):
                    self.notes.append(f"{given}: v{self.generation.version} has no plugins to configure: passed over")
            return replace(standard, scheduler_name=name)
        plugins, args = profile.get("plugins") or {}, self._args(profile, name)
        if self.source.policy is not None and not self.generation.registers_functions:
            for given, what in (("plugins", "Plugins"), ("pluginConfig", "PluginConfig")):
                if profile.get(given):
                    raise self._refusals.scheduler([f"using {what} and Policy simultaneously is not supported"])
        merged = self._merged(plugins, standard, path)
        standing = {plugin.name: dict(plugin.args) for plugin in (*standard.filters, *standard.scores)}
        self._check_args(merged, standing | args, name)
        self._check_points(merged, name)
        return self._with_plugins(replace(standard, scheduler_name=name), plugins, merged, args)

    def _args(self, profile: Mapping[str, Any], scheduler_name: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for entry in profile.get("pluginConfig") or ():
            plugin = entry.get("name", "")
            if plugin in found and not self.generation.registers_functions:
                raise self._refusals.framework(scheduler_name, f"repeated config for plugin {plugin}")
            found[plugin] = dict(entry.get("args") or {})
        return found

    def _merged(self, plugins: Mapping[str, Any], standard: EmulatedProfile, path: str) -> dict[str, list[str]]:
        """The names of the plugins at each point."""
        given = dict(plugins)
        if self.config.get("apiVersion") == _LENIENT and "postFilter" not in self.generation.extension_points:
            given["preScore"] = given.pop("postFilter", None)  # v1alpha1 kept the older name of the point
        self._check_known(given, path)
        running = points_of(standard, self.generation)
        return {point: list(self._at(given.get(point) or {}, running[point])) for point in running}

    def _at(self, given: Mapping[str, Any], default: tuple[str, ...]) -> Iterator[str]:
        disabled = {entry.get("name") for entry in given.get("disabled") or ()}
        if self.generation.registers_functions:
            disabled.clear()  # v1.17 did not look at it
        if "*" not in disabled:
            yield from (name for name in default if name not in disabled)
        yield from (entry.get("name", "") for entry in given.get("enabled") or ())

    def _check_known(self, plugins: Mapping[str, Any], path: str) -> None:
        errors = ErrorList()
        for point, given in plugins.items():
            if given is not None and point not in self.generation.extension_points:
                if self.config.get("apiVersion") == _LENIENT:
                    self.notes.append(f"plugins.{point}: not known to v{self.generation.version}: passed over")
                else:
                    errors.add(f"{path}.plugins.{point}", f'unknown field "{point}"')
            elif given and given.get("disabled") and self.generation.registers_functions:
                self.notes.append(f"plugins.{point}.disabled: v{self.generation.version} passed over it")
        if errors:
            raise ConfigError(errors)

    def _check_points(self, merged: Mapping[str, Sequence[str]], scheduler_name: str) -> None:
        """The first that could not be put in its place ended the start."""
        generation = self.generation
        if generation.plugins_beside and len(merged["queueSort"]) != 1:
            problem = f'one queue sort plugin required for profile with scheduler name "{scheduler_name}"'
            raise self._refusals.profiles(problem)
        for point in generation.extension_points:
            interface, able = interface_of(point), plugins_for(point, generation)
            for position, plugin in enumerate(merged[point]):
                if plugin not in every_plugin(generation):
                    problem = f'{interface} "{plugin}" does not exist'
                elif plugin not in able:
                    problem = f'plugin "{plugin}" does not extend {interface} plugin'
                elif plugin in merged[point][:position]:
                    problem = f'plugin "{plugin}" already registered as "{interface}"'
                else:
                    continue
                raise self._refusals.framework(scheduler_name, problem)
        if generation.plugins_beside and not merged["bind"]:
            raise self._refusals.framework(scheduler_name, "at least one bind plugin is needed")

    def _with_plugins(
        self,
        profile: EmulatedProfile,
        plugins: Mapping[str, Any],
        merged: Mapping[str, Sequence[str]],
        args: Mapping[str, dict[str, Any]],
    ) -> EmulatedProfile:
        entries = (plugins.get("score") or {}).get("enabled") or ()
        weights = {entry.get("name", ""): entry.get("weight") or 1 for entry in entries}
        filters, scores = (
            tuple(
                self._plugin(point, plugin, default, weights if point == "score" else {}, args)
                for plugin in merged[point]
            )
            for point, default in (("filter", profile.filters), ("score", profile.scores))
        )
        if not self.generation.registers_functions:
            filters = without_extenders_resources(filters, self.around.extenders)
        preempts = "DefaultPreemption" in merged.get("postFilter", ()) or not self._preempts_by_plugin
        beside = {point: tuple(found) for point, found in merged.items() if point not in ("filter", "score") and found}
        return replace(profile, filters=filters, scores=scores, preempts=preempts, beside=beside)

    def _plugin(
        self,
        point: str,
        name: str,
        default: Sequence[EmulatedPlugin],
        weights: Mapping[str, int],
        args: Mapping[str, dict[str, Any]],
    ) -> EmulatedPlugin:
        standing = next((plugin for plugin in default if plugin.name == name), None)
        if standing is None or name in weights:
            kind = plugins_for(point, self.generation)[name]
            weight = weights.get(name, 1) if point == "score" else 0
            return EmulatedPlugin(kind, name, _defaulted(kind, args.get(name, {})), weight)
        return standing if name not in args else replace(standing, args=_defaulted(standing.kind, args[name]))

    def _check_args(
        self, merged: Mapping[str, Sequence[str]], args: Mapping[str, dict[str, Any]], scheduler_name: str
    ) -> None:
        """What the plugins said that could not start with their arguments."""
        for plugin in dict.fromkeys(name for names in merged.values() for name in names):
            problem = None
            if plugin == "NodeLabel":
                problem = label_conflict(args.get(plugin, {}))
            elif plugin == "RequestedToCapacityRatio" and not self.generation.registers_functions:
                problem = ratio_problem(_ratio(args.get(plugin, {})), self.generation)
            if problem is not None:
                text = f'error initializing plugin "{plugin}": {problem}'
                raise self._refusals.framework(scheduler_name, text)


def _ratio(args: Mapping[str, Any]) -> RatioArgument:
    shape = tuple(ShapePoint(point.get("utilization", 0), point.get("score", 0)) for point in args.get("shape") or ())
    resources = tuple(
        RatioResource(item.get("name", ""), item.get("weight", 0)) for item in args.get("resources") or ()
    )
    return RatioArgument(shape, resources)


def _defaulted(kind: str, args: dict[str, Any]) -> dict[str, Any]:
    if kind == "RequestedToCapacityRatio" and not args.get("resources"):
        return args | {"resources": _CPU_AND_MEMORY}
    return args
