"""Classes by the shape of their pods."""

from __future__ import annotations

from kubesched.cluster import Cluster
from kubesched.engine.class_cache.pod_class import PodClass
from kubesched.engine.class_cache.prepare import prepare_class
from kubesched.engine.profile import Profile
from kubesched.framework.pod_info import PodInfo, PodShape

_MOST_CLASSES = 512


class ClassCache:
    """Keeps the classes used last."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self._cluster = cluster
        self._profile = profile
        self._classes: dict[PodShape, PodClass] = {}

    def find(self, pod: PodInfo) -> PodClass | None:
        """The pod's class, up to date; None if its answers cannot be kept."""
        if _has_storage_or_devices(pod):
            return None
        found = self._classes.get(pod.shape)
        if found is not None:
            if found.catch_up():
                return found
            del self._classes[pod.shape]
        made = prepare_class(self._cluster, self._profile, pod)
        if made is not None:
            if len(self._classes) >= _MOST_CLASSES:
                del self._classes[next(iter(self._classes))]
            self._classes[pod.shape] = made
        return made


def _has_storage_or_devices(pod: PodInfo) -> bool:
    """Claims are the pod's own: what was found out for one pod says nothing about the next."""
    spec = pod.spec
    if spec.resource_claims:
        return True
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes or ())
