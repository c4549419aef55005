"""Creating, updating, binding and deleting over HTTP: what a scheduler and kubectl rely on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from apiserver_serving import PODS, TestClient, pod, serve


def test_a_created_object_gets_identity_version_and_defaults() -> None:
    async def body(client: TestClient) -> None:
        made = await client.ask("POST", PODS, pod("a"))
        assert made.status == 201
        assert made.body["kind"] == "Pod"
        assert {"uid", "resourceVersion", "creationTimestamp"} <= set(made.body["metadata"])
        assert made.body["spec"]["schedulerName"] == "default-scheduler"
        again = await client.ask("POST", PODS, pod("a"))
        assert (again.status, again.body["reason"]) == (409, "AlreadyExists")

    serve(body)


def test_a_dry_run_leaves_nothing() -> None:
    async def body(client: TestClient) -> None:
        assert (await client.ask("POST", f"{PODS}?dryRun=All", pod("a"))).status == 201
        assert (await client.ask("GET", f"{PODS}/a")).status == 404

    serve(body)


def test_a_write_on_an_old_version_is_refused() -> None:
    async def body(client: TestClient) -> None:
        first = (await client.ask("POST", PODS, pod("a"))).body
        first["metadata"]["labels"] = {"x": "1"}
        second = await client.ask("PUT", f"{PODS}/a", first)
        assert second.status == 200
        lost = await client.ask("PUT", f"{PODS}/a", first)
        assert (lost.status, lost.body["reason"]) == (409, "Conflict")

    serve(body)


def test_an_update_that_changes_nothing_keeps_the_version() -> None:
    async def body(client: TestClient) -> None:
        first = (await client.ask("POST", PODS, pod("a"))).body
        same = (await client.ask("PUT", f"{PODS}/a", first)).body
        assert same["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]

    serve(body)


def _binding(name: str, node: str, **metadata: Any) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}


def test_a_pod_is_bound_once_and_only_as_the_pod_that_was_meant() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", PODS, pod("a"))
        wrong = await client.ask("POST", f"{PODS}/a/binding", _binding("a", "n1", uid="11111111-0000-0000-0000-0"))
        assert wrong.status == 409
        assert (await client.ask("POST", f"{PODS}/a/binding", _binding("a", "n1"))).status == 201
        bound = (await client.ask("GET", f"{PODS}/a")).body
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
        again = await client.ask("POST", f"{PODS}/a/binding", _binding("a", "n2"))
        assert 'already assigned to node "n1"' in again.message

    serve(body)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"schedulingGates": [{"name": "g"}]}, "non-empty .spec.schedulingGates", id="a gated pod"),
        pytest.param({}, "is being deleted", id="a pod on its way out"),
    ],
)
def test_some_pods_are_never_bound(spec: dict[str, Any], why: str) -> None:
    async def body(client: TestClient) -> None:
        made = pod("a", **spec)
        if not spec:
            made["metadata"]["finalizers"] = ["example.com/f"]
        await client.ask("POST", PODS, made)
        if not spec:
            await client.ask("DELETE", f"{PODS}/a")
        refused = await client.ask("POST", f"{PODS}/a/binding", _binding("a", "n1"))
        assert refused.status == 409
        assert why in refused.message

    serve(body)


def test_a_bound_pod_is_deleted_with_grace_and_at_once_when_told_so() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", PODS, pod("a", nodeName="n1"))
        going = await client.ask("DELETE", f"{PODS}/a")
        assert going.body["metadata"]["deletionGracePeriodSeconds"] == 30
        assert (await client.ask("GET", f"{PODS}/a")).status == 200
        await client.ask("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
        assert (await client.ask("GET", f"{PODS}/a")).status == 404

    serve(body)


def test_a_finalizer_holds_a_deleted_object_until_it_is_taken_away() -> None:
    async def body(client: TestClient) -> None:
        path = "/api/v1/namespaces/default/configmaps"
        made = {"metadata": {"name": "a", "finalizers": ["example.com/f"]}}
        await client.ask("POST", path, made)
        held = await client.ask("DELETE", f"{path}/a")
        assert "deletionTimestamp" in held.body["metadata"]
        patch = {"metadata": {"finalizers": None}}
        await client.ask("PATCH", f"{path}/a", patch, Content_Type="application/merge-patch+json")
        assert (await client.ask("GET", f"{path}/a")).status == 404

    serve(body)


def test_a_deletion_with_another_uid_in_mind_is_refused() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", PODS, pod("a"))
        refused = await client.ask("DELETE", f"{PODS}/a", {"preconditions": {"uid": "x"}})
        assert refused.status == 409
        assert (await client.ask("GET", f"{PODS}/a")).status == 200

    serve(body)


def test_of_many_who_change_one_version_exactly_one_succeeds() -> None:
    async def body(client: TestClient) -> None:
        made = (await client.ask("POST", PODS, pod("a"))).body
        bodies = [{**made, "metadata": {**made["metadata"], "labels": {"who": str(n)}}} for n in range(10)]
        answers = await asyncio.gather(*(client.ask("PUT", f"{PODS}/a", one) for one in bodies))
        assert sorted(answer.status for answer in answers) == [200] + [409] * 9

    serve(body)


def test_a_namespace_that_is_missing_takes_nothing() -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", "/api/v1/namespaces/nope/pods", pod("a"))
        assert (refused.status, refused.message) == (404, 'namespaces "nope" not found')

    serve(body)


def _budget(allowed: int) -> dict[str, Any]:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    return {"status": {**status, "observedGeneration": 1}}


def test_an_eviction_spends_the_budget_and_is_refused_when_it_is_spent() -> None:
    async def body(client: TestClient) -> None:
        budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        selector = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1}
        assert (await client.ask("POST", budgets, {"metadata": {"name": "b"}, "spec": selector})).status == 201
        merge = {"Content_Type": "application/merge-patch+json"}
        await client.ask("PATCH", f"{budgets}/b/status", _budget(1), **merge)
        for name in ("x", "y"):
            made = pod(name)
            made["metadata"]["labels"] = {"app": "a"}
            await client.ask("POST", PODS, made)
            running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await client.ask("PATCH", f"{PODS}/{name}/status", {"status": running}, **merge)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"}}
        assert (await client.ask("POST", f"{PODS}/x/eviction", eviction)).status == 201
        refused = await client.ask("POST", f"{PODS}/y/eviction", {**eviction, "metadata": {"name": "y"}})
        assert (refused.status, refused.body["reason"]) == (429, "TooManyRequests")

    serve(body)


def test_an_eviction_in_the_older_version_is_taken_too() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", PODS, pod("x"))
        eviction = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "x"}}
        assert (await client.ask("POST", f"{PODS}/x/eviction", eviction)).status == 201

    serve(body)
