"""Controllers as clients of a server: what comes of what a user writes."""

from __future__ import annotations

from typing import Any

from controlled_server import ROOT_CA, make_end, make_ready, on_server, pods, status_of

from harness.scripted_server import ScriptedServer
from harness.scripted_server.faults import until
from harness.workload_manifests import workload
from kubesched.testing import make


def test_a_deployment_becomes_pods_with_all_of_its_template() -> None:
    async def scenario(server: ScriptedServer) -> None:
        manifest = workload("Deployment", "web", replicas=3)
        manifest["spec"]["template"]["spec"]["containers"][0]["command"] = ["serve"]
        server.put(manifest)
        await until(lambda: len(pods(server)) == 3)
        assert all(pod["spec"]["containers"][0]["command"] == ["serve"] for pod in pods(server))
        for pod in pods(server):
            make_ready(server, pod)
        await until(lambda: status_of(server, "deployments", "web").get("availableReplicas") == 3)
        (replica_set,) = server.objects("replicasets")
        assert replica_set["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
        await until(lambda: _revision(server) == "1")
        assert len(pods(server)) == 3

    on_server(scenario)


def test_billions_of_replicas_do_not_stop_the_others() -> None:
    async def scenario(server: ScriptedServer) -> None:
        for number in range(2):
            server.put(workload("Deployment", f"huge-{number}", replicas=2_000_000_000))
        await until(lambda: len(pods(server)) > 5)
        server.put(workload("Deployment", "small", replicas=3))
        await until(lambda: sum(pod["metadata"]["name"].startswith("small-") for pod in pods(server)) == 3)

    on_server(scenario)


def test_a_refused_pod_is_tried_alone_before_its_siblings() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.fail_next("POST", "/namespaces/default/pods", status=403)
        server.put(workload("ReplicaSet", "web", replicas=20))
        await until(lambda: bool(server.asked("POST", "/namespaces/default/pods")))
        await until(lambda: len(pods(server)) == 20)
        assert len(server.asked("POST", "/namespaces/default/pods")) == 21

    on_server(scenario)


def test_a_rollout_keeps_within_its_limits_and_is_numbered() -> None:
    async def scenario(server: ScriptedServer) -> None:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        manifest = workload("Deployment", "web", replicas=2, strategy=rolling)
        server.put(manifest)
        await until(lambda: len(pods(server)) == 2)
        for pod in pods(server):
            make_ready(server, pod)
        await until(lambda: status_of(server, "deployments", "web").get("availableReplicas") == 2)
        manifest["spec"]["template"]["spec"]["containers"][0]["command"] = ["other"]
        server.put(manifest)
        for _ in range(2):
            await until(lambda: len(pods(server)) == 3)
            (new,) = [pod for pod in pods(server) if _is_new(pod)]
            make_ready(server, new)
            await until(lambda: len(pods(server)) == 2 or any(map(_is_new, pods(server))))
        await until(
            lambda: [pod for pod in pods(server) if _has_command(pod)] == pods(server) and len(pods(server)) == 2
        )
        assert _revision(server) == "2"

    on_server(scenario)


def test_a_pod_whose_labels_change_is_let_go_and_replaced() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(workload("ReplicaSet", "web", replicas=1))
        await until(lambda: len(pods(server)) == 1)
        (pod,) = pods(server)
        server.put({**pod, "kind": "Pod", "metadata": {**pod["metadata"], "labels": {"app": "quarantine"}}})
        await until(lambda: len(pods(server)) == 2)
        kept = server.get("pods", pod["metadata"]["name"], "default")
        assert kept is not None and not kept["metadata"].get("ownerReferences")

    on_server(scenario)


def test_a_stateful_set_makes_one_pod_after_another_with_its_claim() -> None:
    async def scenario(server: ScriptedServer) -> None:
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block"}}
        server.put(workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[claim]))
        await until(lambda: len(pods(server)) == 1)
        (first,) = pods(server)
        assert first["metadata"]["name"] == "db-0"
        found = server.get("persistentvolumeclaims", "data-db-0", "default")
        assert found is not None and found["spec"]["volumeMode"] == "Block"
        make_ready(server, first)
        await until(lambda: [pod["metadata"]["name"] for pod in pods(server)] == ["db-0", "db-1"])

    on_server(scenario)


def test_a_daemon_set_has_a_pod_for_every_node_also_for_new_ones() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(make.node("a"))
        server.put(workload("DaemonSet", "agent"))
        await until(lambda: len(pods(server)) == 1)
        server.put(make.node("b"))
        await until(lambda: len(pods(server)) == 2)
        await until(lambda: status_of(server, "daemonsets", "agent").get("desiredNumberScheduled") == 2)

    on_server(scenario)


def test_a_job_counts_pods_that_ended_and_completes() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(workload("Job", "sum", completions=2, parallelism=1))
        for n_done in (1, 2):
            await until(lambda: [pod for pod in pods(server) if pod["status"].get("phase") != "Succeeded"])
            running = [pod for pod in pods(server) if pod["status"].get("phase") != "Succeeded"]
            make_end(server, running[0], "Succeeded")
            await until(lambda n=n_done: status_of(server, "jobs", "sum").get("succeeded") == n)  # type: ignore[misc]
        await until(lambda: "completionTime" in status_of(server, "jobs", "sum"))
        assert all(not pod["metadata"].get("finalizers") for pod in pods(server))

    on_server(scenario)


def test_what_belongs_to_a_deleted_owner_goes_with_it() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(workload("Deployment", "web", replicas=2))
        await until(lambda: len(pods(server)) == 2)
        server.delete("deployments", "web", "default")
        await until(lambda: not server.objects("replicasets") and not pods(server))

    on_server(scenario)


def test_a_claim_that_waits_is_served_when_its_node_is_chosen() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(make.node("a", labels={"topology.kubernetes.io/zone": "z"}))
        late = {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
        server.put({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, **late})
        claim = _claim({})
        server.put(claim)
        server.put(_claim({"volume.kubernetes.io/selected-node": "a"}))
        await until(lambda: status_of(server, "persistentvolumeclaims", "c").get("phase") == "Bound")
        (volume,) = server.objects("persistentvolumes")
        assert volume["spec"]["claimRef"]["name"] == "c"
        assert volume["spec"]["capacity"] == {"storage": "1Gi"}

    on_server(scenario)


def test_a_budget_says_how_many_pods_may_go() -> None:
    async def scenario(server: ScriptedServer) -> None:
        selector = {"matchLabels": {"app": "web"}}
        server.put(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "b", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": selector},
            }
        )
        for name in ("p", "q", "r"):
            server.put(make.pod(name, on="n", labels={"app": "web"}))
        await until(lambda: status_of(server, "poddisruptionbudgets", "b").get("disruptionsAllowed") == 2)
        assert status_of(server, "poddisruptionbudgets", "b")["currentHealthy"] == 3

    on_server(scenario)


def test_every_namespace_has_a_service_account() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        await until(lambda: server.get("serviceaccounts", "default", "team"))
        server.delete("serviceaccounts", "default", "team")
        await until(lambda: server.get("serviceaccounts", "default", "team"))

    on_server(scenario)


def test_every_namespace_has_the_servers_certificate_authority() -> None:
    name = "kube-root-ca.crt"

    async def scenario(server: ScriptedServer) -> None:
        def published() -> dict[str, Any] | None:
            found = server.get("configmaps", name, "team")
            return found if found and found["data"] == {"ca.crt": ROOT_CA} else None

        server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        await until(published)
        server.delete("configmaps", name, "team")
        await until(published)
        edited = {**(published() or {}), "kind": "ConfigMap", "data": {"ca.crt": "another", "more": "text"}}
        server.put(edited)
        await until(published)

    on_server(scenario)


def test_pods_leave_a_node_whose_taint_they_do_not_tolerate() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(make.node("a"))
        server.put(make.pod("goes", on="a"))
        stays = {"tolerations": [{"key": "fire", "operator": "Exists"}]}
        server.put(make.pod("stays", on="a", spec=stays))
        server.put(make.node("a", taints=[make.taint("fire", effect="NoExecute")]))
        await until(lambda: [pod["metadata"]["name"] for pod in pods(server)] == ["stays"])

    on_server(scenario)


def test_a_cordoned_node_gets_the_taint_and_loses_it_again() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(make.node("a", unschedulable=True))
        await until(lambda: _taints(server) == ["node.kubernetes.io/unschedulable"])
        kept = server.get("nodes", "a")
        assert kept is not None
        server.put({**kept, "kind": "Node", "spec": {**kept["spec"], "unschedulable": False}})
        await until(lambda: _taints(server) == [])

    on_server(scenario)


def _claim(annotations: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "annotations": annotations},
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
    }


def _taints(server: ScriptedServer) -> list[str]:
    node = server.get("nodes", "a")
    return [] if node is None else [taint["key"] for taint in node["spec"].get("taints") or ()]


def _revision(server: ScriptedServer) -> str:
    found = server.get("deployments", "web", "default")
    annotations = {} if found is None else found["metadata"].get("annotations") or {}
    return str(annotations.get("deployment.kubernetes.io/revision", ""))


def _has_command(pod: dict[str, Any]) -> bool:
    return "command" in pod["spec"]["containers"][0]


def _is_new(pod: dict[str, Any]) -> bool:
    return _has_command(pod) and "nodeName" not in pod["spec"]
