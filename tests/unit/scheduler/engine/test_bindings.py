"""Who waits for a permit among all that are on their way, however they began, went on and ended."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.engine.bind import Bindings, PodBinding
from kubesched.scheduler.engine.permit import WaitingPod
from kubesched.scheduler.queue import QueuedPodInfo, QueueProfile

STEPS = st.lists(st.tuples(st.sampled_from(["waits", "goes", "is permitted", "ends", "is asked"]), st.integers(0, 4)))


@given(STEPS)
def test_those_that_wait_are_found_in_their_order(steps: list[tuple[str, int]]) -> None:
    bindings = Bindings()
    for step, number in steps:
        uid = f"u{number}"
        if step in ("waits", "goes"):
            bindings.pop(uid, None)
            bindings.begin(_binding(uid, waits=step == "waits"))
        elif step == "is permitted" and uid in bindings:
            bindings[uid].waiting = None
        elif step == "ends":
            bindings.pop(uid, None)
        else:
            _compare(bindings)
    _compare(bindings)


def _binding(uid: str, *, waits: bool) -> PodBinding:
    metadata = {"name": uid, "namespace": "default", "uid": uid}
    pod = msgspec.convert({"metadata": metadata, "spec": {}}, Pod)
    info = PodInfo(pod, PodSignature(pod, label_class=0, affinity_class=-1))
    profile = QueueProfile(lambda _queued: (), lambda _info: OK, {})
    waiting = WaitingPod(info, "node", {}) if waits else None
    unasked = cast("Any", None)  # who decided for it, and how, is not looked at
    return PodBinding(QueuedPodInfo(info, profile, 0.0), unasked, unasked, info, _no_steps(), waiting, 0.0, waits, 0.0)


def _no_steps() -> Generator[object, object, Status]:
    yield from ()
    return OK


def _compare(bindings: Bindings) -> None:
    waiting = [binding for binding in bindings.values() if binding.waiting is not None]
    assert bindings.waiting() == waiting
    assert bindings.waiting_pods() == [binding.waiting for binding in waiting]
