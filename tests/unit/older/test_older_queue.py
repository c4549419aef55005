"""When pods were tried again then."""

from __future__ import annotations

import pytest
from older_world import OlderWorld, with_claim

from kubesched.k8s.model.meta import PodKey
from kubesched.older.config import EMULATED_VERSIONS
from kubesched.testing import make

every_version = pytest.mark.parametrize("version", EMULATED_VERSIONS)


def _waiting(version: str, **affinity: object) -> OlderWorld:
    """One pod waits that is too big for the only node."""
    world = OlderWorld(version, make.node("a", cpu="1"), make.pod("big", cpu="2", spec={"affinity": affinity}))
    world.run()
    assert len(world.notes()) == 1
    return world


@every_version
def test_an_unschedulable_pod_is_tried_once_though_its_own_status_changes(version: str) -> None:
    world = _waiting(version)
    world.run(for_s=20.0)
    assert len(world.notes()) == 1


@every_version
def test_what_is_new_in_the_pod_itself_counts_after_its_backoff(version: str) -> None:
    world = _waiting(version)
    world.put(make.pod("big", cpu="2", labels={"app": "other"}))
    world.run(for_s=0.5)
    assert len(world.notes()) == 1
    world.run(for_s=2.0)
    assert len(world.notes()) == 2


@every_version
def test_a_node_brings_the_pod_back(version: str) -> None:
    world = _waiting(version)
    world.put(make.node("b", cpu="4"))
    world.run(for_s=2.0)
    assert world.bound == {"default/big": "b"}


@every_version
def test_other_pods_that_come_and_change_do_not(version: str) -> None:
    world = _waiting(version)
    world.put(make.pod("other", on="a"))
    world.put(make.pod("other", on="a", labels={"app": "web"}))
    world.put(make.pod("waits-too", cpu="5"))
    world.run(for_s=20.0)
    assert [event.pod for event in world.events if event.reason == "FailedScheduling"] == [
        "default/big",
        "default/waits-too",
    ]


@every_version
def test_pods_that_leave_do(version: str) -> None:
    world = OlderWorld(version, make.node("a", cpu="2"), make.pod("old", on="a", cpu="2"), make.pod("big", cpu="2"))
    world.run()
    assert len(world.notes()) == 1
    world.delete(world.pods[PodKey("default/old")])
    world.run(for_s=2.0)
    assert world.bound == {"default/big": "a"}


@every_version
def test_a_pod_that_another_wants_to_be_near_brings_it_back(version: str) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    world = _waiting(version, podAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [term]})
    world.put(make.pod("other", on="a", labels={"app": "web"}))
    world.run(for_s=5.0)
    assert len(world.notes()) == 1
    world.put(make.pod("db", on="a", labels={"app": "db"}))
    world.run(for_s=5.0)
    assert len(world.notes()) == 2


@every_version
def test_after_an_error_the_pod_waits_for_a_change_as_well(version: str) -> None:
    world = OlderWorld(version, make.node("a"), make.pod("p", spec=with_claim("late")))
    world.run(for_s=20.0)
    assert world.notes() == ['persistentvolumeclaim "late" not found']
    world.put(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "late", "namespace": "default", "uid": "uid-late"},
            "spec": {"storageClassName": "none", "volumeName": "gone"},
        }
    )
    world.run(for_s=5.0)
    assert len(world.notes()) == 2


@every_version
def test_without_any_change_a_pod_is_tried_again_after_a_minute(version: str) -> None:
    world = _waiting(version)
    world.run(for_s=60.0)
    assert len(world.notes()) == 1
    world.run(for_s=40.0)
    assert len(world.notes()) == 2


@every_version
def test_classes_count_if_their_volumes_wait_for_pods(version: str) -> None:
    def put_class(name: str, mode: str) -> None:
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/disk"}
        world.put({**kind, "metadata": {"name": name}, "volumeBindingMode": mode})

    world = _waiting(version)
    put_class("at-once", "Immediate")
    world.run(for_s=5.0)
    assert len(world.notes()) == 1
    put_class("later", "WaitForFirstConsumer")
    world.run(for_s=5.0)
    assert len(world.notes()) == 2
