"""Prepared state that was told of every pod that came or went answers as state prepared from nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.framework import CycleState, Handle, PodInfo
from kubesched.framework.handle import Objects
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.k8s.model import core, manifests
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.config.plugin_args import LIST_DEFAULTING, InterPodAffinityArgs, PodTopologySpreadArgs
from kubesched.scheduler.engine.class_cache.layers import following
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.inter_pod_affinity.scoring import AffinityScoreState
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.filtering import ConstraintDomains
from kubesched.testing import make, strategies
from kubesched.testing.make import HOSTNAME, ZONE, Manifest

Plugin = InterPodAffinity | PodTopologySpread

DEFAULTS = tuple(
    core.TopologySpreadConstraint(max_skew=1, topology_key=key, when_unsatisfiable=action)
    for key, action in ((ZONE, "DoNotSchedule"), (HOSTNAME, "ScheduleAnyway"))
)
PLUGINS: list[Callable[[Handle], Plugin]] = [
    lambda handle: InterPodAffinity(None, handle),
    lambda handle: InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=0), handle),
    lambda handle: InterPodAffinity(InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True), handle),
    lambda handle: PodTopologySpread(None, handle),
    lambda handle: PodTopologySpread(
        PodTopologySpreadArgs(default_constraints=DEFAULTS, defaulting_type=LIST_DEFAULTING), handle
    ),
]


class ClusterAtHand:
    """A cluster as plugins see it."""

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

_SURROUNDINGS: list[Manifest] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "x"}}},
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    },
]
_SELECTORS: list[Manifest | None] = [{}, None, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}]


_WEB = {"app": "web"}
_PREFERENCES: list[Manifest] = [
    {},
    {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [make.affinity_term(ZONE, _WEB)]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 9, "podAffinityTerm": make.affinity_term(HOSTNAME, _WEB)}
            ]
        },
    },
    {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [make.affinity_term(HOSTNAME, _WEB)]}},
]


@st.composite
def _incoming(draw: st.DrawFn) -> Manifest:
    """A pod that mostly has something to say."""
    manifest = draw(strategies.pods("incoming", st.just("")))
    if draw(st.booleans()):
        manifest["metadata"] |= {"labels": _WEB, "namespace": "default"}
    if draw(st.booleans()):
        manifest["spec"]["affinity"] = deepcopy(draw(st.sampled_from(_PREFERENCES)))
    if draw(st.booleans()):
        keys = draw(st.lists(st.sampled_from((ZONE, HOSTNAME)), max_size=2, unique=True))
        manifest["spec"]["topologySpreadConstraints"] = [
            make.spread(key, max_skew=draw(st.integers(1, 2)), hard=draw(st.booleans()), labels=_WEB) for key in keys
        ]
    return draw(_stranger(manifest))


@st.composite
def _stranger(draw: st.DrawFn, manifest: Manifest) -> Manifest:
    """The pod with selectors and policies that are less common."""
    for constraint in manifest["spec"].get("topologySpreadConstraints", ()):
        if draw(st.integers(0, 2)) == 0:
            constraint["labelSelector"] = draw(st.sampled_from(_SELECTORS))
        constraint["minDomains"] = draw(st.sampled_from((None, 2)))
        constraint["nodeAffinityPolicy"] = draw(st.sampled_from((None, "Ignore")))
        constraint["nodeTaintsPolicy"] = draw(st.sampled_from((None, "Honor")))
    for term in _terms_of(manifest):
        if draw(st.integers(0, 2)) == 0:
            term["namespaceSelector"] = draw(st.sampled_from(({}, {"matchLabels": {"team": "x"}})))
        if draw(st.integers(0, 2)) == 0:
            term["labelSelector"] = draw(st.sampled_from(_SELECTORS))
    return manifest


@st.composite
def _pods(draw: st.DrawFn, name: str, on: st.SearchStrategy[str]) -> Manifest:
    return draw(_stranger(draw(strategies.pods(name, on))))


def _terms_of(manifest: Manifest) -> Iterator[Manifest]:
    for kind in ("podAffinity", "podAntiAffinity"):
        part = manifest["spec"].get("affinity", {}).get(kind, {})
        yield from part.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        for preferred in part.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            yield preferred["podAffinityTerm"]


@dataclass
class History:
    nodes: list[Manifest]
    pods: list[Manifest]
    incoming: Manifest
    batches: list[list[tuple[str, Manifest]]]
    """Pods that come, change or go; after each batch, answers are compared."""


@st.composite
def _histories(draw: st.DrawFn) -> History:
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    where = st.sampled_from(names)
    known = {f"p{i}": draw(_pods(f"p{i}", where)) for i in range(draw(st.integers(0, 6)))}
    pods = list(known.values())
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        batch = []
        for _ in range(draw(st.integers(1, 3))):
            name = f"p{draw(st.integers(0, 7))}"
            if name in known and draw(st.booleans()):
                batch.append(("remove", known.pop(name)))
            else:
                known[name] = draw(_pods(name, where))
                batch.append(("put", known[name]))
        batches.append(batch)
    return History([draw(strategies.nodes(n)) for n in names], pods, draw(_incoming()), batches)


# -- Followed, and prepared from nothing -------------------------------------------------------------------------------


class Prepared:
    """A plugin's state for a pod, and which extension points it left out."""

    def __init__(self, plugin: Plugin, pod: PodInfo, nodes: TableView, feasible: TableView) -> None:
        self.plugin = plugin
        self.pod = pod
        self.cycle = CycleState()
        self.filters = not plugin.pre_filter(self.cycle, pod, nodes).status.is_skip
        self.prepare_score(feasible)

    def prepare_score(self, feasible: TableView) -> None:
        """Also on its own, after what was prepared for the filter has followed."""
        self.scores = not self.plugin.pre_score(self.cycle, self.pod, feasible).is_skip

    def answers(self, nodes: TableView, feasible: TableView) -> dict[str, Any]:
        statuses: list[object] = ["accepted"] * len(nodes)
        if self.filters:
            verdicts = self.plugin.filter(self.cycle, self.pod, nodes)
            if verdicts is not ACCEPT_ALL:
                found = [verdicts.status(position) for position in range(len(nodes))]
                statuses = ["accepted" if status.is_success else status for status in found]
        raw = scores = np.zeros(len(feasible), dtype=np.int64)
        if self.scores:
            raw = self.plugin.score(self.cycle, self.pod, feasible)
            scores = self.plugin.normalize_score(self.cycle, self.pod, feasible, raw.copy())
        return {"filter": statuses, "raw": raw.tolist(), "score": scores.tolist()}


def check(make_plugin: Callable[[Handle], Plugin], history: History, feasible_rows: list[int]) -> dict[str, int]:
    """How often state could follow, could not, and had something to say."""
    found = manifests.from_dicts([history.incoming, *history.nodes, *history.pods, *_SURROUNDINGS]).objects
    cluster = Cluster.from_objects(found[1:])
    handle = cast(Handle, ClusterAtHand(cluster))
    incoming = found[0]
    assert isinstance(incoming, core.Pod)
    plugin, pod, nodes = make_plugin(handle), cluster.signatures.info(incoming), cluster.nodes
    feasible = nodes.take(np.array([row % len(nodes) for row in feasible_rows]))
    journal = cluster.table.journal
    prepared = Prepared(plugin, pod, nodes, nodes)
    seen = {"followed": 0, "could not follow": 0, "spoke": 0}
    for batch in history.batches:
        position = journal.pods.end
        for verb, manifest in batch:
            (item,) = manifests.from_dicts([manifest]).objects
            cluster.put(item) if verb == "put" else cluster.remove(item)
        changes = journal.pods.since(position)
        assert changes is not None
        followers = following([plugin], prepared.cycle, pod).of_changes(journal.pods, position)
        if all(follower.pods_changed(prepared.cycle, pod, changes) for follower in followers):
            seen["followed"] += 1
            if seen["followed"] == 2:
                prepared.prepare_score(feasible)
        else:
            seen["could not follow"] += 1
            prepared = Prepared(plugin, pod, nodes, nodes)
        fresh = Prepared(make_plugin(handle), pod, nodes, feasible)
        seen["spoke"] += fresh.filters or fresh.scores
        assert prepared.answers(nodes, feasible) == fresh.answers(nodes, feasible)
    return seen


@settings(max_examples=100, deadline=None)
@given(_histories(), st.lists(st.integers(0, 4), min_size=1, max_size=5, unique_by=lambda row: row))
def test_state_that_follows_pods_is_as_good_as_new(history: History, feasible_rows: list[int]) -> None:
    n = len(history.nodes)
    rows = sorted({row % n for row in feasible_rows})
    for number, make_plugin in enumerate(PLUGINS):
        for what, count in check(make_plugin, history, rows).items():
            if count:
                event(f"plugin {number}: {what}")


# -- What is met too seldom by chance ----------------------------------------------------------------------------------


def _web_pods(*constraints: Manifest, **of_arriving: Any) -> History:
    """Three zones of one node each; pods arrive in the first, one after the other and then two at once."""
    nodes = [make.node(name, labels={ZONE: name}, taints=[make.taint("k")] if name == "a" else ()) for name in "abc"]
    arriving = [make.pod(f"p{i}", on="a", labels=_WEB, **of_arriving) for i in range(4)]
    spec = {"topologySpreadConstraints": list(constraints)} if constraints else {}
    incoming = make.pod("incoming", labels=_WEB, spec=spec)
    batches = [[("put", arriving[0])], [("put", arriving[1])], [("put", arriving[2]), ("put", arriving[3])]]
    return History(nodes, [], incoming, batches)


def _zones(**fields: Any) -> Manifest:
    return {**make.spread(ZONE, hard=fields.pop("hard", True), labels=_WEB), **fields}


@pytest.mark.parametrize(
    ("constraints", "of_arriving"),
    [
        pytest.param([_zones(labelSelector={})], {}, id="a selector of everything counts no pod"),
        pytest.param([_zones(labelSelector={}, hard=False)], {}, id="nor does it for the score"),
        pytest.param([_zones()], {"namespace": "shop"}, id="pods of another namespace"),
        pytest.param([_zones()], {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="pods being deleted"),
        pytest.param([_zones(nodeTaintsPolicy="Honor")], {}, id="on a node that a policy leaves out"),
        pytest.param([_zones(nodeTaintsPolicy="Honor", hard=False)], {}, id="left out of the score, too"),
        pytest.param([_zones(hard=False)], {}, id="the score of zones"),
        pytest.param([make.spread(HOSTNAME, hard=False, labels=_WEB)], {}, id="the score of hosts"),
        pytest.param([_zones(maxSkew=9), _zones(hard=False)], {}, id="filter and score count with the same selector"),
    ],
)
def test_spreading_follows(constraints: list[Manifest], of_arriving: dict[str, Any]) -> None:
    assert check(PLUGINS[3], _web_pods(*constraints, **of_arriving), [0, 1, 2])["followed"] == 3


# -- Planted bugs ------------------------------------------------------------------------------------------------------


def test_the_comparison_sees_a_minimum_that_does_not_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    history = _web_pods(_zones())
    assert check(PLUGINS[3], history, [0, 1, 2])["followed"] == 3
    monkeypatch.setattr(ConstraintDomains, "change", lambda self, row, by: None)
    with pytest.raises(AssertionError):
        check(PLUGINS[3], history, [0, 1, 2])


def test_the_comparison_sees_a_score_that_does_not_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    history = _web_pods()
    term = {"weight": 5, "podAffinityTerm": make.affinity_term(ZONE, _WEB)}
    history.incoming["spec"]["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert check(PLUGINS[0], history, [0, 1, 2]) == {"followed": 2, "could not follow": 1, "spoke": 3}
    monkeypatch.setattr(AffinityScoreState, "change", lambda self, pod, row, by: True)
    with pytest.raises(AssertionError):
        check(PLUGINS[0], history, [0, 1, 2])
