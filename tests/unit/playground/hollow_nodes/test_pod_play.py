"""The life of a pod on a hollow node: containers start, end and start again, and its status says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubesched.playground.hollow_nodes.containers import HollowPod, RunBook, backoff_s, cannot_be_pulled
from kubesched.playground.hollow_nodes.pod_play import (
    Body,
    begun_now,
    conditions,
    play,
    pod_ip,
    says_the_same,
    status_body,
    stopped,
)

NOW_S = 1_800_000_000.0


class Life:
    """A pod that is looked at when something is due; every report is written down and read again."""

    def __init__(self, *containers: Body, notes: dict[str, str] | None = None, **spec: Any) -> None:
        given = [{"name": f"c{number}", "image": "i", **one} for number, one in enumerate(containers or ({},))]
        metadata = {"name": "p", "namespace": "d", "uid": "u", "annotations": notes or {}}
        self.book = RunBook()
        self.now_s = NOW_S
        self.body: Body = {"metadata": metadata, "spec": {"containers": given, "nodeName": "n", **spec}, "status": {}}
        self.due_s: float | None = None
        self.look()

    @property
    def pod(self) -> HollowPod:
        return msgspec.convert(self.body, HollowPod)

    @property
    def status(self) -> Body:
        found: Body = self.body["status"]
        return found

    def look(self) -> None:
        pod = begun_now(self.pod, self.now_s)
        turn = play(pod, self.book, self.now_s)
        status = status_body(pod, turn.report, self.now_s)
        ours = [{k: v for k, v in one.items() if v is not None} for one in status["conditions"]]
        kinds = {one["type"] for one in ours}
        others = [one for one in self.status.get("conditions", ()) if one["type"] not in kinds]
        self.body["status"] = {**status, "conditions": [*ours, *others]}
        self.due_s = turn.at_s
        assert says_the_same(self.pod, turn.report, conditions(self.pod, turn.report, self.now_s))

    def go_on(self, most_s: float = 1e9) -> None:
        """To the next thing that is due, if it comes within this time."""
        assert self.due_s is not None and self.due_s <= self.now_s + most_s
        self.now_s = self.due_s
        self.look()

    def condition(self, kind: str) -> tuple[str, str]:
        found = next(known for known in self.status["conditions"] if known["type"] == kind)
        return found["status"], found.get("reason") or ""

    def container(self, number: int = 0, kind: str = "containerStatuses") -> Body:
        found: Body = self.status[kind][number]
        return found


def _command(script: str) -> Body:
    return {"command": ["sh", "-c", script]}


def test_a_container_of_which_nobody_knows_runs_on_and_is_ready() -> None:
    life = Life({"command": ["nginx"]})
    assert (life.status["phase"], life.due_s) == ("Running", None)
    assert life.condition("Ready") == ("True", "")
    assert (life.status["podIP"], life.status["startTime"]) == (pod_ip("u"), "2027-01-15T08:00:00Z")
    assert life.container()["state"] == {"running": {"startedAt": "2027-01-15T08:00:00Z"}}


@pytest.mark.parametrize(
    ("policy", "script", "phase", "ready"),
    [
        ("Never", "exit 0", "Succeeded", ("False", "PodCompleted")),
        ("Never", "exit 3", "Failed", ("False", "PodFailed")),
        ("OnFailure", "exit 0", "Succeeded", ("False", "PodCompleted")),
        ("OnFailure", "exit 3", "Running", ("False", "ContainersNotReady")),
        ("Always", "exit 0", "Running", ("False", "ContainersNotReady")),
    ],
)
def test_the_phase_follows_from_exit_codes_and_the_restart_policy(
    policy: str, script: str, phase: str, ready: tuple[str, str]
) -> None:
    life = Life(_command(script), restartPolicy=policy)
    assert life.status["phase"] == phase
    assert life.condition("Ready") == ready


def test_a_container_that_fails_is_started_again_at_once_and_then_later_and_later() -> None:
    life = Life(_command("sleep 2; exit 3"))
    waits = []
    for _ in range(6):
        life.go_on()
        state = life.container()["state"]
        if "waiting" in state:
            assert state["waiting"]["reason"] == "CrashLoopBackOff"
            assert life.container()["lastState"]["terminated"]["exitCode"] == 3
            assert life.due_s is not None
            waits.append((life.container()["restartCount"], life.due_s - life.now_s))
    assert waits == [(1, 10), (2, 20), (3, 40)]
    assert [backoff_s(n) for n in (0, 1, 5, 6, 100)] == [0, 10, 160, 300, 300]


def test_a_file_in_a_volume_outlives_a_restart() -> None:
    script = "if [ -r /data/seen ]; then exit 0; else touch /data/seen; exit 1; fi"
    mounted = {**_command(script), "volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    life = Life(mounted, restartPolicy="OnFailure", volumes=[{"name": "v", "emptyDir": {}}])
    assert (life.status["phase"], life.container()["restartCount"]) == ("Succeeded", 1)


def test_a_file_in_a_host_path_outlives_the_pod() -> None:
    script = "if [ -r /data/seen ]; then exit 0; else touch /data/seen; exit 1; fi"
    mounted = {**_command(script), "volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    volumes = [{"name": "v", "hostPath": {"path": "/tmp/x"}}]
    life = Life(mounted, restartPolicy="Never", volumes=volumes)
    assert life.status["phase"] == "Failed"
    life.book.forget("u")
    life.body |= {"metadata": {**life.body["metadata"], "uid": "u2"}, "status": {}}
    life.look()
    assert life.status["phase"] == "Succeeded"


def test_an_annotation_says_what_a_container_does() -> None:
    notes = {"kubesched.dev/run.c0": "sleep 5; exit $RESTART_COUNT", "kubesched.dev/run": "sleep 9"}
    life = Life({}, {}, restartPolicy="Never", notes=notes)
    life.go_on(5)
    assert life.container(0)["state"]["terminated"]["exitCode"] == 0
    assert life.status["phase"] == "Running"
    life.go_on(4)
    assert life.status["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("notes", "phase", "code"),
    [
        ({"result": "Succeeded"}, "Succeeded", 0),
        ({"result": "Failed"}, "Failed", 1),
        ({"exit-code": "42"}, "Failed", 42),
        ({}, "Succeeded", 0),
    ],
)
def test_a_duration_ends_the_pod_whatever_its_restart_policy(notes: dict[str, str], phase: str, code: int) -> None:
    life = Life(notes={f"kubesched.dev/{key}": value for key, value in {"duration": "5s", **notes}.items()})
    life.go_on(5)
    assert (life.status["phase"], life.container()["state"]["terminated"]["exitCode"]) == (phase, code)
    assert life.due_s is None


@pytest.mark.parametrize("notes", [{"duration": "soon"}, {"duration": "5s", "exit-code": "many"}])
def test_an_annotation_that_cannot_be_read_changes_nothing(notes: dict[str, str]) -> None:
    life = Life(notes={f"kubesched.dev/{key}": value for key, value in notes.items()})
    assert (life.status["phase"], life.due_s) == ("Running", None)


def test_readiness_comes_with_its_delay() -> None:
    notes = {"kubesched.dev/ready-after.c0": "4s"}
    life = Life({}, {"readinessProbe": {"initialDelaySeconds": 7}}, notes=notes)
    assert life.condition("Ready") == ("False", "ContainersNotReady")
    life.go_on(4)
    assert [life.container(number)["ready"] for number in (0, 1)] == [True, False]
    life.go_on(3)
    assert life.condition("Ready") == ("True", "")


def test_readiness_gates_hold_a_pod_back() -> None:
    life = Life(readinessGates=[{"conditionType": "a.com/ok"}])
    assert life.condition("Ready") == ("False", "ReadinessGatesNotReady")
    assert life.condition("ContainersReady") == ("True", "")
    life.status["conditions"].append({"type": "a.com/ok", "status": "True"})
    life.look()
    assert life.condition("Ready") == ("True", "")


def test_init_containers_run_one_after_another_before_the_others() -> None:
    init = [
        {"name": "a", "image": "i", **_command("sleep 3")},
        {"name": "side", "image": "i", "restartPolicy": "Always"},
        {"name": "b", "image": "i", **_command("sleep 2")},
    ]
    life = Life({}, initContainers=init)
    assert life.status["phase"] == "Pending"
    assert life.condition("Initialized") == ("False", "ContainersNotInitialized")
    assert life.container()["state"] == {"waiting": {"reason": "PodInitializing"}}
    life.go_on(3)
    states = [life.container(number, "initContainerStatuses")["state"] for number in range(3)]
    assert [next(iter(state)) for state in states] == ["terminated", "running", "running"]
    life.go_on(2)
    assert (life.status["phase"], life.condition("Initialized")) == ("Running", ("True", ""))
    assert life.condition("Ready") == ("True", "")


def test_a_failed_init_container_fails_the_pod_or_is_tried_again() -> None:
    init = [{"name": "a", "image": "i", **_command("false")}]
    assert Life({}, initContainers=init, restartPolicy="Never").status["phase"] == "Failed"
    life = Life({}, initContainers=init)
    assert life.status["phase"] == "Pending"
    assert life.container(0, "initContainerStatuses")["state"]["waiting"]["reason"] == "CrashLoopBackOff"


def test_a_pod_may_be_active_only_so_long() -> None:
    life = Life(activeDeadlineSeconds=6)
    life.go_on(6)
    assert (life.status["phase"], life.status["reason"]) == ("Failed", "DeadlineExceeded")


def test_an_image_that_cannot_be_pulled_keeps_the_pod_waiting() -> None:
    life = Life({"image": "web:nonexistent"})
    assert (life.status["phase"], life.container()["state"]["waiting"]["reason"]) == ("Pending", "ErrImagePull")
    life.go_on(10)
    assert (life.container()["state"]["waiting"]["reason"], life.due_s) == ("ImagePullBackOff", None)
    life.body["spec"]["containers"][0]["image"] = "web:1"
    life.look()
    assert life.status["phase"] == "Running"
    absent = ["a/b:404", "invalid.registry.k8s.io/x", "foo:non-existent"]
    assert [cannot_be_pulled(image) for image in (*absent, "invalid", "b:1")] == [True] * 3 + [False] * 2


def test_an_image_that_is_a_bare_shell_ends_at_once_unless_somebody_talks_to_it() -> None:
    bare = {"image": "registry.example/busybox:1.37"}
    assert Life(bare, restartPolicy="Never").status["phase"] == "Succeeded"
    assert Life({**bare, "stdin": True}, restartPolicy="Never").status["phase"] == "Running"


def test_an_ephemeral_container_has_one_go() -> None:
    life = Life()
    life.body["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "i", **_command("sleep 2; exit 1")}]
    life.look()
    life.go_on(2)
    assert life.container(0, "ephemeralContainerStatuses")["state"]["terminated"]["exitCode"] == 1
    assert (life.status["phase"], life.condition("Ready"), life.due_s) == ("Running", ("True", ""), None)


def test_rules_of_a_container_say_with_which_codes_it_is_started_again() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    ruled = {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    again = Life({**_command("if [ $RESTART_COUNT -eq 0 ]; then exit 42; fi"), **ruled}, restartPolicy="Never")
    assert (again.status["phase"], again.container()["restartCount"]) == ("Succeeded", 1)
    assert Life({**_command("exit 41"), **ruled}, restartPolicy="Never").status["phase"] == "Failed"


def test_a_pod_that_was_stopped_says_how_it_ended() -> None:
    life = Life({}, _command("exit 0"), restartPolicy="Never")
    report = stopped(life.pod, 143, life.now_s)
    codes = [one.state.terminated.exit_code for one in report.containers if one.state and one.state.terminated]
    assert (report.phase, codes) == ("Failed", [143, 0])


def test_a_pod_that_is_said_to_run_is_left_as_it_is() -> None:
    life = Life()
    bare = replace(life.pod, status=replace(life.pod.status, container_statuses=None))
    turn = play(bare, RunBook(), NOW_S)
    assert says_the_same(bare, turn.report, conditions(bare, turn.report, NOW_S))


def test_a_status_that_is_read_late_changes_nothing() -> None:
    script = "if [ -r /data/seen ]; then sleep 60; else touch /data/seen; exit 1; fi"
    mounted = {**_command(script), "volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    life = Life(mounted, volumes=[{"name": "v", "emptyDir": {}}])
    after = life.status
    life.body["status"] = {}
    turn = play(begun_now(life.pod, life.now_s), life.book, life.now_s)
    assert turn.started == []
    life.look()
    assert life.status == after
    assert life.container()["restartCount"] == 1
