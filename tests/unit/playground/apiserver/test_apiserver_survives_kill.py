"""kill -9 of the whole server while it is written to: nothing acknowledged is lost, watches go on without a gap."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from harness.apiserver_kills.ledger import Ledger, LostWriteError
from harness.apiserver_kills.rounds import KillRounds

ROUNDS = 3  # `make durability` does many more


def test_a_killed_server_keeps_what_it_acknowledged_and_watches_go_on(tmp_path: Path) -> None:
    report = asyncio.run(KillRounds(tmp_path / "data", random.Random(1)).run(ROUNDS))
    assert report.rounds == ROUNDS
    assert report.acknowledged
    assert report.resumed_watches


def _ledger() -> Ledger:
    """An acknowledged object, and one with a change under way."""
    ledger = Ledger()
    for name, revision in (("a", 5), ("b", 6)):
        ledger.begin(("pods", name), "create", "first")
        ledger.acknowledge(("pods", name), revision)
    ledger.begin(("pods", "b"), "update", "second")
    return ledger


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param({"a": (5, "first"), "b": (6, "first")}, id="a change under way did not happen"),
        pytest.param({"a": (5, "first"), "b": (7, "second")}, id="a change under way happened"),
    ],
)
def test_what_was_under_way_may_have_happened_or_not(shown: dict[str, tuple[int, str]]) -> None:
    _ledger().compare("pods", shown)


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param({"b": (6, "first")}, id="an acknowledged object is gone"),
        pytest.param({"a": (4, "first"), "b": (6, "first")}, id="an older version"),
        pytest.param({"a": (5, "other"), "b": (6, "first")}, id="another content"),
        pytest.param({"a": (5, "first")}, id="an update under way does not delete"),
        pytest.param({"a": (5, "first"), "b": (6, "second")}, id="a change without a new version"),
        pytest.param({"a": (5, "first"), "b": (6, "first"), "c": (8, "")}, id="an object that nobody wrote"),
    ],
)
def test_anything_else_than_what_was_acknowledged_is_a_loss(shown: dict[str, tuple[int, str]]) -> None:
    with pytest.raises(LostWriteError):
        _ledger().compare("pods", shown)
