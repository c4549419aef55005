"""Who reads a list in pieces has some minutes for it; then a token leads on in the present."""

from __future__ import annotations

from apiserver_serving import PODS, TestClient, pod, serve


def test_a_token_of_an_old_list_expires_and_leads_on_from_its_key() -> None:
    async def body(client: TestClient) -> None:
        for name in "abc":
            await client.ask("POST", PODS, pod(name))
        first = (await client.ask("GET", f"{PODS}?limit=1")).body
        token = first["metadata"]["continue"]
        store = client.server.store
        assert store is not None
        await client.ask("DELETE", f"{PODS}/b?gracePeriodSeconds=0")
        store.expire_lists(int(first["metadata"]["resourceVersion"]))
        at_first = await client.ask("GET", f"{PODS}?limit=1&continue={token}")
        assert [one["metadata"]["name"] for one in at_first.body["items"]] == ["b"]
        store.expire_lists(store.revision)
        expired = await client.ask("GET", f"{PODS}?limit=1&continue={token}")
        assert (expired.status, expired.body["reason"]) == (410, "Expired")
        rest = await client.ask("GET", f"{PODS}?limit=5&continue={expired.body['metadata']['continue']}")
        assert [one["metadata"]["name"] for one in rest.body["items"]] == ["c"]

    serve(body)


def test_watches_go_on_from_before_an_expired_list() -> None:
    async def body(client: TestClient) -> None:
        begun = (await client.ask("GET", PODS)).body["metadata"]["resourceVersion"]
        await client.ask("POST", PODS, pod("a"))
        store = client.server.store
        assert store is not None
        store.expire_lists(store.revision)
        (event,) = await client.events(f"{PODS}?watch=true&resourceVersion={begun}", 1)
        assert event["type"] == "ADDED"

    serve(body)
