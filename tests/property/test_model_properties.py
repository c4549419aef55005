"""The model's arithmetic, by properties: texts round-trip, sums are exact, a pod asks for what its containers need."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import Any

import msgspec
from hypothesis import event, find, given, settings
from hypothesis import strategies as st

from kubesched.k8s.model import quantity, selectors
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.quantity import MAX_INT64, NANO, Notation, Quantity
from kubesched.k8s.model.requests import effective_requests, pod_resources
from kubesched.k8s.model.selectors import Requirement, Selector, parse_selector

relaxed = settings(deadline=None)

# -- quantities --------------------------------------------------------------------------------------------------------

SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
SUFFIXES |= {suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)}
SUFFIXES |= {f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)}

QUANTITIES = st.builds(Quantity, st.integers(-(10**30), 10**30), st.sampled_from(Notation))


STORABLE = st.builds(Quantity, st.integers(-MAX_INT64 * NANO, MAX_INT64 * NANO), st.sampled_from(Notation))
"""Beyond an int64, what is written in binary notation is capped when it is read."""


@relaxed
@given(STORABLE)
def test_a_printed_quantity_reads_back_as_the_same(amount: Quantity) -> None:
    printed = str(amount)
    assert quantity.parse(printed) == amount
    if amount.notation is Notation.BINARY_SI and printed.lstrip("-").isdigit():
        # Bytes that are no multiple of 1024 have no suffix, and are read as decimal: `3125000` as `3125k`.
        printed = str(Quantity(amount.nanos, Notation.DECIMAL_SI))
    assert str(quantity.parse(printed)) == printed


def test_binary_amounts_that_need_no_suffix_are_read_as_decimal_ones() -> None:
    assert str(Quantity(3_125_000 * NANO, Notation.BINARY_SI)) == "3125000"
    assert str(quantity.parse("3125000")) == "3125k"


@relaxed
@given(
    st.integers(0, 10**20),
    st.text("0123456789", max_size=12),
    st.sampled_from(sorted(SUFFIXES)),
    st.sampled_from(("", "+", "-")),
)
def test_a_text_stands_for_its_number_times_its_suffix_rounded_away_from_zero(
    whole: int, fraction: str, suffix: str, sign: str
) -> None:
    text = f"{sign}{whole}.{fraction}{suffix}" if fraction else f"{sign}{whole}{suffix}"
    exact = Fraction(f"{whole}.{fraction or 0}") * SUFFIXES[suffix] * NANO
    expected = -(-exact.numerator // exact.denominator)
    if suffix.endswith("i"):
        expected = min(expected, MAX_INT64 * NANO)
    event("rounded" if expected != exact else "exact")
    assert quantity.parse(text).nanos == (-expected if sign == "-" else expected)


@relaxed
@given(QUANTITIES)
def test_asking_for_fewer_digits_never_loses_any_amount(amount: Quantity) -> None:
    for found, unit in ((amount.value, NANO), (amount.milli_value, NANO // 1000)):
        if abs(found) < MAX_INT64:
            assert abs(amount.nanos) <= abs(found) * unit < abs(amount.nanos) + unit
            assert found * amount.nanos >= 0


@relaxed
@given(QUANTITIES, QUANTITIES)
def test_sums_are_exact(one: Quantity, other: Quantity) -> None:
    assert (one + other).nanos == one.nanos + other.nanos
    assert one + other - other == one


@relaxed
@given(QUANTITIES, QUANTITIES)
def test_order_is_that_of_the_values(one: Quantity, other: Quantity) -> None:
    assert [one < other, one <= other, one > other, one >= other, one == other] == [
        one.nanos < other.nanos,
        one.nanos <= other.nanos,
        one.nanos > other.nanos,
        one.nanos >= other.nanos,
        one.nanos == other.nanos,
    ]


# -- selectors ---------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(("app", "in", "notin", "example.com/tier", "x.y_z-1"))
VALUES = st.sampled_from(("", "a", "b", "in", "notin", "1", "22", "A-b_c.d"))


def _requirements() -> st.SearchStrategy[Requirement]:
    sets = st.sets(VALUES, min_size=1, max_size=3).map(lambda values: tuple(sorted(values)))
    return st.one_of(
        st.builds(Requirement, KEYS, st.sampled_from(("In", "NotIn")), sets),
        st.builds(Requirement, KEYS, st.sampled_from(("Exists", "DoesNotExist"))),
        st.builds(Requirement, KEYS, st.sampled_from(("Gt", "Lt")), st.integers(0, 50).map(lambda n: (str(n),))),
    )


SELECTORS = st.lists(_requirements(), max_size=4).map(
    lambda found: Selector(tuple(sorted(found, key=lambda requirement: requirement.key)))
)
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)


@relaxed
@given(SELECTORS)
def test_a_printed_selector_reads_back_as_the_same(selector: Selector) -> None:
    assert parse_selector(str(selector)) == selector


@relaxed
@given(st.text("ab=!(),<> in1", max_size=20))
def test_any_text_is_a_selector_that_round_trips_or_is_refused(text: str) -> None:
    try:
        found = parse_selector(text)
    except selectors.SelectorError:
        event("refused")
        return
    event("read")
    assert parse_selector(str(found)) == found


@relaxed
@given(SELECTORS, LABELS)
def test_a_selector_matches_where_all_requirements_do_and_opposites_exclude_each_other(
    selector: Selector, labels: dict[str, str]
) -> None:
    opposites = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
    assert selector.matches(labels) is all(Selector((found,)).matches(labels) for found in selector.requirements)
    for found in selector.requirements:
        if found.operator in opposites:
            value = labels.get(found.key)
            opposite = Requirement(found.key, opposites[found.operator], found.values)
            assert found.matches(value) is not opposite.matches(value)


@relaxed
@given(LABELS, LABELS)
def test_labels_as_a_selector_pick_what_has_them_all(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert selectors.from_labels(wanted).matches(labels) is (wanted.items() <= labels.items())


# -- requests ----------------------------------------------------------------------------------------------------------

AMOUNTS = st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 9), "example.com/gpu": st.integers(0, 3)})


@st.composite
def _containers(draw: st.DrawFn, prefix: str, restartable: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{prefix}{index}",
            "resources": {"requests": draw(AMOUNTS)},
            "restartPolicy": draw(st.sampled_from(("Always", None))) if restartable else None,
        }
        for index in range(draw(st.integers(0, 3)))
    ]


@st.composite
def _pods(draw: st.DrawFn) -> Pod:
    spec: dict[str, Any] = {
        "containers": draw(_containers("c", restartable=False)),
        "initContainers": draw(_containers("i", restartable=True)),
        "overhead": draw(st.none() | AMOUNTS),
    }
    return msgspec.convert({"spec": spec}, Pod)


def _amount(container: Any, resource: str) -> int:
    return int((container.resources.requests or {}).get(resource, 0))


def _peak(pod: Pod, resource: str) -> int:
    """By playing the pod's life through: init containers start in order, sidecars stay, then all containers run."""
    init = pod.spec.init_containers or ()
    staying = [_amount(c, resource) if c.restart_policy == "Always" else 0 for c in init]
    running_before = [0, *accumulate(staying)]
    moments = [before + _amount(c, resource) for before, c in zip(running_before, init, strict=False)]
    moments.append(running_before[-1] + sum(_amount(c, resource) for c in pod.spec.containers))
    return max(moments) + int((pod.spec.overhead or {}).get(resource, 0))


@relaxed
@given(_pods())
def test_a_pod_asks_for_the_most_that_it_needs_at_any_moment(pod: Pod) -> None:
    found = effective_requests(pod)
    event("peak while starting" if _peak(pod, "cpu") > sum(_amount(c, "cpu") for c in pod.spec.containers) else "later")
    for resource in ("cpu", "example.com/gpu"):
        assert found.get(resource, 0) == _peak(pod, resource) * NANO


@relaxed
@given(_pods())
def test_a_pod_that_never_ran_wants_what_it_will_count_for(pod: Pod) -> None:
    found = pod_resources(pod)
    assert found.wanted == found.requests
    assert found.container_requests["cpu"] == found.nonzero_cpu_milli if pod.spec.containers else True
    assert found.nonzero_cpu_milli >= found.requests.get("cpu", 0)


def test_the_pods_tried_tell_wrong_rules_from_the_right_one() -> None:
    def order_forgotten(pod: Pod) -> int:
        """Takes every init container for one that starts after all sidecars."""
        init = pod.spec.init_containers or ()
        sidecars = sum(_amount(c, "cpu") for c in init if c.restart_policy == "Always")
        starting = max((_amount(c, "cpu") for c in init if c.restart_policy != "Always"), default=0)
        running = sum(_amount(c, "cpu") for c in pod.spec.containers)
        return sidecars + max(starting, running) + int((pod.spec.overhead or {}).get("cpu", 0))

    assert find(_pods(), lambda pod: order_forgotten(pod) != _peak(pod, "cpu"), settings=relaxed)
