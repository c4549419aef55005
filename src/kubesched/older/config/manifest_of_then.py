"""The configuration of an emulated scheduler, as a file of its own version says it.

Read again with `--emulate`, it gives the same scheduler; `losses` tells what such a file has no words for.
"""

from __future__ import annotations

from typing import Any

from kubesched.older.config.component_config import GROUP
from kubesched.older.config.emulated import EmulatedProfile, Emulation
from kubesched.older.config.extension_points import points_of
from kubesched.scheduler.config.configuration import to_manifest
from kubesched.scheduler.config.load import KIND

_AROUND = ("leaderElection", "clientConnection", "enableProfiling", "enableContentionProfiling")
_BACKOFF = ("podInitialBackoffSeconds", "podMaxBackoffSeconds")


def manifest_of_then(emulation: Emulation) -> dict[str, Any]:
    version = _api_version(emulation)
    found: dict[str, Any] = {"apiVersion": f"{GROUP}/{version}", "kind": KIND}
    today = to_manifest(emulation.config)
    around = {name: today[name] for name in (*_AROUND, "percentageOfNodesToScore")}
    if not emulation.generation.has_predicates:
        around |= {name: today[name] for name in _BACKOFF}
    if version == "v1alpha1":
        return found | _at_the_top(emulation) | around
    if version == "v1alpha2":
        around |= _volumes_and_preemption(emulation)
    found |= around
    found["profiles"] = [_profile(profile, emulation) for profile in emulation.profiles]
    if emulation.config.extenders:
        found["extenders"] = today["extenders"]
    return found


def losses(emulation: Emulation) -> list[str]:
    """What a Policy said that no file of the version can say."""
    if emulation.source.policy is None or _api_version(emulation) == "v1alpha1":
        return []
    found = []
    if any(profile.checks_all for profile in emulation.profiles):
        found.append("alwaysCheckAllPredicates: has no field in this version")
    ratios = [plugin for plugin in emulation.profiles[0].scores if plugin.kind == "RequestedToCapacityRatio"]
    if any(not plugin.args.get("resources") for plugin in ratios):
        found.append("requestedToCapacityRatioArguments: without resources it scores nothing in a Policy")
    return found


def _api_version(emulation: Emulation) -> str:
    """The newest that it read; a Policy elsewhere can be named by v1alpha1 alone."""
    versions = emulation.generation.config_versions
    names_policy = emulation.source.reference is not None and "v1alpha1" in versions
    return "v1alpha1" if names_policy else versions[-1]


def _at_the_top(emulation: Emulation) -> dict[str, Any]:
    return {
        "schedulerName": emulation.profiles[0].scheduler_name,
        "algorithmSource": emulation.source.manifest(),
        "hardPodAffinitySymmetricWeight": emulation.hard_affinity_weight,
        **_volumes_and_preemption(emulation),
        **emulation.plugins_given,
    }


def _volumes_and_preemption(emulation: Emulation) -> dict[str, Any]:
    return {
        "bindTimeoutSeconds": emulation.bind_timeout_s,
        "disablePreemption": not emulation.profiles[0].preempts,
    }


def _profile(profile: EmulatedProfile, emulation: Emulation) -> dict[str, Any]:
    weights = {plugin.name: plugin.weight for plugin in profile.scores}
    plugins: dict[str, Any] = {}
    for point, names in points_of(profile, emulation.generation).items():
        entries = [{"name": name, **({"weight": weights[name]} if point == "score" else {})} for name in names]
        if entries or point in emulation.generation.plugins_beside or point in ("filter", "score"):
            plugins[point] = {"disabled": [{"name": "*"}], **({"enabled": entries} if entries else {})}
    found = {"schedulerName": profile.scheduler_name, "plugins": plugins}
    args = _plugin_config(profile, emulation)
    return found | ({"pluginConfig": args} if args else {})


def _plugin_config(profile: EmulatedProfile, emulation: Emulation) -> list[dict[str, Any]]:
    """Arguments that are not said elsewhere in the file."""
    said = {"ignoredResources"} if emulation.config.extenders else set()
    if "v1alpha2" in emulation.generation.config_versions:
        said.add("bindTimeoutSeconds")
    found: dict[str, dict[str, Any]] = {}
    for plugin in (*profile.filters, *profile.scores):
        args = {name: value for name, value in plugin.args.items() if name not in said}
        if args:
            found.setdefault(plugin.name, {}).update(args)
    return [{"name": name, "args": args} for name, args in sorted(found.items())]
