"""The live shell around the loop: facts in from informers, effects out to the API server, time from the clock.

One thread, one owner. Whatever happens (a fact, an answer, a deadline) asks for a *turn*: a slice of a few milliseconds
in which pods are scheduled one after another, then the effects go out and everybody else has their turn.

Nothing that is raised ends the loop: it is logged, counted (`failures`), and costs the fact or the pod it was about.

`TaintedSlices` stands between informers and shell when the gate DRADeviceTaintRules is on, since the loop knows no
rules (DeviceTaintRule): whoever listens behind it sees slices of devices change when a rule comes, changes or goes, and
nothing of the rules themselves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

import msgspec

from kubesched.framework.effects import Effect
from kubesched.k8s.client.list_watch import InformerHandler
from kubesched.k8s.client.list_watch.exchange import SetAside
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import bare_stand_in_for, described, read_partly, stand_in_for
from kubesched.k8s.model.resource import DeviceTaintRule, ResourceSlice, with_rule_taints
from kubesched.scheduler.engine.loop import SLICE_S

TAINT_RULES = Resource(DeviceTaintRule, "resource.k8s.io", "v1beta2", "devicetaintrules", False, ("v1alpha3",))


class TaintedSlices:
    """An informer's handler in front of another one."""

    def __init__(self, listener: InformerHandler) -> None:
        self._listener = listener
        self._rules: dict[str, DeviceTaintRule] = {}
        self._published: dict[str, ResourceSlice] = {}
        self._told: dict[str, ResourceSlice] = {}
        """What the listener knows of each slice."""

    def put(self, item: KubeObject) -> None:
        if isinstance(item, DeviceTaintRule):
            self._rules[item.name] = item
            self._tell_changes()
        elif isinstance(item, ResourceSlice):
            self._published[item.name] = item
            self._tell(item)
        else:
            self._listener.put(item)

    def remove(self, item: KubeObject) -> None:
        if isinstance(item, DeviceTaintRule):
            self._rules.pop(item.name, None)
            self._tell_changes()
        elif isinstance(item, ResourceSlice):
            self._published.pop(item.name, None)
            self._listener.remove(self._told.pop(item.name, item))
        else:
            self._listener.remove(item)

    def _tell(self, slice_: ResourceSlice) -> None:
        tainted = with_rule_taints(slice_, self._in_order())
        self._told[slice_.name] = tainted
        self._listener.put(tainted)

    def _tell_changes(self) -> None:
        rules = self._in_order()
        for name, slice_ in self._published.items():
            tainted = with_rule_taints(slice_, rules)
            if tainted != self._told.get(name):
                self._told[name] = tainted
                self._listener.put(tainted)

    def _in_order(self) -> list[DeviceTaintRule]:
        return [self._rules[name] for name in sorted(self._rules)]


_log = logging.getLogger("kubesched.shell")


class Writes(Protocol):
    """Who carries effects out."""

    def send(self, effects: Sequence[Effect], answer: Callable[[int, object], None]) -> None: ...

    def resume(self) -> None:
        """We may write again."""
        ...


_PASSES_TO_READ = 3
"""Of the event loop, from bytes that have arrived to the fact that they tell."""


class Loop(Protocol):
    """The scheduling loop, or whoever keeps its journal."""

    def put(self, item: KubeObject, now_s: float) -> None: ...

    def remove(self, item: KubeObject, now_s: float) -> None: ...

    def answer(self, effect_id: int, answer: object, now_s: float) -> None: ...

    def tick(self, now_s: float) -> None: ...

    def schedule_one(self, now_s: float) -> bool: ...

    def should_send_first(self) -> bool: ...

    @property
    def is_giving_way(self) -> bool: ...

    def take_effects(self) -> list[Effect]: ...

    def next_deadline_s(self) -> float | None: ...


LoopT = TypeVar("LoopT", bound=Loop)


class LiveShell(Generic[LoopT]):
    """An informer's handler. It follows the cluster from the start, and schedules once it is told to."""

    def __init__(
        self,
        loop: LoopT,
        writes: Writes,
        clock: Callable[[], float] = time.monotonic,
        may_write: Callable[[], bool] = lambda: True,
        set_aside: SetAside | None = None,
    ) -> None:
        """`may_write`: whether the lease is surely ours at this moment. While it is not, no pod is tried."""
        self.loop = loop
        self.failures: Counter[str] = Counter()
        """How often something was raised that should not be, by what was being done."""
        self._aside = SetAside() if set_aside is None else set_aside
        self._writes = writes
        self._clock = clock
        self._may_write = may_write
        self._is_leading = False
        self._is_suspended = False
        self._turn: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = 0.0

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
            _log.info("The lease is held again: scheduling resumes")
            self.wake()

    def stop(self) -> None:
        """Nothing is scheduled and nothing sent any more."""
        self._is_leading = False
        for handle in (self._turn, self._timer):
            if handle is not None:
                handle.cancel()

    # -- facts and answers ---------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        try:
            self.loop.put(item, self._clock())
        except Exception as problem:  # noqa: BLE001  one object that cannot be used must not stop the others
            self._put_aside(item, problem)
        self.wake()

    def remove(self, item: KubeObject) -> None:
        try:
            self.loop.remove(item, self._clock())
        except Exception:  # noqa: BLE001  as above
            self._failed("fact", kind=type(item).__name__, object=item.key)
        self.wake()

    def _put_aside(self, item: KubeObject, problem: Exception) -> None:
        """What can be used of the object counts, and if that is nothing, what it was before is gone."""
        for stand_in, problems in _stand_ins(item):
            try:
                if stand_in is None:
                    self.loop.remove(item, self._clock())
                else:
                    self.loop.put(stand_in, self._clock())
            except Exception:  # noqa: BLE001  then by the next one
                continue
            if not problems:  # nothing is wrong with it: something is wrong here
                self._failed("fact", kind=type(item).__name__, object=item.key)
            self._aside.note(type(item).__name__, item.key, problems or [str(problem)], described(stand_in))
            return
        self._failed("fact", kind=type(item).__name__, object=item.key)

    def _answer(self, effect_id: int, answer: object) -> None:
        try:
            self.loop.answer(effect_id, answer, self._clock())
        except Exception:  # noqa: BLE001  it has cost the pod that it answered
            self._failed("answer", effect=str(effect_id))
        self.wake()

    def _failed(self, doing: str, **about: str) -> None:
        """To be called where it was caught."""
        self.failures[doing] += 1
        _log.exception(f"Something failed that should not; going on without this {doing}", extra={"fields": about})

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _ask_for_turn(self, passes: int = 0) -> None:
        """After so many passes of the event loop."""
        next_step = partial(self._ask_for_turn, passes - 1) if passes else self._take_turn
        self._turn = asyncio.get_running_loop().call_soon(next_step)

    def _take_turn(self) -> None:
        self._turn = None
        if not self._is_leading or not self._holds_lease():
            return
        has_more = self._schedule_slice()
        self._send_effects()
        if has_more:
            self._ask_for_turn(_PASSES_TO_READ if self.loop.is_giving_way else 0)
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
        try:
            loop.tick(now_s)
        except Exception:  # noqa: BLE001  it has cost the binding that it was about
            self._failed("tick")
        until_s = now_s + SLICE_S
        has_more = True
        while has_more and now_s < until_s:
            try:
                has_more = loop.schedule_one(now_s)
            except Exception:  # noqa: BLE001  it has cost this attempt
                self._failed("attempt")
            if loop.should_send_first():
                break
            now_s = clock()
        return has_more

    def _send_effects(self) -> None:
        """Sending may bring answers at once, and these new effects."""
        while effects := self.loop.take_effects():
            try:
                self._writes.send(effects, self._answer)
            except Exception:  # noqa: BLE001  those that were not sent are found by who waits for their answers
                self._failed("send")

    def _wait_for_deadline(self) -> None:
        """A timer that comes too early finds nothing to do, and sets another one: cheaper than one for every turn."""
        deadline_s = self.loop.next_deadline_s()
        if self._timer is not None:
            if deadline_s is None or self._timer_at_s <= deadline_s:
                return
            self._timer.cancel()
            self._timer = None
        if deadline_s is not None:
            now_s = self._clock()
            self._timer_at_s = max(deadline_s, now_s + 0.001)
            delay_s = self._timer_at_s - now_s
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._deadline_came)

    def _deadline_came(self) -> None:
        self._timer = None
        if self._turn is None:
            self._take_turn()


def _stand_ins(item: KubeObject) -> Iterator[tuple[KubeObject | None, list[str]]]:
    """What an object that cannot be used may count as, the best first; and what is wrong with it."""
    reading = read_partly(msgspec.to_builtins(item), type(item))
    if reading.item is not None and reading.problems:
        yield stand_in_for(reading.item, reading.problems), reading.problems
    if (bare := bare_stand_in_for(item)) is not None:
        yield bare, reading.problems
    yield None, reading.problems
