"""VolumeBinding answers for all nodes at once; here the rules are written down for one node, and both must agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from storage_clusters import HOSTNAME, ZONE, StorageCluster, allowed, claim, node, on_label, pod, storage_class, volume

from kubesched.framework import CycleState
from kubesched.k8s.model.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.k8s.model.quantity import parse
from kubesched.k8s.model.selectors import from_node_selector
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeNodeAffinity
from kubesched.scheduler.plugins.volume_binding import VolumeBinding, VolumesOfPod
from kubesched.scheduler.plugins.volume_binding.matching import VolumeMatcher

NODES = (node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b"), node("n4"))
NOT_IN_A = VolumeNodeAffinity(
    NodeSelector(
        (
            NodeSelectorTerm((NodeSelectorRequirement(ZONE, "NotIn", ("a",)),)),
            NodeSelectorTerm((NodeSelectorRequirement(HOSTNAME, "In", ("n1",)),)),
        )
    )
)
SELECTED = "volume.kubernetes.io/selected-node"

names = st.sampled_from(["n1", "n2", "n3", "n4"])
sizes = st.sampled_from(["1Gi", "2Gi", "3Gi"])
affinities = st.one_of(
    st.none(),
    st.builds(lambda name: on_label(HOSTNAME, name), names),
    st.builds(lambda one, two: on_label(HOSTNAME, one, two), names, names),
    st.builds(lambda zone: on_label(ZONE, zone), st.sampled_from(["a", "b", "c"])),
    st.just(NOT_IN_A),
)


@st.composite
def volumes(draw: st.DrawFn) -> list[PersistentVolume]:
    return [
        volume(
            f"pv-{i}",
            size=draw(sizes),
            affinity=draw(affinities),
            claim=draw(st.sampled_from(["", "", "", "", "", "", "c0", "other"])),
            storage_class=draw(st.sampled_from(["fast", "fast", "fast", "slow"])),
        )
        for i in range(draw(st.sampled_from([0, 2, 4, 6, 8])))
    ]


@st.composite
def claims(draw: st.DrawFn) -> list[PersistentVolumeClaim]:
    marks = st.sampled_from([None] * 9 + [{SELECTED: "n1"}, {SELECTED: "n3"}])
    return [
        claim(
            f"c{i}",
            size=draw(sizes),
            storage_class=draw(st.sampled_from(["fast", "fast", "fast", "slow"])),
            annotations=draw(marks),
        )
        for i in range(draw(st.sampled_from([1, 2, 3, 4])))
    ]


@dataclass(frozen=True)
class OnNode:
    """What the pod gets on one node: volumes by claim, and claims that need a new one; or nothing."""

    bound: dict[str, str]
    provisioned: list[str]


def by_the_book(
    on: Node, wanted: list[PersistentVolumeClaim], offered: list[PersistentVolume], slow: StorageClass
) -> OnNode | None:
    to_provision, to_match = [], []
    for item in wanted:
        selected = (item.metadata.annotations or {}).get(SELECTED)
        if selected is None:
            to_match.append(item)
        elif selected == on.name:
            to_provision.append(item)
        else:
            return None
    bound: dict[str, str] = {}
    for item in sorted(to_match, key=lambda item: _size(item)):
        found = _find(on, item, [pv for pv in offered if pv.name not in bound.values()])
        if found is None:
            to_provision.append(item)
        else:
            bound[item.name] = found.name
    for item in to_provision:
        is_slow = item.spec.storage_class_name == "slow"
        if (is_slow and slow.provisioner == "") or (is_slow and on.labels.get(ZONE) != "a"):
            return None
    return OnNode(bound, [item.name for item in to_provision])


def _find(on: Node, item: PersistentVolumeClaim, offered: list[PersistentVolume]) -> PersistentVolume | None:
    best: PersistentVolume | None = None
    for pv in sorted(offered, key=lambda pv: pv.name):
        reference = pv.spec.claim_ref
        if pv.spec.storage_class_name != item.spec.storage_class_name or _capacity(pv) < _size(item):
            continue
        if reference is not None and reference.name != item.name:
            continue
        if reference is not None:
            return pv if _reaches(pv, on) else None
        if _reaches(pv, on) and (best is None or _capacity(pv) < _capacity(best)):
            best = pv
    return best


def _reaches(pv: PersistentVolume, on: Node) -> bool:
    affinity = pv.spec.node_affinity
    return affinity is None or affinity.required is None or from_node_selector(affinity.required).matches(on)


def _size(item: PersistentVolumeClaim) -> int:
    assert item.spec.resources is not None
    assert item.spec.resources.requests is not None
    return parse(item.spec.resources.requests["storage"]).value


def _capacity(pv: PersistentVolume) -> int:
    assert pv.spec.capacity is not None
    return parse(pv.spec.capacity["storage"]).value


def answer(cluster: StorageCluster, wanted: list[PersistentVolumeClaim]) -> dict[str, OnNode | None]:
    plugin, cycle = VolumeBinding(None, cluster), CycleState()
    incoming = cluster.info(pod("p", *(item.name for item in wanted)))
    plugin.pre_filter(cycle, incoming, cluster.nodes)
    verdicts = plugin.filter(cycle, incoming, cluster.nodes)
    findings = cycle.get(VolumesOfPod).findings
    assert findings is not None
    found: dict[str, OnNode | None] = {}
    for row, name in enumerate(cluster.nodes.names):
        is_out = bool(verdicts.reasons) and not verdicts.status(row).is_success
        assert findings.fits(row) is not is_out
        on_row = findings.volumes_on(row)
        bound = {item.name: pv.name for pv, item in on_row.bindings}
        found[name] = None if is_out else OnNode(bound, [item.name for item in on_row.provisions])
    return found


@given(claims(), volumes(), st.sampled_from(["", "disk.example.com"]))
def test_the_table_answers_as_the_rules_do_for_each_node(
    wanted: list[PersistentVolumeClaim], offered: list[PersistentVolume], provisioner: str
) -> None:
    slow = storage_class("slow", provisioner=provisioner, allowed_topologies=allowed({ZONE: ("a",)}))
    expected = {on.name: by_the_book(on, wanted, offered, slow) for on in NODES}
    found = answer(StorageCluster(*NODES, storage_class("fast"), slow, *wanted, *offered), wanted)
    event(f"{sum(len(on.bound) for on in expected.values() if on is not None)} volumes given")
    assert found == expected


def test_that_property_finds_a_matcher_that_gives_a_volume_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, offered = [claim("c0"), claim("c1")], [volume("pv-0")]
    slow = storage_class("slow")
    cluster = StorageCluster(*NODES, storage_class("fast"), slow, *wanted, *offered)
    expected = {on.name: by_the_book(on, wanted, offered, slow) for on in NODES}
    assert answer(cluster, wanted) == expected
    monkeypatch.setattr(VolumeMatcher, "_is_taken", lambda _, positions: np.zeros(len(positions), dtype=np.bool_))
    assert answer(cluster, wanted) != expected
