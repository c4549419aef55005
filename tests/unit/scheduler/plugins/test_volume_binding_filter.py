"""VolumeBinding, Filter: where the volumes of a pod are, or can be found."""

from __future__ import annotations

import pytest
from storage_clusters import (
    HOSTNAME,
    WAIT,
    ZONE,
    StorageCluster,
    allowed,
    claim,
    csi_node,
    node,
    on_label,
    pod,
    rejections,
    storage_class,
    volume,
)

from kubesched.framework import OK, CycleState, Status
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from kubesched.k8s.model.meta import KubeObject, LabelSelector, LabelSelectorRequirement
from kubesched.k8s.model.storage import (
    VolumeNodeAffinity,
)
from kubesched.k8s.model.volumes import AWSElasticBlockStoreVolumeSource, GCEPersistentDiskVolumeSource
from kubesched.scheduler.plugins.volume_binding import VolumeBinding

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SELECTED = "volume.kubernetes.io/selected-node"
NODES = (node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"))
STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")


def answer(incoming: Pod, *objects: KubeObject) -> dict[str, Status]:
    cluster = StorageCluster(*NODES, *objects)
    plugin, cycle, info = VolumeBinding(None, cluster), CycleState(), cluster.info(incoming)
    result = plugin.pre_filter(cycle, info, cluster.nodes)
    assert (result.status, result.node_names) == (OK, None)
    return rejections(plugin.filter(cycle, info, cluster.nodes), cluster.nodes.names)


def out(reason: str, *names: str) -> dict[str, Status]:
    return dict.fromkeys(names, Status.unresolvable(reason))


def term(*expressions: tuple[str, str, tuple[str, ...]], fields: bool = False) -> NodeSelectorTerm:
    requirements = tuple(NodeSelectorRequirement(key, operator, values) for key, operator, values in expressions)
    return NodeSelectorTerm(match_fields=requirements) if fields else NodeSelectorTerm(requirements)


def affinity(*terms: NodeSelectorTerm) -> VolumeNodeAffinity:
    return VolumeNodeAffinity(NodeSelector(terms))


@pytest.mark.parametrize(
    ("where", "names"),
    [
        pytest.param(None, (), id="everywhere"),
        pytest.param(VolumeNodeAffinity(), (), id="nothing required"),
        pytest.param(on_label(ZONE, "a"), ("b1",), id="one zone"),
        pytest.param(on_label(ZONE, "a", "b"), (), id="two zones"),
        pytest.param(on_label("absent", "x"), ("a1", "a2", "b1"), id="a label that no node has"),
        pytest.param(affinity(), ("a1", "a2", "b1"), id="no terms"),
        pytest.param(affinity(NodeSelectorTerm()), ("a1", "a2", "b1"), id="an empty term"),
        pytest.param(
            affinity(term((ZONE, "NotIn", ("a",))), term((HOSTNAME, "In", ("a1",)))), ("a2",), id="one of two terms"
        ),
        pytest.param(
            affinity(term((ZONE, "Exists", ()), (HOSTNAME, "In", ("a1",)))), ("a2", "b1"), id="all of two labels"
        ),
        pytest.param(affinity(term((ZONE, "Gt", ("x",)))), ("a1", "a2", "b1"), id="a term that cannot be understood"),
        pytest.param(
            affinity(term((ZONE, "Gt", ("x",))), term((ZONE, "In", ("b",)))), ("a1", "a2"), id="beside one that can"
        ),
        pytest.param(
            affinity(term(("metadata.name", "In", ("a1",)), fields=True)), (), id="a node's name is not compared"
        ),
    ],
)
def test_a_bound_volume_must_be_reached(where: VolumeNodeAffinity | None, names: tuple[str, ...]) -> None:
    bound = (claim("c", volume="pv"), volume("pv", claim="c", affinity=where))
    assert answer(pod("p", "c"), *bound) == out(NODE_CONFLICT, *names)


def test_a_bound_claim_without_its_volume_rejects_nodes_that_suit_the_claims_before_it() -> None:
    objects = (
        claim("c", volume="pv"),
        volume("pv", claim="c", affinity=on_label(ZONE, "a")),
        claim("d", volume="gone"),
    )
    assert answer(pod("p", "c", "d"), *objects) == {**out(NO_VOLUME, "a1", "a2"), **out(NODE_CONFLICT, "b1")}


EBS = AWSElasticBlockStoreVolumeSource("vol-1")


def test_an_in_tree_volume_is_judged_by_its_drivers_label_where_the_node_has_migrated() -> None:
    old = volume("pv", claim="c", affinity=on_label(ZONE, "a"), aws_elastic_block_store=EBS)
    driver_label = {"topology.ebs.csi.aws.com/zone": "a"}
    cluster = StorageCluster(
        node("as-it-was", zone="a"),
        node("migrated", zone="a", **driver_label),
        node("migrated-unlabelled", zone="a"),
        csi_node("as-it-was", migrated="kubernetes.io/gce-pd"),
        csi_node("migrated", migrated="kubernetes.io/gce-pd,kubernetes.io/aws-ebs"),
        csi_node("migrated-unlabelled", migrated="kubernetes.io/aws-ebs"),
        claim("c", volume="pv"),
        old,
    )
    plugin, cycle, incoming = VolumeBinding(None, cluster), CycleState(), cluster.info(pod("p", "c"))
    plugin.pre_filter(cycle, incoming, cluster.nodes)
    found = rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names)
    assert found == out(NODE_CONFLICT, "migrated-unlabelled")


def test_an_in_tree_volume_that_cannot_be_translated_is_an_error_where_the_node_has_migrated() -> None:
    gce = GCEPersistentDiskVolumeSource("disk")
    old = volume("pv", claim="c", labels={ZONE: "x__y"}, gce_persistent_disk=gce)
    message = (
        "could not translate pv: failed to get region from zones: zone in unexpected format, "
        "expected: {locale}-{region}-{zone}, got: x"
    )
    found = answer(pod("p", "c"), claim("c", volume="pv"), old, csi_node("a1", migrated="kubernetes.io/gce-pd"))
    assert found == {"a1": Status.error(message)}


@pytest.mark.parametrize(
    ("wanted", "offered", "names"),
    [
        pytest.param(claim("c"), volume("pv"), (), id="a free volume"),
        pytest.param(claim("c"), volume("pv", affinity=on_label(ZONE, "b")), ("a1", "a2"), id="one zone"),
        pytest.param(claim("c", size="11Gi"), volume("pv"), ("a1", "a2", "b1"), id="too small"),
        pytest.param(claim("c", size="10Gi"), volume("pv"), (), id="just large enough"),
        pytest.param(claim("c", size=None), volume("pv", size="0"), (), id="no size asked"),
        pytest.param(claim("c"), volume("pv", storage_class="slow"), ("a1", "a2", "b1"), id="another class"),
        pytest.param(claim("c", modes=("ReadWriteMany",)), volume("pv"), ("a1", "a2", "b1"), id="another access mode"),
        pytest.param(claim("c"), volume("pv", modes=("ReadWriteMany", "ReadWriteOnce")), (), id="more access modes"),
        pytest.param(claim("c", volume_mode="Block"), volume("pv"), ("a1", "a2", "b1"), id="another volume mode"),
        pytest.param(claim("c", volume_mode="Filesystem"), volume("pv"), (), id="the volume mode that goes unsaid"),
        pytest.param(
            claim("c", volume_attributes_class_name="gold"), volume("pv"), ("a1", "a2", "b1"), id="attributes asked"
        ),
        pytest.param(
            claim("c"),
            volume("pv", volume_attributes_class_name="gold"),
            ("a1", "a2", "b1"),
            id="attributes offered and not asked",
        ),
        pytest.param(claim("c"), volume("pv", deleting=True), ("a1", "a2", "b1"), id="a volume that is leaving"),
        pytest.param(claim("c"), volume("pv", phase="Released"), ("a1", "a2", "b1"), id="a volume that is not free"),
        pytest.param(claim("c"), volume("pv", claim="d"), ("a1", "a2", "b1"), id="a volume of another claim"),
        pytest.param(claim("c"), volume("pv", claim="c"), (), id="a volume that is meant for the claim"),
        pytest.param(claim("c"), volume("pv", claim="c", claim_uid=""), (), id="meant for the claim by name alone"),
        pytest.param(
            claim("c"), volume("pv", claim="c", claim_uid="old"), ("a1", "a2", "b1"), id="meant for an earlier claim"
        ),
        pytest.param(
            claim("c", modes=("ReadWriteMany",)), volume("pv", claim="c"), (), id="meant for it in another mode"
        ),
        pytest.param(
            claim("c", size="11Gi"), volume("pv", claim="c"), ("a1", "a2", "b1"), id="meant for it but too small"
        ),
        pytest.param(
            claim("c", selector=LabelSelector({"disk": "ssd"})),
            volume("pv"),
            ("a1", "a2", "b1"),
            id="a volume without the label that is asked for",
        ),
        pytest.param(
            claim("c", selector=LabelSelector({"disk": "ssd"})),
            volume("pv", labels={"disk": "ssd"}),
            (),
            id="a volume with the label that is asked for",
        ),
        pytest.param(
            claim("c", annotations={"volume.beta.kubernetes.io/storage-class": "fast"}, storage_class="slow"),
            volume("pv"),
            (),
            id="the class in the old annotation",
        ),
    ],
)
def test_a_waiting_claim_needs_a_volume_that_suits_it(
    wanted: KubeObject, offered: KubeObject, names: tuple[str, ...]
) -> None:
    assert answer(pod("p", "c"), STATIC, wanted, offered) == out(BIND_CONFLICT, *names)


def test_a_volume_that_is_meant_for_the_claim_but_elsewhere_rules_out_all_others() -> None:
    objects = (claim("c"), volume("meant", claim="c", affinity=on_label(ZONE, "b")), volume("free"))
    assert answer(pod("p", "c"), STATIC, *objects) == out(BIND_CONFLICT, "a1", "a2")


def test_two_claims_need_two_volumes() -> None:
    objects = (claim("c"), claim("d"), volume("x"), volume("y", affinity=on_label(HOSTNAME, "a1")))
    assert answer(pod("p", "c", "d"), STATIC, *objects) == out(BIND_CONFLICT, "a2", "b1")


def test_the_smaller_claim_takes_the_smaller_volume_first() -> None:
    objects = (
        claim("large", size="20Gi"),
        claim("small", size="5Gi"),
        volume("x", size="20Gi"),
        volume("y", size="10Gi"),
    )
    assert answer(pod("p", "large", "small"), STATIC, *objects) == {}


def test_a_selector_that_cannot_be_understood_is_an_error() -> None:
    odd = LabelSelector(match_expressions=(LabelSelectorRequirement("disk", "Near"),))
    found = answer(pod("p", "c"), STATIC, claim("c", selector=odd), volume("pv"))
    message = (
        'error creating internal label selector for claim: default/c: "Near" is not a valid label selector operator'
    )
    assert found == dict.fromkeys(("a1", "a2", "b1"), Status.error(message))


def test_a_claim_whose_node_was_selected_goes_there_only() -> None:
    objects = (claim("c", annotations={SELECTED: "a2"}), storage_class(), volume("free"))
    assert answer(pod("p", "c"), *objects) == out(BIND_CONFLICT, "a1", "b1")


def test_a_selected_node_is_still_asked_whether_the_class_allows_it() -> None:
    narrow = storage_class(allowed_topologies=allowed({ZONE: ("b",)}))
    objects = (claim("c", annotations={SELECTED: "a2"}), narrow)
    assert answer(pod("p", "c"), *objects) == out(BIND_CONFLICT, "a1", "a2", "b1")


def test_bound_and_waiting_claims_give_their_reasons_together() -> None:
    objects = (
        claim("bound", volume="pv"),
        volume("pv", claim="bound", affinity=on_label(ZONE, "b")),
        claim("c"),
        storage_class(allowed_topologies=allowed({HOSTNAME: ("a1", "b1")})),
    )
    assert answer(pod("p", "bound", "c"), *objects) == {
        "a1": Status.unresolvable(NODE_CONFLICT),
        "a2": Status.unresolvable(NODE_CONFLICT, BIND_CONFLICT),
    }


def test_a_dry_run_on_one_node_gives_the_same_answer_as_the_whole_table() -> None:
    cluster = StorageCluster(*NODES, STATIC, claim("c"), volume("pv", affinity=on_label(HOSTNAME, "b1")))
    plugin, cycle, incoming = VolumeBinding(None, cluster), CycleState(), cluster.info(pod("p", "c"))
    plugin.pre_filter(cycle, incoming, cluster.nodes)
    whole = plugin.filter(cycle, incoming, cluster.nodes)
    for position in range(len(cluster.nodes)):
        alone = cluster.nodes.take(cluster.nodes.rows[position : position + 1])
        verdicts = plugin.filter(cycle, incoming, alone)
        expected = {alone.names[0]: whole.status(position)} if not whole.status(position).is_success else {}
        assert rejections(verdicts, alone.names) == expected


def test_score_has_nothing_to_say() -> None:
    cluster = StorageCluster(*NODES, storage_class(mode=WAIT))
    plugin, cycle, incoming = VolumeBinding(None, cluster), CycleState(), cluster.info(pod("p"))
    assert plugin.pre_score(cycle, incoming, cluster.nodes) == SKIP
    assert plugin.score(cycle, incoming, cluster.nodes).tolist() == [0, 0, 0]
