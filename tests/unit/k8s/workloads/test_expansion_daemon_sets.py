"""Daemon sets: which nodes get a daemon, and how it is tied to its node."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.workload_manifests import objects, workload
from kubesched.k8s.model.apps import DaemonSet
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.workloads.actions import CreateObject, DeleteObject, Plan, SeededNames
from kubesched.k8s.workloads.daemon_sets import node_of, sync_daemon_set
from kubesched.k8s.workloads.templates import Revisions
from kubesched.testing import make
from kubesched.testing.make import Manifest


def _set(**pod: Any) -> DaemonSet:
    (found,) = objects(workload("DaemonSet", "agent", pod=pod))
    assert isinstance(found, DaemonSet)
    return replace(found, metadata=replace(found.metadata, uid="uid-agent"))


def _nodes(*manifests: Manifest) -> list[Node]:
    return [item for item in objects(*manifests) if isinstance(item, Node)]


def _sync(owner: DaemonSet, pods: list[Pod], nodes: list[Node], revisions: Revisions | None = None) -> Plan:
    return sync_daemon_set(owner, pods, nodes, SeededNames(0), revisions or Revisions())


def _daemons(owner: DaemonSet, nodes: list[Node]) -> list[Pod]:
    made = (action.item for action in _sync(owner, [], nodes).actions)
    return [_running(pod) for pod in made if isinstance(pod, Pod)]


def _running(pod: Pod) -> Pod:
    spec = replace(pod.spec, node_name=node_of(pod))
    return replace(pod, spec=spec, status=replace(pod.status, phase="Running"))


def _summary(plan: Plan) -> list[str]:
    signs = {CreateObject: "+", DeleteObject: "-"}
    return [signs[type(a)] + node_of(a.item) for a in plan.actions if isinstance(a.item, Pod)]


NOT_READY = make.taint("node.kubernetes.io/not-ready", effect="NoExecute")


@pytest.mark.parametrize(
    ("node", "pod", "expected"),
    [
        pytest.param(make.node("a"), {}, True, id="a plain node"),
        pytest.param(make.node("a", taints=[make.taint("gpu")]), {}, False, id="a taint it does not tolerate"),
        pytest.param(
            make.node("a", taints=[make.taint("gpu")]),
            {"tolerations": [make.toleration("gpu")]},
            True,
            id="one it does",
        ),
        pytest.param(
            make.node("a", taints=[make.taint("x", effect="PreferNoSchedule")]), {}, True, id="a taint that only asks"
        ),
        pytest.param(make.node("a", taints=[NOT_READY]), {}, True, id="a node that is not ready"),
        pytest.param(
            make.node("a", unschedulable=True, taints=[make.taint("node.kubernetes.io/unschedulable")]),
            {},
            True,
            id="a cordoned node",
        ),
        pytest.param(
            make.node("a", taints=[make.taint("node.kubernetes.io/network-unavailable")]),
            {},
            False,
            id="no network, and it needs one",
        ),
        pytest.param(
            make.node("a", taints=[make.taint("node.kubernetes.io/network-unavailable")]),
            {"hostNetwork": True},
            True,
            id="no network, but it is on the host's",
        ),
        pytest.param(make.node("a"), {"nodeSelector": {"disk": "ssd"}}, False, id="without the label it selects"),
        pytest.param(
            make.node("a", labels={"disk": "ssd"}), {"nodeSelector": {"disk": "ssd"}}, True, id="with the label"
        ),
        pytest.param(make.node("a"), {"nodeName": "b"}, False, id="it names another node"),
    ],
)
def test_a_daemon_runs_where_its_template_allows(node: Manifest, pod: dict[str, Any], expected: bool) -> None:
    assert _summary(_sync(_set(**pod), [], _nodes(node))) == (["+a"] if expected else [])


def test_a_daemon_is_tied_to_its_node_by_name_and_by_nothing_else() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    (action,) = _sync(_set(affinity=affinity), [], _nodes(make.node("a", labels={"disk": "ssd"}))).actions
    assert isinstance(action.item, Pod)
    assert action.item.spec.affinity is not None
    assert action.item.spec.affinity.node_affinity is not None
    found = action.item.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert found is not None
    (term,) = found.node_selector_terms
    assert term.match_expressions is None
    (field,) = term.match_fields or ()
    assert (field.key, field.operator, field.values) == ("metadata.name", "In", ("a",))
    tolerated = {toleration.key for toleration in action.item.spec.tolerations or ()}
    assert {f"node.kubernetes.io/{key}" for key in ("not-ready", "unreachable", "unschedulable")} <= tolerated
    assert action.item.labels.keys() >= {"controller-revision-hash", "pod-template-generation"}


def test_a_daemon_stays_on_a_node_that_was_only_closed() -> None:
    owner = _set()
    daemons = _daemons(owner, _nodes(make.node("a")))
    closed = _nodes(make.node("a", taints=[make.taint("full")]))
    assert _summary(_sync(owner, daemons, closed)) == []
    driving = _nodes(make.node("a", taints=[make.taint("broken", effect="NoExecute")]))
    assert _summary(_sync(owner, daemons, driving)) == ["-a"]


def test_daemons_without_their_node_and_doubles_are_deleted() -> None:
    owner, nodes = _set(), _nodes(make.node("a"), make.node("b"))
    daemons = _daemons(owner, nodes)
    double = replace(daemons[0], metadata=replace(daemons[0].metadata, name="double"))
    plan = _sync(owner, [*daemons, double], nodes[:1])
    assert [action.item.name for action in plan.actions] == ["double", daemons[1].name]


def test_a_failed_daemon_is_deleted_and_then_made_anew() -> None:
    owner, nodes = _set(), _nodes(make.node("a"))
    (daemon,) = _daemons(owner, nodes)
    failed = replace(daemon, status=replace(daemon.status, phase="Failed"))
    assert _summary(_sync(owner, [failed], nodes)) == ["-a"]
    assert _summary(_sync(owner, [], nodes)) == ["+a"]


@pytest.mark.parametrize(
    ("strategy", "n_replaced"),
    [
        pytest.param(None, 1, id="one at a time"),
        pytest.param({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}, 2, id="half of them"),
        pytest.param({"type": "OnDelete"}, 0, id="only when somebody deletes them"),
    ],
)
def test_daemons_of_an_older_template_are_replaced(strategy: dict[str, Any] | None, n_replaced: int) -> None:
    nodes = _nodes(*(make.node(f"n{i}") for i in range(4)))
    old = _set()
    revisions = Revisions()
    daemons = _daemons(old, nodes)
    assert _summary(_sync(old, daemons, nodes, revisions)) == []
    manifest = workload("DaemonSet", "agent", pod={"cpu": "1"}, updateStrategy=strategy)
    (changed,) = objects(manifest)
    assert isinstance(changed, DaemonSet)
    changed = replace(changed, metadata=old.metadata)
    assert len(_summary(_sync(changed, daemons, nodes, revisions))) == n_replaced


def _surging(**pod: Any) -> DaemonSet:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    (found,) = objects(workload("DaemonSet", "agent", pod=pod, updateStrategy=rolling))
    assert isinstance(found, DaemonSet)
    return replace(found, metadata=replace(found.metadata, uid="uid-agent"))


def test_in_a_surge_new_daemons_come_first_and_old_ones_go_when_they_are_ready() -> None:
    nodes = _nodes(make.node("a"), make.node("b"))
    revisions = Revisions()
    old = [
        _running(pod)
        for action in _sync(_surging(), [], nodes, revisions).actions
        if isinstance(pod := action.item, Pod)
    ]
    changed = _surging(cpu="2")
    plan = _sync(changed, old, nodes, revisions)
    assert _summary(plan) == ["+a"]
    (new,) = (action.item for action in plan.actions if isinstance(action.item, Pod))
    assert _summary(_sync(changed, [*old, new], nodes, revisions)) == []
    assert _summary(_sync(changed, [*old, _running(new)], nodes, revisions)) == ["-a", "+b"]


def test_a_daemon_that_failed_is_replaced() -> None:
    nodes = _nodes(make.node("a"))
    (pod,) = _daemons(_set(), nodes)
    failed = replace(pod, status=replace(pod.status, phase="Failed"))
    assert _summary(_sync(_set(), [failed], nodes)) == ["-a"]
    assert _summary(_sync(_set(), [], nodes)) == ["+a"]
