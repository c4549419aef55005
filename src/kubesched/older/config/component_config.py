"""Component configurations before v1: what each version said differently, and what that becomes in v1.

v1alpha1 (until 1.18) has one profile at its top; v1alpha2 (1.18), v1beta1 (1.19 to 1.24), v1beta2 (1.22 to 1.27) and
v1beta3 (1.23 to 1.28) have profiles. Of the plugins in a profile some were renamed, some became arguments, and some are
gone.

What comes of one is a configuration of v1 in the making (`Translation`): plugins disabled and enabled, arguments, and
notes on what did not make it. For plugins that are gone, it is known what took their place, or what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubesched.older.config.policy import modern_extender
from kubesched.scheduler.config.errors import ConfigError, ErrorList
from kubesched.scheduler.config.load import KIND
from kubesched.scheduler.config.plugin_args import API_VERSION, ARGS_BY_PLUGIN

Entry = dict[str, Any]


class ProfileTranslation:
    """`note` takes what the user should know."""

    def __init__(self, profile: dict[str, Any], api_version: str, note: Callable[[str], None]) -> None:
        self._profile = profile
        self._note = note
        self._args: dict[str, dict[str, Any]] = {}
        self._preferences = NodePreferences()
        for entry in profile.pop("pluginConfig", None) or ():
            self._take_args(str(entry.get("name", "")), dict(entry.get("args") or {}))
        plugins = dict(profile.pop("plugins", None) or {})
        if api_version.endswith("v1alpha1") and "postFilter" in plugins:
            plugins["preScore"] = plugins.pop("postFilter")
            note("plugins.postFilter: is called preScore today")
        if plugins.pop("unreserve", None):
            note("plugins.unreserve: dropped: it is a part of reserve today")
        self._plugins = {point: self._point(point, dict(found or {})) for point, found in plugins.items()}

    # -- what comes from outside of the profile ------------------------------------------------------------------------

    def add_args(self, plugin: str, args: Mapping[str, Any]) -> None:
        """What the profile says itself counts more."""
        self._args[plugin] = {**args, **self._args.get(plugin, {})}

    def disable(self, point: str, name: str) -> None:
        self._plugins.setdefault(point, {}).setdefault("disabled", []).append({"name": name})

    def prefer_full_nodes(self) -> None:
        self.add_args("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}})
        self._note("algorithmSource.provider: became the scoring strategy MostAllocated of NodeResourcesFit")

    def manifest(self) -> dict[str, Any]:
        found = dict(self._profile)
        affinity = self._preferences.added_affinity()
        if affinity:
            self._args.setdefault("NodeAffinity", {})["addedAffinity"] = affinity
        plugins = {point: entries for point, entries in self._plugins.items() if entries}
        if plugins:
            found["plugins"] = plugins
        if self._args:
            found["pluginConfig"] = [{"name": name, "args": typed(name, args)} for name, args in self._args.items()]
        return found

    # -- arguments -----------------------------------------------------------------------------------------------------

    def _take_args(self, name: str, args: dict[str, Any]) -> None:
        if str(args.get("apiVersion", "")).startswith("kubescheduler.config.k8s.io/"):
            args = {field: item for field, item in args.items() if field not in ("apiVersion", "kind")}
        if name in STRATEGIES:
            self._take_strategy(name, args)
        elif name == "NodeLabel":
            self._take_labels(args)
        elif name in GONE or name in SPREADING or name in DISK_LIMITS:
            self._note(f"pluginConfig of {name}: dropped")
        else:
            if name == "PodTopologySpread" and args.get("defaultConstraints") and "defaultingType" not in args:
                args["defaultingType"] = "List"
            self._args[name] = {**self._args.get(name, {}), **args}

    def _take_strategy(self, name: str, args: dict[str, Any]) -> None:
        strategy: dict[str, Any] = {"type": STRATEGIES[name]}
        if args.get("resources"):
            strategy["resources"] = args["resources"]
        if args.get("shape"):
            strategy["requestedToCapacityRatio"] = {"shape": args["shape"]}
        fit = self._args.setdefault("NodeResourcesFit", {})
        fit["scoringStrategy"] = strategy
        self._note(f"{name}: is a strategy of NodeResourcesFit today")

    def _take_labels(self, args: dict[str, Any]) -> None:
        for field, present in (("presentLabels", True), ("absentLabels", False)):
            for label in args.get(field) or ():
                self._preferences.require(label, present=present)
            for label in args.get(f"{field}Preference") or ():
                self._preferences.prefer(label, 1, present=present)
        self._note("NodeLabel: became an affinity that is added to every pod's (NodeAffinity)")

    # -- points --------------------------------------------------------------------------------------------------------

    def _point(self, point: str, found: dict[str, Any]) -> dict[str, Any]:
        disabled = [self._disabled(point, entry) for entry in found.get("disabled") or ()]
        enabled = [self._enabled(point, entry) for entry in found.get("enabled") or ()]
        lists = {"disabled": _distinct(disabled), "enabled": _distinct(enabled)}
        return {field: entries for field, entries in lists.items() if entries}

    def _disabled(self, point: str, entry: Entry) -> Entry | None:
        name = entry.get("name", "")
        if name in STRATEGIES:
            return {"name": "NodeResourcesFit"}
        if name in SPREADING:
            if point == "score":
                self._args.setdefault("PodTopologySpread", {}).setdefault("defaultingType", "List")
                self._note(f"{name}: was disabled, so PodTopologySpread has no default constraints")
            return None
        if name in DISK_LIMITS:
            self._note(f"{name}: cannot be disabled by itself: NodeVolumeLimits looks after all drivers")
            return None
        return None if name in GONE or name == "NodeLabel" else entry

    def _enabled(self, point: str, entry: Entry) -> Entry | None:
        name = entry.get("name", "")
        if name in GONE:
            self._note(f"{name} at {point}: dropped: {GONE[name]}")
            return None
        if name in STRATEGIES:
            fit = self._args.setdefault("NodeResourcesFit", {})
            fit.setdefault("scoringStrategy", {"type": STRATEGIES[name]})
            return entry | {"name": "NodeResourcesFit"}
        if name in SPREADING:
            self._note(f"{name}: PodTopologySpread's default constraints do this today")
            return entry | {"name": "PodTopologySpread"}
        if name in DISK_LIMITS:
            return {"name": "NodeVolumeLimits"}
        if name == "NodeLabel":
            return entry | {"name": "NodeAffinity"} if point == "score" else {"name": "NodeAffinity"}
        return entry


def _distinct(entries: list[Entry | None]) -> list[Entry]:
    """Without those that came to nothing; of several that came to the same plugin, the first."""
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry is not None:
            found.setdefault(entry.get("name", ""), entry)
    return list(found.values())


GROUP = "kubescheduler.config.k8s.io"
OLDER_API_VERSIONS = tuple(f"{GROUP}/{v}" for v in ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3"))

_PROFILE_FIELDS = ("schedulerName", "plugins", "pluginConfig")
_DROPPED = {
    "healthzBindAddress": "health is served on the secure port (--secure-port)",
    "metricsBindAddress": "metrics are served on the secure port (--secure-port)",
}
_OLD_LOCKS = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")
_SAME_WEIGHTS = (f"{GROUP}/v1beta3",)


def convert_component_config(value: Mapping[str, Any]) -> Translation:
    """`value` is a KubeSchedulerConfiguration of one of `OLDER_API_VERSIONS`."""
    return _ComponentConversion(dict(value)).run()


class _ComponentConversion:
    def __init__(self, value: dict[str, Any]) -> None:
        self._version = str(value.pop("apiVersion"))
        value.pop("kind", None)
        self._value = value
        self._translation = Translation()
        self._in_every_profile: list[Callable[[ProfileTranslation], None]] = []

    def run(self) -> Translation:
        self._source_of_plugins()
        self._moved_into_profiles()
        self._around_profiles()
        self._profiles()
        fields = {name: item for name, item in self._value.items() if item is not None}
        self._translation.fields = fields | self._translation.fields
        if self._version not in _SAME_WEIGHTS:
            weights = "NodeAffinity 2, InterPodAffinity 2, PodTopologySpread 2, TaintToleration 3"
            self._translation.note(f"weights of default score plugins are today's: {weights}")
        return self._translation

    def _source_of_plugins(self) -> None:
        """v1alpha1 could name a provider, or a Policy somewhere else."""
        source = self._value.pop("algorithmSource", None) or {}
        errors = ErrorList()
        if source.get("policy"):
            errors.add("algorithmSource.policy", "convert the Policy itself: a configuration of v1 cannot refer to one")
        provider = source.get("provider")
        if provider == "ClusterAutoscalerProvider":
            self._in_every_profile.append(ProfileTranslation.prefer_full_nodes)
        elif provider not in (None, "", "DefaultProvider"):
            supported = ("ClusterAutoscalerProvider", "DefaultProvider")
            errors.unsupported("algorithmSource.provider", provider, supported)
        if errors:
            raise ConfigError(errors)

    def _moved_into_profiles(self) -> None:
        value = self._value
        weight = value.pop("hardPodAffinitySymmetricWeight", None)
        if weight is not None:
            self._in_every_profile.append(lambda p: p.add_args("InterPodAffinity", {"hardPodAffinityWeight": weight}))
            self._translation.note("hardPodAffinitySymmetricWeight: became an argument of InterPodAffinity")
        seconds = value.pop("bindTimeoutSeconds", None)
        if seconds is not None:
            self._in_every_profile.append(lambda p: p.add_args("VolumeBinding", {"bindTimeoutSeconds": seconds}))
            self._translation.note("bindTimeoutSeconds: became an argument of VolumeBinding")
        if value.pop("disablePreemption", False):
            self._in_every_profile.append(lambda p: p.disable("postFilter", "DefaultPreemption"))
            self._translation.note("disablePreemption: became the disabled plugin DefaultPreemption")

    def _around_profiles(self) -> None:
        value = self._value
        for name, why in _DROPPED.items():
            if value.pop(name, None) is not None:
                self._translation.note(f"{name}: dropped: {why}")
        if isinstance(value.get("leaderElection"), dict):
            value["leaderElection"] = self._leader_election(dict(value["leaderElection"]))
        if isinstance(value.get("extenders"), list):
            value["extenders"] = [modern_extender(extender) for extender in value["extenders"]]

    def _leader_election(self, election: dict[str, Any]) -> dict[str, Any]:
        for old, new in (("lockObjectNamespace", "resourceNamespace"), ("lockObjectName", "resourceName")):
            if old in election:
                election.setdefault(new, election.pop(old))
                self._translation.note(f"leaderElection.{old}: is called {new} today")
        lock = election.get("resourceLock")
        if lock in _OLD_LOCKS:
            election["resourceLock"] = "leases"
            self._translation.note(f'leaderElection.resourceLock: "{lock}" became "leases": all replicas must agree')
        return election

    def _profiles(self) -> None:
        given = self._value.pop("profiles", None)
        at_top = {name: self._value.pop(name) for name in _PROFILE_FIELDS if name in self._value}
        profiles = given or ([at_top] if at_top or self._in_every_profile else [])
        translated = []
        for profile in profiles:
            translation = ProfileTranslation(dict(profile or {}), self._version, self._translation.note)
            for change in self._in_every_profile:
                change(translation)
            translated.append(translation.manifest())
        if translated:
            self._translation.fields["profiles"] = translated


STRATEGIES: Mapping[str, str] = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
"""Score plugins that are scoring strategies of NodeResourcesFit today."""

DISK_LIMITS = ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits")
"""Filters whose work NodeVolumeLimits does, for all drivers."""

SPREADING = ("SelectorSpread", "DefaultPodTopologySpread")
"""One plugin under two names, whose work PodTopologySpread does by its default constraints."""

GONE: Mapping[str, str] = {
    "ServiceAffinity": "use pod affinity in the pods of the service instead",
    "NodePreferAvoidPods": "the annotation that it went by is gone; taint such nodes",
    "NodeResourceLimits": "limits are not scored any more",
}
"""Why there is no successor, or what helps."""


_POINTS_OF_FILTERS: Mapping[str, tuple[str, ...]] = {
    "NodeName": ("filter",),
    "NodeAffinity": ("preFilter", "filter"),
    "NodePorts": ("preFilter", "filter"),
    "NodeResourcesFit": ("preFilter", "filter"),
    "VolumeRestrictions": ("preFilter", "filter"),
    "NodeVolumeLimits": ("preFilter", "filter"),
    "VolumeBinding": ("preFilter", "filter", "reserve", "preBind"),
    "VolumeZone": ("preFilter", "filter"),
    "PodTopologySpread": ("preFilter", "filter"),
    "InterPodAffinity": ("preFilter", "filter"),
}
"""Today's filters that were once predicates one could leave out, with every point that goes with the filter."""


class Translation:
    """One profile, unless others are added; and the fields around it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.fields: dict[str, Any] = {}
        self.scheduler_name = ""
        self._plugins: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self._args: dict[str, dict[str, Any]] = {}

    def note(self, text: str) -> None:
        self.notes.append(text)

    def disable(self, point: str, name: str) -> None:
        self._add(point, "disabled", {"name": name})

    def enable(self, point: str, name: str, weight: int = 0) -> None:
        self._add(point, "enabled", {"name": name, "weight": weight} if weight else {"name": name})

    def set_args(self, plugin: str, args: Mapping[str, Any]) -> None:
        self._args.setdefault(plugin, {}).update(args)

    def keep_filters(self, kept: set[str]) -> None:
        """Disables those of today's filters that could be left out, and were."""
        for plugin, points in _POINTS_OF_FILTERS.items():
            if plugin not in kept:
                for point in points:
                    self.disable(point, plugin)

    def profile(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.scheduler_name:
            found["schedulerName"] = self.scheduler_name
        if self._plugins:
            found["plugins"] = self._plugins
        if self._args:
            found["pluginConfig"] = [{"name": name, "args": typed(name, args)} for name, args in self._args.items()]
        return found

    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, **self.fields}
        if "profiles" not in manifest:
            profile = self.profile()
            if profile:
                manifest["profiles"] = [profile]
        return manifest

    def _add(self, point: str, field: str, entry: dict[str, Any]) -> None:
        entries = self._plugins.setdefault(point, {}).setdefault(field, [])
        if all(known["name"] != entry["name"] for known in entries):
            entries.append(entry)


def typed(plugin: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the version and kind that in-tree plugins want; those of others are left as they are."""
    if plugin not in ARGS_BY_PLUGIN:
        return dict(args)
    return {"apiVersion": API_VERSION, "kind": f"{plugin}Args", **args}


class NodePreferences:
    """Labels that nodes must, or should, have or lack: today a node affinity that is added to every pod's."""

    def __init__(self) -> None:
        self._required: list[dict[str, Any]] = []
        self._preferred: list[dict[str, Any]] = []

    def require(self, label: str, *, present: bool) -> None:
        self._required.append(_expression(label, present=present))

    def prefer(self, label: str, weight: int, *, present: bool) -> None:
        preference = {"matchExpressions": [_expression(label, present=present)]}
        self._preferred.append({"weight": max(1, min(weight, 100)), "preference": preference})

    def added_affinity(self) -> dict[str, Any]:
        """Empty if nothing was asked for."""
        affinity: dict[str, Any] = {}
        if self._required:
            terms = [{"matchExpressions": self._required}]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self._preferred:
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = self._preferred
        return affinity

    @property
    def are_preferred(self) -> bool:
        return bool(self._preferred)

    @property
    def are_required(self) -> bool:
        return bool(self._required)


def _expression(label: str, *, present: bool) -> dict[str, Any]:
    return {"key": label, "operator": "Exists" if present else "DoesNotExist"}
