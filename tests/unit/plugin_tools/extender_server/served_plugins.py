"""Plugins, a cluster and the service over them, for the tests of the extender server."""

from __future__ import annotations

import json
from typing import Any

from kubesched.framework import OK, CycleState, NodeInfo, PodInfo, PreFilterResult, Status
from kubesched.framework.effects import BindPod
from kubesched.framework.extension_points import Steps
from kubesched.framework.status import SKIP
from kubesched.k8s.model import manifests
from kubesched.plugin_tools.extender_server.messages import NodeReader, NodesRequest, read_nodes_request
from kubesched.plugin_tools.extender_server.outside_profiles import OutsideProfiles, build_outside_profiles
from kubesched.plugin_tools.extender_server.served_cluster import ServedCluster
from kubesched.plugin_tools.extender_server.verdicts import PluginVerdictService
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import default, load
from kubesched.scheduler.plugin_loading import plugins_from_classes
from kubesched.scheduler.plugin_loading.assembly import assemble
from kubesched.testing import make
from kubesched.testing.make import Manifest

Json = dict[str, Any]


class Tiers:
    """Bronze nodes are out for good, nodes without a tier for now; gold is best."""

    name = "Tiers"
    default_weight = 3

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        tier = node.node.labels.get("tier")
        if tier == "bronze":
            return Status.unresolvable("node(s) of tier bronze")
        return OK if tier else Status.unschedulable("node(s) without tier")

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return {"gold": 100, "silver": 46}.get(node.node.labels.get("tier", ""), 0)


class AtMostTwo:
    """No more than two pods a node."""

    name = "AtMostTwo"

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return OK if len(node.pods) < 2 else Status.unschedulable("node(s) with two pods")


class OnlyFirst:
    """Leaves one node over, before any is looked at."""

    name = "OnlyFirst"

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: object) -> PreFilterResult:
        return PreFilterResult(node_names=frozenset({"first"}))


class Binder:
    """Binds pods but those that are left to others, or refused."""

    name = "Binder"

    def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        wish = (pod.pod.metadata.labels or {}).get("wish", "")
        if wish == "leave":
            return SKIP
        if wish == "refuse":
            return Status.error("not on my watch")
        if wish == "break":
            raise ValueError("no such rack")
        yield BindPod(pod.key, pod.uid, node_name)
        return OK


class Broken:
    name = "Broken"

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        raise ValueError("no such disk")

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        raise ValueError("no such disk")


def cluster_of(*items: Manifest) -> Cluster:
    return Cluster.from_objects(manifests.from_dicts(items).objects)


def profiles_of(cluster: Cluster, *plugins: type, config: Json | None = None) -> OutsideProfiles:
    chosen = default() if config is None else load({**_HEAD, **config}, "test")
    built = assemble(chosen, given=plugins_from_classes(plugins))
    return build_outside_profiles(cluster, built.config, built.registry, built.outside.classes.keys())


def service_of(
    cluster: Cluster, *plugins: type, follows: bool = True, config: Json | None = None
) -> PluginVerdictService:
    served = ServedCluster(cluster, is_followed=follows)
    return PluginVerdictService(served, profiles_of(cluster, *plugins, config=config))


def by_names(*names: str, pod: Manifest | None = None) -> NodesRequest:
    return _request({"Pod": pod or make.pod("p"), "Nodes": None, "NodeNames": list(names)})


def by_nodes(*nodes: Manifest, pod: Manifest | None = None) -> NodesRequest:
    return _request({"Pod": pod or make.pod("p"), "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None})


def _request(said: Json) -> NodesRequest:
    return read_nodes_request(json.dumps(said).encode(), NodeReader())


_HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
