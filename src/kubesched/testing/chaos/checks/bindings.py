"""No pod is bound twice by one loop, and nothing is written by a shell that does not hold the lease."""

from __future__ import annotations

from kubesched.framework.effects import Done, Effect
from kubesched.testing.chaos.checks.violation import Violation
from kubesched.testing.chaos.extender import BOUND_BY_EXTENDER, binding_in

ONCE = "no pod is bound twice"
LEADING = "nothing is written after leadership was lost"


class BindingsSeen:
    """What one loop asked for, and what it was answered."""

    def __init__(self) -> None:
        self._open: dict[int, str] = {}
        """By number of the effect, the uid of the pod to bind."""
        self.done: set[str] = set()
        """Uids of pods that the loop knows to be bound, for it was told so in an answer."""

    def restarted(self) -> None:
        self._open.clear()
        self.done.clear()

    def sent(self, effect: Effect, *, holds_lease: bool) -> None:
        if not holds_lease:
            raise Violation(LEADING, f"{effect.action}")
        binding = binding_in(effect.action)
        if binding is None:
            return
        if binding.uid in self.done:
            raise Violation(ONCE, f"{binding.uid} is bound already, and is to be bound to {binding.node_name}")
        if binding.uid in self._open.values():
            raise Violation(ONCE, f"{binding.uid} is being bound already, and is to be bound to {binding.node_name}")
        self._open[effect.id] = binding.uid

    def answered(self, effect_id: int, answer: object) -> None:
        uid = self._open.pop(effect_id, None)
        if uid is not None and (isinstance(answer, Done) or answer == BOUND_BY_EXTENDER):
            self.done.add(uid)
