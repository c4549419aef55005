"""The plugins of one older profile in today's terms: renamed ones, those that became arguments, those that are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubesched.older.config.successors import DISK_LIMITS, GONE, SPREADING, STRATEGIES
from kubesched.older.config.translation import NodePreferences, typed

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
