"""Templates that sets have had, and volumes that are deleted while they are used."""

from __future__ import annotations

from typing import Any

from controlled_server import make_ready, on_server, pods

from harness.scripted_server import ScriptedServer
from harness.scripted_server.faults import until
from harness.workload_manifests import workload


def _revisions(server: ScriptedServer) -> dict[int, Any]:
    """By number: the command of the template."""
    return {
        known["revision"]: known["data"]["spec"]["template"]["spec"]["containers"][0].get("command")
        for known in server.objects("controllerrevisions.apps")
    }


def test_templates_are_numbered_and_one_that_comes_back_is_the_newest() -> None:
    async def scenario(server: ScriptedServer) -> None:
        manifest = workload("StatefulSet", "db", replicas=1)
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        server.put(manifest)
        await until(lambda: len(_revisions(server)) == 1)
        container["command"] = ["other"]
        server.put(manifest)
        await until(lambda: _revisions(server) == {1: None, 2: ["other"]})
        del container["command"]
        server.put(manifest)
        await until(lambda: _revisions(server) == {2: ["other"], 3: None})
        (owner,) = {ref["name"] for known in server.objects("controllerrevisions.apps")
                    for ref in known["metadata"]["ownerReferences"]}  # fmt: skip
        assert owner == "db"

    on_server(scenario)


def test_old_templates_go_when_there_are_too_many() -> None:
    async def scenario(server: ScriptedServer) -> None:
        manifest = workload("DaemonSet", "agent", revisionHistoryLimit=1)
        for number in range(4):
            manifest["spec"]["template"]["spec"]["containers"][0]["command"] = [str(number)]
            server.put(manifest)
            await until(lambda number=number: [str(number)] in _revisions(server).values())  # type: ignore[misc]
        await until(lambda: _revisions(server) == {3: ["2"], 4: ["3"]})

    on_server(scenario)


def _claim(**metadata: Any) -> dict[str, Any]:
    named = {"name": "data", "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"], **metadata}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": named, "spec": {}}


def test_a_claim_stays_while_a_pod_uses_it() -> None:
    async def scenario(server: ScriptedServer) -> None:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        manifest = workload("ReplicaSet", "web", replicas=1)
        manifest["spec"]["template"]["spec"]["volumes"] = volumes
        server.put(manifest)
        await until(lambda: len(pods(server)) == 1)
        make_ready(server, pods(server)[0])
        server.put(_claim(deletionTimestamp="2026-01-01T00:00:00Z"))
        manifest["spec"]["replicas"] = 0
        claim = server.get("persistentvolumeclaims", "data", "default")
        assert claim is not None and claim["metadata"]["finalizers"]
        server.put(manifest)

        def is_let_go() -> bool:
            found = server.get("persistentvolumeclaims", "data", "default")
            return found is None or not found["metadata"].get("finalizers")

        await until(is_let_go)

    on_server(scenario)
