"""One run: a server, a wire, a shell with its loop, and what is remembered to judge them by.

`apply` does one step and checks that everything that must hold, holds; `finish` lets the faults end and time pass, and
checks that what can be scheduled is. Both raise `Violation`.

Options (first line of a trace): `seed` for ties between nodes (0: by name), `strict=1` for a queue that never flushes
pods just because they waited long, so that a change that moved nobody shows; `permit=1` for the Turnstile plugin;
`groups=1` for gangs, `groups=2` for gangs that stay in one zone, `groups=3` for gangs that preempt as a whole,
`groups=4` for groups of groups; `next=1` for the scheduler of v1.37, `next=2` for that with groups whose pods
all have the group's priority;
`extender=1` for an extender that filters and prioritizes, `extender=2` for one that binds, too.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from harness.chaos.api_server import ApiServerModel
from harness.chaos.checks import Checks
from harness.chaos.checks.answers import LIMIT
from harness.chaos.checks.violation import Violation
from harness.chaos.extender import extender_settings
from harness.chaos.finale import finish
from harness.chaos.manifest import STORAGE_CLASSES
from harness.chaos.shell import ChaosShell
from harness.chaos.steps import STOPPED_BY, VERBS
from harness.chaos.trace import ChaosStep, TraceError
from harness.chaos.turnstile import Turnstile
from harness.chaos.wire import Wire
from kubesched.framework.effects import Effect
from kubesched.framework.handle import Registry
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import KubeSchedulerConfiguration, load
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.feature_gates import NEXT_VERSION
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.score import ByName, Seeded
from kubesched.scheduler.plugins.registry import REGISTRY

_BINDS = 2
_GANGS = ("GenericWorkload", "GangScheduling")
_GATES = (
    (),
    _GANGS,
    (*_GANGS, "TopologyAwareWorkloadScheduling"),
    (*_GANGS, "WorkloadAwarePreemption"),
    (*_GANGS, "TopologyAwareWorkloadScheduling", "CompositePodGroup"),
)
"""By the option `groups`."""
NEVER_S = 1e9
"""Longer than any run."""


class Simulation:
    def __init__(self, options: ChaosStep) -> None:
        self.options = options
        self.server = ApiServerModel()
        for storage_class in STORAGE_CLASSES:
            self.server.create(storage_class)
        self.wire = Wire(self.server)
        self.checks = Checks()
        self._digest = sha256()
        self.relabelled_unbound = False
        """Whether a pod's labels changed before the server knew of its node."""
        self.set_back_s = 0.0
        """By how much the clock was set back, in all."""
        self.shell = ChaosShell(self.server, self.wire, self._build, self)

    def apply(self, step: ChaosStep) -> bool:
        """Whether the step did anything."""
        verb = VERBS.get(step.verb)
        if verb is None:
            raise TraceError(f"no such step: {step}")
        self._digest.update(str(step).encode())
        if step.verb in STOPPED_BY[self.wire.frozen]:
            return False
        self.checks.before(self, step)
        try:
            did = verb(self, step)
        except Violation:
            raise
        except Exception as bug:
            raise Violation("no exception", f"{type(bug).__name__}: {bug}") from bug
        self.shell.send_effects()
        if did:
            self.checks.after(self, step)
        return did

    def finish(self) -> None:
        finish(self)

    @property
    def digest(self) -> str:
        """Of all steps and all effects: two runs alike have the same."""
        return self._digest.hexdigest()

    def sent(self, effect: Effect) -> None:
        self._digest.update(repr(effect).encode())
        self.checks.answers.sent(effect, self.shell.awake_s)
        self.checks.bindings.sent(effect, holds_lease=self.shell.holds_lease)

    def answered(self, effect_id: int, answer: object) -> None:
        self.checks.bindings.answered(effect_id, answer)

    @property
    def configuration(self) -> KubeSchedulerConfiguration:
        options = self.options
        config = _configuration(bool(options.number("permit")), options.number("extender"))
        config = with_gates(config, dict.fromkeys(_GATES[options.number("groups")], True))
        return replace(config, emulate=NEXT_VERSION) if options.number("next") else config

    @property
    def registry(self) -> Registry:
        return REGISTRY.merged_with({Turnstile.name: Turnstile})

    def _build(self) -> Scheduler:
        seed = self.options.number("seed")
        return build_loop(
            self.configuration,
            Seeded(seed) if seed else ByName(),
            registry=self.registry,
            max_unschedulable_s=NEVER_S if self.options.number("strict") else 300.0,
            answer_limit=LIMIT,
        )


@cache
def _configuration(with_permit: bool, extender: int) -> KubeSchedulerConfiguration:
    profile: dict[str, Any] = {"schedulerName": "default-scheduler"}
    if with_permit:
        profile["plugins"] = {"permit": {"enabled": [{"name": Turnstile.name}]}}
    data: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    if extender:
        data["extenders"] = [extender_settings(binds=extender == _BINDS)]
    return load(data, "chaos")
