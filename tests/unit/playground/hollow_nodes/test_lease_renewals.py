"""Leases are renewed in time, and evenly."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.playground.hollow_nodes.fleet import ROUND_S, LeaseRenewals, interval_s


class _NoServer:
    async def request(self, method: str, path: str, **more: Any) -> bytes:
        raise AssertionError("nothing is sent here")


@pytest.mark.parametrize(
    ("n_nodes", "every_s"), [pytest.param(1, 10.0, id="a few nodes"), pytest.param(5000, 50.0, id="thousands")]
)
def test_the_interval_grows_with_the_number_of_nodes(n_nodes: int, every_s: float) -> None:
    assert interval_s(n_nodes) == every_s


@pytest.mark.parametrize("n_nodes", [1, 7, 300, 3000])
def test_every_lease_is_renewed_once_in_an_interval_and_a_half_and_no_round_has_many(n_nodes: int) -> None:
    leases = LeaseRenewals(_NoServer())
    for number in range(n_nodes):
        leases.add(f"n{number}", "u")
    every_s = interval_s(n_nodes)
    last_s: dict[str, float] = {}
    for round_number in range(int(3 * every_s / ROUND_S)):
        at_s = round_number * ROUND_S
        due = leases.due(at_s)
        assert len(due) <= max(4, n_nodes * ROUND_S / every_s + 1)
        for name in due:
            assert at_s - last_s.get(name, 0.0) <= 1.5 * every_s
            last_s[name] = at_s
    assert len(last_s) == n_nodes


def test_a_node_that_is_dropped_is_not_renewed() -> None:
    leases = LeaseRenewals(_NoServer())
    leases.add("a", "u")
    leases.drop("a")
    assert leases.due(100.0) == []
