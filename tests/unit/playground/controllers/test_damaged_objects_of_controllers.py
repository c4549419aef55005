"""One object that cannot be read stops neither its kind nor, by seeming gone, what belongs to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kubesched.k8s.client.list_watch import SharedInformer
from kubesched.k8s.client.list_watch.exchange import KindDecoder, Unread
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import stand_in_for
from kubesched.playground.controllers.cluster_view import ClusterView
from kubesched.playground.controllers.kinds import WATCHED
from kubesched.playground.hollow_nodes.fleet import _RESOURCES as OF_KUBELETS

ALL = [*WATCHED, *OF_KUBELETS]
DAMAGES: dict[str, dict[str, Any]] = {
    "annotations that are numbers": {"metadata": {"annotations": {"a": 7}}},
    "labels that are a list": {"metadata": {"labels": ["x"]}},
    "a status that is text": {"status": "odd"},
    "a spec that is text": {"spec": "odd"},
    "owners that are text": {"metadata": {"ownerReferences": "nobody"}},
}


class Follower:
    """One kind, as controllers follow it."""

    def __init__(self, resource: Resource, **settings: Any) -> None:
        self.view = ClusterView()
        self._resource = resource
        self._decoder = KindDecoder(resource.type)
        self._informer: SharedInformer[Any] = SharedInformer(resource, **settings)
        self._informer.add_handler(self.view)

    def lists(self, *items: dict[str, Any]) -> None:
        body = msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": items})
        asyncio.run(self._informer.replace(self._decoder.page(body)))

    def tells(self, *items: dict[str, Any]) -> None:
        for item in items:
            event = self._decoder.event(msgspec.json.encode({"type": "MODIFIED", "object": item}))
            if isinstance(event, Unread):
                self._informer.put_aside(event)
            else:
                self._informer.put(event.object)

    def item(self, name: str, version: int, **damage: Any) -> dict[str, Any]:
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
        if self._resource.namespaced:
            metadata["namespace"] = "default"
        return {**damage, "metadata": {**metadata, **damage.get("metadata", {})}}

    def knows(self, name: str) -> KubeObject | None:
        return self.view.by_uid(f"uid-{name}")


@pytest.mark.parametrize("news", [Follower.lists, Follower.tells], ids=["in a list", "in a watch"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("resource", ALL, ids=lambda resource: resource.type.__name__)
def test_others_are_followed_and_the_damaged_one_stays_known(
    resource: Resource, damage: dict[str, Any], news: Callable[..., None]
) -> None:
    follower = Follower(resource)
    follower.lists(follower.item("a", 1))
    news(follower, follower.item("a", 5, **damage), follower.item("b", 6))
    assert follower.knows("a") is not None
    assert not follower.view.is_gone("uid-a")
    assert follower.knows("b") is not None
    news(follower, follower.item("a", 7), follower.item("b", 6))
    known = follower.knows("a")
    assert known is not None and known.metadata.resource_version == "7"


def test_the_test_notices_who_takes_it_for_gone() -> None:
    deployments = next(resource for resource in WATCHED if resource.plural == "deployments")
    follower = Follower(deployments, stand_in=stand_in_for)
    follower.lists(follower.item("a", 1))
    follower.lists(follower.item("a", 5, **DAMAGES["annotations that are numbers"]))
    assert follower.view.is_gone("uid-a")
