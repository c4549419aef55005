"""Real processes that are stopped and go on; short leases make it quick. `make pauses` does it in earnest."""

from __future__ import annotations

import asyncio

import pytest

from harness.pauses.scene import Paused, Scene, play

QUICK = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}


@pytest.mark.parametrize("paused", list(Paused), ids=[one.name.lower() for one in Paused])
def test_nothing_is_lost_when_somebody_stands_still(paused: Paused) -> None:
    """For longer than the lease lasts, so that another copy takes over, or the same one comes back."""
    outcome = asyncio.run(play(Scene(paused, 4.0, n_pods=60, within_s=60.0, election=QUICK)))
    assert outcome.n_bound == 60
    if paused is Paused.ONLY:
        assert outcome.n_starts == 1, "nobody took the lease from it, so it goes on"
    if paused is Paused.LEADER:
        assert outcome.n_starts >= 2
