"""Pods of a gang start together, or not at all."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from example_plugins import config_with, objects_of, plugin_of

import kubesched
from kubesched.testing import make

GANG = plugin_of("gang")
FILES = ("cluster.yaml", "workload.yaml")


def starts(objects: list[dict[str, Any]], *, plugins: tuple[Any, ...] = (GANG,), **options: Any) -> dict[str, Any]:
    """When the pods of each workload were scheduled, sorted; None for those that were not."""
    report = kubesched.simulate(objects, tie_break="name", plugins=plugins, **options).to_dict()
    found: dict[str, Any] = defaultdict(list)
    for pod in report["pods"]:
        found[pod["workload"] or pod["name"]].append(pod["scheduled_s"])
    return {name: sorted(times, key=lambda at: (at is None, at)) for name, times in found.items()}


def member(name: str, gang: str, size: object, **fields: Any) -> dict[str, Any]:
    return make.pod(name, labels={"gang": gang, "gang-size": str(size)}, **fields)


def test_the_second_gang_begins_when_the_first_is_done() -> None:
    objects = objects_of("gang", *FILES)
    assert starts(objects, plugins=()) == {"Job first": [0, 0, 0], "Job second": [0, 60, 60]}
    assert starts(objects) == {"Job first": [0, 0, 0], "Job second": [60, 60, 60]}


def test_a_gang_that_never_has_room_never_starts() -> None:
    objects = [make.node("a", cpu=2), *(member(f"p{n}", "big", 3, cpu=1) for n in range(3))]
    assert starts(objects, until_s=600) == {f"p{n}": [None] for n in range(3)}


def test_pods_of_no_gang_do_not_wait() -> None:
    objects = [make.node("a"), make.pod("alone"), member("odd", "x", "three"), member("one", "y", 1)]
    assert starts(objects, until_s=600) == {"alone": [0], "odd": [0], "one": [0]}


def test_gangs_of_the_same_name_in_other_namespaces_are_others() -> None:
    objects = [make.node("a"), member("p0", "x", 2), member("p1", "x", 2, namespace="shop")]
    assert starts(objects, until_s=600) == {"p0": [None], "p1": [None]}


def test_members_that_run_already_count() -> None:
    objects = [make.node("a"), member("p0", "x", 2, on="a"), member("p1", "x", 2)]
    assert starts(objects, until_s=600)["p1"] == [0]


def test_what_a_held_gang_takes_is_given_back_after_the_timeout() -> None:
    """The rest of a gang that cannot start holds room; a pod of no gang gets it once the gang is rejected."""
    gang = [member(f"p{n}", "big", 3, cpu=1) for n in range(3)]
    objects = [make.node("a", cpu=2), *gang, make.pod("alone", cpu=2)]
    config = config_with("Gang", {"timeoutS": 20})
    found = starts(objects, until_s=600, config=config)
    assert [found[f"p{n}"] for n in range(3)] == [[None]] * 3
    assert 20 <= found["alone"][0] < 60
