"""NodeVolumeLimits keeps a ledger between decisions: whatever changes, it must answer as one that starts over."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import event, given
from hypothesis import strategies as st
from storage_clusters import StorageCluster, attachment, claim, csi_node, node, pod, rejections, storage_class, volume

from kubesched.framework import CycleState, Status
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.scheduler.plugins.node_volume_limits.ledger import VolumeLedger

Change = Callable[[StorageCluster], None]

names = st.sampled_from(["a", "b", "c"])
nodes = st.sampled_from(["n1", "n2"])


def _put_claim(name: str, volume_name: str, class_name: str) -> Change:
    return lambda cluster: cluster.put(claim(name, volume=volume_name, storage_class=class_name))


def _put_volume(name: str, driver: str) -> Change:
    return lambda cluster: cluster.put(volume(name, driver=driver))


def _put_pod(name: str, claims: list[str], on: str) -> Change:
    return lambda cluster: cluster.put(pod(name, *claims, on=on))


def _put_attachment(name: str, volume_name: str, on: str) -> Change:
    return lambda cluster: cluster.put(attachment(name, volume_name, on))


def _remove(kind: str, name: str) -> Change:
    builders: dict[str, Change] = {
        "claim": lambda cluster: cluster.remove(claim(name)),
        "volume": lambda cluster: cluster.remove(volume(name)),
        "pod": lambda cluster: cluster.remove(pod(name)),
        "attachment": lambda cluster: cluster.remove(attachment(name, None, "")),
    }
    return builders[kind]


def _put_class(name: str, provisioner: str) -> Change:
    return lambda cluster: cluster.put(storage_class(name, provisioner=provisioner))


def _put_node(name: str, limit: int) -> Change:
    return lambda cluster: cluster.put(node(name), csi_node(name, disk_example_com=limit))


def _remove_node(name: str) -> Change:
    return lambda cluster: cluster.remove(node(name))


drivers = st.sampled_from(["disk.example.com", "other.example.com"])
changes = st.one_of(
    st.builds(_put_claim, names, st.sampled_from(["", "a", "b", "c"]), st.sampled_from(["fast", "slow"])),
    st.builds(_put_volume, names, drivers),
    st.builds(_put_pod, names, st.lists(names, min_size=1, max_size=2), nodes),
    st.builds(_put_attachment, names, names, nodes),
    st.builds(_remove, st.sampled_from(["claim", "volume", "pod", "attachment"]), names),
    st.builds(_put_class, st.sampled_from(["fast", "slow"]), drivers),
    st.builds(_put_node, nodes, st.integers(0, 3)),
    st.builds(_remove_node, nodes),
)


def answer(plugin: NodeVolumeLimits, cluster: StorageCluster) -> dict[str, Status]:
    cycle, incoming = CycleState(), cluster.info(pod("new", "wanted", "a"))
    plugin.pre_filter(cycle, incoming, cluster.nodes)
    return rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names)


def start() -> StorageCluster:
    cluster = StorageCluster(storage_class("fast"), claim("wanted"), claim("a"), claim("b"), claim("c"))
    _put_node("n1", 2)(cluster)
    _put_node("n2", 2)(cluster)
    return cluster


@given(st.lists(changes, max_size=25))
def test_an_old_ledger_answers_as_a_new_one(steps: list[Change]) -> None:
    cluster = start()
    plugin = NodeVolumeLimits(None, cluster)
    for change in steps:
        change(cluster)
        found = answer(plugin, cluster)
        event("some node is full" if found else "no node is full")
        assert found == answer(NodeVolumeLimits(None, cluster), cluster)


def test_that_property_finds_a_ledger_that_misses_changes() -> None:
    class Forgetful(VolumeLedger):
        def update(self, *_: object) -> list[int]:
            """Never writes a page again."""
            return []

    cluster = start()
    plugin = NodeVolumeLimits(None, cluster)
    assert answer(plugin, cluster) == {}
    plugin._ledger.__class__ = Forgetful
    cluster.put(pod("x", "b", on="n1"))
    assert answer(plugin, cluster) != answer(NodeVolumeLimits(None, cluster), cluster)
