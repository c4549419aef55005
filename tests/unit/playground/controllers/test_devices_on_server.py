"""Pods leave devices that are tainted NoExecute, and rules say how far they have got; claims of pods that are done."""

from __future__ import annotations

from typing import Any

from controlled_server import Stored, on_server, pods, status_of

from harness.scripted_server import ScriptedServer
from harness.scripted_server.faults import until
from kubesched.testing import make

PAST = "2020-01-01T00:00:00Z"


def _claim(name: str, *users: str, **result: Any) -> Stored:
    device = {"request": "r", "driver": "d.x", "pool": "p", "device": "gpu-0", **result}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        "status": {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users],
        },
    }


def _pod(name: str, claim: str) -> Stored:
    made = make.pod(name, on="n")
    made["metadata"]["uid"] = f"uid-{name}"
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    return made


def _rule(effect: str, selector: Stored | None) -> Stored:
    spec: Stored = {"taint": {"key": "broken", "effect": effect, "timeAdded": PAST}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule", "uid": "uid-rule", "generation": 1},
        "spec": spec,
    }


def _condition(server: ScriptedServer) -> Stored:
    conditions = status_of(server, "devicetaintrules", "rule", None).get("conditions") or [{}]
    found: Stored = conditions[0]
    return found


def test_a_rule_drives_pods_off_the_devices_it_selects() -> None:
    async def scenario(server: ScriptedServer) -> None:
        for name, device in (("hit", "gpu-0"), ("other", "gpu-1")):
            server.put(_claim(name, name, device=device))
            server.put(_pod(name, name))
        server.put(_rule("NoExecute", {"driver": "d.x", "device": "gpu-0"}))
        await until(lambda: [pod["metadata"]["name"] for pod in pods(server)] == ["other"])
        await until(lambda: _condition(server).get("reason") in ("PodsPendingEviction", "Completed"))

    on_server(scenario)


def test_who_tolerates_the_taint_stays() -> None:
    async def scenario(server: ScriptedServer) -> None:
        tolerated = [{"key": "broken", "operator": "Exists", "effect": "NoExecute"}]
        server.put(_claim("tolerant", "tolerant", tolerations=tolerated))
        server.put(_pod("tolerant", "tolerant"))
        server.put(_claim("late", "late", tolerations=[{**tolerated[0], "tolerationSeconds": 1}]))
        server.put(_pod("late", "late"))
        server.put(_rule("NoExecute", {"driver": "d.x"}))
        await until(lambda: [pod["metadata"]["name"] for pod in pods(server)] == ["tolerant"])

    on_server(scenario)


def test_a_driver_taints_its_own_devices() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(_claim("c", "p"))
        server.put(_pod("p", "c"))
        taint = {"key": "broken", "effect": "NoExecute", "timeAdded": PAST}
        pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d.x", "pool": pool, "allNodes": True, "devices": [{"name": "gpu-0", "taints": [taint]}]}
        server.put(
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
        )
        await until(lambda: not pods(server))

    on_server(scenario)


def test_a_rule_without_effect_says_what_it_would_do() -> None:
    async def scenario(server: ScriptedServer) -> None:
        server.put(_claim("c", "p"))
        server.put(_pod("p", "c"))
        server.put(_rule("None", {"driver": "d.x"}))
        await until(lambda: "1 pod would be evicted" in _condition(server).get("message", ""))
        condition = _condition(server)
        assert (condition["reason"], condition["status"]) == ("NoEffect", "False")
        assert condition["message"].startswith(
            "0 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if"
        )
        assert [pod["metadata"]["name"] for pod in pods(server)] == ["p"]

    on_server(scenario)


def test_a_class_of_volume_attributes_stays_while_a_claim_names_it() -> None:
    async def scenario(server: ScriptedServer) -> None:
        claim: Stored = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"volumeAttributesClassName": "gold", "storageClassName": "", "accessModes": ["ReadWriteOnce"]},
        }
        server.put(claim)
        held = {"name": "gold", "finalizers": ["kubernetes.io/vac-protection"], "deletionTimestamp": PAST}
        server.put(
            {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": held, "driverName": "d"}
        )
        server.put({**claim, "metadata": {**claim["metadata"], "labels": {"a": "b"}}})
        assert _finalizers(server)
        server.delete("persistentvolumeclaims", "c", "default")
        await until(lambda: not _finalizers(server))

    on_server(scenario)


def _finalizers(server: ScriptedServer) -> list[str]:
    found = [one for one in server.objects("volumeattributesclasses") if one["metadata"]["name"] == "gold"]
    return [name for one in found for name in one["metadata"].get("finalizers") or []]


PROTECTION = "resource.kubernetes.io/delete-protection"


def _status(server: ScriptedServer, name: str) -> Stored:
    return status_of(server, "resourceclaims", name)


def test_a_claim_is_free_when_its_last_pod_is_done() -> None:
    async def scenario(server: ScriptedServer) -> None:
        claim = _claim("shared", "a", "b", "never-was")
        claim["metadata"]["finalizers"] = [PROTECTION]
        for name in ("a", "b"):
            server.put(_pod(name, "shared"))
        server.put(claim)
        await until(lambda: len(_status(server, "shared")["reservedFor"]) == 2)
        server.put({**_pod("a", "shared"), "status": {"phase": "Succeeded"}})
        await until(lambda: [user["name"] for user in _status(server, "shared")["reservedFor"]] == ["b"])
        assert _status(server, "shared")["allocation"]
        server.delete("pods", "b", "default")
        await until(lambda: not _status(server, "shared").get("allocation"))
        await until(lambda: not _metadata(server, "shared").get("finalizers"))

    on_server(scenario)


def _metadata(server: ScriptedServer, name: str) -> Stored:
    found = server.get("resourceclaims", name, "default")
    return {} if found is None else found["metadata"]


def test_a_claim_that_was_made_for_a_pod_goes_with_it() -> None:
    async def scenario(server: ScriptedServer) -> None:
        claim = _claim("made", "p")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
        claim["metadata"] |= {"finalizers": [PROTECTION], "ownerReferences": [owner]}
        server.put(_pod("p", "made"))
        server.put(claim)
        server.put({**_pod("p", "made"), "status": {"phase": "Failed"}})
        await until(lambda: server.get("resourceclaims", "made", "default") is None)

    on_server(scenario)
