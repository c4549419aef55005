"""VolumeBinding, Reserve: what is assumed for one pod is not given to the next, until it is taken back."""

from __future__ import annotations

import pytest
from storage_clusters import HOSTNAME, StorageCluster, claim, node, on_label, pod, rejections, storage_class, volume

from kubesched.framework import OK, CycleState, Status
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.plugins.volume_binding import VolumeBinding

BIND_CONFLICT = Status.unresolvable("node(s) didn't find available persistent volumes to bind")
STATIC = storage_class("static", provisioner="kubernetes.io/no-provisioner")
CLAIM, OTHER = claim("c", storage_class="static"), claim("d", storage_class="static")
VOLUME = volume("pv", storage_class="static", version="7")


class Setting:
    """A cluster of two nodes, and one plugin that lives on from pod to pod."""

    def __init__(self, *objects: KubeObject) -> None:
        self.cluster = StorageCluster(node("a"), node("b"), STATIC, storage_class("made"), *objects)
        self.plugin = VolumeBinding(None, self.cluster)

    def rejected(self, incoming: Pod) -> dict[str, Status]:
        return self.decide(incoming)[1]

    def decide(self, incoming: Pod) -> tuple[CycleState, dict[str, Status]]:
        cycle, info = CycleState(), self.cluster.info(incoming)
        status = self.plugin.pre_filter(cycle, info, self.cluster.nodes).status
        if status != OK:
            return cycle, {}
        verdicts = self.plugin.filter(cycle, info, self.cluster.nodes)
        return cycle, rejections(verdicts, self.cluster.nodes.names)

    def reserve(self, incoming: Pod, on: str) -> CycleState:
        cycle, _ = self.decide(incoming)
        assert self.plugin.reserve(cycle, self.cluster.info(incoming), on) == OK
        return cycle

    def unreserve(self, cycle: CycleState, incoming: Pod, on: str) -> None:
        self.plugin.unreserve(cycle, self.cluster.info(incoming), on)

    def pre_flight(self, cycle: CycleState, incoming: Pod, on: str) -> Status:
        return self.plugin.pre_bind_pre_flight(cycle, self.cluster.info(incoming), on)


def test_an_assumed_volume_is_not_given_again() -> None:
    setting = Setting(CLAIM, OTHER, VOLUME)
    assert setting.rejected(pod("q", "d")) == {}
    first = pod("p", "c")
    cycle = setting.reserve(first, "a")
    assert setting.rejected(pod("q", "d")) == {"a": BIND_CONFLICT, "b": BIND_CONFLICT}
    setting.unreserve(cycle, first, "a")
    assert setting.rejected(pod("q", "d")) == {}


def test_another_pod_with_the_same_claim_gets_the_volume_that_was_assumed_for_it() -> None:
    smaller = volume("smaller", storage_class="static", size="2Gi", affinity=on_label(HOSTNAME, "b"))
    setting = Setting(CLAIM, VOLUME, smaller)
    setting.reserve(pod("p", "c"), "a")
    cycle = setting.reserve(pod("q", "c"), "b")
    assert setting.pre_flight(cycle, pod("q", "c"), "b") == OK
    setting.unreserve(cycle, pod("q", "c"), "b")
    assert setting.rejected(pod("r", "c")) == {}


def test_a_claim_that_is_to_be_provisioned_binds_the_next_pod_to_the_same_node() -> None:
    setting = Setting(claim("c", storage_class="made"))
    first = pod("p", "c")
    cycle = setting.reserve(first, "a")
    assert setting.rejected(pod("q", "c")) == {"b": BIND_CONFLICT}
    setting.unreserve(cycle, first, "a")
    assert setting.rejected(pod("q", "c")) == {}


def test_an_assumed_volume_ends_when_a_newer_volume_arrives() -> None:
    setting = Setting(CLAIM, OTHER, VOLUME)
    setting.reserve(pod("p", "c"), "a")
    setting.cluster.put(volume("pv", storage_class="static", version="8"))
    assert setting.rejected(pod("q", "d")) == {}


def test_an_assumed_volume_outlives_the_same_version_arriving_again() -> None:
    setting = Setting(CLAIM, OTHER, VOLUME)
    setting.reserve(pod("p", "c"), "a")
    setting.cluster.put(volume("pv", storage_class="static", version="7"))
    assert setting.rejected(pod("q", "d")) == {"a": BIND_CONFLICT, "b": BIND_CONFLICT}


def test_where_versions_are_not_kept_any_new_object_replaces_an_assumed_one() -> None:
    setting = Setting(CLAIM, OTHER, volume("pv", storage_class="static"))
    setting.reserve(pod("p", "c"), "a")
    assert setting.rejected(pod("q", "d")) == {"a": BIND_CONFLICT, "b": BIND_CONFLICT}
    setting.cluster.put(volume("pv", storage_class="static"))
    assert setting.rejected(pod("q", "d")) == {}


def test_assuming_a_volume_that_changed_since_the_search_fails_and_leaves_nothing_behind() -> None:
    two = pod("p", "c", "d")
    setting = Setting(CLAIM, OTHER, volume("pv1", storage_class="static", version="1"), VOLUME)
    cycle, _ = setting.decide(two)
    setting.cluster.put(volume("pv1", storage_class="static", version="2"))
    status = setting.plugin.reserve(cycle, setting.cluster.info(two), "a")
    assert status == Status.error('"pv1" is out of sync (stored: 2, assume: 1)')
    setting.unreserve(cycle, two, "a")
    assert setting.rejected(two) == {}


@pytest.mark.parametrize(
    ("incoming", "objects"),
    [
        pytest.param(pod("p"), (), id="without claims"),
        pytest.param(pod("p", "c"), (claim("c", volume="pv"), VOLUME), id="with bound claims"),
    ],
)
def test_a_pod_with_nothing_to_bind_skips_pre_bind(incoming: Pod, objects: tuple[KubeObject, ...]) -> None:
    setting = Setting(*objects)
    cycle = setting.reserve(incoming, "a")
    assert setting.pre_flight(cycle, incoming, "a") == SKIP
    setting.unreserve(cycle, incoming, "a")


def test_pre_bind_on_a_node_that_was_not_reserved_is_an_error() -> None:
    setting = Setting(CLAIM, VOLUME)
    incoming = pod("p", "c")
    cycle = setting.reserve(incoming, "a")
    assert setting.pre_flight(cycle, incoming, "a") == OK
    assert setting.pre_flight(cycle, incoming, "b") == Status.error('no pod volume found for node "b"')


def test_unreserve_works_where_reserve_never_ran() -> None:
    setting = Setting(CLAIM, VOLUME)
    setting.unreserve(CycleState(), pod("p", "c"), "a")
    cycle, _ = setting.decide(pod("p", "c"))
    setting.unreserve(cycle, pod("p", "c"), "a")
