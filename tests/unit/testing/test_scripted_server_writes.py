"""The scripted server takes writes as a real one does: versions, uids, conflicts, patches, binding, eviction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from harness.scripted_server import ScriptedServer
from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class Caller:
    def __init__(self, client: RestClient) -> None:
        self._client = client

    async def __call__(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        encoded = None if body is None else msgspec.json.encode(body)
        return msgspec.json.decode(await self._client.request(method, path, body=encoded, content_type=content_type))


Story = Callable[[ScriptedServer, Caller], Awaitable[None]]


def tell(story: Story, **options: Any) -> None:
    async def run() -> None:
        async with ScriptedServer(now=lambda: "2026-01-01T00:00:00Z", **options) as server:
            client = RestClient(ServerTarget(url=server.url), qps=0)
            try:
                await story(server, Caller(client))
            finally:
                await client.close()

    asyncio.run(run())


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}


def test_a_created_object_gets_what_a_server_fills_in() -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        made = await call("POST", PODS, pod("a"))
        metadata = made["metadata"]
        assert metadata["uid"] and metadata["namespace"] == "default"
        assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
        assert int(metadata["resourceVersion"]) == server.storage.revision
        assert made["status"] == {"phase": "Pending"}
        assert await call("GET", f"{PODS}/a") == made

    tell(story)


def test_a_generated_name_is_new_each_time() -> None:
    async def story(_: ScriptedServer, call: Caller) -> None:
        manifest = {"metadata": {"generateName": "e-"}}
        names = {(await call("POST", "/api/v1/namespaces/x/events", manifest))["metadata"]["name"] for _ in range(3)}
        assert len(names) == 3 and all(name.startswith("e-") for name in names)

    tell(story)


def refused(status: int, reason: str, path: str, body: Any, *, method: str = "POST", case: str) -> Any:
    return pytest.param(method, path, body, status, reason, id=case)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        refused(409, "AlreadyExists", PODS, pod("a"), case="it exists"),
        refused(404, "NotFound", f"{PODS}/zzz/binding", {"target": {"name": "n"}}, case="no such pod to bind"),
        refused(404, "NotFound", "/apis/example.com/v1/things", pod("a"), case="no such kind"),
        refused(400, "BadRequest", PODS, {}, case="no metadata"),
        refused(422, "Invalid", PODS, {"metadata": {}}, case="no name"),
        refused(422, "Invalid", f"{PODS}/a/binding", {}, case="no node to bind to"),
        refused(409, "Conflict", f"{PODS}/bound/binding", {"target": {"name": "other"}}, case="bound already"),
        refused(
            409,
            "Conflict",
            f"{PODS}/a/binding",
            {"metadata": {"uid": "another"}, "target": {"name": "n"}},
            case="another pod of that name",
        ),
        refused(
            409, "Conflict", f"{PODS}/gated/binding", {"target": {"name": "n"}}, case="a pod with gates is not bound"
        ),
        refused(
            409,
            "Conflict",
            f"{PODS}/a",
            {"metadata": {"name": "a", "resourceVersion": "1"}},
            method="PUT",
            case="an old version",
        ),
        refused(
            409,
            "Conflict",
            f"{PODS}/a",
            {"preconditions": {"uid": "another"}},
            method="DELETE",
            case="the uid to delete is another",
        ),
    ],
)
def test_refusals(method: str, path: str, body: Any, status: int, reason: str) -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        server.put(pod("a"))
        server.put(pod("bound", nodeName="n"))
        server.put(pod("gated", schedulingGates=[{"name": "g"}]))
        before = server.objects("pods")
        with pytest.raises(ApiError) as refusal:
            await call(method, path, body)
        assert (refusal.value.status, refusal.value.reason) == (status, reason)
        assert server.objects("pods") == before

    tell(story)


@pytest.mark.parametrize(
    "path", [pytest.param(f"{PODS}/a/binding", id="subresource"), pytest.param(f"{PODS[:-5]}/bindings", id="kind")]
)
def test_binding_sets_the_node_and_the_condition(path: str) -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        made = server.put(pod("a", priority=5))
        body = {"metadata": {"name": "a", "uid": made["metadata"]["uid"]}, "target": {"kind": "Node", "name": "n1"}}
        assert (await call("POST", path, body))["status"] == "Success"
        bound = server.get("pods", "a", "default")
        assert bound is not None and bound["spec"] == {"priority": 5, "nodeName": "n1"}
        (condition,) = bound["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")

    tell(story)


def test_a_status_patch_changes_only_the_status_and_merges_conditions_by_type() -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        server.put(
            {**pod("a", x=1), "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}}
        )
        patch = {
            "spec": {"x": 2},
            "status": {
                "nominatedNodeName": "n",
                "conditions": [{"type": "PodScheduled", "status": "False"}, {"type": "Ready", "status": "True"}],
            },
        }
        patched = await call("PATCH", f"{PODS}/a/status", patch, STRATEGIC)
        assert patched["spec"] == {"x": 1}
        assert patched["status"] == {
            "phase": "Pending",
            "nominatedNodeName": "n",
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "False"}],
        }

    tell(story)


@pytest.mark.parametrize(
    ("content_type", "patch", "expected"),
    [
        pytest.param(MERGE, {"spec": {"x": None, "y": 3}}, {"l": ["a"], "y": 3}, id="merge: null removes"),
        pytest.param(MERGE, {"spec": {"l": ["b"]}}, {"x": 1, "l": ["b"]}, id="merge: lists are replaced"),
        pytest.param(
            JSON_PATCH,
            [{"op": "add", "path": "/spec/l/-", "value": "b"}, {"op": "replace", "path": "/spec/x", "value": 2}],
            {"x": 2, "l": ["a", "b"]},
            id="json: add to a list and replace",
        ),
        pytest.param(
            JSON_PATCH,
            [{"op": "test", "path": "/spec/x", "value": 1}, {"op": "remove", "path": "/spec/l/0"}],
            {"x": 1, "l": []},
            id="json: test and remove",
        ),
        pytest.param(
            JSON_PATCH, [{"op": "move", "from": "/spec/x", "path": "/spec/y"}], {"l": ["a"], "y": 1}, id="json: move"
        ),
        pytest.param(STRATEGIC, {"spec": {"$patch": "replace", "y": 1}}, {"y": 1}, id="strategic: a replaced map"),
    ],
)
def test_patches(content_type: str, patch: Any, expected: dict[str, Any]) -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        server.put(pod("a", x=1, l=["a"]))
        patched = await call("PATCH", f"{PODS}/a", patch, content_type)
        assert patched["spec"] == expected

    tell(story)


def test_a_json_patch_whose_test_fails_changes_nothing() -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        server.put(pod("a", x=1))
        steps = [{"op": "replace", "path": "/spec/x", "value": 2}, {"op": "test", "path": "/spec/x", "value": 7}]
        with pytest.raises(ApiError) as refusal:
            await call("PATCH", f"{PODS}/a", steps, JSON_PATCH)
        assert refusal.value.status == 422
        assert server.objects("pods")[0]["spec"] == {"x": 1}

    tell(story)


def test_an_update_keeps_identity_and_status() -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        old = server.put({"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}})
        new = {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"unschedulable": True}, "status": {}}
        updated = await call("PUT", "/api/v1/nodes/n", new)
        assert updated["metadata"]["uid"] == old["metadata"]["uid"]
        assert updated["status"] == old["status"]
        assert updated["spec"] == {"unschedulable": True}

    tell(story)


@pytest.mark.parametrize(
    ("spec", "options", "graceful", "stays"),
    [
        pytest.param({}, None, False, False, id="a pod goes at once"),
        pytest.param({"nodeName": "n"}, None, True, True, id="a bound pod is stopped first where that is asked for"),
        pytest.param({}, None, True, False, id="a pod without a node has nothing to stop"),
        pytest.param({"nodeName": "n"}, {"gracePeriodSeconds": 0}, True, False, id="by force"),
        pytest.param({"nodeName": "n"}, {"gracePeriodSeconds": 9}, False, True, id="the caller asks for grace"),
    ],
)
def test_deletion_of_pods(spec: dict[str, Any], options: Any, graceful: bool, stays: bool) -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        server.writing.graceful_pods = graceful
        server.put(pod("a", **spec))
        await call("DELETE", f"{PODS}/a", options)
        left = server.get("pods", "a", "default")
        assert (left is not None) == stays
        if left is not None:
            assert left["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"

    tell(story)


def test_finalizers_keep_an_object_until_they_are_gone() -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        server.put({"kind": "PersistentVolume", "metadata": {"name": "v", "finalizers": ["x/y"]}})
        at = "/api/v1/persistentvolumes/v"
        assert (await call("DELETE", at))["metadata"]["deletionTimestamp"]
        assert server.get("persistentvolumes", "v") is not None
        await call("PATCH", at, {"metadata": {"finalizers": None}}, MERGE)
        assert server.get("persistentvolumes", "v") is None

    tell(story)


def test_an_evicted_pod_is_deleted() -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        server.put(pod("a"))
        await call("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
        assert server.objects("pods") == []

    tell(story)


def test_two_thousand_pods_are_taken_and_bound() -> None:
    async def story(server: ScriptedServer, call: Caller) -> None:
        for index in range(1000):
            server.put({"kind": "Node", "metadata": {"name": f"n{index}"}})
        for index in range(2000):
            server.put(pod(f"p{index}"))
            server.bind(f"p{index}", f"n{index % 1000}")
        listed = await call("GET", PODS)
        assert len(listed["items"]) == 2000
        assert all(item["spec"]["nodeName"] for item in listed["items"])

    tell(story)
