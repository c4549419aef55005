"""DefaultBinder: asks to bind, and passes on what came of it."""

from __future__ import annotations

import pytest
from small_clusters import NO_HANDLE, pod_info

from kubesched.framework import OK, CycleState, Status
from kubesched.framework.effects import BindPod, Done, Failed
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.plugins.default_binder import DefaultBinder


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(Done(), OK, id="bound"),
        pytest.param(Failed("pods is gone"), Status.error("pods is gone"), id="refused"),
    ],
)
def test_the_pod_is_bound_by_one_write(outcome: object, expected: Status) -> None:
    steps = DefaultBinder(None, NO_HANDLE).bind(CycleState(), pod_info(uid="u"), "n")
    assert next(steps) == BindPod(PodKey("default/p"), "u", "n")
    with pytest.raises(StopIteration) as ended:
        steps.send(outcome)
    assert ended.value.value == expected
