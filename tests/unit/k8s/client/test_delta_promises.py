"""What client-go's delta queue promises, held without one: docs/concepts/list-watch.md names these tests."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scripted_server import ScriptedServer, following, until
from harness.scripted_server.listening import ConsistentHandler
from kubesched.k8s.client.list_watch import EventHandlerFuncs, SharedInformer
from kubesched.k8s.client.list_watch.exchange import Listing
from kubesched.k8s.client.list_watch.informer import SLICE
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import KubeObject, ObjectMeta

PAGE = Path("docs/concepts/list-watch.md")


def node(name: str, version: int = 1, uid: str = "") -> Node:
    return Node(metadata=ObjectMeta(name=name, resource_version=str(version), uid=uid or f"uid-{name}"))


class Told:
    """What handlers were told: (what, name, version)."""

    def __init__(self, informer: SharedInformer[Node]) -> None:
        self.calls: list[tuple[str, str, int]] = []
        informer.add_event_handler(
            EventHandlerFuncs(
                added=lambda item, _: self._note("add", item),
                updated=lambda _, item: self._note("update", item),
                deleted=lambda item, is_unknown: self._note("vanish" if is_unknown else "delete", item),
            )
        )

    def _note(self, what: str, item: Node) -> None:
        self.calls.append((what, item.name, int(item.metadata.resource_version)))

    def take(self) -> list[tuple[str, str, int]]:
        calls, self.calls = self.calls, []
        return calls


def informer_with(*items: Node) -> tuple[SharedInformer[Node], Told]:
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    asyncio.run(informer.replace(Listing(list(items))))
    told = Told(informer)
    told.take()
    return informer, told


def relist(informer: SharedInformer[Node], *items: Node) -> None:
    asyncio.run(informer.replace(Listing(list(items))))


def test_changes_are_told_in_the_order_of_the_watch() -> None:
    async def run() -> None:
        async with ScriptedServer() as server, following(server, Node) as listened:
            await listened.informers.wait_for_sync("test")
            told = Told(listened.informers.of(Node))
            for number in range(50):
                server.put({"kind": "Node", "metadata": {"name": "a", "labels": {"number": str(number)}}})
                server.put({"kind": "Node", "metadata": {"name": f"b{number}"}})
            server.delete("nodes", "a")
            await until(lambda: told.calls[-1:] == [("delete", "a", server.storage.revision)])
            versions = [version for _, _, version in told.calls]
            assert versions == sorted(versions)
            assert [what for what, name, _ in told.calls if name == "a"] == ["add", *["update"] * 49, "delete"]

    asyncio.run(run())


def test_no_handler_is_called_while_another_one_runs() -> None:
    running: list[str] = []
    overlaps: list[str] = []
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))

    class Busy:
        def put(self, item: KubeObject) -> None:
            overlaps.extend(running)
            running.append(item.name)
            list(informer.lister)
            running.remove(item.name)

        remove = put

    informer.add_handler(Busy())
    informer.add_handler(Busy())

    async def run() -> None:
        listing = Listing([node(f"n{number}") for number in range(2 * SLICE + 1)])
        relisting = asyncio.create_task(informer.replace(listing))
        n_turns = 0
        while not relisting.done():
            await asyncio.sleep(0)
            assert running == []
            n_turns += 1
        assert n_turns >= 2, "others have their turn while a long list is told"

    asyncio.run(run())
    assert overlaps == []


def test_a_deletion_during_a_relist_is_told_with_what_was_last_known() -> None:
    informer, told = informer_with(node("a", 3), node("b", 4))
    relist(informer, node("a", 3))
    assert told.take() == [("vanish", "b", 4)]


def test_a_deletion_that_comes_twice_is_told_once() -> None:
    informer, told = informer_with(node("a"))
    informer.remove(node("a", 2))
    informer.remove(node("a", 2))
    relist(informer)
    assert told.take() == [("delete", "a", 2)]


def test_deleted_and_made_anew_is_told_as_both() -> None:
    informer, told = informer_with(node("a"))
    informer.put(node("a", 9, uid="another"))
    relist(informer, node("a", 12, uid="a third"))
    assert told.take() == [("vanish", "a", 1), ("add", "a", 9), ("vanish", "a", 9), ("add", "a", 12)]


def test_a_relist_tells_only_differences() -> None:
    informer, told = informer_with(node("same"), node("changed"), node("gone"))
    relist(informer, node("same"), node("changed", 5), node("new", 6))
    assert told.take() == [("update", "changed", 5), ("add", "new", 6), ("vanish", "gone", 1)]


def test_a_resync_never_brings_back_an_older_state() -> None:
    informer, told = informer_with(node("a"), node("b"))
    informer.put(node("a", 7))
    informer.remove(node("b", 8))
    told.take()
    informer.resync()
    assert told.take() == [("update", "a", 7)]


def test_the_store_knows_first() -> None:
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    known: list[bool] = []
    informer.add_event_handler(
        EventHandlerFuncs(
            added=lambda item, _: known.append(informer.lister.get(item.name) is item),
            updated=lambda _, item: known.append(informer.lister.get(item.name) is item),
            deleted=lambda item, _: known.append(informer.lister.get(item.name) is None),
        )
    )
    informer.put(node("a"))
    informer.put(node("a", 2))
    informer.remove(node("a", 3))
    assert known == [True, True, True]


def test_synced_means_that_all_of_the_first_list_was_told() -> None:
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    told = Told(informer)

    async def run() -> None:
        items = [node(f"n{number}") for number in range(3 * SLICE)]
        listing = asyncio.create_task(informer.replace(Listing(items)))
        while not informer.has_synced:
            assert len(told.calls) < len(items) or not listing.done()
            await asyncio.sleep(0)
        assert len(told.calls) == len(items)

    asyncio.run(run())


def test_a_handler_that_fails_does_not_hold_up_the_others() -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no")

    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    informer.add_event_handler(EventHandlerFuncs(broken, broken, broken))
    told = Told(informer)
    relist(informer, node("a"), node("b"))
    relist(informer)
    assert [what for what, _, _ in told.take()] == ["add", "add", "vanish", "vanish"]


# -- all of them at once, whatever comes -------------------------------------------------------------------------------

OBJECTS = st.builds(node, st.sampled_from("abc"), st.integers(1, 9), st.sampled_from(["", "u1", "u2"]))
STEPS = st.one_of(
    st.tuples(st.just("put"), OBJECTS),
    st.tuples(st.just("remove"), OBJECTS),
    st.tuples(st.just("list"), st.lists(OBJECTS, unique_by=lambda item: item.name)),
    st.tuples(st.just("resync"), st.none()),
)


def live_through(steps: list[tuple[str, object]]) -> list[str]:
    """What handlers of both kinds have to complain of, in the end."""
    informer: SharedInformer[Node] = SharedInformer(resource_of(Node))
    plain, known = ConsistentHandler(), dict[str, Node]()
    complaints: list[str] = []

    def added(item: Node, _: bool) -> None:
        if item.name in known:
            complaints.append(f"{item.name} was added twice")
        known[item.name] = item

    def updated(old: Node, new: Node) -> None:
        if known.get(old.name) is not old:
            complaints.append(f"{old.name} was updated from what was never told")
        known[new.name] = new

    def deleted(item: Node, is_final_state_unknown: bool) -> None:
        last = known.pop(item.name, None)
        if last is None or (is_final_state_unknown and last is not item):
            complaints.append(f"{item.name} was deleted and not known, or not as last told")

    informer.add_handler(plain)
    informer.add_event_handler(EventHandlerFuncs(added, updated, deleted))
    for what, how in steps:
        if isinstance(how, Node):
            (informer.put if what == "put" else informer.remove)(how)
        elif isinstance(how, list):
            relist(informer, *how)
        else:
            informer.resync()
        if {item.name: item for item in informer.lister} != known:
            complaints.append("the lister knows something else")
        if {key for _, key in plain.known} != known.keys():
            complaints.append("the other kind of handler knows something else")
    return complaints


@given(st.lists(STEPS, max_size=25))
def test_handlers_always_know_what_the_lister_knows(steps: list[tuple[str, object]]) -> None:
    assert live_through(steps) == []


def test_the_property_notices_a_lost_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedInformer, "_tell_remove", lambda *_, **__: None)
    assert live_through([("put", node("a")), ("list", [])]) != []


def test_the_page_names_every_promise() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    assert named == {name for name in globals() if name.startswith("test_") and name in named}
    assert len(named) == 10
