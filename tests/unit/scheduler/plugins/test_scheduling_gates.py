"""SchedulingGates: who may enter the queue, and what brings a gated pod back."""

from __future__ import annotations

import pytest
from small_clusters import NO_HANDLE, node, pod, pod_info

from kubesched.framework import OK, Hint, Status
from kubesched.framework.events import ActionType, ClusterEvent, EventResource
from kubesched.scheduler.plugins.scheduling_gates import SchedulingGates

PLUGIN = SchedulingGates(None, NO_HANDLE)


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param(None, OK, id="no gates"),
        pytest.param([], OK, id="an empty list of gates"),
        pytest.param(["a"], Status.unresolvable("waiting for scheduling gates: [a]"), id="one gate"),
        pytest.param(
            ["z/two", "a"], Status.unresolvable("waiting for scheduling gates: [z/two a]"), id="two, in their own order"
        ),
    ],
)
def test_a_gated_pod_stays_out_of_the_queue(gates: list[str] | None, expected: Status) -> None:
    named = None if gates is None else [{"name": gate} for gate in gates]
    assert PLUGIN.pre_enqueue(pod_info(schedulingGates=named)) == expected


def test_only_the_removal_of_the_last_gate_is_of_interest() -> None:
    [registered] = PLUGIN.events_to_register()
    assert registered.event == ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(pod(uid="u1"), Hint.QUEUE, id="the pod itself"),
        pytest.param(pod(uid="u2"), Hint.SKIP, id="its successor of the same name"),
        pytest.param(node("n"), Hint.QUEUE, id="something that cannot be, to be safe"),
    ],
)
def test_only_its_own_gates_hold_a_pod_back(changed: object, expected: Hint) -> None:
    [registered] = PLUGIN.events_to_register()
    assert registered.hint is not None
    assert registered.hint(pod_info(uid="u1"), pod(uid="u1"), changed) == expected
