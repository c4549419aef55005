"""Plans against the optimum that trying everything finds; bounds that never lie above it; certificates that hold."""

from __future__ import annotations

import json
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_oracle import best_for_scheduler, best_packing, catalogue, pod, shape

import kubesched
from kubesched.planning.plan import planner, reading, rounding
from kubesched.planning.plan.bounds import best_pattern
from kubesched.planning.plan.certificate import check_certificate
from kubesched.planning.plan.search import MixSearch

NANOS = 10**9
_NUMBERS = count()


def random_case(seed: int) -> tuple[list[tuple[int, int]], list[tuple[int, int, int]]]:
    """At most eight pods, at most four machines; every pod fits on some machine."""
    chance = Random(seed)
    machines = []
    for _ in range(chance.randint(1, 4)):
        cpu, memory = chance.choice([1, 2, 4, 8]), chance.choice([2, 4, 8, 16])
        machines.append((cpu * 1000, memory * 1024, 10 * cpu + 3 * memory + chance.randint(0, 9)))
    pods = []
    for _ in range(chance.randint(1, 3)):
        cpu, memory = chance.choice([250, 400, 500, 900, 1500, 3000]), chance.choice([256, 900, 1024, 3000])
        if any(cpu <= m[0] and memory <= m[1] for m in machines):
            pods += [(cpu, memory)] * chance.randint(1, 3)
    return pods[:8], machines


def planned(pods: list[tuple[int, int]], machines: list[tuple[int, int, int]], **options: Any) -> kubesched.PlanReport:
    shapes = [shape(f"m{k}", cpu // 1000, memory // 1024, price) for k, (cpu, memory, price) in enumerate(machines)]
    manifests = [pod(f"p{n}", cpu, memory) for n, (cpu, memory) in enumerate(pods)]
    return kubesched.plan(manifests, catalogue(*shapes), from_scratch=True, **options)


@pytest.mark.parametrize("seed", range(40))
def test_the_plan_is_the_optimum_and_its_certificate_holds(seed: int) -> None:
    pods, machines = random_case(seed)
    if not pods:
        return
    report = planned(pods, machines, orders=1)
    names = [f"m{k}" for k in range(len(machines))]
    manifests = [pod(f"p{n}", cpu, memory) for n, (cpu, memory) in enumerate(pods)]
    ideal = best_packing(pods, machines)
    reached = best_for_scheduler(manifests, machines, names)
    if reached is None or ideal is None:
        return  # more than six machines
    assert report.answer == "yes"
    assert report.bound <= reached * NANOS
    assert report.level in ("proven", "exhausted")
    assert report.cost == reached * NANOS
    if report.level == "proven":
        assert report.cost == ideal * NANOS
    checked = check_certificate(json.loads(json.dumps(report.certificate)))
    assert checked.holds, checked.text


@pytest.mark.parametrize("seed", range(40))
def test_packing_alone_finds_the_optimum_of_packing_and_no_bound_lies_above_it(seed: int) -> None:
    pods, machines = random_case(seed)
    ideal = best_packing(pods, machines)
    if not pods or ideal is None:
        return
    report = planned(pods, machines, ideal=True)
    assert report.bound <= ideal * NANOS <= report.cost


# -- each of these has been seen to fail -------------------------------------------------------------------------------


def test_a_plan_that_is_called_optimal_without_a_look_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nothing is improved, and there is said to be no cheaper mix."""
    monkeypatch.setattr(MixSearch, "improve", lambda _search: None)
    monkeypatch.setattr(planner, "exhaust", lambda *_: (True, []))
    with pytest.raises(AssertionError):
        for seed in range(40):
            test_the_plan_is_the_optimum_and_its_certificate_holds(seed)


def test_a_bound_that_is_too_high_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: each bound is doubled, so that the first plan is called proven."""
    monkeypatch.setattr(planner, "rounded_up", lambda _model, cost: cost * 2)
    monkeypatch.setattr(MixSearch, "improve", lambda _search: None)
    with pytest.raises(AssertionError):
        for seed in range(40):
            test_the_plan_is_the_optimum_and_its_certificate_holds(seed)


def test_a_packing_that_holds_too_little_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: one of the packings has no machine."""
    monkeypatch.setattr(rounding, "rounded", lambda *_: [()])
    with pytest.raises(AssertionError):
        for seed in range(40):
            test_packing_alone_finds_the_optimum_of_packing_and_no_bound_lies_above_it(seed)


# -- classes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_pods_one_by_one_give_the_plan_that_classes_give(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pods, machines = random_case(seed)
    if not pods:
        return
    shapes = [shape(f"m{k}", cpu // 1000, memory // 1024, price) for k, (cpu, memory, price) in enumerate(machines)]
    manifests = [pod(f"p{n}", cpu, memory, labels={"number": str(n)}) for n, (cpu, memory) in enumerate(pods)]
    together = kubesched.plan(manifests, catalogue(*shapes), from_scratch=True, orders=1)
    monkeypatch.setattr(reading, "class_key", lambda *given: (next(_NUMBERS), *given))
    alone = kubesched.plan(manifests, catalogue(*shapes), from_scratch=True, orders=1)
    assert alone.certificate is not None and together.certificate is not None
    assert len(alone.certificate["classes"]) == len(pods) >= len(together.certificate["classes"])
    assert (alone.cost, alone.level, alone.n_nodes) == (together.cost, together.level, together.n_nodes)
    assert check_certificate(json.loads(json.dumps(alone.certificate))).holds


def test_classes_that_are_not_alike_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: all pods are one class, that of the largest."""
    monkeypatch.setattr(reading, "class_key", lambda *_: 0)
    with pytest.raises(AssertionError):
        for seed in range(40):
            test_the_plan_is_the_optimum_and_its_certificate_holds(seed)


def test_a_certificate_that_claims_too_much_does_not_hold() -> None:
    report = planned([(400, 256)] * 5, [(1000, 2048, 20), (2000, 4096, 37)])
    record = json.loads(json.dumps(report.certificate))
    assert check_certificate(record).holds
    for change in (
        {"cost": record["cost"] - 1},
        {"level": "within", "bound": record["cost"] + 1},
        {"values": [value // 2 for value in record["values"]], "level": "proven", "cuts": [], "refused": []},
        {"level": "exhausted", "cuts": [], "values": [0] * len(record["values"])},
    ):
        assert not check_certificate({**record, **change}).holds, change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param({"kind": "Plan"}, "kind: PlanCertificate is expected", id="kind"),
        pytest.param({"values": "x"}, "values: a list of", id="values"),
        pytest.param({"cost": -1}, "cost: a whole number is expected", id="negative"),
        pytest.param({"weights": []}, "weights: ", id="weights"),
        pytest.param({"options": [{}]}, "fits: ", id="option"),
    ],
)
def test_what_is_no_certificate_is_an_error(change: dict[str, Any], problem: str) -> None:
    report = planned([(400, 256)], [(1000, 2048, 20)])
    with pytest.raises(kubesched.PlanError, match=problem):
        check_certificate({**json.loads(json.dumps(report.certificate)), **change})


@settings(max_examples=150)
@given(st.data())
def test_the_best_pattern_is_what_trying_all_finds(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 4))
    numbers = st.integers(0, 9)
    values = data.draw(st.lists(numbers, min_size=n, max_size=n))
    requests = data.draw(st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=2), min_size=n, max_size=n))
    capacity = data.draw(st.lists(numbers, min_size=2, max_size=2))
    most = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weights = data.draw(st.lists(numbers, min_size=2, max_size=2))
    steps = data.draw(st.sampled_from([0, 3, 10_000]))
    found = best_pattern(values, requests, capacity, most, weights, most_steps=steps)
    best = 0
    for counts in np.ndindex(*(m + 1 for m in most)):
        used = [sum(x * requests[c][r] for c, x in enumerate(counts)) for r in range(2)]
        if used[0] <= capacity[0] and used[1] <= capacity[1]:
            best = max(best, sum(x * values[c] for c, x in enumerate(counts)))
    assert found.value <= best <= found.most
    if steps == 10_000:
        assert found.value == found.most == best
