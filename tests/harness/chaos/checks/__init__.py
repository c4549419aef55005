"""What must always hold, checked after every step of a run.

| invariant | where |
|---|---|
| no pod is lost | `places` |
| every effect is answered | `answers` |
| no node holds more than it can | `capacity` |
| no pod is bound twice, no volume given to two claims, nothing written after leadership was lost | `bindings` |
| what is kept up to date is what would be built from nothing | `kubesched.scheduler.cluster.self_check` |
| the class cache never changes an answer | `same_answer` |
| a gang is bound whole, or not at all | `gangs` |
| what can be scheduled is scheduled, once faults are over; and nothing is left behind | `content` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos.checks.answers import AnswersSeen
from harness.chaos.checks.bindings import BindingsSeen
from harness.chaos.checks.capacity import CapacityLedger
from harness.chaos.checks.gangs import WholeGangs
from harness.chaos.checks.places import check_places
from harness.chaos.checks.same_answer import SameAnswer
from harness.chaos.checks.violation import Violation
from harness.chaos.extender import binding_in
from harness.chaos.trace import ChaosStep
from harness.chaos.wire import WireRequest
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.cluster.self_check import self_check

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation

REBUILT = "what is kept up to date is what would be built from nothing"


class Checks:
    def __init__(self) -> None:
        self.bindings = BindingsSeen()
        self.answers = AnswersSeen()
        self._capacity = CapacityLedger()
        self._same_answer = SameAnswer()
        self._gangs = WholeGangs()

    def before(self, sim: Simulation, step: ChaosStep) -> None:
        if step.verb == "schedule" and sim.shell.is_leading:
            self._same_answer.before_cycle(sim.shell.loop)

    def after(self, sim: Simulation, step: ChaosStep) -> None:
        loop = sim.shell.loop
        told = sim.shell.told()
        if step.verb == "schedule":
            self._same_answer.after_cycle(loop)
            self._gangs.check(loop)
        known = [item for item in told if isinstance(item, Pod)]
        self.bindings.forget_shared_claims([*known, *(queued.info.pod for queued in loop.queue.contents.in_flight)])
        check_places(loop, told)
        self.answers.check(sim)
        self._capacity.check_told(loop, told, self.bindings.done)
        self._capacity.check_server(sim.server)
        findings = self_check(loop.cluster, told)
        if findings:
            raise Violation(REBUILT, "; ".join(map(str, findings)))

    # -- what the loop cannot know -------------------------------------------------------------------------------------

    def excuse(self, name: str) -> None:
        """Nobody can be blamed any more for what this node holds, or this pod (by uid) takes."""
        self._capacity.excuse(name)

    def outcome_unknown(self, request: WireRequest) -> None:
        binding = binding_in(request.effect.action)
        if binding is not None:
            self.excuse(binding.node_name)

    def restarted(self, sim: Simulation, *, lag: int) -> None:
        """A loop that begins with old news may bind to a place that is taken."""
        self.bindings.restarted()
        self.answers.restarted()
        self._capacity.restarted()
        if lag:
            for node in sim.server.all(Node).values():
                self.excuse(node.name)
            for pod in sim.server.all(Pod).values():
                self.excuse(pod.spec.node_name)
