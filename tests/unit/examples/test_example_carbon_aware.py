"""Zones with clean electricity are preferred, as long as the table is there and fresh."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from example_plugins import EXAMPLES, local_server, module_of, objects_of, placed, plugin_of, raw_scores

from kubesched.testing import make

CARBON_AWARE = plugin_of("carbon-aware")
MODULE = module_of(CARBON_AWARE)
GRAMS = str(EXAMPLES / "carbon-aware" / "grams.json")


@pytest.fixture(autouse=True)
def _threads_end_with_the_test() -> Iterator[None]:
    """They do when their plugins are collected."""
    yield
    gc.collect()


def decide(source: str, objects: list[dict[str, Any]] | None = None, pod: str = "batch/report", **args: Any) -> Any:
    given = objects_of("carbon-aware") if objects is None else objects
    return placed(given, pod, [CARBON_AWARE], {"source": source, **args})


def test_the_cleanest_zone_is_preferred() -> None:
    decision = decide(GRAMS)
    assert decision.node_name == "stockholm-1"
    assert raw_scores(decision, "CarbonAware") == {"frankfurt-1": 61, "stockholm-1": 97, "virginia-1": 52}


def test_a_table_behind_a_url_is_read_too() -> None:
    with local_server(b'{"us-east-1a": 0, "eu-north-1a": 9999}') as (url, _):
        scores = raw_scores(decide(url), "CarbonAware")
    assert scores == {"frankfurt-1": 50, "stockholm-1": 0, "virginia-1": 100}


@pytest.mark.parametrize("text", ["[]", '{"eu-north-1a": "clean"}', "nothing"])
def test_what_is_no_table_makes_all_zones_alike(tmp_path: Path, text: str) -> None:
    source = tmp_path / "grams.json"
    source.write_text(text)
    assert set(raw_scores(decide(str(source)), "CarbonAware").values()) == {50}


def test_a_pod_can_stay_out_of_it() -> None:
    objects = [make.node("a", labels={make.ZONE: "eu-north-1a"}), make.pod("web", labels={"carbon-aware": "false"})]
    assert raw_scores(decide(GRAMS, objects, "default/web"), "CarbonAware") == {"a": 50}


def test_a_node_without_a_zone_gets_the_middle() -> None:
    objects = [make.node("a"), make.pod("web")]
    assert raw_scores(decide(GRAMS, objects, "default/web"), "CarbonAware") == {"a": 50}


def test_a_table_that_cannot_be_read_any_more_counts_until_it_is_too_old(tmp_path: Path) -> None:
    source = tmp_path / "grams.json"
    source.write_text('{"a": 1}')
    args = MODULE.CarbonAwareArgs(source=str(source), max_age_s=60.0)
    now = [0.0]
    table = MODULE.FreshTable(lambda: MODULE.read_grams(args), args.max_age_s, clock=lambda: now[0])
    assert (table.refresh(), table.current) == (True, {"a": 1.0})
    source.unlink()
    now[0] = 59.0
    assert (table.refresh(), table.current) == (False, {"a": 1.0})
    now[0] = 61.0
    assert (table.refresh(), table.current) == (False, {})


def test_the_background_thread_ends_when_nobody_looks_any_more(tmp_path: Path) -> None:
    source = tmp_path / "grams.json"
    source.write_text("{}")
    before = set(threading.enumerate())
    grams = MODULE.grams_of(MODULE.CarbonAwareArgs(source=str(source), refresh_s=0.01))
    assert MODULE.grams_of(MODULE.CarbonAwareArgs(source=str(source), refresh_s=0.01)) is grams
    (thread,) = (thread for thread in set(threading.enumerate()) - before if thread.name == "carbon_aware")
    del grams
    thread.join(20)
    assert not thread.is_alive()
