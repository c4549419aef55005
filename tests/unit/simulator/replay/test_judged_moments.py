"""What a scheduler knew when it decided is not what is seen when it binds: each test plants one reason for that."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
from recorded_runs import configuration, manifests, recorded_run

from kubesched.k8s.model.core import ContainerImage, Node, Pod, PodSpec
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolumeClaim, StorageClass
from kubesched.simulator.recording.lines import BindingSeen
from kubesched.simulator.recording.reader import BoundSeen, ObjectGone, ObjectSeen, Recorded, Synced
from kubesched.simulator.replay.agreement import Agreement
from kubesched.simulator.replay.judge import BindingJudge
from kubesched.simulator.replay.library import judged


def _judged(events: list[Recorded]) -> Agreement:
    return judged(BindingJudge(configuration()), events)


class Story:
    """Told event by event; a tenth of a second passes between them."""

    def __init__(self, *cpus: int) -> None:
        self.now_s = 100.0
        self.events: list[Recorded] = []
        for i, cpu in enumerate(cpus):
            self.events.append(ObjectSeen(self.now_s, node(i, cpu), is_initial=True))
        self.events.append(Synced(self.now_s))

    def seen(self, item: KubeObject) -> None:
        self.now_s += 0.1
        self.events.append(ObjectSeen(self.now_s, item))

    def gone(self, item: KubeObject) -> None:
        self.now_s += 0.1
        self.events.append(ObjectGone(self.now_s, item))

    def bound(self, name: str, node_name: str, **how: Any) -> None:
        item = pod(name, **how)
        self.now_s += 0.1
        self.events.append(BoundSeen(self.now_s, item.key, BindingSeen(node_name, item.metadata.uid)))
        self.events.append(ObjectSeen(self.now_s, pod(name, node_name=node_name, **how)))

    def verdicts(self) -> list[str]:
        judge = BindingJudge(configuration())
        found = [one for event in self.events for one in judge.feed(event)]
        return [f"{one.pod.removeprefix('default/')} {one.verdict}" for one in (*found, *judge.finish())]


def node(i: int, cpu: int, **labels: str) -> Node:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "1000"}
    metadata = {"name": f"n{i}", "uid": f"n{i}", "labels": {"kubernetes.io/hostname": f"n{i}", **labels}}
    return msgspec.convert({"metadata": metadata, "status": {"allocatable": amounts}}, Node)


def pod(
    name: str,
    *,
    cpu: str = "1",
    node_name: str = "",
    nominated: str = "",
    claim: str = "",
    condition: str = "",
    wants: dict[str, str] | None = None,
) -> Pod:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        "schedulerName": "default-scheduler",
    }
    if claim:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    if node_name:
        spec["nodeName"] = node_name
    if wants:
        spec["nodeSelector"] = wants
    status: dict[str, Any] = {"nominatedNodeName": nominated} if nominated else {}
    if condition:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": condition}]
    metadata = {"name": name, "namespace": "default", "uid": name}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def claim(name: str, selected: str = "") -> KubeObject:
    annotations = {"volume.kubernetes.io/selected-node": selected} if selected else {}
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    spec = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"]}
    return msgspec.convert({"metadata": metadata, "spec": spec}, PersistentVolumeClaim)


def _with_late_volumes(story: Story) -> None:
    metadata = {"name": "late", "uid": "late"}
    late = {"metadata": metadata, "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    story.seen(msgspec.convert(late, StorageClass))
    story.seen(claim("data"))


def test_a_pod_counts_on_its_node_from_when_it_is_nominated() -> None:
    """It waits for its volume, for longer than anything is looked back."""
    story = Story(8, 7)
    _with_late_volumes(story)
    story.seen(pod("slow", claim="data", cpu="4"))
    story.seen(pod("slow", claim="data", cpu="4", nominated="n0"))
    story.now_s += 10
    story.seen(pod("quick"))
    story.bound("quick", "n1")
    story.now_s += 10
    story.bound("slow", "n0", claim="data", cpu="4")
    assert story.verdicts() == ["quick same", "slow same"]


def test_a_pod_counts_on_its_node_from_when_its_volume_is_made_for_it() -> None:
    """As schedulers before v1.35 show it."""
    story = Story(8, 7)
    _with_late_volumes(story)
    story.seen(pod("slow", claim="data", cpu="4"))
    story.seen(claim("data", selected="n0"))
    story.now_s += 10
    story.seen(pod("quick"))
    story.bound("quick", "n1")
    story.bound("slow", "n0", claim="data", cpu="4")
    assert story.verdicts() == ["quick same", "slow same"]


def test_a_nomination_that_is_given_up_counts_no_more() -> None:
    story = Story(16, 7)
    _with_late_volumes(story)
    story.seen(pod("slow", claim="data", cpu="4"))
    story.seen(pod("slow", claim="data", cpu="4", nominated="n0"))
    story.now_s += 10
    story.seen(pod("slow", claim="data", cpu="4", condition="SchedulerError"))
    story.now_s += 10
    story.seen(pod("quick"))
    story.bound("quick", "n0")
    story.now_s += 10
    story.bound("slow", "n0", claim="data", cpu="4")
    assert story.verdicts() == ["quick same", "slow same"]


def test_a_wrong_nomination_differs() -> None:
    story = Story(8, 7)
    _with_late_volumes(story)
    story.seen(pod("slow", claim="data", cpu="4"))
    story.seen(pod("slow", claim="data", cpu="4", nominated="n1"))
    story.now_s += 10
    story.bound("slow", "n1", claim="data", cpu="4")
    assert story.verdicts() == ["slow differs"]


def test_the_room_that_preemption_makes_is_no_decision_yet() -> None:
    story = Story(8, 7)
    story.seen(pod("there", cpu="8", node_name="n0"))
    story.seen(pod("urgent", cpu="8"))
    story.seen(pod("urgent", cpu="8", nominated="n0", condition="Unschedulable"))
    story.now_s += 10
    story.gone(pod("there", cpu="8", node_name="n0"))
    story.now_s += 10
    story.bound("urgent", "n0", cpu="8")
    assert story.verdicts() == ["urgent same"]


def test_a_nomination_without_claims_is_that_of_preemption() -> None:
    """It was tried in vain before, so that only the nomination tells; by then it would fit."""
    story = Story(8, 7)
    story.seen(pod("urgent", cpu="4", condition="Unschedulable"))
    story.seen(pod("urgent", cpu="4", nominated="n0", condition="Unschedulable"))
    story.seen(pod("urgent", cpu="4", condition="Unschedulable"))
    story.now_s += 10
    story.seen(pod("other", cpu="8"))
    story.bound("other", "n0", cpu="8")
    assert story.verdicts() == ["other same"]


def test_a_nomination_may_be_known_before_it_is_written() -> None:
    """The other one, more urgent, gives up its room; that is seen only after the binding."""
    story = Story(8, 4)
    story.seen(_with_priority(pod("first", cpu="8", nominated="n0", condition="Unschedulable"), 10))
    story.now_s += 10
    story.seen(pod("second", cpu="8"))
    story.bound("second", "n0", cpu="8")
    story.seen(_with_priority(pod("first", cpu="8", condition="Unschedulable"), 10))
    assert story.verdicts() == ["second stale"]


def _with_priority(plain: Pod, priority: int) -> Pod:
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, priority=priority))


def _at_version(event: Recorded, version: int) -> Recorded:
    """As the server numbers what is written to it."""
    if isinstance(event, BoundSeen):
        seen = msgspec.structs.replace(event.seen, resource_version=str(version))
        return dataclasses.replace(event, seen=seen)
    assert isinstance(event, ObjectSeen | ObjectGone)
    metadata = msgspec.structs.replace(event.item.metadata, resource_version=str(version))
    return dataclasses.replace(event, item=msgspec.structs.replace(event.item, metadata=metadata))


def _with_a_late_node(*versions: int) -> Story:
    """A node comes, then a pod is bound to it; the node is seen 2.5 s after the binding. Versions are in the order of
    what is seen."""
    story = Story(4, 7)
    story.seen(pod("early", cpu="8"))
    story.bound("early", "n2", cpu="8")
    story.now_s += 2.4
    story.seen(node(2, 8))
    story.events[3:] = [_at_version(event, version) for event, version in zip(story.events[3:], versions, strict=True)]
    return story


def test_a_kind_that_is_seen_late_is_put_in_its_place() -> None:
    assert _with_a_late_node(20, 22, 22, 21).verdicts() == ["early same"]


def test_versions_that_are_of_another_sequence_change_nothing() -> None:
    """Nodes have a server of their own, say: then the time in which they were seen is all that is known."""
    assert _with_a_late_node(20, 22, 22, 900).verdicts() == ["early infeasible"]
    assert _with_a_late_node(20, 22, 22, 0).verdicts() == ["early infeasible"]


def test_what_comes_too_late_is_applied_when_it_comes() -> None:
    story = _with_a_late_node(20, 22, 22, 21)
    story.events[-1] = dataclasses.replace(story.events[-1], at_s=story.now_s + 10)
    assert story.verdicts() == ["early infeasible"]


def test_a_burst_is_decided_in_the_order_in_which_it_came() -> None:
    """Twelve pods at a time, whose bindings are seen the other way round."""
    events = recorded_run(manifests(9), until_s=30.0)
    mixed: list[Recorded] = []
    burst: list[list[Recorded]] = []
    rest = iter(events)
    for event in rest:
        if isinstance(event, BoundSeen):
            burst.append([event, next(rest)])
            continue
        mixed += [one for pair in reversed(burst) for one in pair]
        burst = []
        mixed.append(event)
    mixed += [one for pair in reversed(burst) for one in pair]
    assert mixed != events
    found = _judged(mixed)
    assert found.n_agreed == found.n_decided > 12


def test_a_node_that_came_after_the_decision_was_not_known() -> None:
    story = Story(8, 7)
    story.seen(pod("early"))
    story.seen(node(2, 32))
    story.bound("early", "n0")
    assert story.verdicts() == ["early stale"]


def test_a_node_that_was_known_for_long_is_not_forgotten() -> None:
    story = Story(8, 7)
    story.seen(pod("early"))
    story.seen(node(2, 32))
    story.now_s += 3
    story.bound("early", "n0")
    assert story.verdicts() == ["early differs"]


def test_a_node_that_went_after_the_decision_was_there() -> None:
    story = Story(8, 7)
    story.seen(pod("early"))
    story.gone(node(0, 8))
    story.bound("early", "n0")
    assert story.verdicts() == ["early stale"]


def test_a_pod_that_had_not_come_was_not_decided() -> None:
    """A moment before, n0 was empty: but then this pod was not there."""
    story = Story(8, 7)
    story.seen(pod("other", cpu="4", node_name="n0"))
    story.seen(pod("late"))
    story.bound("late", "n0")
    assert story.verdicts() == ["late differs"]


def test_what_was_changed_of_the_pod_itself_may_not_have_been_known() -> None:
    story = Story(8)
    story.seen(node(1, 7, disk="ssd"))
    story.now_s += 10
    story.seen(pod("moved", wants={"disk": "ssd"}))
    story.seen(pod("moved"))
    story.bound("moved", "n1")
    assert story.verdicts() == ["moved stale"]


def test_reports_of_kubelets_are_no_moments() -> None:
    """More of them than moments are looked at, between the decision and its binding."""
    story = Story(8, 7, 50)
    others = [f"p{n}" for n in range(450)]
    for name in others:
        story.events.append(ObjectSeen(story.now_s, pod(name, cpu="100m", node_name="n2")))
    story.seen(pod("there", cpu="3", node_name="n0"))
    story.now_s += 10
    story.seen(pod("late"))
    story.gone(pod("there", cpu="3", node_name="n0"))
    for name in others:
        story.events.append(ObjectSeen(story.now_s, pod(name, cpu="100m", node_name="n2", condition="Reported")))
    story.bound("late", "n1")
    assert story.verdicts() == ["late stale"]


def _with_image(i: int, cpu: int, *images: str, megabytes: int = 900) -> Node:
    held = tuple(ContainerImage((image,), megabytes * 1024 * 1024) for image in images)
    plain = node(i, cpu)
    return msgspec.structs.replace(plain, status=msgspec.structs.replace(plain.status, images=held))


def _pulling(image: str) -> PodSpec:
    plain = pod("late").spec
    return msgspec.structs.replace(plain, containers=(msgspec.structs.replace(plain.containers[0], image=image),))


def test_a_node_that_was_better_while_more_nodes_had_the_image() -> None:
    """kube-scheduler counts them when the node, or a pod on it, changes."""
    story = Story()
    story.seen(_with_image(1, 64, "web:1"))
    story.seen(_with_image(0, 32, "web:1"))
    story.seen(pod("there", cpu="29", node_name="n0"))
    story.now_s += 10
    story.seen(_with_image(1, 64))
    story.now_s += 10
    pulls = msgspec.structs.replace(pod("late"), spec=_pulling("web:1"))
    story.seen(pulls)
    story.events.append(BoundSeen(story.now_s + 0.1, pulls.key, BindingSeen("n0", "late")))
    assert story.verdicts() == ["late stale"]


def test_a_weight_is_named_that_counts_images_as_they_were_then() -> None:
    """n0 lacks 46 points. It gets 5 for the image: a weight of 10 would do. When both nodes had it, it got 12."""
    story = Story()
    story.seen(_with_image(1, 64, "web:1", megabytes=150))
    story.seen(_with_image(0, 32, "web:1", megabytes=150))
    story.seen(pod("there", cpu="29", node_name="n0"))
    story.now_s += 10
    story.seen(_with_image(1, 64))
    story.now_s += 10
    pulls = msgspec.structs.replace(pod("late"), spec=_pulling("web:1"))
    story.seen(pulls)
    story.events.append(BoundSeen(story.now_s + 0.1, pulls.key, BindingSeen("n0", "late")))
    found = _judged(story.events)
    assert [one.verdict for one in found.differences] == ["differs"]
    weights = [change.weight for change in found.changes if change.plugin == "ImageLocality"]
    assert min(weights) == 4
