"""The class cache changes the speed of decisions, never an answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.framework import OK, CycleState, Handle, NodeInfo, NodeTable, PodInfo, PreFilterResult, Status
from kubesched.framework.status import SKIP
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default, load
from kubesched.scheduler.engine.class_cache.pod_class import PodClass
from kubesched.scheduler.engine.score import Seeded
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing import make, strategies
from kubesched.testing.make import Manifest
from kubesched.testing.world import World

Step = tuple[str, Manifest]
"""What happens (put, delete, or delete the first pod that runs), and the object."""


def _amounts(draw: st.DrawFn, node: Manifest) -> Manifest:
    """Now and then a node with more than arithmetic on 64 bits can bear, or without a resource."""
    odd: Manifest = draw(st.sampled_from(({}, {}, {}, {"cpu": "40000000000000"}, {"memory": "64Pi"}, {"cpu": None})))
    allocatable = {**node["status"]["allocatable"], **odd}
    allocatable = {name: amount for name, amount in allocatable.items() if amount is not None}
    return {**node, "status": {**node["status"], "allocatable": allocatable}}


def _objects() -> st.SearchStrategy[Manifest]:
    """Those that say among whom to spread, whom terms select, who may be evicted and what devices there are."""
    namespaces, apps = st.sampled_from(("default", "shop")), st.sampled_from(strategies.APPS)
    services = st.builds(
        lambda namespace, app: {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "service", "namespace": namespace},
            "spec": {"selector": {"app": app}},
        },
        namespaces,
        apps,
    )
    named = st.builds(
        lambda name, team: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": team}},
        namespaces,
        st.sampled_from(({}, {"team": "one"}, {"team": "two"})),
    )
    budgets = st.builds(lambda app, n: make.budget("budget", {"app": app}, allowed=n), apps, st.integers(0, 1))
    devices = st.builds(
        lambda resource: {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpus"},
            "spec": {"extendedResourceName": resource},
        },
        st.sampled_from(("example.com/gpu", "example.com/other")),
    )
    return st.one_of(services, named, budgets, devices)


def _pinned(kind: Manifest, name: str) -> Manifest:
    """The pod as a daemon's, for this node alone."""
    spec = kind["spec"]
    affinity = spec.get("affinity", {})
    node_affinity = affinity.get("nodeAffinity", {})
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    terms = [{**term, "matchFields": [field]} for term in required["nodeSelectorTerms"]]
    node_affinity = {**node_affinity, "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {**kind, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}}


@st.composite
def _copies(draw: st.DrawFn, kinds: list[Manifest], names: list[str], number: int) -> Manifest:
    """One more pod of a kind: with its own token, and perhaps for one node alone or promised one."""
    kind = draw(st.sampled_from(kinds))
    metadata = {**kind["metadata"], "name": f"p{number}", "uid": f"uid-{number}"}
    token = {"name": f"kube-api-access-{number}", "projected": {"sources": []}}
    copy: Manifest = {**kind, "metadata": metadata, "spec": {**kind["spec"], "volumes": [token]}}
    if kind["metadata"]["name"].startswith("daemon"):
        copy = _pinned(copy, draw(st.sampled_from([*names, "nowhere"])))
    if draw(st.integers(0, 5)) == 0:
        copy = {**copy, "status": {**copy["status"], "nominatedNodeName": draw(st.sampled_from(names))}}
    return copy


@st.composite
def _kinds(draw: st.DrawFn, name: str) -> Manifest:
    kind = draw(strategies.pods(name, st.just("")))
    terms = kind["spec"].get("affinity", {}).get("podAntiAffinity", {})
    for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
        if draw(st.booleans()):
            term["namespaceSelector"] = {"matchLabels": {"team": "one"}}
    if draw(st.integers(0, 9)) == 0:
        kind["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "50000000000000"
    return kind


@st.composite
def _histories(draw: st.DrawFn) -> list[Step]:
    """Nodes, then pods of a few kinds in many copies, with nodes, pods and other objects that change and go between."""
    names = [f"n{i}" for i in range(draw(st.integers(2, 6)))]
    history = [("put", draw(strategies.nodes(name))) for name in names]
    kinds = [draw(_kinds(f"{draw(st.sampled_from(('kind', 'daemon')))}{i}")) for i in range(draw(st.integers(1, 3)))]
    for number in range(draw(st.integers(4, 18))):
        step = draw(st.integers(0, 15))
        name = draw(st.sampled_from([*names, f"late{number}"]))
        if step == 0:
            history.append(("put", _amounts(draw, draw(strategies.nodes(name)))))
        elif step <= 2:
            history.append((draw(st.sampled_from(("put", "delete"))), draw(strategies.nodes(name))))
        elif step == 3:
            history.append(("put", draw(strategies.pods(f"other{number}", st.sampled_from(names)))))
        elif step == 4:
            history.append(("delete running", {}))
        elif step == 5:
            history.append((draw(st.sampled_from(("put", "put", "delete"))), draw(_objects())))
        else:
            history.append(("put", draw(_copies(kinds, names, number))))
    return history


def _outcome(history: list[Step], *, keeps_classes: bool) -> dict[str, Any]:
    world = World(build_loop(default(), Seeded(1), keeps_classes=keeps_classes))
    for verb, manifest in history:
        if verb == "delete running":
            running = sorted(key for key, pod in world.pods.items() if pod.spec.node_name)
            if running:
                world.delete(world.pods[running[0]])
        else:
            objects = manifests.from_dicts([manifest]).objects
            for item in objects:
                world.add(item) if verb == "put" else world.delete(item)
        world.run(for_s=2)
    world.run(for_s=60)
    notes = [(event.pod, event.reason, event.note) for event in world.events]
    return {"bound": world.bound, "evicted": world.evicted, "notes": notes}


@settings(max_examples=100, deadline=None)
@given(_histories())
def test_with_the_cache_off_every_decision_is_the_same(history: list[Step]) -> None:
    kept = _outcome(history, keeps_classes=True)
    event(f"bound: {min(len(kept['bound']), 5)}, evictions: {bool(kept['evicted'])}")
    assert kept == _outcome(history, keeps_classes=False)


@st.composite
def _histories_of_nodes(draw: st.DrawFn) -> list[Step]:
    """Nodes that come, change and go all the time, and pods whose classes can follow that."""
    names = [f"n{i}" for i in range(draw(st.integers(4, 8)))]
    history = [("put", draw(strategies.nodes(name))) for name in names]
    kinds = [draw(_kinds(f"{kind}{i}")) for i, kind in enumerate(("kind", draw(st.sampled_from(("kind", "daemon")))))]
    for kind in kinds:
        kind["spec"] = {name: given for name, given in kind["spec"].items() if name not in _LOOKS_AT_CLUSTER}
    for number in range(draw(st.integers(10, 24))):
        step = draw(st.integers(0, 9))
        node = draw(strategies.nodes(draw(st.sampled_from(names))))
        if step == 0:
            history.append(("put", _amounts(draw, node)))
        elif step <= 3:
            history.append(("delete" if step > 1 else "put", node))
        elif step == 4:
            history.append(("delete running", {}))
        else:
            history.append(("put", draw(_copies(kinds, names, number))))
    return history


_LOOKS_AT_CLUSTER = ("affinity", "topologySpreadConstraints")


@settings(max_examples=100, deadline=None)
@given(_histories_of_nodes())
def test_classes_follow_nodes(history: list[Step]) -> None:
    assert _outcome(history, keeps_classes=True) == _outcome(history, keeps_classes=False)


@st.composite
def _large_histories(draw: st.DrawFn) -> list[Step]:
    """More nodes than a search looks at; most of them full, so that searches find too few, enough, and more."""
    n_nodes = draw(st.integers(100, 106))
    room = [draw(st.integers(0, 2)) if draw(st.integers(0, 3)) == 0 else 1 for _ in range(n_nodes)]
    history = [("put", make.node(f"n{i}", pods=pods, labels={make.ZONE: f"z{i % 3}"})) for i, pods in enumerate(room)]
    spec: Manifest = draw(st.sampled_from(({}, {"affinity": {"podAntiAffinity": _ANTI}})))
    for number in range(draw(st.integers(2, 12))):
        step = draw(st.integers(0, 5))
        node = make.node(f"n{draw(st.integers(0, n_nodes - 1))}", pods=draw(st.integers(0, 2)))
        if step == 0:
            history.append((draw(st.sampled_from(("put", "delete"))), node))
        else:
            history.append(("put", make.pod(f"p{number}", cpu=step // 4, labels={"app": "web"}, spec=spec)))
    return history


_ANTI = {"requiredDuringSchedulingIgnoredDuringExecution": [make.affinity_term(make.HOSTNAME, {"app": "web"})]}


@settings(max_examples=25, deadline=None)
@given(_large_histories())
def test_a_search_that_is_cut_short_is_cut_at_the_same_place(history: list[Step]) -> None:
    assert _outcome(history, keeps_classes=True) == _outcome(history, keeps_classes=False)


def test_the_comparison_sees_a_row_that_was_not_brought_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: changed rows are not asked about again."""
    history: list[Step] = [("put", make.node(name, cpu=2)) for name in "ab"]
    history += [("put", make.pod(f"p{i}", cpu=1)) for i in range(4)]
    right = _outcome(history, keeps_classes=True)
    assert right == _outcome(history, keeps_classes=False)
    monkeypatch.setattr(PodClass, "_refresh_few", lambda self, rows: None)
    assert _outcome(history, keeps_classes=True) != right


def test_classes_are_really_kept() -> None:
    world = World(build_loop(default(), Seeded(1)))
    world.add(*manifests.from_dicts([make.node("a"), make.node("b"), *(make.pod(f"p{i}") for i in range(5))]).objects)
    world.run()
    scheduler = world.loop.schedulers["default-scheduler"]
    assert scheduler.n_decided_by_class == 4  # all but the first
    assert all(isinstance(pod, Pod) for pod in world.pods.values())


class Moody:
    """A plugin from outside whose silence depends on the pods there are, and that does not say so."""

    name = "Moody"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(OK if nodes.pod_counts.sum() >= 3 else SKIP)

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("enough")


def test_a_plugin_that_does_not_say_what_it_depends_on_is_asked_for_every_pod() -> None:
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Moody"}]}}}],
    }
    registry = REGISTRY.merged_with({"Moody": Moody})
    world = World(build_loop(load(config, "test"), Seeded(1), registry=registry))
    world.add(*manifests.from_dicts([make.node("a"), *(make.pod(f"p{i}") for i in range(6))]).objects)
    world.run()
    assert len(world.bound) == 3


def test_a_pod_for_one_node_leaves_it_to_those_it_is_promised_to() -> None:
    promised = make.pod(
        "nominated pod", cpu=4, priority=9, spec={"schedulerName": "another"}, status={"nominatedNodeName": "c"}
    )
    history: list[Step] = [("put", make.node(name, cpu=4)) for name in "abc"]
    history += [("put", _pinned(make.pod(f"d{name}", cpu=1), name)) for name in "ab"]
    history += [("put", promised), ("put", _pinned(make.pod("dc", cpu=1), "c"))]
    kept = _outcome(history, keeps_classes=True)
    assert kept == _outcome(history, keeps_classes=False)
    assert kept["bound"] == {"default/da": "a", "default/db": "b"}
