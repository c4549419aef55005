"""The end of a run: faults are over, everybody does their work, time passes; then all must be at rest and content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos.checks.content import check_content, check_rest
from harness.chaos.checks.violation import Violation
from harness.chaos.controllers import act_on_everything
from harness.chaos.trace import ChaosStep
from harness.chaos.turnstile import PERMIT_LABEL
from kubesched.k8s.model.core import Pod

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation

_STRICT_FOR_S = 60.0
"""Long enough for every backoff."""
_FOR_S = 400.0
"""Long enough for pods to be flushed. Counted from the last pod that came to a node or left one: a pod tried just
before that may be one that only waiting long brings back, as in kube-scheduler."""
_LONGEST_S = 3000.0
"""Long enough for every wait that ends by itself."""
_MOST_ROUNDS = 3000

_DELIVER = ChaosStep("deliver")
_SETTLE = ChaosStep("settle")
_SCHEDULE = ChaosStep("schedule")
_TICK = ChaosStep("tick")


def finish(sim: Simulation) -> None:
    _end_faults(sim)
    for_s = (_STRICT_FOR_S if sim.options.number("strict") else _FOR_S) + sim.set_back_s
    until_s = sim.shell.now_s + for_s
    longest_s = until_s + _LONGEST_S
    standing = _standing(sim)
    for _ in range(_MOST_ROUNDS):
        if _work(sim):
            before, standing = standing, _standing(sim)
            if standing != before:
                until_s = min(sim.shell.now_s + for_s, longest_s)
            continue
        deadline_s = sim.shell.loop.next_deadline_s()
        if sim.shell.loop.bindings or sim.shell.loop.outbox.n_unanswered:
            # A pod waits for a volume or an answer that never comes; then it has another try.
            until_s = min(sim.shell.now_s + for_s, longest_s)
        if deadline_s is None or deadline_s > until_s:
            check_rest(sim)
            check_content(sim)
            return
        sim.shell.pass_time(max(deadline_s - sim.shell.now_s, 0.0))
        sim.apply(_TICK)
    raise Violation("what can be scheduled is scheduled", "it never comes to rest")


def _standing(sim: Simulation) -> set[tuple[str, str]]:
    """By uid, the pods that have a node."""
    pods = sim.server.all(Pod).values()
    return {(pod.metadata.uid, pod.spec.node_name) for pod in pods if pod.spec.node_name}


def _end_faults(sim: Simulation) -> None:
    sim.apply(ChaosStep("thaw"))
    sim.apply(ChaosStep("regain-lease"))
    if not sim.shell.is_leading:
        sim.apply(ChaosStep("restart"))
    for kind, informer in sim.shell.informers.items():
        if informer.is_down:
            sim.apply(ChaosStep("relist", (kind,)))
    for request in list(sim.wire.requests):
        if request.answer is None and not request.has_landed:
            sim.apply(ChaosStep("lose", (request.name,)))
    for pod in list(sim.server.all(Pod).values()):
        if PERMIT_LABEL in pod.labels and not pod.spec.node_name:
            sim.apply(ChaosStep.of("relabel", pod.name, app=pod.labels["app"]))


def _work(sim: Simulation) -> bool:
    """One round of honest work by everybody. False if there was nothing to do."""
    did = sim.apply(_SETTLE)
    did |= act_on_everything(sim.server)
    did |= sim.apply(_DELIVER)
    for waiting in sim.shell.loop.waiting_pods():
        did |= sim.apply(ChaosStep("allow", (waiting.info.name,)))
    did |= sim.apply(_SCHEDULE)
    return did
