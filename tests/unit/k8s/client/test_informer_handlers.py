"""What handlers and listers of a shared informer can rely on."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from harness.scripted_server.listening import ConsistentHandler
from kubesched.k8s.client.list_watch import SharedInformer
from kubesched.k8s.client.list_watch.exchange import Listing
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta


def node(name: str, version: str = "1", uid: str = "") -> Node:
    return Node(metadata=ObjectMeta(name=name, resource_version=version, uid=uid or f"uid-{name}"))


def informer_with(*items: Node, **more: Any) -> tuple[SharedInformer[Node], ConsistentHandler]:
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node), **more)
    handler = ConsistentHandler()
    informer.add_handler(handler)
    asyncio.run(informer.replace(Listing(list(items))))
    return informer, handler


def test_it_is_synced_when_all_handlers_heard_of_the_first_list() -> None:
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    assert not informer.has_synced
    asyncio.run(informer.replace(Listing([node("a")])))
    assert informer.has_synced


def test_a_list_tells_what_is_new_what_changed_and_what_vanished() -> None:
    informer, handler = informer_with(node("a"), node("b"), node("c"))
    handler.heard.clear()
    asyncio.run(informer.replace(Listing([node("a"), node("b", "2"), node("d")])))
    assert handler.heard == [("put", "b"), ("put", "d"), ("remove", "c")]
    assert sorted(item.name for item in informer.lister) == ["a", "b", "d"]


def test_the_same_version_is_not_told_twice() -> None:
    informer, handler = informer_with(node("a"))
    informer.put(node("a"))
    assert handler.heard == [("put", "a")]


def test_objects_without_a_version_are_always_told() -> None:
    informer, handler = informer_with(node("a", ""))
    informer.put(node("a", ""))
    assert handler.heard == [("put", "a"), ("put", "a")]


def test_another_uid_is_another_object() -> None:
    informer, handler = informer_with(node("a"))
    informer.put(node("a", "2", uid="other"))
    assert handler.heard == [("put", "a"), ("remove", "a"), ("put", "a")]
    assert handler.complaints == []


def test_a_deletion_of_something_unknown_is_not_told() -> None:
    informer, handler = informer_with()
    informer.remove(node("a"))
    assert handler.heard == []


def test_a_deletion_carries_the_last_state_and_a_missed_one_what_was_known() -> None:
    removed: list[str] = []

    class Removals:
        def put(self, item: KubeObject) -> None: ...

        def remove(self, item: KubeObject) -> None:
            removed.append(f"{item.name} {item.metadata.resource_version}")

    informer, _ = informer_with(node("a"), node("b"))
    informer.add_handler(Removals())
    informer.remove(node("a", "7"))
    asyncio.run(informer.replace(Listing([])))
    assert removed == ["a 7", "b 1"]


def test_a_handler_added_later_first_hears_of_everything() -> None:
    informer, _ = informer_with(node("a"), node("b"))
    late = ConsistentHandler()
    informer.add_handler(late)
    assert late.heard == [("put", "a"), ("put", "b")]
    informer.put(node("c"))
    assert late.heard[2:] == [("put", "c")]


def test_a_handler_that_was_removed_hears_nothing_any_more() -> None:
    informer, handler = informer_with(node("a"))
    informer.remove_handler(handler)
    informer.put(node("b"))
    assert handler.heard == [("put", "a")]


def test_the_lister_knows_before_the_handler_is_called() -> None:
    seen: list[bool] = []

    class Looking:
        def put(self, item: KubeObject) -> None:
            seen.append(informer.lister.get(item.name) is item)

        def remove(self, item: KubeObject) -> None:
            seen.append(informer.lister.get(item.name) is None)

    informer, _ = informer_with()
    informer.add_handler(Looking())
    informer.put(node("a"))
    informer.remove(node("a", "2"))
    assert seen == [True, True]


def test_a_handler_that_fails_is_logged_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def put(self, item: KubeObject) -> None:
            raise RuntimeError("no")

        def remove(self, item: KubeObject) -> None:
            raise RuntimeError("no")

    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    handler = ConsistentHandler()
    informer.add_handler(Broken())
    informer.add_handler(handler)
    informer.put(node("a"))
    informer.remove(node("a", "2"))
    assert handler.heard == [("put", "a"), ("remove", "a")]
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.ERROR]


def test_a_resync_tells_everything_again() -> None:
    informer, handler = informer_with(node("a"), node("b"))
    informer.resync()
    assert handler.heard == [("put", "a"), ("put", "b")] * 2


def test_a_transform_sees_objects_before_they_are_kept() -> None:
    def without_labels(item: Pod) -> Pod:
        return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, labels=None))

    informer: SharedInformer[Pod] = SharedInformer(resource_of(Pod), without_labels)
    informer.put(Pod(metadata=ObjectMeta(name="a", namespace="x", labels={"big": "one"})))
    kept = informer.lister.get("a", "x")
    assert kept is not None and kept.metadata.labels is None


def test_a_long_list_gives_way_and_stays_in_step() -> None:
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    handler = ConsistentHandler()
    informer.add_handler(handler)
    steps: list[tuple[int, int]] = []

    async def run() -> None:
        listing = asyncio.create_task(informer.replace(Listing([node(f"n{index}") for index in range(1200)])))
        while not listing.done():
            await asyncio.sleep(0)
            steps.append((len(informer.lister), len(handler.heard)))

    asyncio.run(run())
    assert len(steps) >= 3
    assert all(known == heard for known, heard in steps)
