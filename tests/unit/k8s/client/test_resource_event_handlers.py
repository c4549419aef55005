"""Handlers with client-go's calls: the old object, the initial list, and deletions that nobody saw."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kubesched.k8s.client.list_watch import EventHandlerFuncs, SharedInformer
from kubesched.k8s.client.list_watch.exchange import Listing
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import ObjectMeta


def node(name: str, version: str = "1", uid: str = "") -> Node:
    return Node(metadata=ObjectMeta(name=name, resource_version=version, uid=uid or f"uid-{name}"))


class Told:
    """Remembers the calls, with versions for objects."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def on_add(self, item: Node, is_in_initial_list: bool) -> None:
        self.calls.append(("add", item.name, is_in_initial_list))

    def on_update(self, old: Node, new: Node) -> None:
        self.calls.append(("update", new.name, old.metadata.resource_version, new.metadata.resource_version))

    def on_delete(self, item: Node, is_final_state_unknown: bool) -> None:
        self.calls.append(("delete", item.name, item.metadata.resource_version, is_final_state_unknown))


def informer_with(*items: Node) -> tuple[SharedInformer[Node], Told]:
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    told = Told()
    informer.add_event_handler(told)
    asyncio.run(informer.replace(Listing(list(items))))
    told.calls.clear()
    return informer, told


def test_what_the_first_list_has_is_said_to_be_from_it_and_what_comes_later_is_not() -> None:
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    told = Told()
    informer.add_event_handler(told)
    asyncio.run(informer.replace(Listing([node("a"), node("b")])))
    informer.put(node("c"))
    asyncio.run(informer.replace(Listing([node("a"), node("b"), node("c"), node("d")])))
    assert told.calls == [("add", "a", True), ("add", "b", True), ("add", "c", False), ("add", "d", False)]


def test_for_a_handler_that_comes_later_everything_there_is_is_the_initial_list() -> None:
    informer, _ = informer_with(node("a"))
    informer.put(node("b"))
    late = Told()
    informer.add_event_handler(late)
    informer.put(node("c"))
    assert late.calls == [("add", "a", True), ("add", "b", True), ("add", "c", False)]


def test_a_change_comes_with_what_was_before() -> None:
    informer, told = informer_with(node("a"))
    informer.put(node("a", "5"))
    asyncio.run(informer.replace(Listing([node("a", "9")])))
    assert told.calls == [("update", "a", "1", "5"), ("update", "a", "5", "9")]


def test_a_deletion_that_was_told_has_the_final_state_and_a_missed_one_the_last_known() -> None:
    informer, told = informer_with(node("a"), node("b"))
    informer.remove(node("a", "7"))
    asyncio.run(informer.replace(Listing([])))
    assert told.calls == [("delete", "a", "7", False), ("delete", "b", "1", True)]


def test_an_object_made_anew_while_nobody_looked_is_a_deletion_and_an_addition() -> None:
    informer, told = informer_with(node("a"))
    informer.put(node("a", "8", uid="another"))
    assert told.calls == [("delete", "a", "1", True), ("add", "a", False)]


def test_a_resync_is_an_update_by_the_same_object() -> None:
    informer, told = informer_with(node("a"))
    informer.resync()
    assert told.calls == [("update", "a", "1", "1")]


def test_who_was_removed_hears_nothing_any_more() -> None:
    informer, told = informer_with(node("a"))
    informer.remove_handler(told)
    informer.put(node("b"))
    assert told.calls == []


def test_functions_can_be_handlers_and_those_not_given_are_not_called() -> None:
    informer, _ = informer_with()
    deleted: list[str] = []
    only_deletions = EventHandlerFuncs[Node](deleted=lambda item, _: deleted.append(item.name))
    informer.add_event_handler(only_deletions)
    informer.add_event_handler(EventHandlerFuncs())
    for version in ("1", "2"):
        informer.put(node("a", version))
    informer.remove(node("a", "3"))
    assert deleted == ["a"]


def test_one_that_fails_is_logged_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no")

    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    told = Told()
    informer.add_event_handler(EventHandlerFuncs(broken, broken, broken))
    informer.add_event_handler(told)
    informer.put(node("a"))
    informer.put(node("a", "2"))
    informer.remove(node("a", "3"))
    assert [call[0] for call in told.calls] == ["add", "update", "delete"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 3
