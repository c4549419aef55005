"""Jobs on a server: how their pods look, what is counted, and who lets go of pods that nobody counts."""

from __future__ import annotations

from typing import Any

from controlled_server import make_ready, on_server, pods, status_of

from harness.scripted_server import ScriptedServer
from harness.scripted_server.faults import until
from harness.workload_manifests import cron_job, workload

FINALIZER = "batch.kubernetes.io/job-tracking"


def _job(name: str = "sum", **spec: Any) -> dict[str, Any]:
    manifest = workload("Job", name, **spec)
    manifest["spec"]["selector"] = {"matchLabels": {"job-name": name}}
    return manifest


def _end(server: ScriptedServer, pod: dict[str, Any], code: int) -> None:
    ended = {"terminated": {"exitCode": code, "reason": "Error"}}
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"name": "main", "state": ended}]}
    server.put({**pod, "kind": "Pod", "status": status})


def _reasons(server: ScriptedServer) -> dict[str, str]:
    found = status_of(server, "jobs", "sum").get("conditions") or ()
    return {known["type"]: known["reason"] for known in found if known["status"] == "True"}


def test_pods_of_an_indexed_job_know_their_number() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(_job(completions=2, parallelism=2, completionMode="Indexed"))
        await until(lambda: len(pods(server)) == 2)
        for number, pod in enumerate(pods(server)):
            assert pod["spec"]["hostname"] == f"sum-{number}"
            (variable,) = pod["spec"]["containers"][0]["env"]
            assert variable["name"] == "JOB_COMPLETION_INDEX"
            path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
            assert variable["valueFrom"]["fieldRef"]["fieldPath"] == path

    on_server(scenario)


def test_an_exit_code_fails_the_job_by_its_policy() -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}

    async def scenario(server: ScriptedServer) -> None:
        server.put(_job(parallelism=2, completions=2, podFailurePolicy={"rules": [rule]}))
        await until(lambda: len(pods(server)) == 2)
        _end(server, pods(server)[0], 42)
        await until(lambda: _reasons(server).get("FailureTarget") == "PodFailurePolicy")
        await until(lambda: _reasons(server).get("Failed") == "PodFailurePolicy")

    on_server(scenario)


def test_what_has_ended_is_noted_before_the_pod_is_let_go_and_counted_after() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(_job(completions=2))
        await until(lambda: len(pods(server)) == 1)
        (pod,) = pods(server)
        server.fail_next("PATCH", f"/pods/{pod['metadata']['name']}", status=500)
        _end(server, pod, 0)
        await until(lambda: status_of(server, "jobs", "sum").get("succeeded") == 1)
        noted = f'"succeeded":["{pod["metadata"]["uid"]}"]'.encode()
        assert any(noted in request.body for request in server.asked("PATCH", "/jobs/sum/status"))
        assert status_of(server, "jobs", "sum")["uncountedTerminatedPods"] == {}
        left = server.get("pods", pod["metadata"]["name"], "default") or {}
        assert not left["metadata"].get("finalizers")

    on_server(scenario)


def test_pods_of_a_deleted_job_are_let_go() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(_job(parallelism=2, completions=2))
        await until(lambda: len(pods(server)) == 2)
        assert all(FINALIZER in pod["metadata"]["finalizers"] for pod in pods(server))
        server.delete("jobs", "sum", "default")
        await until(lambda: not server.objects("pods"))

    on_server(scenario)


def test_a_pod_whose_labels_change_is_let_go_and_taken_back() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(_job())
        await until(lambda: len(pods(server)) == 1)
        (pod,) = pods(server)
        make_ready(server, pod)
        name = pod["metadata"]["name"]

        def state() -> tuple[bool, bool]:
            metadata = (server.get("pods", name, "default") or {})["metadata"]
            return bool(metadata.get("ownerReferences")), FINALIZER in (metadata.get("finalizers") or ())

        other = server.get("pods", name, "default") or {}
        metadata = {**other["metadata"], "labels": {}}
        server.put({**other, "kind": "Pod", "metadata": metadata})
        await until(lambda: state() == (False, False))
        orphan = server.get("pods", name, "default") or {}
        labels = {**orphan["metadata"], "labels": pod["metadata"]["labels"]}
        server.put({**orphan, "kind": "Pod", "metadata": labels})
        await until(lambda: state() == (True, True))

    on_server(scenario)


def test_a_refused_pod_is_told_in_the_status_until_it_is_made() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.fail_next("POST", "/namespaces/default/pods", status=403, message="exceeded quota", times=4)
        server.put(workload("ReplicationController", "web", replicas=2))
        await until(lambda: _failure(server) == ("FailedCreate", "exceeded quota"))
        await until(lambda: len(pods(server)) == 2 and _failure(server) is None)

    on_server(scenario)


def _failure(server: ScriptedServer) -> tuple[str, str] | None:
    conditions = status_of(server, "replicationcontrollers", "web").get("conditions") or ()
    found = next((known for known in conditions if known["type"] == "ReplicaFailure"), None)
    return None if found is None else (found["reason"], found["message"])


def test_a_cron_job_tells_what_became_of_its_active_jobs() -> None:
    async def scenario(server: ScriptedServer) -> None:
        manifest = cron_job("nightly", "0 0 1 1 *", suspend=True)
        manifest["status"] = {"active": [{"kind": "Job", "name": "nightly-1", "namespace": "default", "uid": "lost"}]}
        server.put(manifest)
        await until(lambda: any(one.get("reason") == "MissingJob" for one in server.objects("events")))
        await until(lambda: not status_of(server, "cronjobs", "nightly").get("active"))

    on_server(scenario)
