"""Pools, overlays and reserves of a catalogue: what they take, change and keep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.k8s.errors import KubeschedError
from kubesched.planning.catalogue import Option, price_text
from kubesched.planning.catalogue_files import catalogue_from
from kubesched.planning.pool_requirements import pool_requirement

MI = 1 << 20


def own(*shapes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": list(shapes), **fields}


def shape(name: str = "m", generation: int = 5, **fields: Any) -> dict[str, Any]:
    labels = {"generation": str(generation)}
    return {"name": name, "capacity": {"cpu": 4, "memory": "16Gi"}, "labels": labels, "price": 1, **fields}


def bought(document: dict[str, Any]) -> list[Option]:
    return list(catalogue_from(document, "c.yaml").options())


@pytest.mark.parametrize(
    ("operator", "values", "taken"),
    [
        ("In", ["3", "6"], [3, 6]),
        ("NotIn", ["3", "6"], [5, 0]),
        ("Exists", [], [3, 5, 6]),
        ("DoesNotExist", [], [0]),
        ("Gt", ["5"], [6]),
        ("Gte", ["5"], [5, 6]),
        ("Lt", ["5"], [3]),
        ("Lte", ["5"], [3, 5]),
    ],
)
def test_operators(operator: str, values: list[str], taken: list[int]) -> None:
    asked = pool_requirement("generation", operator, values)
    assert [n for n in (3, 5, 6, 0) if asked.matches(str(n) if n else None)] == taken


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"operator": "Near", "values": ["1"]}, "operator: one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte"),
        ({"operator": "Gte", "values": ["a"]}, "values: Gte needs exactly one whole number that is not negative"),
        ({"operator": "Gt", "values": ["1", "2"]}, "values: Gt needs exactly one whole number"),
        ({"operator": "In"}, "values: Invalid value"),
        ({"operator": "In", "values": ["1"], "minValues": 2}, "minValues: 2 is more than there are values"),
        ({"operator": "Exists", "minValues": 51}, "minValues: 51 is not between 1 and 50"),
    ],
)
def test_requirements_that_make_no_sense(asked: dict[str, Any], problem: str) -> None:
    pools = [{"name": "p", "requirements": [{"key": "generation", **asked}]}]
    with pytest.raises(KubeschedError) as caught:
        bought(own(shape(), pools=pools))
    assert str(caught.value).startswith(f"c.yaml: pool p: requirements[0].{problem}")


def test_too_small_a_choice_is_told() -> None:
    pools = [{"name": "p", "requirements": [{"key": "generation", "operator": "Exists", "minValues": 2}]}]
    assert len(bought(own(shape(), shape("n", 6), pools=pools))) == 2
    with pytest.raises(KubeschedError) as caught:
        bought(own(shape(), shape("n"), pools=pools))
    expected = "minValues: 2 values of generation are expected, its machines have 1"
    assert str(caught.value) == f"c.yaml: pool p: {expected}"


def test_an_overlay_changes_the_price_of_what_it_picks() -> None:
    pools = [{"name": "p"}, {"name": "q", "labels": {"team": "shop"}}]
    overlays = [
        {"name": "a", "requirements": [{"key": "generation", "operator": "Gt", "values": ["5"]}], "price": "0.5"},
        {
            "name": "b",
            "requirements": [{"key": "team", "operator": "In", "values": ["shop"]}],
            "priceAdjustment": "-10%",
            "capacity": {"example.com/gpu": 2},
            "weight": 10,
        },
    ]
    found = bought(own(shape(), shape("n", 6), pools=pools, overlays=overlays))
    prices = {(one.pool.name, one.shape.name): price_text(one.offer.price or 0) for one in found}
    assert prices == {("p", "m"): "1.0", ("p", "n"): "0.5", ("q", "m"): "0.9", ("q", "n"): "0.9"}
    gpus = {one.pool.name: one.shape.allocatable.get("example.com/gpu") for one in found}
    assert gpus == {"p": None, "q": "2"}


@pytest.mark.parametrize(
    ("change", "price"),
    [("+0.25", "1.25"), ("-0.25", "0.75"), ("-2", "0.0"), ("+50%", "1.5"), ("-100%", "0.0"), ("+.5", "1.5")],
)
def test_adjustments(change: str, price: str) -> None:
    (option,) = bought(own(shape(), overlays=[{"name": "a", "priceAdjustment": change}]))
    assert price_text(option.offer.price or 0) == price


def test_of_two_overlays_of_one_weight_the_later_by_name_counts() -> None:
    overlays = [{"name": "a", "price": 2, "capacity": {"x.io/a": 1}}, {"name": "b", "price": 3}]
    found = catalogue_from(own(shape(), overlays=overlays), "c.yaml")
    (option,) = found.options()
    assert (option.offer.price, option.shape.allocatable.get("x.io/a")) == (3 * 10**9, None)
    assert found.conflicting_overlays == ["a"]


def test_a_lighter_overlay_adds_what_a_heavier_one_leaves_out() -> None:
    overlays = [
        {"name": "a", "weight": 2, "capacity": {"x.io/a": 1}},
        {"name": "b", "weight": 1, "capacity": {"x.io/a": 9, "x.io/b": 2}, "price": 3},
    ]
    found = catalogue_from(own(shape(), overlays=overlays), "c.yaml")
    (option,) = found.options()
    assert found.conflicting_overlays == []
    assert (option.shape.capacity["x.io/a"], option.shape.capacity["x.io/b"]) == ("1", "2")
    assert option.offer.price == 3 * 10**9


@pytest.mark.parametrize(
    ("overlay", "problem"),
    [
        ({"price": "1", "priceAdjustment": "+1"}, "price: cannot be set together with priceAdjustment"),
        ({"price": "-1"}, "price: -1 is negative"),
        ({"priceAdjustment": "1"}, "priceAdjustment: an amount such as +0.1"),
        ({"priceAdjustment": "-120%"}, "priceAdjustment: an amount such as +0.1"),
        ({"capacity": {"cpu": 1}}, "capacity.cpu: an overlay adds further resources alone"),
        ({"weight": 10_001}, "weight: 10001 is not between 0 and 10000"),
    ],
)
def test_overlays_that_make_no_sense(overlay: dict[str, Any], problem: str) -> None:
    with pytest.raises(KubeschedError) as caught:
        bought(own(shape(), overlays=[{"name": "a", **overlay}]))
    assert str(caught.value).startswith(f"c.yaml: overlay a: {problem}")


def allocatable(reserve: Any) -> tuple[str, str]:
    (option,) = bought(own(shape(), reserve=reserve))
    return option.shape.allocatable["cpu"], option.shape.allocatable["memory"]


def test_amounts_of_ones_own_are_reserved() -> None:
    assert allocatable({"cpu": "200m", "memory": "1Gi"}) == ("3800m", f"{15 * 1024 - 100}Mi")
    assert allocatable({"memory": "1Gi", "eviction": 0}) == ("4", "15Gi")
    assert allocatable({"memoryPerPod": "10Mi", "eviction": 0}) == ("4", f"{16 * 1024 - 1100}Mi")


def test_tiers_of_ones_own_are_those_of_the_cloud_that_has_them() -> None:
    cpu = [{"upTo": 1, "percent": 6}, {"upTo": 2, "percent": 1}, {"upTo": 4, "percent": 0.5}, {"percent": 0.25}]
    memory = [
        {"upTo": "4Gi", "percent": 25},
        {"upTo": "8Gi", "percent": 20},
        {"upTo": "16Gi", "percent": 10},
        {"upTo": "128Gi", "percent": 6},
        {"percent": 2},
    ]
    assert allocatable({"formula": "tiers", "cpu": cpu, "memory": memory}) == allocatable("gke")
    assert allocatable({"formula": "gke"}) == allocatable("gke")
    assert allocatable({"formula": "eks", "cpu": 0}) == ("4", allocatable("eks")[1])


@pytest.mark.parametrize(
    ("reserve", "problem"),
    [
        (3, "reserve: one of none, gke, eks, aks or a mapping is expected, not 3"),
        ({"cpus": 1}, "reserve.cpus: not known; there are formula, cpu, memory, memoryPerPod, eviction"),
        ({"formula": "mine"}, "reserve.formula: one of none, gke, eks, aks, tiers is expected, not 'mine'"),
        ({"formula": "tiers", "cpu": 1}, "reserve.formula: tiers needs a list of tiers, in cpu or memory"),
        ({"cpu": -1}, "reserve.cpu: -1 is negative"),
        ({"cpu": None}, "reserve.cpu: an amount is expected, not None"),
        ({"cpu": []}, "reserve.cpu: no tier in it"),
        ({"cpu": [{"percent": 1}, {"percent": 2}]}, "reserve.cpu[1].upTo: tiers must rise"),
        ({"cpu": [{"upTo": 2, "percent": 1}, {"upTo": 1, "percent": 2}]}, "reserve.cpu[1].upTo: tiers must rise"),
        ({"cpu": [{"percent": 101}]}, "reserve.cpu[0].percent: a number between 0 and 100 is expected, not 101"),
        ({"memory": "64Gi"}, "shape m: capacity: less than what is reserved of it for the system"),
    ],
)
def test_reserves_that_make_no_sense(reserve: Any, problem: str) -> None:
    with pytest.raises(KubeschedError) as caught:
        bought(own(shape(), reserve=reserve))
    assert str(caught.value).startswith(f"c.yaml: {problem}")


def test_written_and_read_again_it_is_the_same() -> None:
    document = own(
        shape(),
        pools=[
            {
                "name": "p",
                "requirements": [{"key": "generation", "operator": "Gte", "values": ["3"], "minValues": 1}],
                "limits": {"nodes": 3, "cpu": 40},
                "min": {"a": 1},
                "weight": 7,
            }
        ],
        overlays=[{"name": "a", "priceAdjustment": "+5%", "capacity": {"x.io/a": 1}, "weight": 3}],
    )
    found = catalogue_from(document, "c.yaml")
    assert catalogue_from(json.loads(json.dumps(found.to_dict())), "c.yaml") == found
