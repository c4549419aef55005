"""What a kubelet does next with a pod, and the status that it reports."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.kubelets.pod_statuses import ended_status, pod_ip, running_status
from kubesched.kubelets.pod_steps import Delays, PodStep, next_step
from kubesched.model.core import Container, Pod, PodCondition, PodSpec, PodStatus
from kubesched.model.meta import ObjectMeta

NOW_S = 1_800_000_000.0
STARTED = "2027-01-15T07:59:50Z"
DELAYS = Delays(start_s=2.0, stop_s=3.0)


def _pod(phase: str = "Pending", *, going: bool = False, grace: int | None = None, **annotations: str) -> Pod:
    notes = {f"kubesched.dev/{key}": value for key, value in annotations.items()}
    metadata = ObjectMeta(
        name="p", uid="u", annotations=notes or None, deletion_timestamp="2027-01-15T08:00:30Z" if going else None
    )
    containers = (Container(name="c", image="i"),)
    status = PodStatus(phase, start_time=STARTED if phase == "Running" else None)
    return Pod(metadata, PodSpec(containers, termination_grace_period_seconds=grace), status)


UNREADY = replace(_pod("Running"), status=PodStatus("Running", (PodCondition("Ready", "False"),)))


@pytest.mark.parametrize(
    ("pod", "step"),
    [
        pytest.param(_pod(), (PodStep.START, 2.0), id="bound"),
        pytest.param(_pod("Running"), None, id="runs on"),
        pytest.param(_pod("Running", duration="30s"), (PodStep.END, 20.0), id="runs for a while more"),
        pytest.param(_pod("Running", duration="5s"), (PodStep.END, 0.0), id="has run long enough"),
        pytest.param(_pod("Running", duration="soon"), None, id="a duration that is none"),
        pytest.param(UNREADY, (PodStep.READY, 0.0), id="was taken for lost"),
        pytest.param(_pod("Succeeded"), None, id="has ended"),
        pytest.param(_pod("Running", going=True), (PodStep.STOP, 3.0), id="deleted"),
        pytest.param(_pod("Running", going=True, grace=1), (PodStep.STOP, 1.0), id="deleted with little grace"),
        pytest.param(_pod("Succeeded", going=True), (PodStep.STOP, 3.0), id="deleted after its end"),
    ],
)
def test_the_next_step_follows_from_the_pod(pod: Pod, step: tuple[PodStep, float] | None) -> None:
    assert next_step(pod, DELAYS, NOW_S) == step


def test_a_running_pod_is_ready_and_has_an_address() -> None:
    status = running_status(_pod(), "172.16.0.1", NOW_S)
    assert {known["type"]: known["status"] for known in status["conditions"]}["Ready"] == "True"
    assert (status["podIP"], status["hostIP"], status["startTime"]) == (
        pod_ip("u"),
        "172.16.0.1",
        "2027-01-15T08:00:00Z",
    )
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": "2027-01-15T08:00:00Z"}}


@pytest.mark.parametrize(
    ("result", "phase", "exit_code"),
    [
        pytest.param("Succeeded", "Succeeded", 0, id="well"),
        pytest.param("Failed", "Failed", 1, id="in failure"),
        pytest.param("Odd", "Succeeded", 0, id="a result that is none"),
    ],
)
def test_a_pod_ends_as_its_annotation_says(result: str, phase: str, exit_code: int) -> None:
    status = ended_status(_pod("Running", result=result), NOW_S)
    assert status["phase"] == phase
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == exit_code
