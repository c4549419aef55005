"""Selectors and searches of strangers: each decision has a budget of work, and who exceeds it fails alone."""

from __future__ import annotations

import pytest
from device_clusters import DeviceCluster, claim, device, device_class, node, pod, request, slice_on

from kubesched.framework.status import Code
from kubesched.k8s import cel
from kubesched.k8s.model.times import Duration
from kubesched.scheduler.config.plugin_args import DynamicResourcesArgs
from kubesched.scheduler.plugins.dynamic_resources import device_checks
from kubesched.scheduler.plugins.dynamic_resources.outcomes import SearchAbandonedError, SearchBudget
from kubesched.testing.make import Manifest

TIMED_OUT = "node n: timed out trying to allocate devices"


def _nested(loops: int, inner: str) -> str:
    for depth in range(loops):
        inner = f"[0,1,2,3,4,5,6,7,8,9].all(x{depth}, {inner})"
    return inner


HOSTILE = _nested(5, '!"aaaa".matches("((a{0,30}){0,30})b")')
DEAR = _nested(3, '!"aaaa".matches("((a{0,30}){0,30})b")')
"""Within the limit for one device, about 100,000 units."""


def _devices(count: int) -> list[Manifest | str]:
    return [device(f"d{index}", attributes={"index": {"int": index}}) for index in range(count)]


def test_a_selector_that_costs_too_much_fails_its_pod_alone() -> None:
    world = DeviceCluster(
        node("n"),
        device_class(),
        slice_on("n", *_devices(50)),
        pod("mine"),
        claim("mine", request("r", 1, HOSTILE)),
        pod("other", name="q"),
        claim("other", request("r", 1)),
    )
    status = world.attempt().status("n")
    assert status.code is Code.ERROR
    assert status.message == (
        "claim default/mine: selector #0: CEL runtime error: operation cancelled: actual cost limit exceeded"
    )
    assert world.attempt("q").status("n").code is Code.SUCCESS


def test_a_dear_selector_is_answered_over_several_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered is remembered, so that each attempt gets further; the words are those of a timeout."""
    asked: list[str] = []
    ask = device_checks._ask

    def counting(expression: str, *rest: object) -> object:
        asked.append(expression)
        return ask(expression, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(device_checks, "_ask", counting)
    half_a_second = DynamicResourcesArgs(filter_timeout=Duration(5 * 10**8))
    expression = f'device.attributes["gpu.example.com"].index == 9 && {DEAR}'
    never = f"{DEAR} && {expression}"
    world = DeviceCluster(
        node("n"),
        device_class(),
        slice_on("n", *_devices(10)),
        pod("mine"),
        claim("mine", request("r", 1, never)),
        args=half_a_second,
    )
    first = world.attempt().status("n")
    assert (first.code, first.message) == (Code.ERROR, TIMED_OUT)
    assert len(asked) < 10
    for _ in range(10):
        last = world.attempt().status("n")
    assert last.code is Code.SUCCESS
    assert len(asked) == 10


def test_all_nodes_share_the_budget_of_a_decision() -> None:
    """Each node alone is within the limit, all together are not."""
    two_seconds = DynamicResourcesArgs(filter_timeout=Duration(2 * 10**9))
    names = [f"n{index}" for index in range(6)]
    slices = [slice_on(name, device("d", attributes={"on": {"string": name}})) for name in names]
    world = DeviceCluster(
        *(node(name) for name in names),
        device_class(),
        *slices,
        pod("mine"),
        claim("mine", request("r", 1, DEAR)),
        args=two_seconds,
    )
    attempt = world.attempt()
    codes = [attempt.status(name).code for name in names]
    assert Code.SUCCESS in codes and Code.ERROR in codes
    for _ in range(6):
        attempt = world.attempt()
    assert {attempt.status(name).code for name in names} == {Code.SUCCESS}


def test_small_searches_need_no_budget() -> None:
    a_moment = DynamicResourcesArgs(filter_timeout=Duration(10**6))
    names = [f"n{index}" for index in range(40)]
    slices = [slice_on(name, *(f"d{index}" for index in range(number + 1))) for number, name in enumerate(names)]
    world = DeviceCluster(
        *(node(name) for name in names),
        device_class(),
        *slices,
        pod("mine"),
        claim("mine", request("r", 1)),
        args=a_moment,
    )
    attempt = world.attempt()
    assert {attempt.status(name).code for name in names} == {Code.SUCCESS}


def test_a_hopeless_search_is_made_once_for_what_nothing_changed() -> None:
    many = slice_on("n", *(f"d{index}" for index in range(24)))
    hopeless = claim("mine", request("a", 11), request("b", 2, "false"))
    world = DeviceCluster(
        node("n"),
        device_class(),
        pod("mine"),
        many,
        hopeless,
        args=DynamicResourcesArgs(filter_timeout=Duration(5 * 10**7)),
    )
    world.attempt()  # learns what the selectors say
    spent = []
    for _ in range(2):
        attempt = world.attempt()
        assert attempt.status("n").message == TIMED_OUT
        allocator = attempt.state.allocator
        assert allocator is not None and allocator._limit is not None
        spent.append(allocator._limit - allocator._left)
    assert spent[0] > 0
    assert spent[1] == 0


def test_a_broken_selector_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    device_checks._programs.clear()
    compiled: list[str] = []
    compile_ = cel.compile

    def counting(expression: str) -> object:
        compiled.append(expression)
        return compile_(expression)

    monkeypatch.setattr(cel, "compile", counting)
    world = DeviceCluster(
        node("n"), device_class(), slice_on("n", *_devices(5)), pod("mine"), claim("mine", request("r", 1, "nothing("))
    )
    for _ in range(3):
        assert world.attempt().status("n").code is Code.ERROR
    assert compiled.count("nothing(") == 1


def test_what_is_remembered_with_a_device_is_bounded() -> None:
    world = DeviceCluster(node("n"), device_class(), slice_on("n", "d"), pod("mine"), claim("mine", request("r", 1)))
    for number in range(600):
        world.put(claim("mine", request("r", 1, f"{number} >= 0")))
        assert world.attempt().status("n").code is Code.SUCCESS
    [published] = world.plugin._shared.offers.examples[0].devices
    assert len(published.selected) <= 256


def test_a_budget_ends_where_it_is_exceeded() -> None:
    budget = SearchBudget(10)
    budget.spend(10)
    with pytest.raises(SearchAbandonedError):
        budget.spend(1)
    SearchBudget().spend(10**9)
