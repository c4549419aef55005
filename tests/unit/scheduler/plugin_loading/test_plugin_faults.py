"""A plugin from outside that breaks, or answers wrongly, at any extension point: the pod gets an error that names it,
nothing is left half-done, and the loop goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outside_world import add, condition_of, notes, world_with

from kubesched.framework import (
    ACCEPT_ALL,
    OK,
    SKIP,
    BindPod,
    Code,
    PermitResult,
    PostFilterResult,
    PreFilterResult,
    RecordEvent,
    Scope,
    Status,
    Verdicts,
)
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.testing import make
from kubesched.testing.world import World, listen_for

BROKEN = object()
"""In place of an answer: the method raises."""
LINE_THAT_RAISES = 1 + next(
    n for n, line in enumerate(Path(__file__).read_text().splitlines()) if line.strip() == 'raise KeyError("zone")'
)


def steps_with_a_number() -> Iterator[int]:
    yield 42


def plugin(**answers: Any) -> type:
    """A plugin with these methods, which answer so for the pod `bad`, and as they should for all others."""

    def method(name: str, answer: Any) -> Any:
        def ask(_self: Any, *given: Any) -> Any:
            pod = given[0] if name == "pre_enqueue" else given[1]
            if pod.name != "bad":
                return RIGHT[name](given)
            if answer is BROKEN:
                raise KeyError("zone")
            return answer() if answer is steps_with_a_number else answer

        return ask

    return type("Shaky", (), {"name": "Shaky", **{name: method(name, answer) for name, answer in answers.items()}})


RIGHT: dict[str, Callable[[Any], Any]] = {
    "pre_enqueue": lambda given: OK,
    "pre_filter": lambda given: PreFilterResult(),
    "filter": lambda given: ACCEPT_ALL,
    "filter_node": lambda given: OK,
    "pre_score": lambda given: OK,
    "score": lambda given: [7] * len(given[2]),
    "score_node": lambda given: 7,
    "normalize_score": lambda given: given[3],
    "reserve": lambda given: OK,
    "unreserve": lambda given: None,
    "permit": lambda given: PermitResult(OK),
    "pre_bind_pre_flight": lambda given: OK,
    "pre_bind": lambda given: OK,
    "bind": lambda given: SKIP,
    "post_bind": lambda given: None,
}

PLACE = f" (test_plugin_faults.py, line {LINE_THAT_RAISES})"
RAISED = f"KeyError: 'zone'{PLACE}"
SCORE = 'running Score plugins: plugin "Shaky" failed with: '
NORMALIZE = 'running Normalize on Score plugins: plugin "Shaky" failed with: '
FILTER = 'running "Shaky" filter plugin: '
INVALID = (
    'applying score defaultWeights on Score plugins: plugin "Shaky" returns an invalid score {}, it should in the '
    "range of [0, 100] after normalizing"
)

FAULTS = [
    pytest.param(plugin(pre_filter=BROKEN), f'running PreFilter plugin "Shaky": {RAISED}', id="preFilter raises"),
    pytest.param(plugin(filter=BROKEN), FILTER + RAISED, id="filter of a table raises"),
    pytest.param(plugin(filter_node=BROKEN), FILTER + RAISED, id="filter of a node raises"),
    pytest.param(plugin(pre_score=BROKEN), f'running PreScore plugin "Shaky": {RAISED}', id="preScore raises"),
    pytest.param(plugin(score=BROKEN), SCORE + RAISED, id="score of a table raises"),
    pytest.param(plugin(score_node=BROKEN), SCORE + RAISED, id="score of a node raises"),
    pytest.param(plugin(score=[1, 1], normalize_score=BROKEN), NORMALIZE + RAISED, id="normalizeScore raises"),
    pytest.param(plugin(reserve=BROKEN), f'running Reserve plugin "Shaky": {RAISED}', id="reserve raises"),
    pytest.param(plugin(permit=BROKEN), f'running Permit plugin "Shaky": {RAISED}', id="permit raises"),
    pytest.param(
        plugin(pre_bind=OK, pre_bind_pre_flight=BROKEN),
        f'running PreBindPreFlight "Shaky": {RAISED}',
        id="preBindPreFlight raises",
    ),
    pytest.param(plugin(pre_bind=BROKEN), f'running PreBind plugin "Shaky": {RAISED}', id="preBind raises"),
    pytest.param(plugin(bind=BROKEN), f'running Bind plugin "Shaky": {RAISED}', id="bind raises"),
    pytest.param(
        plugin(pre_filter=True),
        'running PreFilter plugin "Shaky": pre_filter returned True, it must return a PreFilterResult',
        id="preFilter gives a truth value",
    ),
    pytest.param(
        plugin(pre_filter=PreFilterResult(node_names="a")),  # type: ignore[arg-type]
        "running PreFilter plugin \"Shaky\": pre_filter returned node_names that are not names of nodes: 'a'",
        id="preFilter gives one name for a set",
    ),
    pytest.param(
        plugin(filter_node=None), FILTER + "filter_node returned None, it must return a Status", id="filter gives None"
    ),
    pytest.param(
        plugin(filter_node=False),
        FILTER + "filter_node returned False, it must return a Status",
        id="filter gives a truth value",
    ),
    pytest.param(
        plugin(filter_node=Status.wait("later")),
        FILTER + "filter_node returned a status of code <Code.WAIT: 'Wait'>, which means nothing here",
        id="filter says wait",
    ),
    pytest.param(
        plugin(filter_node=Status.unschedulable(5)),  # type: ignore[arg-type]
        FILTER + "filter_node returned a status whose reasons are not texts: (5,)",
        id="filter gives a number as its reason",
    ),
    pytest.param(plugin(filter_node=Status.error("no database")), FILTER + "no database", id="filter says error"),
    pytest.param(
        plugin(filter=[True, False]),
        FILTER + "filter returned [True, False], it must return Verdicts",
        id="filter of a table gives a mask",
    ),
    pytest.param(
        plugin(filter=Verdicts.reject(np.array([True]), "no")),
        FILTER + "filter returned verdicts of shape (1, 1) and (1,) on 2 nodes for 1 reasons",
        id="filter of a table answers for too few nodes",
    ),
    pytest.param(
        plugin(filter=Verdicts(("no",), np.zeros((1, 2), bool), np.zeros(2, bool), {5: "broke"})),
        FILTER + "filter returned errors of nodes that do not exist: [5]",
        id="filter of a table has an error of no node",
    ),
    pytest.param(
        plugin(score=None), SCORE + "score returned None, it must return an array of scores", id="score gives None"
    ),
    pytest.param(
        plugin(score=[1, 2, 3]), SCORE + "score returned scores of shape (3,) for 2 nodes", id="too many scores"
    ),
    pytest.param(
        plugin(score=[0.5, 1.0]),
        SCORE + "score returned scores of type float64, they must be whole numbers",
        id="scores with fractions",
    ),
    pytest.param(plugin(score=[0, 101]), INVALID.format(101), id="a score above the range"),
    pytest.param(plugin(score=np.array([-1, 5])), INVALID.format(-1), id="a score below the range"),
    pytest.param(plugin(score_node=101), INVALID.format(101), id="a node's score above the range"),
    pytest.param(plugin(score=[1, 2], normalize_score=[1, 200]), INVALID.format(200), id="normalised above the range"),
    pytest.param(
        plugin(score=[1, 2], normalize_score=None),
        NORMALIZE + "normalize_score returned None, it must return an array of scores",
        id="normalised in place",
    ),
    pytest.param(
        plugin(score_node=1.0), SCORE + "score_node returned 1.0, it must return an int", id="a score with a fraction"
    ),
    pytest.param(
        plugin(pre_score=None),
        'running PreScore plugin "Shaky": pre_score returned None, it must return a Status',
        id="preScore gives None",
    ),
    pytest.param(
        plugin(reserve=None),
        'running Reserve plugin "Shaky": reserve returned None, it must return a Status',
        id="reserve gives None",
    ),
    pytest.param(
        plugin(permit=PermitResult(Status.wait(), timeout_s=float("nan"))),
        'running Permit plugin "Shaky": permit returned timeout_s nan, it must be a number of seconds',
        id="permit waits for no time at all",
    ),
    pytest.param(
        plugin(permit=None),
        'running Permit plugin "Shaky": permit returned None, it must return a PermitResult',
        id="permit gives None",
    ),
    pytest.param(
        plugin(pre_bind=None),
        'running PreBind plugin "Shaky": pre_bind returned None, it must return a Status',
        id="preBind gives None",
    ),
    pytest.param(
        plugin(pre_bind=steps_with_a_number),
        'running PreBind plugin "Shaky": yielded 42, which is not an effect',
        id="preBind asks for what there is not",
    ),
    pytest.param(
        plugin(bind="yes"),
        "running Bind plugin \"Shaky\": bind returned 'yes', it must return a Status",
        id="bind gives a text",
    ),
]


@pytest.mark.parametrize("keeps_classes", [True, False], ids=["with classes", "without"])
@pytest.mark.parametrize(("shaky", "message"), FAULTS)
def test_a_fault_is_an_error_that_names_the_plugin_and_the_loop_goes_on(
    shaky: type, message: str, keeps_classes: bool
) -> None:
    world = world_with(shaky, keeps_classes=keeps_classes)
    add(world, make.node("a", cpu=4), make.node("b", cpu=4), make.pod("bad", cpu=1, priority=9))
    world.run()
    assert notes(world) == [message]
    condition = condition_of(world, "default/bad")
    assert (condition.status, condition.reason, condition.message) == ("False", "SchedulerError", message)
    assert (world.loop.cluster.n_assumed, world.loop.bindings, world.bound) == (0, {}, {})
    assert [queued.key for queued in world.loop.queue.contents.backoff] == ["default/bad"]
    add(world, *(make.pod(f"good-{i}", cpu=1) for i in range(4)))
    world.run()
    assert sorted(world.bound) == [f"default/good-{i}" for i in range(4)]


def test_a_post_filter_that_breaks_leaves_the_pod_with_what_the_filters_said() -> None:
    class Hopeless:
        name = "Hopeless"

        def post_filter(self, cycle: Any, pod: Any, statuses: Any) -> PostFilterResult:
            raise ZeroDivisionError("nothing to divide")

    world = world_with(Hopeless)
    add(world, make.node("a", cpu=1), make.pod("p", cpu=2))
    world.run()
    (note,) = notes(world)
    assert note.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert 'running PostFilter plugin "Hopeless": ZeroDivisionError: nothing to divide' in note


def test_a_gate_that_breaks_holds_the_pod_back_and_no_other() -> None:
    world = world_with(plugin(pre_enqueue=BROKEN))
    add(world, make.node("a"), make.pod("bad"), make.pod("good"))
    world.run()
    assert list(world.bound) == ["default/good"]
    assert [queued.key for queued in world.loop.queue.contents.gated] == ["default/bad"]


def test_a_plugin_that_calls_exit_does_not_end_the_loop() -> None:
    class Leaver:
        name = "Leaver"

        def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
            raise SystemExit(3)

    world = world_with(Leaver)
    add(world, make.node("a"), make.pod("p"))
    world.run()
    (note,) = notes(world)
    assert note.startswith('running "Leaver" filter plugin: SystemExit: 3')


def test_one_that_cannot_sort_leaves_the_queue_in_the_order_of_arrival(caplog: pytest.LogCaptureFixture) -> None:
    class Sorter:
        name = "Sorter"

        def sort_key(self, queued: Any) -> Any:
            return "soon"

    world = world_with(Sorter)
    add(world, make.pod("first", cpu=1), make.pod("second", cpu=1), make.node("a", cpu=1))
    world.run()
    assert list(world.bound) == ["default/first"]
    assert [record.getMessage() for record in caplog.records] == ["Plugin failed"]


def test_giving_back_and_looking_on_may_break_without_harm() -> None:
    class Clumsy2:
        name = "Clumsy"

        def reserve(self, cycle: Any, pod: Any, node_name: str) -> Status:
            return OK

        def unreserve(self, cycle: Any, pod: Any, node_name: str) -> None:
            raise ZeroDivisionError("dropped it")

        def post_bind(self, cycle: Any, pod: Any, node_name: str) -> None:
            raise ZeroDivisionError("oops")

        def permit(self, cycle: Any, pod: Any, node_name: str) -> PermitResult:
            return PermitResult(Status.unschedulable("no") if pod.name == "refused" else OK)

    world = world_with(Clumsy2)
    broken = listen_for(world.loop, PluginBroke)
    add(world, make.node("a"), make.pod("refused"), make.pod("p"))
    world.run()
    assert world.bound == {"default/p": "a"}
    assert {seen.error.message.partition(" (")[0] for seen in broken} == {
        'running PostBind plugin "Clumsy": ZeroDivisionError: oops',
        'running Unreserve plugin "Clumsy": ZeroDivisionError: dropped it',
    }
    assert notes(world)[0] == "0/1 nodes are available: 1 no."


def test_a_binding_plugin_may_yield_effects_and_is_asked_before_the_default_binder() -> None:
    class Binder:
        name = "Binder"

        def bind(self, cycle: Any, pod: Any, node_name: str) -> Any:
            yield RecordEvent(pod.key, pod.uid, "Normal", "Binding", "Binding", "mine", "default-scheduler")
            yield BindPod(pod.key, pod.uid, node_name)
            return OK

    world = world_with(Binder)
    add(world, make.node("a"), make.pod("p"))
    world.run()
    assert world.bound == {"default/p": "a"}
    assert notes(world, "Binding") == ["mine"]


def test_all_stages_share_one_object() -> None:
    class Counter:
        name = "Counter"

        def __init__(self) -> None:
            self.seen: list[str] = []

        def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
            self.seen.append("filter")
            return OK

        def permit(self, cycle: Any, pod: Any, node_name: str) -> PermitResult:
            return PermitResult(OK if self.seen == ["filter"] else Status(Code.ERROR, ("not the same",)))

    world = world_with(Counter)
    add(world, make.node("a"), make.pod("p"))
    world.run()
    assert world.bound == {"default/p": "a"}


def _bound_with(keeps_classes: bool) -> World:
    """A plugin that breaks on a node which an earlier filter rejects: nobody may notice."""

    class Picky:
        name = "Picky"
        filter_scope = score_scope = Scope.NODE

        def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
            if node.name == "closed":
                raise AssertionError("never asked about this one")
            return OK

        def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
            return 101 if node.name == "closed" else 5

    world = world_with(Picky, keeps_classes=keeps_classes)
    add(world, make.node("closed", unschedulable=True), make.node("a", cpu=2), make.node("b", cpu=2))
    add(world, *(make.pod(f"p{i}", cpu=1) for i in range(4)))
    world.run()
    return world


def test_what_is_kept_for_pods_alike_does_not_make_a_plugin_break_that_would_not_without_it() -> None:
    assert _bound_with(True).bound == _bound_with(False).bound
    assert len(_bound_with(True).bound) == 4
