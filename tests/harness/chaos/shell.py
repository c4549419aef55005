"""The shell around the loop: informers tell it facts, its effects go out over the wire, answers come back.

A shell that does not lead sends nothing: whatever the loop still asks for is refused. Starting (anew) means a new loop
that is told everything from nothing; what the old one sent may still land, but nobody waits for the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from harness.chaos.api_server import KINDS, ApiServerModel
from harness.chaos.watch import FlakyInformer
from harness.chaos.wire import Wire
from kubesched.framework.effects import Effect
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.self_check import LOOK_EVERY_S


class ShellObserver(Protocol):
    """Who sees what goes out, and what comes back."""

    def sent(self, effect: Effect) -> None: ...

    def answered(self, effect_id: int, answer: object) -> None: ...


class ChaosShell:
    """`now_s` is the virtual time, moved by whoever drives."""

    def __init__(
        self, server: ApiServerModel, wire: Wire, build: Callable[[], Scheduler], observer: ShellObserver
    ) -> None:
        self._server = server
        self._wire = wire
        self._build = build
        self._observer = observer
        self.now_s = 0.0
        self.is_leading = False
        self.holds_lease = False
        """What the lease says; `is_leading` is what this shell makes of it."""
        self.is_suspended = False
        """Nobody knows what it says. This shell knows as much, and waits."""
        self.awake_s = 0.0
        """How much time has passed by what the loop can have noticed."""
        self.n_facts = 0
        """How many facts the loop was told."""
        self.loop: Scheduler
        self.informers: dict[str, FlakyInformer]
        self.start(KINDS)

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self, order: Iterable[str], lag: int = 0) -> None:
        """With kinds listed in this order, from servers that lag behind."""
        self._wire.forget_answers()
        self.loop = self._build()
        self.is_leading = self.holds_lease = True
        self.is_suspended = False
        self.informers = {
            kind: FlakyInformer(self._server.logs[kind], partial(self._tell, self.loop)) for kind in order
        }
        for informer in self.informers.values():
            informer.relist(lag)
            informer.deliver_all()

    def lose_lease(self) -> None:
        self.is_leading = self.holds_lease = self.is_suspended = False

    def suspend_lease(self) -> None:
        self.is_suspended, self.holds_lease = True, False

    def regain_lease(self) -> None:
        self.is_suspended, self.holds_lease = False, True

    def pass_time(self, for_s: float) -> None:
        """At once: whoever is not asked in between cannot tell a long time from a pause."""
        self.now_s += for_s
        self.awake_s += min(max(for_s, 0.0), 2 * LOOK_EVERY_S)

    # -- the loop ------------------------------------------------------------------------------------------------------

    def schedule_one(self) -> bool:
        return self.is_leading and not self.is_suspended and self.loop.schedule_one(self.now_s)

    def tick(self) -> None:
        self.loop.tick(self.now_s)

    def send_effects(self) -> None:
        """What the loop asked for goes out, if this shell leads; when it is suspended, later."""
        if self.is_suspended:
            return
        for effect in self.loop.take_effects():
            if self.is_leading:
                self._observer.sent(effect)
                self._wire.send(effect, partial(self._answer, self.loop), by_leader=self.holds_lease)

    def told(self) -> list[KubeObject]:
        """All that the informers hold."""
        return [item for informer in self.informers.values() for item in informer.known.values()]

    def _tell(self, loop: Scheduler, item: KubeObject, is_gone: bool) -> None:
        self.n_facts += 1
        if is_gone:
            loop.remove(item, self.now_s)
        else:
            loop.put(item, self.now_s)

    def _answer(self, loop: Scheduler, effect_id: int, answer: object) -> None:
        if loop is self.loop:
            self._observer.answered(effect_id, answer)
            loop.answer(effect_id, answer, self.now_s)
