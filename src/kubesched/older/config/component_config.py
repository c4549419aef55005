"""Component configurations before v1: what each version said differently, and what that becomes in v1.

v1alpha1 (until 1.18) has one profile at its top; v1alpha2 (1.18), v1beta1 (1.19 to 1.24), v1beta2 (1.22 to 1.27) and
v1beta3 (1.23 to 1.28) have profiles. Of the plugins in a profile some were renamed, some became arguments, and some are
gone.

Next: `translation`, which collects the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubesched.older.config.policy import modern_extender
from kubesched.older.config.translation import (
    DISK_LIMITS,
    GONE,
    SPREADING,
    STRATEGIES,
    NodePreferences,
    Translation,
    typed,
)
from kubesched.scheduler.config.errors import ConfigError, ErrorList

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
