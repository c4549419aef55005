"""The sequence vectors through queue, cycle and binding: what kube-scheduler chose, the loop chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.framework.effects import BindPod, EvictPod
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default, load
from kubesched.scheduler.engine.score import ByName
from kubesched.testing.vectors import Case, read_cases
from kubesched.testing.world import World

SEQUENCES = list(read_cases(Path(__file__).parents[2] / "vectors" / "sequences" / "seq.jsonl.gz"))
FIRST_START_S = parse_instant("2026-01-02T00:00:00Z")
LONG_ENOUGH_S = 30.0
"""For a preemptor to come back from its backoff."""


class SequenceWorld(World):
    """Pods count as started in the order of the sequence; victims go at once, and are remembered."""

    index = 0

    def carry_out(self, action: object) -> object:
        if isinstance(action, BindPod) and action.pod in self.pods:
            pod = self.pods[action.pod]
            started = print_instant(FIRST_START_S + self.index)
            self.pods[action.pod] = replace(pod, status=replace(pod.status, start_time=started, nominated_node_name=""))
        if isinstance(action, EvictPod):
            self.victims.append(action.pod)
        return super().carry_out(action)

    def place(self, pod: Pod) -> dict[str, Any]:
        """Adds one pod, and says what became of it, in the words of the vectors."""
        self.victims: list[PodKey] = []
        self.events.clear()
        self.add(pod)
        self.run(for_s=LONG_ENOUGH_S)
        key = pod.pod_key
        step: dict[str, Any] = {"pod": key}
        if key in self.bound:
            step["node"] = self.bound[key]
        else:
            self.delete(self.pods[key])
        messages = [event.note for event in self.events if event.reason == "FailedScheduling" and event.pod == key]
        if messages:
            step["message"] = messages[0]
        if self.victims:
            step["preempt"] = {"node": self.bound[key], "victims": sorted(self.victims)}
        return step


def _run(case: Case) -> list[dict[str, Any]]:
    config = default() if case["config"] is None else load(case["config"], "config")
    world = SequenceWorld(build_loop(config, ByName(), percentage=100))
    sequence = [f"{pod['namespace']}/{pod['name']}" for pod in case["sequence"]]
    waiting: dict[str, Pod] = {}
    for item in manifests.from_dicts(case["objects"]).objects:
        if isinstance(item, Pod) and item.pod_key in sequence:
            waiting[item.pod_key] = item
        else:
            world.add(item)
    steps = []
    for world.index, key in enumerate(sequence):
        steps.append(world.place(waiting[key]))
    return steps


@pytest.mark.parametrize("case", SEQUENCES, ids=lambda case: case["name"])
def test_the_loop_agrees_with_every_step_of_a_sequence(case: Case) -> None:
    fields = ("pod", "node", "message", "preempt")
    expected = [{key: step[key] for key in fields if key in step} for step in case["expect"]["steps"]]
    assert _run(case) == expected


def test_the_sequences_preempt_and_reject() -> None:
    """Or the test above would say nothing about these."""
    steps = [step for case in SEQUENCES for step in case["expect"]["steps"]]
    assert any("preempt" in step for step in steps)
    assert any("node" not in step for step in steps)
