"""Where each kind lives in an API server: group, version, path. And which kinds a scheduler watches.

Next: `list_watch`, which follows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import apps, core, resource, scheduling, storage
from kubesched.k8s.model.meta import KubeObject


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as a server serves it. `older_versions` are those of older servers whose objects decode alike, newest
    first. `kind_name` is the server's name of the kind where `type` has another."""

    type: type[KubeObject]
    group: str
    version: str
    plural: str
    namespaced: bool
    older_versions: tuple[str, ...] = ()
    kind_name: str = ""

    @property
    def kind(self) -> str:
        return self.kind_name or self.type.__name__

    @property
    def go_type(self) -> str:
        """`*v1.Pod`, as client-go prints it."""
        return f"*{self.version}.{self.kind}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """`pods`, or with the group `deviceclasses.resource.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Of the collection (all namespaces, or one), of an object in it, or of an object's subresource."""
        parts = ["/apis", self.api_version] if self.group else ["/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)

    def versions(self) -> Iterator[Resource]:
        """This, then the same kind as older servers have it."""
        yield self
        for version in self.older_versions:
            yield replace(self, version=version)


RESOURCES: tuple[Resource, ...] = (
    Resource(core.Pod, "", "v1", "pods", True),
    Resource(core.Node, "", "v1", "nodes", False),
    Resource(core.Namespace, "", "v1", "namespaces", False),
    Resource(core.Service, "", "v1", "services", True),
    Resource(core.ReplicationController, "", "v1", "replicationcontrollers", True),
    Resource(apps.ReplicaSet, "apps", "v1", "replicasets", True),
    Resource(apps.StatefulSet, "apps", "v1", "statefulsets", True),
    Resource(core.PodDisruptionBudget, "policy", "v1", "poddisruptionbudgets", True),
    Resource(storage.PersistentVolume, "", "v1", "persistentvolumes", False),
    Resource(storage.PersistentVolumeClaim, "", "v1", "persistentvolumeclaims", True),
    Resource(storage.StorageClass, "storage.k8s.io", "v1", "storageclasses", False),
    Resource(storage.CSINode, "storage.k8s.io", "v1", "csinodes", False),
    Resource(storage.CSIDriver, "storage.k8s.io", "v1", "csidrivers", False),
    Resource(storage.CSIStorageCapacity, "storage.k8s.io", "v1", "csistoragecapacities", True),
    Resource(storage.VolumeAttachment, "storage.k8s.io", "v1", "volumeattachments", False),
    Resource(resource.ResourceClaim, "resource.k8s.io", "v1", "resourceclaims", True, ("v1beta2",)),
    Resource(resource.ResourceSlice, "resource.k8s.io", "v1", "resourceslices", False, ("v1beta2",)),
    Resource(resource.DeviceClass, "resource.k8s.io", "v1", "deviceclasses", False, ("v1beta2",)),
)
"""All that kube-scheduler v1.36.4 watches with its default feature gates.

resource.k8s.io/v1beta1 is no older version in our sense: there a request has its class and selectors beside its name
(in v1 they are in `exactly`) and a device its attributes in `basic`, so they would be read as absent.
"""


POD_GROUPS = Resource(scheduling.PodGroup, scheduling.GROUP, scheduling.GROUP_VERSION, "podgroups", True)
"""What it watches with the feature gate GenericWorkload, too."""
NEXT_POD_GROUPS = replace(POD_GROUPS, version="v1beta1", older_versions=(POD_GROUPS.version,))
"""As v1.37 serves them."""
COMPOSITE_POD_GROUPS = Resource(scheduling.CompositePodGroup, scheduling.GROUP, "v1alpha3", "compositepodgroups", True)
"""What v1.37 watches with the feature gate CompositePodGroup, too."""


class UnknownKindError(KubeschedError, LookupError):
    """Nobody said where objects of this type live."""

    def __init__(self, type_: type[KubeObject]) -> None:
        super().__init__(
            f"{type_.__name__} is not among the kinds that a scheduler watches: say where it lives, "
            f'such as Resource({type_.__name__}, "example.com", "v1", "{type_.__name__.lower()}s", namespaced=True)'
        )


_BY_TYPE = {known.type: known for known in RESOURCES}


def resource_of(type_: type[KubeObject]) -> Resource:
    """Where this kind lives, if it is one that a scheduler watches."""
    try:
        return _BY_TYPE[type_]
    except KeyError:
        raise UnknownKindError(type_) from None
