"""Typed objects from templates, with what an API server would give them: a name, a uid, a version, defaults.

Nothing is drawn at random: generated names are numbered, so that a run can be repeated. A pod is decoded from JSON of
its own, as it would be when it came through a watch: pods with the same signature share nothing but what the scheduler
finds to share. Pods come with the volumes and claims that were made for them, nodes with the labels, resources and CSI
drivers that the workload's strategies ask for. A node has its name as `kubernetes.io/hostname` label, and offers its
capacity unless its template says otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.csi_migration import MIGRATED_PLUGINS_ANNOTATION
from kubesched.k8s.model.manifests import ManifestError
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import (
    BIND_COMPLETED_ANNOTATION,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeNodeResources,
)
from kubesched.k8s.model.volumes import PersistentVolumeClaimVolumeSource, Volume
from kubesched.simulator.bench.operations import CreateNodesOp, NodeAllocatableStrategy, WorkloadError
from kubesched.simulator.bench.templates import Manifest, Template, parse_template

Item = TypeVar("Item", bound=KubeObject)

_encode = msgspec.json.Encoder().encode
_decode_pod = msgspec.json.Decoder(Pod).decode
_MAX_KEPT = 1000
"""So many different pods of a template are kept in encoded form; beyond that, each is encoded again."""


class ObjectFactory:
    """Hands out names and uids, each only once."""

    def __init__(self) -> None:
        self._n_uids = 0
        self._n_versions = 0
        self._n_generated: defaultdict[str, int] = defaultdict(int)
        self._pods: defaultdict[str, dict[tuple[str, ...], bytes]] = defaultdict(dict)

    def next_uid(self) -> str:
        self._n_uids += 1
        return f"00000000-0000-4000-8000-{self._n_uids:012x}"

    def next_version(self) -> str:
        self._n_versions += 1
        return str(self._n_versions)

    def versioned(self, item: Item) -> Item:
        """The object as it is after a write."""
        return replace(item, metadata=replace(item.metadata, resource_version=self.next_version()))

    def generated_name(self, prefix: str) -> str:
        number = self._n_generated[prefix]
        self._n_generated[prefix] += 1
        return f"{prefix}{number}"

    def make(
        self, template: Template, index: int = 0, count: int = 1, *, namespace: str = "", name: str = ""
    ) -> KubeObject:
        """An object of whatever kind. A namespace is given just to objects that live in one."""
        manifest = template.manifest(template.values(index, count))
        metadata = dict(manifest.get("metadata") or {})
        metadata["name"] = name or self._name(metadata, template)
        item = _decode(manifest | {"metadata": metadata}, template)
        meta = self._metadata(item.metadata, item.name, (item.namespace and namespace) or item.namespace)
        return replace(item, metadata=meta)

    def make_pod(self, template: Template, index: int, count: int, namespace: str) -> Pod:
        """As `make`, for very many pods."""
        values = template.values(index, count)
        manifest = template.manifest(values)
        kept = self._pods[template.path]
        other_values = tuple(value for number, value in enumerate(values) if number not in template.in_name)
        encoded = kept.get(other_values)
        if encoded is None:
            encoded = self._encoded_pod(template, manifest)
            if len(kept) < _MAX_KEPT:
                kept[other_values] = encoded
        name = self._name(manifest.get("metadata") or {}, template)
        pod = _decode_pod(encoded)
        return replace(pod, metadata=self._metadata(pod.metadata, name, namespace))

    def _metadata(self, metadata: ObjectMeta, name: str, namespace: str) -> ObjectMeta:
        return replace(
            metadata,
            name=name,
            namespace=namespace,
            uid=self.next_uid(),
            resource_version=self.next_version(),
        )

    def _encoded_pod(self, template: Template, manifest: Manifest) -> bytes:
        metadata = dict(manifest.get("metadata") or {})
        metadata.setdefault("name", "any")
        found = _decode(manifest | {"metadata": metadata}, template)
        if not isinstance(found, Pod):
            raise WorkloadError(template.path, "kind", f"a Pod is expected, not {template.kind}")
        return _encode(found)

    def _name(self, metadata: Manifest, template: Template) -> str:
        name = metadata.get("name")
        if name:
            return str(name)
        return self.generated_name(str(metadata.get("generateName") or f"{template.kind.lower()}-"))


def _decode(manifest: Manifest, template: Template) -> KubeObject:
    try:
        found = manifests.from_dicts([manifest], template.path)
    except ManifestError as problem:
        raise WorkloadError(problem.source, problem.where, problem.problem) from None
    if not found.objects:
        name = f"{template.api_version} {template.kind}"
        raise WorkloadError(template.path, "kind", f"{name} is not a kind that the scheduler looks at")
    return found.objects[0]


DEFAULT_POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec:
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
    ports: [{containerPort: 80}]
    resources:
      requests: {cpu: 100m, memory: 500Mi}
      limits: {cpu: 100m, memory: 500Mi}
"""
"""What `createPods` makes without a template."""


def default_pod_template() -> Template:
    return parse_template(DEFAULT_POD, "default pod")


@dataclass(frozen=True, slots=True)
class PodTemplates:
    """What a `createPods` makes each of its pods from."""

    pod: Template
    claim: Template | None = None
    volume: Template | None = None


def make_pods(templates: PodTemplates, count: int, namespace: str, factory: ObjectFactory) -> Iterator[KubeObject]:
    """The pods, each after the volume and the claim that it uses: `pvc-0` for the first, and so on."""
    for index in range(count):
        yield from make_pod(templates, index, count, namespace, factory)


def make_pod(
    templates: PodTemplates, index: int, count: int, namespace: str, factory: ObjectFactory
) -> Iterator[KubeObject]:
    pod = factory.make_pod(templates.pod, index, count, namespace)
    if templates.claim is None:
        yield pod
        return
    claim = _claim(templates.claim, f"pvc-{index}", namespace, factory)
    if templates.volume is not None:
        volume = _volume(templates.volume, claim, f"vol-{index}", factory)
        yield volume
        claim = bound_claim(claim, volume)
    yield claim
    yield _using(pod, claim)


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """The claim as the volume controller leaves it once it is bound."""
    annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED_ANNOTATION: "true"}
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=annotations),
        spec=replace(claim.spec, volume_name=volume.name),
        status=replace(claim.status, phase="Bound"),
    )


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    metadata = claim.metadata
    return ObjectReference("PersistentVolumeClaim", metadata.namespace, metadata.name, metadata.uid, "v1")


def _claim(template: Template, name: str, namespace: str, factory: ObjectFactory) -> PersistentVolumeClaim:
    claim = factory.make(template, namespace=namespace, name=name)
    if not isinstance(claim, PersistentVolumeClaim):
        raise WorkloadError(template.path, "kind", f"a PersistentVolumeClaim is expected, not {template.kind}")
    return claim


def _volume(template: Template, claim: PersistentVolumeClaim, handle: str, factory: ObjectFactory) -> PersistentVolume:
    handle = f"{claim.namespace}-{handle}"  # volumes belong to no namespace, and must not meet
    volume = factory.make(template, name=handle)
    if not isinstance(volume, PersistentVolume):
        raise WorkloadError(template.path, "kind", f"a PersistentVolume is expected, not {template.kind}")
    spec = replace(volume.spec, claim_ref=reference_to(claim))
    if spec.csi is not None:
        spec = replace(spec, csi=replace(spec.csi, volume_handle=handle))
    if spec.aws_elastic_block_store is not None:
        spec = replace(spec, aws_elastic_block_store=replace(spec.aws_elastic_block_store, volume_id=handle))
    return replace(volume, spec=spec, status=replace(volume.status, phase="Bound"))


def _using(pod: Pod, claim: PersistentVolumeClaim) -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name=claim.name)
    volume = Volume("vol", persistent_volume_claim=source)
    return replace(pod, spec=replace(pod.spec, volumes=(volume,)))


HOSTNAME = "kubernetes.io/hostname"

DEFAULT_NODE = """
apiVersion: v1
kind: Node
metadata: {generateName: node-}
status:
  capacity: {pods: "110", cpu: "4", memory: 32Gi}
  conditions: [{type: Ready, status: "True"}]
"""
"""What `createNodes` makes without a template."""


def default_node_template() -> Template:
    return parse_template(DEFAULT_NODE, "default node")


def make_nodes(
    operation: CreateNodesOp, template: Template, count: int, factory: ObjectFactory
) -> Iterator[KubeObject]:
    """The nodes, each followed by its CSINode if it has one."""
    strategy = operation.node_allocatable_strategy
    for index in range(count):
        node = _labelled(complete_node(factory.make(template, index, count), template), operation, index)
        if strategy is None:
            yield node
            continue
        yield _with_allocatable(node, strategy)
        if strategy.csi_node_allocatable:
            yield _csi_node(node, strategy, factory)


def complete_node(item: KubeObject, template: Template) -> Node:
    """The node with what the API server and the kubelet would fill in."""
    if not isinstance(item, Node):
        raise WorkloadError(template.path, "kind", f"a Node is expected, not {template.kind}")
    labels = {**item.labels, HOSTNAME: item.name}
    status = item.status
    if status.allocatable is None:
        status = replace(status, allocatable=status.capacity)
    return replace(item, metadata=replace(item.metadata, labels=labels), status=status)


def _labelled(node: Node, operation: CreateNodesOp, index: int) -> Node:
    labels = node.labels
    turns = operation.label_node_prepare_strategy
    if turns is not None:
        values = turns.label_values or (turns.label_value,)
        labels = {**labels, turns.label_key: values[index % len(values)]}
    if operation.unique_node_label_strategy is not None:
        labels = {**labels, operation.unique_node_label_strategy.label_key: node.metadata.uid}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _with_allocatable(node: Node, strategy: NodeAllocatableStrategy) -> Node:
    status = node.status
    return replace(
        node,
        status=replace(
            status,
            allocatable={**(status.allocatable or {}), **strategy.node_allocatable},
            capacity={**(status.capacity or {}), **strategy.node_allocatable},
        ),
    )


def _csi_node(node: Node, strategy: NodeAllocatableStrategy, factory: ObjectFactory) -> CSINode:
    annotations = None
    if strategy.migrated_plugins:
        annotations = {MIGRATED_PLUGINS_ANNOTATION: ",".join(strategy.migrated_plugins)}
    drivers = tuple(
        CSINodeDriver(name, node_id=node.name, allocatable=VolumeNodeResources(count=room.count))
        for name, room in strategy.csi_node_allocatable.items()
    )
    metadata = ObjectMeta(
        name=node.name, uid=factory.next_uid(), resource_version=factory.next_version(), annotations=annotations
    )
    return CSINode(metadata, CSINodeSpec(drivers))
