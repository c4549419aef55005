"""What kubelets say about pods and nodes."""

from __future__ import annotations

from kubesched.client.event_recorder import Speaker
from kubesched.kubelets.kubelet_notes import KubeletNotes
from kubesched.model.core import Container, Node, NodeSpec, Pod, PodSpec
from kubesched.model.meta import ObjectMeta
from kubesched.model.storage import ObjectReference


class _Heard:
    def __init__(self) -> None:
        self.said: list[tuple[str, str, str, str]] = []
        self.notes = KubeletNotes(self._tell)

    def _tell(self, who: Speaker, about: ObjectReference, reason: str, note: str, type_: str) -> None:
        assert (who.component, type_) == ("kubelet", "Normal")
        self.said.append((who.host, about.field_path, reason, note))


POD = Pod(
    metadata=ObjectMeta(name="p", namespace="shop", uid="1"),
    spec=PodSpec(
        node_name="n",
        containers=(Container(name="web", image="nginx"),),
        init_containers=(Container(name="first", image="busybox"),),
    ),
)


def test_each_container_is_pulled_created_and_started() -> None:
    heard = _Heard()
    heard.notes.running(POD)
    first, web = "spec.initContainers{first}", "spec.containers{web}"
    assert heard.said == [
        ("n", first, "Pulled", 'Container image "busybox" already present on machine'),
        ("n", first, "Created", "Container created"),
        ("n", first, "Started", "Container started"),
        ("n", web, "Pulled", 'Container image "nginx" already present on machine'),
        ("n", web, "Created", "Container created"),
        ("n", web, "Started", "Container started"),
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
