"""The live shell around the loop: facts in from informers, effects out to the API server, time from the clock.

One thread, one owner. Whatever happens (a fact, an answer, a deadline) asks for a *turn*: a slice of a few milliseconds
in which pods are scheduled one after another, then the effects go out and everybody else has their turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from kubesched.engine.loop import SchedulingLoop
from kubesched.framework.effects import Effect
from kubesched.model.meta import KubeObject

SLICE_S = 0.005
"""How long pods are scheduled before watches and writes get their turn."""

_log = logging.getLogger("kubesched.shell")


class Writes(Protocol):
    """Who carries effects out."""

    def send(self, effects: Sequence[Effect], answer: Callable[[int, object], None]) -> None: ...

    def resume(self) -> None:
        """We may write again."""
        ...


class LiveShell:
    """An informer's handler. It follows the cluster from the start, and schedules once it is told to."""

    def __init__(
        self,
        loop: SchedulingLoop,
        writes: Writes,
        clock: Callable[[], float] = time.monotonic,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_write`: whether the lease is surely ours at this moment. While it is not, no pod is tried."""
        self.loop = loop
        self._writes = writes
        self._clock = clock
        self._may_write = may_write
        self._is_leading = False
        self._is_suspended = False
        self._turn: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_leading(self) -> bool:
        return self._is_leading

    def now_s(self) -> float:
        return self._clock()

    # -- leadership ----------------------------------------------------------------------------------------------------

    def lead(self) -> None:
        """From here on pods are scheduled."""
        self._is_leading = True
        self._ask_for_turn()

    def wake(self) -> None:
        """There may be something to schedule, for a reason that no object tells."""
        if self._is_leading and self._turn is None:
            self._ask_for_turn()

    def renewed(self) -> None:
        """The lease is surely ours, still or again: what waited for that goes on."""
        self._writes.resume()
        if self._is_suspended:
            self._is_suspended = False
            _log.info("The lease is held again: scheduling goes on")
            self.wake()

    def stop(self) -> None:
        """Nothing is scheduled and nothing sent any more."""
        self._is_leading = False
        for handle in (self._turn, self._timer):
            if handle is not None:
                handle.cancel()

    # -- facts and answers ---------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        self._tell(self.loop.put, item)

    def remove(self, item: KubeObject) -> None:
        self._tell(self.loop.remove, item)

    def _tell(self, tell: Callable[[KubeObject, float], None], item: KubeObject) -> None:
        try:
            tell(item, self._clock())
        except Exception as problem:  # noqa: BLE001  one object that cannot be used must not stop the others
            fields = {"kind": type(item).__name__, "object": item.key, "err": str(problem)}
            _log.error("Could not take in object", extra={"fields": fields})
        if self._is_leading and self._turn is None:
            self._ask_for_turn()

    def _answer(self, effect_id: int, answer: object) -> None:
        self.loop.answer(effect_id, answer, self._clock())
        if self._is_leading and self._turn is None:
            self._ask_for_turn()

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _ask_for_turn(self) -> None:
        self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn = None
        if not self._is_leading or not self._holds_lease():
            return
        has_more = self._schedule_slice()
        self._send_effects()
        if has_more:
            self._ask_for_turn()
        else:
            self._wait_for_deadline()

    def _holds_lease(self) -> bool:
        """After a pause of this process, or of the API server, the lease may have run out: what is decided now could
        not be written. Either it is renewed, and `renewed` called, or it is lost, and `stop`."""
        if self._may_write():
            return True
        if not self._is_suspended:
            self._is_suspended = True
            _log.warning("The lease is not surely held any more: nothing is scheduled until it is renewed")
        return False

    def _schedule_slice(self) -> bool:
        """Whether there may be more to schedule."""
        loop, clock = self.loop, self._clock
        now_s = clock()
        loop.tick(now_s)
        until_s = now_s + SLICE_S
        while loop.schedule_one(now_s):
            now_s = clock()
            if now_s >= until_s:
                return True
        return False

    def _send_effects(self) -> None:
        """Sending may bring answers at once, and these new effects."""
        while effects := self.loop.take_effects():
            self._writes.send(effects, self._answer)

    def _wait_for_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_s = self.loop.next_deadline_s()
        if deadline_s is not None:
            delay_s = max(deadline_s - self._clock(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._deadline_came)

    def _deadline_came(self) -> None:
        self._timer = None
        if self._turn is None:
            self._take_turn()
