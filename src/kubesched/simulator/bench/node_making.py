"""Nodes of a workload, with the labels, resources and CSI drivers that its strategies ask for.

A node has its name as `kubernetes.io/hostname` label, and offers its capacity unless its template says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubesched.k8s.model.core import Node
from kubesched.k8s.model.csi_migration import MIGRATED_PLUGINS_ANNOTATION
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from kubesched.simulator.bench.errors import WorkloadError
from kubesched.simulator.bench.object_factory import ObjectFactory
from kubesched.simulator.bench.operations import CreateNodesOp, NodeAllocatableStrategy
from kubesched.simulator.bench.templates import Template, parse_template

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
