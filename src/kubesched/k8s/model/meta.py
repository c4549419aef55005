"""What every Kubernetes object has: names, labels, owners, times; and label selectors, whole numbers, amounts.

All structs of the model are frozen, hold no reference cycles (`gc=False` keeps the collector away from them) and
decode from Kubernetes' camelCase. Only the fields that scheduling looks at are there. A whole number larger than
Kubernetes' API has it is damage, as it is to Go; amounts stay as manifests write them until `quantity` parses them.

Next: `core` for pods and nodes.
"""

from __future__ import annotations

from typing import Annotated, Any, NewType

import msgspec
from msgspec import Meta

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


Amount = str | int | float
"""A quantity as text or number, not yet parsed."""

ResourceList = dict[str, Amount]


PodKey = NewType("PodKey", str)
"""`namespace/name` of a pod."""


class KubeStruct(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, forbid_unknown_fields=False
):
    """Shared settings of all structs; carries no field and no behaviour."""


class OwnerReference(KubeStruct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(KubeStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None


class LabelSelectorRequirement(KubeStruct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelector(KubeStruct, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class KubeObject(KubeStruct, frozen=True):
    """A top-level object. `kind` and `apiVersion` are read by `manifests`, which chooses the struct by them."""

    metadata: ObjectMeta = ObjectMeta()

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, where it has to encode to the same text as here: fields that are left at their defaults
        are left out; a field counts as left at its default if it is the same object."""
        return _from_pickle, (type(self), _encode(self))

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-wide object."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


_encode = msgspec.msgpack.Encoder().encode


def _from_pickle(kind: type[KubeObject], encoded: bytes) -> KubeObject:
    return msgspec.msgpack.decode(encoded, type=kind)


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner that manages this object, if one does."""
    for owner in metadata.owner_references or ():
        if owner.controller:
            return owner
    return None
