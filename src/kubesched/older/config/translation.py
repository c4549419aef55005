"""A configuration of v1 in the making: plugins disabled and enabled, arguments, and notes on what did not make it.

For plugins that are gone, it is known what took their place, or what to do instead. Filled by `conversion` and
`component_config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubesched.scheduler.config.load import KIND
from kubesched.scheduler.config.plugin_args import API_VERSION, ARGS_BY_PLUGIN

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
