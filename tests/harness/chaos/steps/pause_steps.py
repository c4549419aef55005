"""Steps in which something stands still, or jumps: the scheduler's process, the API server, the network, the clock, the
lease; and answers that never come.

A lease that is *suspended* is not surely held: nothing may be written until it is *regained*, or lost for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos.steps.loop_steps import wait
from harness.chaos.trace import ChaosStep
from kubesched.framework.effects import Withheld

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation

_LEASE_LASTS_S = 10.0
"""After a pause of so long, nobody knows who holds it."""


def pause(sim: Simulation, step: ChaosStep) -> bool:
    """The process is stopped, and goes on: `pause for=40`. With `late=1`, all it waited for has timed out by then."""
    for_s = float(step.get("for", "12"))
    sim.shell.pass_time(for_s)
    if for_s > _LEASE_LASTS_S and sim.shell.holds_lease:
        sim.shell.suspend_lease()
    if step.get("late"):
        for request in [request for request in sim.wire.requests if request.answer is not None]:
            sim.checks.outcome_unknown(request)
            sim.wire.give_up(request.name)
    return True


def clock(sim: Simulation, step: ChaosStep) -> bool:
    """The clock is set: `clock by=-30`."""
    by_s = float(step.get("by", "30"))
    sim.set_back_s += max(-by_s, 0.0)
    sim.shell.pass_time(by_s)
    return True


def freeze(sim: Simulation, step: ChaosStep) -> bool:
    """`freeze server`: nothing happens there; `freeze network`: it goes on, and the scheduler does not hear of it.

    Until a `thaw`; `for=60` is how long the scheduler waits before anything else happens.
    """
    if sim.wire.frozen:
        return False
    sim.wire.frozen = step.names[0]
    return wait(sim, step)


def thaw(sim: Simulation, _step: ChaosStep) -> bool:
    was_frozen, sim.wire.frozen = bool(sim.wire.frozen), ""
    return was_frozen


def suspend_lease(sim: Simulation, _step: ChaosStep) -> bool:
    if not sim.shell.holds_lease:
        return False
    sim.shell.suspend_lease()
    return True


def regain_lease(sim: Simulation, _step: ChaosStep) -> bool:
    if not sim.shell.is_suspended:
        return False
    sim.shell.regain_lease()
    return True


def withhold(sim: Simulation, step: ChaosStep) -> bool:
    """A request that stood in line is not sent. `withhold`: all of them. A patch is kept, and sent later."""
    names = step.names or [request.name for request in sim.wire.requests]
    did = False
    for name in names:
        did |= sim.wire.withhold(name, Withheld())
    return did


def swallow(sim: Simulation, step: ChaosStep) -> bool:
    """A bug outside: nobody will ever answer. The request may have landed, or land yet."""
    request = sim.wire.swallow(step.names[0])
    if request is None:
        return False
    sim.checks.answers.swallowed(request.effect.id)
    return True


PAUSE_VERBS = {
    "pause": pause,
    "clock": clock,
    "freeze": freeze,
    "thaw": thaw,
    "suspend-lease": suspend_lease,
    "regain-lease": regain_lease,
    "withhold": withhold,
    "swallow": swallow,
}
