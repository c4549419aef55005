"""An extender as a plain function, and a world whose effects include calls to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kubesched.framework.effects import CallExtender, Effect
from kubesched.framework.handle import Registry
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import load
from kubesched.scheduler.engine.extender import refused
from kubesched.scheduler.engine.score import ByName
from kubesched.testing.make import Manifest
from kubesched.testing.world import World

Json = dict[str, Any]
Serve = Callable[[Json], Any]
"""What was asked -> what is answered: JSON; an int stands for an HTTP status, bytes for a body that is no JSON."""

URL = "http://extender.example/scheduler/"


@dataclass
class FakeExtender:
    """Answers by verb. Remembers what it was asked."""

    filter: Serve | None = None
    prioritize: Serve | None = None
    preempt: Serve | None = None
    bind: Serve | None = None
    options: Json = field(default_factory=dict)
    """Further fields of its configuration."""
    asked: list[tuple[str, Json]] = field(default_factory=list)

    def __call__(self, call: CallExtender) -> object:
        said = json.loads(call.body)
        self.asked.append((call.verb, said))
        serve = getattr(self, call.verb)
        answer = serve(said)
        if isinstance(answer, int):
            return refused(call, answer)
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def configuration(self, number: int) -> Json:
        verbs = [verb for verb in ("filter", "prioritize", "preempt", "bind") if getattr(self, verb) is not None]
        named = {f"{verb}Verb": verb for verb in verbs}
        return {"urlPrefix": f"{URL}{number}", "weight": 1, "nodeCacheCapable": True, **named, **self.options}

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]


class ExtendedWorld(World):
    """Answers extender calls, too: at once, or while `is_slow` only when told to (`catch_up`)."""

    def __init__(self, *extenders: FakeExtender, config: Json | None = None, registry: Registry | None = None) -> None:
        configuration: Json = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [extender.configuration(number) for number, extender in enumerate(extenders)],
            **(config or {}),
        }
        super().__init__(build_loop(load(configuration, "test"), ByName(), registry=registry))
        self.extenders = extenders
        self.is_slow = False
        self.waiting: list[Effect] = []

    def put(self, *items: Manifest) -> None:
        self.add(*manifests.from_dicts(items).objects)

    def settle(self) -> None:
        effects = self.loop.take_effects()
        while effects:
            for effect in effects:
                self._answer(effect)
            effects = self.loop.take_effects()

    def _answer(self, effect: Effect) -> None:
        if not isinstance(effect.action, CallExtender):
            answer = self.carry_out(effect.action)
        elif self.is_slow:
            self.waiting.append(effect)
            return
        else:
            answer = self.extenders[effect.action.extender](effect.action)
        if answer is not None:
            self.loop.answer(effect.id, answer, self.now_s)

    def catch_up(self, n: int | None = None) -> None:
        """The slow extender answers the calls that wait, or the first n of them."""
        due, self.waiting = self.waiting[:n], self.waiting[len(self.waiting) if n is None else n :]
        for effect in due:
            assert isinstance(effect.action, CallExtender)
            answer = self.extenders[effect.action.extender](effect.action)
            self.loop.answer(effect.id, answer, self.now_s)
        self.settle()

    def notes(self, reason: str = "FailedScheduling") -> list[str]:
        return [event.note for event in self.events if event.reason == reason]


def accept(*names: str) -> Serve:
    """A filter that lets these pass, of those it is asked about."""
    return lambda said: {"NodeNames": [name for name in said["NodeNames"] if name in names]}


def accept_all(said: Json) -> Json:
    return {"NodeNames": said["NodeNames"], "Nodes": said["Nodes"]}
