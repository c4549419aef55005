"""The embedded server answers as kube-apiserver v1.36.4 answered: recorded requests, compared field by field."""

from __future__ import annotations

import asyncio

import pytest
from apiserver_serving import running
from replayed_exchanges import Replay, exchanges_of, scenarios

from kubesched.playground.apiserver.kinds.registry import NEXT, TODAY
from kubesched.playground.apiserver.verbs import read

OTHERWISE = {
    "disc_aggregated": {2, 5},  # scheduling.k8s.io/v1alpha2 is served
    "disc_resources": {31, 39},  # the same, and resource.k8s.io/v1beta2
    "disc_version": {4, 7},  # the same
    "pods_scheduling_fields": {25, 26, 30},  # privileged pods are allowed; schedulingGroup belongs to v1alpha2
    "disc_health": {2, 5, 8, 11, 14, 17},  # a list of this server's own checks
    "pod_groups_v137": {85},  # templates are shown as they were sent, not as the server has them inside
    "disc_openapi_index": {1, 3, 4},  # no documents for paths that are no resources
}
"""Steps that are answered otherwise on purpose: docs/differences.md has a reason for each."""

OF_NEXT_VERSION = {"pod_groups_v137"}
"""Answers of kube-apiserver v1.37.0-rc.1."""


@pytest.mark.parametrize("scenario", scenarios())
def test_recorded_requests_are_answered_as_by_the_real_server(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_FUTURE_WAIT_S", 0.05)  # who asks for a version of the future waits for it

    async def body() -> dict[int, str]:
        async with running(version=NEXT if scenario in OF_NEXT_VERSION else TODAY) as client:
            return await Replay(client).run(exchanges_of(scenario))

    differing = asyncio.run(body())
    expected = OTHERWISE.get(scenario, set())
    surprising = [f"{step} {text}" for step, text in differing.items() if step not in expected]
    assert not surprising, "\n".join(surprising)
    assert expected == differing.keys(), f"answered as recorded now: {sorted(expected - differing.keys())}"
