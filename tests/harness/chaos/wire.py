"""Requests between the scheduler and the API server: sent, carried out, answered, each when it is let.

A request is *sent*; it may *land* (the server carries it out) and it may be *answered*, in this order or not: a client
that gives up is answered by a timeout, and what it gave up on may have landed before, may land later, or never.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.chaos.api_server import ApiServerModel
from harness.chaos.extender import pod_name_in
from kubesched.framework.effects import (
    BindPod,
    CallExtender,
    Effect,
    EvictPod,
    Failed,
    FindOut,
    PatchPodStatus,
    Withheld,
)
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim

Answer = Callable[[int, object], None]
"""(number of the effect, answer) -> None"""

TIMED_OUT = Failed("net/http: request canceled (Client.Timeout exceeded while awaiting headers)")
REFUSALS = {
    "409": Failed("Operation cannot be fulfilled: the object has been modified"),
    "429": Failed("too many requests, please try again later"),
    "500": Failed("Internal error occurred: etcdserver: leader changed"),
}


@dataclass(slots=True)
class WireRequest:
    """`answer` is where the answer goes; None once it was given, or if nobody waits for it."""

    name: str
    effect: Effect
    answer: Answer | None
    by_leader: bool
    life: int = 0
    """Of which scheduler: each counts its effects anew."""
    result: object = None

    @property
    def has_landed(self) -> bool:
        return self.result is not None


class Wire:
    def __init__(self, server: ApiServerModel) -> None:
        self._server = server
        self.requests: list[WireRequest] = []
        self.landed: list[WireRequest] = []
        """All that the server carried out, in order."""
        self._life = 0
        self.frozen = ""
        """What stands still: `server`, `network`, or nothing."""

    def send(self, effect: Effect, answer: Answer, *, by_leader: bool) -> None:
        name = name_of(effect.action)
        if name:
            needs_answer = not isinstance(effect.action, PatchPodStatus)
            self.requests.append(WireRequest(name, effect, answer if needs_answer else None, by_leader, self._life))

    def forget_answers(self) -> None:
        """Nobody is there any more to be answered."""
        self._life += 1
        for request in self.requests:
            request.answer = None
        self._clear()

    def land(self, name: str) -> WireRequest | None:
        """The oldest request of this name that has not landed is carried out."""
        request = next((r for r in self.requests if r.name == name and not r.has_landed), None)
        if request is not None:
            if isinstance(request.effect.action, FindOut):
                self._leave_off(request.effect.action.number, request.life)
            request.result = self._server.carry_out(request.effect.action)
            self.landed.append(request)
            self._clear()
        return request

    def reply(self, name: str) -> bool:
        """The oldest that has landed is answered."""
        request = next((r for r in self.requests if r.name == name and r.has_landed), None)
        return request is not None and self._answer(request, request.result)

    def give_up(self, name: str) -> WireRequest | None:
        """The client does not wait any longer."""
        request = next((r for r in self.requests if r.name == name and r.answer is not None), None)
        if request is not None:
            self._answer(request, TIMED_OUT)
        return request

    def _leave_off(self, number: int, life: int) -> None:
        """Nobody waits for the answer to this effect any more; it may land yet."""
        for request in self.requests:
            if request.effect.id == number and request.life == life:
                request.answer = None

    def withhold(self, name: str, answer: Withheld) -> bool:
        """A write that has not landed is not sent at all, and who waits for it learns so. Reads always are."""
        request = next((r for r in self.requests if r.name == name and not r.has_landed and r.answer), None)
        if request is not None and isinstance(request.effect.action, FindOut):
            return False
        if request is not None:
            request.result = answer
            self._answer(request, answer)
        return request is not None

    def swallow(self, name: str) -> WireRequest | None:
        """Whoever waits for an answer will never get one."""
        request = next((r for r in self.requests if r.name == name and r.answer is not None), None)
        if request is not None:
            request.answer = None
            self._clear()
        return request

    def lose(self, name: str) -> WireRequest | None:
        """The oldest that has not landed never will; who waits for it learns that it failed."""
        return self.refuse(name, TIMED_OUT)

    def refuse(self, name: str, answer: Failed) -> WireRequest | None:
        """The server does not carry it out, and says so."""
        request = next((r for r in self.requests if r.name == name and not r.has_landed), None)
        if request is not None:
            request.result = answer
            self._answer(request, answer)
        return request

    def _answer(self, request: WireRequest, answer: object) -> bool:
        give, request.answer = request.answer, None
        self._clear()
        if give is not None:
            give(request.effect.id, answer)
        return give is not None

    def _clear(self) -> None:
        """What has landed and needs no answer (any more) is over."""
        self.requests = [r for r in self.requests if r.answer is not None or not r.has_landed]


def name_of(action: object) -> str:
    """`bind/p0`, `evict/p1`: how steps speak of a request. Empty for what is no request."""
    if isinstance(action, FindOut):
        return f"find-{name_of(action.action)}"
    if isinstance(action, BindPod | EvictPod | PatchPodStatus):
        verb = {BindPod: "bind", EvictPod: "evict", PatchPodStatus: "patch"}[type(action)]
        return f"{verb}/{action.pod.rpartition('/')[2]}"
    if isinstance(action, BindVolumeToClaim):
        return f"volume/{action.volume_name}"
    if isinstance(action, SelectNodeForClaim):
        return f"claim/{action.claim_name}"
    if isinstance(action, CallExtender):
        return f"{action.verb}-call/{pod_name_in(action)}"
    return ""
