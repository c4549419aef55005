"""Component configurations before v1: what each version said differently, and what that becomes in v1.

v1alpha1 (until 1.18) has one profile at its top; v1alpha2 (1.18), v1beta1 (1.19 to 1.24), v1beta2 (1.22 to 1.27) and
v1beta3 (1.23 to 1.28) have profiles. Plugins that are gone are translated by `component_plugins`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubesched.older.config.component_plugins import ProfileTranslation
from kubesched.older.config.policy import modern_extender
from kubesched.older.config.translation import Translation
from kubesched.scheduler.config.errors import ConfigError, ErrorList

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
