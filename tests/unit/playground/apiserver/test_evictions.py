"""Evictions and disruption budgets, as kube-apiserver answers them."""

from __future__ import annotations

from typing import Any

from apiserver_serving import PODS, Answered, TestClient, pod, serve

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


async def _patch_status(client: TestClient, path: str, status: Any) -> None:
    answered = await client.ask(
        "PATCH", f"{path}/status", {"status": status}, Content_Type="application/merge-patch+json"
    )
    assert answered.status == 200, answered.body


async def _run(client: TestClient, name: str = "p", is_ready: bool = True) -> None:
    made = pod(name, nodeName="n")
    made["metadata"]["labels"] = {"app": "a"}
    assert (await client.ask("POST", PODS, made)).status == 201
    ready = {"type": "Ready", "status": "True" if is_ready else "False"}
    await _patch_status(client, f"{PODS}/{name}", {"phase": "Running", "conditions": [ready]})


async def _guard(client: TestClient, name: str = "b", policy: str = "", **status: Any) -> None:
    spec: dict[str, Any] = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    assert (await client.ask("POST", BUDGETS, budget)).status == 201
    await _patch_status(client, f"{BUDGETS}/{name}", {"observedGeneration": 1, "expectedPods": 2, **status})


async def _evict(client: TestClient, name: str = "p", **options: Any) -> Answered:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}
    return await client.ask("POST", f"{PODS}/{name}/eviction", eviction)


async def _status(client: TestClient, name: str = "b") -> Any:
    return (await client.ask("GET", f"{BUDGETS}/{name}")).body["status"]


def test_the_last_disruption_is_noted_in_the_budget_and_on_the_pod() -> None:
    async def body(client: TestClient) -> None:
        await _run(client)
        await _guard(client, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
        assert (await _evict(client)).status == 201
        status = await _status(client)
        assert status["disruptionsAllowed"] == 0
        assert list(status["disruptedPods"]) == ["p"]
        (condition,) = status["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "DisruptionAllowed",
            "False",
            "InsufficientPods",
        )
        going = (await client.ask("GET", f"{PODS}/p")).body
        assert "deletionTimestamp" in going["metadata"]
        assert [one["reason"] for one in going["status"]["conditions"] if one["type"] == "DisruptionTarget"] == [
            "EvictionByEvictionAPI"
        ]

    serve(body)


def test_a_spent_budget_refuses_and_says_why() -> None:
    async def body(client: TestClient) -> None:
        await _run(client)
        await _guard(client, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
        refused = await _evict(client)
        assert (refused.status, refused.message) == (429, VIOLATED)
        why = "The disruption budget b needs 1 healthy pods and has 1 currently"
        assert refused.body["details"] == {"causes": [{"reason": "DisruptionBudget", "message": why}]}
        assert "Retry-After" not in refused.headers
        failed = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "SyncFailed",
            "message": "boom",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await _patch_status(client, f"{BUDGETS}/b", {"conditions": [failed]})
        (cause,) = (await _evict(client)).body["details"]["causes"]
        assert cause["message"] == (
            "The disruption budget b does not allow evicting pods currently because it failed sync: boom"
        )

    serve(body)


def test_a_budget_that_nobody_looked_at_asks_to_come_again() -> None:
    async def body(client: TestClient) -> None:
        await _run(client)
        await _guard(client, observedGeneration=0, disruptionsAllowed=1)
        refused = await _evict(client)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "10")
        assert refused.body["details"]["retryAfterSeconds"] == 10

    serve(body)


def test_two_budgets_are_one_too_many() -> None:
    async def body(client: TestClient) -> None:
        await _run(client)
        for name in ("b", "c"):
            await _guard(client, name, disruptionsAllowed=1)
        refused = await _evict(client)
        assert refused.status == 500
        assert refused.message == (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )

    serve(body)


def test_pods_that_are_not_ready_may_go_as_their_budget_says() -> None:
    async def body(client: TestClient) -> None:
        await _run(client, is_ready=False)
        await _guard(client, disruptionsAllowed=0, currentHealthy=0, desiredHealthy=1)
        assert (await _evict(client)).status == 429
        await _patch_status(client, f"{BUDGETS}/b", {"currentHealthy": 1})
        assert (await _evict(client)).status == 201
        assert (await _status(client))["disruptionsAllowed"] == 0
        await client.ask("DELETE", f"{BUDGETS}/b")
        await _guard(client, policy="AlwaysAllow", disruptionsAllowed=0, currentHealthy=0, desiredHealthy=1)
        await _run(client, "q", is_ready=False)
        assert (await _evict(client, "q")).status == 201

    serve(body)


def test_a_dry_run_spends_nothing_and_preconditions_hold() -> None:
    async def body(client: TestClient) -> None:
        await _run(client)
        await _guard(client, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
        assert (await _evict(client, dryRun=["All"])).status == 201
        assert (await _status(client))["disruptionsAllowed"] == 1
        assert "deletionTimestamp" not in (await client.ask("GET", f"{PODS}/p")).body["metadata"]
        refused = await _evict(client, preconditions={"uid": "other"})
        assert refused.status == 409
        assert refused.message.startswith(
            'Operation cannot be fulfilled on Pod "p": the UID in the precondition (other) does not match'
        )

    serve(body)
