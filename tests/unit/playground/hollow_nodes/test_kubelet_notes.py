"""What kubelets say about pods and nodes."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.k8s.client.event_recorder import EventSource
from kubesched.k8s.model.core import Node, NodeSpec
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import ObjectReference
from kubesched.playground.hollow_nodes.containers import HollowContainer, HollowMeta, HollowPod, HollowPodSpec, RunBook
from kubesched.playground.hollow_nodes.pod_play import play
from kubesched.playground.hollow_nodes.pod_plays import KubeletNotes


class _Heard:
    def __init__(self) -> None:
        self.said: list[tuple[str, str, str, str]] = []
        self.notes = KubeletNotes(self._tell)

    def _tell(self, who: EventSource, about: ObjectReference, reason: str, note: str, type_: str) -> None:
        assert who.component == "kubelet"
        assert type_ == ("Warning" if reason in ("BackOff", "Failed") else "Normal")
        self.said.append((who.host, about.field_path, reason, note))


POD = HollowPod(
    metadata=HollowMeta(name="p", namespace="shop", uid="1"),
    spec=HollowPodSpec(
        node_name="n",
        containers=(HollowContainer(name="web", image="nginx"),),
        init_containers=(HollowContainer(name="first", image="busybox"),),
    ),
)


def test_each_container_is_pulled_created_and_started() -> None:
    heard = _Heard()
    heard.notes.played(POD, play(POD, RunBook(), 0.0))
    first, web = "spec.initContainers{first}", "spec.containers{web}"
    assert heard.said == [
        ("n", first, "Pulled", 'Container image "busybox" already present on machine'),
        ("n", first, "Created", "Container created"),
        ("n", first, "Started", "Container started"),
        ("n", web, "Pulled", 'Container image "nginx" already present on machine'),
        ("n", web, "Created", "Container created"),
        ("n", web, "Started", "Container started"),
    ]


def test_a_container_that_cannot_start_is_told() -> None:
    crashing = HollowContainer(name="web", image="nginx", command=("false",))
    absent = HollowContainer(name="other", image="nginx:nonexistent")
    pod = replace(POD, spec=HollowPodSpec(node_name="n", containers=(crashing, absent)))
    heard = _Heard()
    heard.notes.played(pod, play(pod, RunBook(), 0.0))
    assert [said[2:] for said in heard.said if said[2] not in ("Pulled", "Created", "Started")] == [
        ("BackOff", "Back-off restarting failed container web in pod p_shop(1)"),
        ("Pulling", 'Pulling image "nginx:nonexistent"'),
        ("Failed", 'Failed to pull image "nginx:nonexistent": not found'),
    ]


def test_containers_that_are_stopped_are_told() -> None:
    heard = _Heard()
    heard.notes.stopping(POD)
    assert heard.said == [("n", "spec.containers{web}", "Killing", "Stopping container web")]


def test_a_node_tells_when_it_is_cordoned_and_when_no_more() -> None:
    heard = _Heard()
    for is_cordoned in (False, False, True, True, False):
        heard.notes.looked_at(Node(metadata=ObjectMeta(name="n"), spec=NodeSpec(unschedulable=is_cordoned)))
    assert [said[2] for said in heard.said] == ["NodeNotSchedulable", "NodeSchedulable"]
