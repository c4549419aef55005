"""What plugins say becomes what an extender says: filter, prioritize, preempt."""

from __future__ import annotations

import pytest
from served_plugins import AtMostTwo, Broken, OnlyFirst, Tiers, by_names, by_nodes, cluster_of, service_of

from kubesched.framework import OK, CycleState, NodeInfo, NodeTable, PodInfo, PreFilterResult, Status
from kubesched.framework.caching import Scope
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.plugin_tools.extender_server.messages import NodesVerdict, PreemptRequest, RequestError
from kubesched.plugin_tools.extender_server.served_cluster import ServedCluster
from kubesched.plugin_tools.extender_server.verdicts import NOT_KNOWN, CallError
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.extender.http_extender import MetaVictims
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.testing import make

TIERED = (
    make.node("a", labels={"tier": "gold"}),
    make.node("b", labels={"tier": "bronze"}),
    make.node("c"),
    make.node("d", labels={"tier": "silver"}),
)


def preempting(victims: dict[str, MetaVictims], priority: int = 10) -> PreemptRequest:
    pod = manifests.from_dicts([make.pod("high", priority=priority)]).objects[0]
    assert isinstance(pod, Pod)
    return PreemptRequest(pod, victims)


def one_victim(name: str) -> MetaVictims:
    return MetaVictims((f"uid-default-{name}",), 0)


# -- filter ------------------------------------------------------------------------------------------------------------


def test_rejected_nodes_are_named_with_reasons_and_whether_evictions_could_help() -> None:
    verdict = service_of(cluster_of(*TIERED), Tiers).filter(by_names("a", "b", "c", "d"))
    assert verdict == NodesVerdict({"c": "node(s) without tier"}, {"b": "node(s) of tier bronze"})


def test_only_the_nodes_of_the_request_are_judged() -> None:
    verdict = service_of(cluster_of(*TIERED), Tiers).filter(by_names("b"))
    assert verdict == NodesVerdict({}, {"b": "node(s) of tier bronze"})


def test_a_node_that_the_watch_has_not_brought_yet_is_rejected_for_now() -> None:
    verdict = service_of(cluster_of(*TIERED), Tiers).filter(by_names("a", "new"))
    assert verdict == NodesVerdict({"new": NOT_KNOWN})


def test_in_tree_plugins_are_not_asked_again() -> None:
    full = make.node("full", cpu="0", labels={"tier": "gold"}, taints=[make.taint("gpu")])
    verdict = service_of(cluster_of(full), Tiers).filter(by_names("full", pod=make.pod("p", cpu="4")))
    assert verdict == NodesVerdict()


def test_nodes_that_pre_filter_leaves_out_are_rejected_for_good() -> None:
    verdict = service_of(cluster_of(make.node("first"), make.node("other")), OnlyFirst).filter(
        by_names("first", "other")
    )
    assert verdict == NodesVerdict({}, {"other": "node(s) didn't satisfy plugin(s) [OnlyFirst]"})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(Status.unschedulable("not now"), NodesVerdict({"a": "not now"}), id="for now"),
        pytest.param(Status.unresolvable("never"), NodesVerdict({}, {"a": "never"}), id="for good"),
    ],
)
def test_a_pod_that_pre_filter_rejects_fits_nowhere(status: Status, expected: NodesVerdict) -> None:
    class NotThisPod:
        name = "NotThisPod"

        def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
            return PreFilterResult(status)

    assert service_of(cluster_of(make.node("a")), NotThisPod).filter(by_names("a")) == expected


def test_the_first_plugin_to_reject_a_node_gives_the_reason() -> None:
    cluster = cluster_of(make.node("c"), make.pod("x", on="c"), make.pod("y", on="c"))
    assert service_of(cluster, AtMostTwo, Tiers).filter(by_names("c")).failed == {"c": "node(s) with two pods"}


def test_a_rejection_without_a_reason_names_the_plugin() -> None:
    class Mute:
        name = "Mute"

        def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
            return Status.unschedulable()

    verdict = service_of(cluster_of(make.node("a")), Mute).filter(by_names("a"))
    assert verdict.failed == {"a": "node(s) didn't satisfy plugin Mute"}


def test_a_plugin_that_breaks_is_named() -> None:
    with pytest.raises(PluginError, match=r"Broken.*no such disk"):
        service_of(cluster_of(make.node("a")), Broken).filter(by_names("a"))


# -- whole nodes in the request ----------------------------------------------------------------------------------------


def test_nodes_of_the_request_count_where_no_cluster_is_followed() -> None:
    service = service_of(Cluster(), Tiers, follows=False)
    assert service.filter(by_nodes(*TIERED)).failed == {"c": "node(s) without tier"}
    assert service.filter(by_nodes(make.node("c", labels={"tier": "gold"}))) == NodesVerdict()


def test_without_a_cluster_only_the_nodes_of_the_request_exist() -> None:
    seen: list[list[str]] = []

    class Looks:
        name = "Looks"

        def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
            seen.append(sorted(nodes.names))
            return PreFilterResult()

    service = service_of(Cluster(), Looks, follows=False)
    service.filter(by_nodes(make.node("a"), make.node("b")))
    service.filter(by_nodes(make.node("b"), make.node("c")))
    assert seen == [["a", "b"], ["b", "c"]]


def test_names_alone_are_refused_without_a_cluster() -> None:
    with pytest.raises(CallError, match="nodeCacheCapable"):
        service_of(Cluster(), Tiers, follows=False).filter(by_names("a"))


def test_nodes_of_the_request_stand_in_for_the_followed_ones_during_the_call() -> None:
    cluster = cluster_of(make.node("a"), make.pod("x", on="a"), make.pod("y", on="a"))
    service = service_of(cluster, Tiers, AtMostTwo)
    request = by_nodes(make.node("a", labels={"tier": "gold"}), make.node("new", labels={"tier": "gold"}))
    assert service.filter(request) == NodesVerdict({"a": "node(s) with two pods"})
    assert list(cluster.table.rows) == ["a"]
    assert service.filter(by_names("a")) == NodesVerdict({"a": "node(s) without tier"})


def test_a_node_with_amounts_that_cannot_be_read_is_a_bad_request_and_changes_nothing() -> None:
    cluster = cluster_of(make.node("a"))
    with pytest.raises(RequestError, match="node b: "):
        service_of(cluster, Tiers).filter(by_nodes(make.node("a", labels={"tier": "gold"}), make.node("b", cpu="much")))
    assert "tier" not in cluster.table.nodes[0].labels
    assert list(cluster.table.rows) == ["a"]


# -- prioritize --------------------------------------------------------------------------------------------------------


def test_scores_of_0_to_100_become_0_to_10_rounded_whatever_the_weight() -> None:
    assert service_of(cluster_of(*TIERED), Tiers).prioritize(by_names("d", "a", "c", "unknown")) == [5, 10, 0, 0]


def test_scores_of_several_plugins_count_by_their_weights() -> None:
    class Half:
        name = "Half"

        def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
            return 50

    # (3 × 100 + 1 × 50) / 4 and (3 × 0 + 1 × 50) / 4, of 100
    assert service_of(cluster_of(*TIERED), Tiers, Half).prioritize(by_names("a", "c")) == [9, 1]


def test_without_score_plugins_all_nodes_are_equal() -> None:
    assert service_of(cluster_of(*TIERED), AtMostTwo).prioritize(by_names("a", "b")) == [0, 0]


def test_a_score_may_use_what_pre_filter_prepared() -> None:
    class Prepared:
        name = "Prepared"

        def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
            cycle.put({"a": 100})
            return PreFilterResult()

        def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
            return int(cycle.get(dict).get(node.name, 0))

    assert service_of(cluster_of(*TIERED), Prepared).prioritize(by_names("b", "a")) == [0, 10]


# -- preempt -----------------------------------------------------------------------------------------------------------


class AtMostTwoCounted:
    """AtMostTwo with state that must follow, so that the table itself is tried."""

    name = "AtMostTwoCounted"

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        cycle.put({nodes.at(i).name: len(nodes.at(i).pods) for i in range(len(nodes))})
        return PreFilterResult()

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return OK if cycle.get(dict)[node.name] < 2 else Status.unschedulable("node(s) with two pods")

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        cycle.get(dict)[node.name] += 1
        return OK

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        cycle.get(dict)[node.name] -= 1
        return OK


class AtMostTwoByRow(AtMostTwo):
    """The same, asked about an imagined node."""

    name = "AtMostTwoByRow"
    filter_scope = Scope.ROW


class BreaksWhenPodsGo(AtMostTwo):
    name = "BreaksWhenPodsGo"

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult()

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        return OK

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        raise ValueError("lost count")


def pods_by_node(cluster: Cluster) -> dict[str, list[str]]:
    return {name: [info.name for info in cluster.table.pods.on(row)] for name, row in cluster.table.rows.items()}


def crowded() -> Cluster:
    return cluster_of(
        make.node("helps"),
        make.node("not-enough"),
        *(make.pod(f"h{i}", on="helps") for i in range(2)),
        *(make.pod(f"n{i}", on="not-enough") for i in range(3)),
    )


@pytest.mark.parametrize("plugin", [AtMostTwo, AtMostTwoCounted, AtMostTwoByRow], ids=lambda plugin: plugin.name)
def test_nodes_are_left_on_which_the_pod_fits_once_the_victims_are_gone(plugin: type) -> None:
    cluster = crowded()
    before = pods_by_node(cluster)
    asked = {"helps": one_victim("h0"), "not-enough": one_victim("n0"), "unknown": one_victim("u")}
    assert service_of(cluster, plugin).preempt(preempting(asked)) == {"helps": asked["helps"]}
    assert pods_by_node(cluster) == before


def test_a_plugin_that_breaks_over_a_victim_leaves_the_pods_where_they_are() -> None:
    cluster = crowded()
    before = pods_by_node(cluster)
    with pytest.raises(PluginError, match="lost count"):
        service_of(cluster, BreaksWhenPodsGo).preempt(preempting({"helps": MetaVictims(("uid-default-h0",), 0)}))
    assert pods_by_node(cluster) == before


def test_a_node_rejected_for_good_is_dropped() -> None:
    cluster = cluster_of(*TIERED, make.pod("x", on="a"), make.pod("y", on="b"))
    left = service_of(cluster, Tiers).preempt(preempting({"a": one_victim("x"), "b": one_victim("y")}))
    assert list(left) == ["a"]


def test_preempt_needs_a_cluster() -> None:
    with pytest.raises(CallError, match="--no-cluster"):
        service_of(Cluster(), Tiers, follows=False).preempt(preempting({"a": one_victim("x")}))


# -- whom it is about --------------------------------------------------------------------------------------------------

TWO_PROFILES = {"profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}]}


def test_the_only_profile_is_for_pods_of_any_scheduler_name() -> None:
    service = service_of(cluster_of(*TIERED), Tiers, config={"profiles": [{"schedulerName": "mine"}]})
    assert service.filter(by_names("c")).failed == {"c": "node(s) without tier"}


def test_with_several_profiles_the_scheduler_name_decides() -> None:
    service = service_of(cluster_of(*TIERED), Tiers, config=TWO_PROFILES)
    assert service.filter(by_names("c", pod=make.pod("p", spec={"schedulerName": "two"}))).failed
    with pytest.raises(CallError, match=r'"default-scheduler".*one, two'):
        service.filter(by_names("c"))


def test_nothing_is_answered_before_the_cluster_is_listed() -> None:
    service = service_of(cluster_of(*TIERED), Tiers)
    service._served = ServedCluster(Cluster(), lambda: False, is_followed=True)
    with pytest.raises(CallError, match="not listed the cluster yet"):
        service.filter(by_names("a"))


def test_a_pod_with_amounts_that_cannot_be_read_is_a_bad_request() -> None:
    with pytest.raises(RequestError, match="Pod"):
        service_of(cluster_of(*TIERED), Tiers).filter(by_names("a", pod=make.pod("p", cpu="much")))
