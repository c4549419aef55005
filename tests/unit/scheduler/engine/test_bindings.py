"""Who waits for a permit among all that are on their way, however they began, went on and ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from kubesched.scheduler.engine.bind import Bindings

STEPS = st.lists(st.tuples(st.sampled_from(["waits", "goes", "is permitted", "ends", "is asked"]), st.integers(0, 4)))


@given(STEPS)
def test_those_that_wait_are_found_in_their_order(steps: list[tuple[str, int]]) -> None:
    bindings = Bindings()
    for step, number in steps:
        uid = f"u{number}"
        if step in ("waits", "goes"):
            bindings.pop(uid, None)
            binding = SimpleNamespace(assumed=SimpleNamespace(uid=uid), waiting=object() if step == "waits" else None)
            bindings.begin(cast("Any", binding))
        elif step == "is permitted" and uid in bindings:
            bindings[uid].waiting = None
        elif step == "ends":
            bindings.pop(uid, None)
        else:
            _compare(bindings)
    _compare(bindings)


def _compare(bindings: Bindings) -> None:
    waiting = [binding for binding in bindings.values() if binding.waiting is not None]
    assert bindings.waiting() == waiting
    assert bindings.waiting_pods() == [binding.waiting for binding in waiting]
