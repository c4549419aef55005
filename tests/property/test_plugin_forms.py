"""A plugin that answers both for whole tables and node by node gives the same answer either way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.framework import CycleState, Handle, NodeInfo, PodInfo, Verdicts
from kubesched.framework.extension_points import Filter, FilterNode, PreFilter, PreScore, Score, ScoreNode
from kubesched.framework.groups import GroupFeatures
from kubesched.framework.handle import Objects
from kubesched.framework.status import OK, Status
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.k8s.model import core, manifests
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.config.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing import make, strategies
from kubesched.testing.make import Manifest

GPU = "example.com/gpu"
RESOURCES = (ResourceSpec("cpu", 3), ResourceSpec("memory", 1), ResourceSpec(GPU, 2), ResourceSpec("ephemeral-storage"))
SHAPE = (UtilizationShapePoint(0, 0), UtilizationShapePoint(40, 9), UtilizationShapePoint(90, 2))
SSD = core.NodeSelectorTerm(match_expressions=(core.NodeSelectorRequirement(key="disk", operator="Exists"),))


def _fit(kind: str, resources: tuple[ResourceSpec, ...] = RESOURCES) -> NodeResourcesFitArgs:
    ratio = RequestedToCapacityRatioParam(SHAPE) if kind == REQUESTED_TO_CAPACITY_RATIO else None
    return NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(kind, resources, ratio))


ARGUMENTS: dict[str, tuple[object, ...]] = {
    "NodeResourcesFit": (
        None,
        _fit(LEAST_ALLOCATED),
        _fit(MOST_ALLOCATED),
        _fit(REQUESTED_TO_CAPACITY_RATIO),
        NodeResourcesFitArgs(ignored_resource_groups=("example.com",)),
    ),
    "NodeResourcesBalancedAllocation": (
        None,
        NodeResourcesBalancedAllocationArgs(RESOURCES),
        NodeResourcesBalancedAllocationArgs((ResourceSpec(GPU),)),
    ),
    "NodeAffinity": (
        None,
        NodeAffinityArgs(
            core.NodeAffinity(
                required_during_scheduling_ignored_during_execution=core.NodeSelector(node_selector_terms=(SSD,)),
                preferred_during_scheduling_ignored_during_execution=(
                    core.PreferredSchedulingTerm(weight=7, preference=SSD),
                ),
            )
        ),
    ),
}
WITH_BOTH_FORMS = [
    name
    for name, factory in REGISTRY.items()
    if all(hasattr(factory, form) for form in ("filter", "filter_node"))
    or all(hasattr(factory, form) for form in ("score", "score_node"))
]


class ClusterHandle:
    """A cluster as plugins see it."""

    group_features = GroupFeatures()

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def objects(self) -> Objects:
        return self.cluster.objects

    @property
    def nodes(self) -> TableView:
        return self.cluster.nodes

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self.cluster.namespace_labels(namespace)


# -- What may come -----------------------------------------------------------------------------------------------------

_DEVICES = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpus"},
        "spec": {"extendedResourceName": GPU},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "on-n0"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "n0"},
            "nodeName": "n0",
            "devices": [{"name": "one"}, {"name": "two"}],
        },
    },
]


@st.composite
def _clusters(draw: st.DrawFn) -> list[Manifest]:
    """As `strategies.clusters`, with what only some of the plugins look at, and amounts beyond all bounds."""
    objects = draw(strategies.clusters())
    pending = objects[next(i for i, o in enumerate(objects) if o["metadata"]["name"] == "pending")]
    for node in (o for o in objects if o["kind"] == "Node"):
        if draw(st.booleans()):
            node["status"]["declaredFeatures"] = ["UserNamespacesHostNetworkSupport"]
        if draw(st.integers(0, 9)) == 0:
            node["status"]["allocatable"]["memory"] = draw(st.sampled_from(("40Pi", "7Ei")))
        if draw(st.booleans()):
            node["status"]["allocatable"]["ephemeral-storage"] = draw(st.sampled_from(("1Gi", "10Gi")))
    spec = pending["spec"]
    if draw(st.booleans()):
        spec |= {"hostNetwork": True, "hostUsers": False}
    if draw(st.integers(0, 3)) == 0:
        spec["nodeName"] = draw(st.sampled_from(("n0", "n1", "elsewhere")))
    if draw(st.booleans()):
        spec["nodeSelector"] = {"disk": draw(st.sampled_from("123"))}
    if draw(st.booleans()):
        _prefer(spec, draw(st.lists(st.sampled_from("12345"), min_size=1, unique=True)))
    return objects + (_DEVICES if draw(st.booleans()) else [])


def _prefer(spec: Manifest, disks: list[str]) -> None:
    spec["affinity"] = dict(spec.get("affinity") or {})
    affinity = spec["affinity"]["nodeAffinity"] = dict(spec["affinity"].get("nodeAffinity") or {})
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {
            "weight": 10 + number,
            "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": disks[number:]}]},
        }
        for number in range(len(disks))
    ]


def _world(objects: list[Manifest]) -> tuple[ClusterHandle, PodInfo]:
    found = manifests.from_dicts(objects).objects
    pending = next(item for item in found if isinstance(item, core.Pod) and item.name == "pending")
    cluster = Cluster.from_objects(item for item in found if item is not pending)
    return ClusterHandle(cluster), cluster.signatures.info(pending)


# -- The two forms -----------------------------------------------------------------------------------------------------


def check_both_forms(plugin: object, handle: ClusterHandle, pod: PodInfo) -> list[str]:
    """What was compared."""
    nodes, cycle = handle.nodes, CycleState()
    each = [nodes.at(position) for position in range(len(nodes))]
    compared = []
    filters = not isinstance(plugin, PreFilter) or plugin.pre_filter(cycle, pod, nodes).status.is_success
    if filters and isinstance(plugin, Filter) and isinstance(plugin, FilterNode):
        verdicts = plugin.filter(cycle, pod, nodes)
        expected = [_status(verdicts, position) for position in range(len(nodes))]
        assert [plugin.filter_node(cycle, pod, node) for node in each] == expected
        compared.append(f"filter: {len({status.reasons for status in expected})} kinds of answers")
    scores = not isinstance(plugin, PreScore) or plugin.pre_score(cycle, pod, nodes).is_success
    if scores and isinstance(plugin, Score) and isinstance(plugin, ScoreNode):
        raw = plugin.score(cycle, pod, nodes).tolist()
        assert [plugin.score_node(cycle, pod, node) for node in each] == raw
        part = nodes.take(np.arange(len(nodes))[::-2])
        assert plugin.score(cycle, pod, part).tolist() == raw[::-2]
        compared.append(f"score: {'many' if len(set(raw)) > 1 else 'one'}")
    return compared


def _status(verdicts: Verdicts, position: int) -> Status:
    return OK if verdicts is ACCEPT_ALL else verdicts.status(position)


@settings(max_examples=150, deadline=None)
@given(_clusters())
def test_both_forms_of_every_plugin_agree(objects: list[Manifest]) -> None:
    handle, pod = _world(objects)
    for name in WITH_BOTH_FORMS:
        factory = cast(Callable[[object, Handle], Any], REGISTRY[name])
        for args in ARGUMENTS.get(name, (None,)):
            for compared in check_both_forms(factory(args, cast(Handle, handle)), handle, pod):
                event(f"{name} {compared}")


def test_the_plugins_that_matter_for_speed_have_both_forms() -> None:
    assert {"NodeResourcesFit", "NodePorts", "NodeResourcesBalancedAllocation", "TaintToleration"} <= set(
        WITH_BOTH_FORMS
    )


# -- Planted bugs ------------------------------------------------------------------------------------------------------


class GenerousFit(NodeResourcesFit):
    """Forgets, for a single node, that the pod itself needs something."""

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return min(super().score_node(cycle, pod, node) + 1, 100)


class BlindPorts(NodePorts):
    """Sees no port on a single node."""

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return OK


@pytest.mark.parametrize("planted", [GenerousFit, BlindPorts])
def test_the_comparison_sees_forms_that_differ(planted: type[NodeResourcesFit | NodePorts]) -> None:
    objects = [
        make.node("n0"),
        make.pod("p0", on="n0", cpu=1, host_ports=(80,)),
        make.pod("pending", cpu=1, host_ports=(80,)),
    ]
    handle, pod = _world(objects)
    assert check_both_forms(planted.__base__(None, cast(Handle, handle)), handle, pod)  # type: ignore[misc]
    with pytest.raises(AssertionError):
        check_both_forms(planted(None, cast(Handle, handle)), handle, pod)
