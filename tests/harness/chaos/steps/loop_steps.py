"""Steps of the scheduler itself: cycles, time, permits, leadership, restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos.api_server import KINDS
from harness.chaos.trace import ChaosStep
from harness.chaos.turnstile import Turnstile

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation


def schedule(sim: Simulation, _step: ChaosStep) -> bool:
    return sim.shell.schedule_one()


def sleep(sim: Simulation, step: ChaosStep) -> bool:
    """Time passes unnoticed: the loop is told at the next tick."""
    sim.shell.pass_time(float(step.get("for", "1")))
    return True


def tick(sim: Simulation, _step: ChaosStep) -> bool:
    sim.shell.tick()
    return True


def wait(sim: Simulation, step: ChaosStep) -> bool:
    """Time passes, with a tick at every deadline, as a shell does it."""
    until_s = sim.shell.now_s + float(step.get("for", "1"))
    for _ in range(1000):
        deadline_s = sim.shell.loop.next_deadline_s()
        if deadline_s is None or deadline_s > until_s:
            break
        sim.shell.pass_time(max(deadline_s - sim.shell.now_s, 0.0))
        sim.shell.tick()
        sim.shell.send_effects()
    sim.shell.pass_time(until_s - sim.shell.now_s)
    return True


def allow(sim: Simulation, step: ChaosStep) -> bool:
    """`allow p0`, `allow p0 not=1`: whoever decides at the turnstile has decided."""
    for waiting in sim.shell.loop.waiting_pods():
        if waiting.info.name == step.names[0]:
            if step.get("not"):
                waiting.reject(Turnstile.name, "sent away")
            else:
                waiting.allow(Turnstile.name)
            sim.shell.tick()
            return True
    return False


def restart(sim: Simulation, step: ChaosStep) -> bool:
    """A new process, which leads: `restart first=pods lag=3`."""
    first = step.get("first", next(iter(KINDS)))
    order = [first, *(kind for kind in KINDS if kind != first)]
    for request in sim.wire.requests:
        sim.checks.outcome_unknown(request)
    sim.checks.restarted(sim, lag=step.number("lag"))
    sim.shell.start(order, step.number("lag"))
    return True


def lose_lease(sim: Simulation, _step: ChaosStep) -> bool:
    if not sim.shell.is_leading:
        return False
    sim.shell.lose_lease()
    return True


LOOP_VERBS = {
    "schedule": schedule,
    "sleep": sleep,
    "tick": tick,
    "wait": wait,
    "allow": allow,
    "restart": restart,
    "lose-lease": lose_lease,
}
