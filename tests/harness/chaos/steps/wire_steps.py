"""Steps of the network: what becomes of facts on their way to the loop, and of requests on their way to the server.

`deliver`, `land` and `reply` are its honest work; all others are faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos.trace import ChaosStep
from harness.chaos.wire import REFUSALS, WireRequest
from kubesched.framework.effects import Failed, FindOut

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation


def deliver(sim: Simulation, step: ChaosStep) -> bool:
    """`deliver`: everything; `deliver pods`: of one kind; `deliver pods default/p0`: the next change of one object."""
    if not step.names:
        return _deliver_all(sim)
    informer = sim.shell.informers[step.names[0]]
    return informer.deliver(step.names[1]) if len(step.names) > 1 else informer.deliver_all()


def repeat(sim: Simulation, step: ChaosStep) -> bool:
    kind, key = step.names
    return sim.shell.informers[kind].repeat(key)


def disconnect(sim: Simulation, step: ChaosStep) -> bool:
    informer = sim.shell.informers[step.names[0]]
    if informer.is_down:
        return False
    informer.disconnect()
    return True


def relist(sim: Simulation, step: ChaosStep) -> bool:
    """After `410 Gone`, or just so."""
    sim.shell.informers[step.names[0]].relist(step.number("lag"))
    return True


def land(sim: Simulation, step: ChaosStep) -> bool:
    return _land(sim, step.names[0])


def _land(sim: Simulation, name: str) -> bool:
    request = sim.wire.land(name)
    if request is not None and isinstance(request.effect.action, FindOut) and isinstance(request.result, Failed):
        sim.checks.outcome_unknown(request)  # what was asked about may land yet
    return request is not None


def reply(sim: Simulation, step: ChaosStep) -> bool:
    return sim.wire.reply(step.names[0])


def give_up(sim: Simulation, step: ChaosStep) -> bool:
    """The client has waited long enough; the request may have landed, or land yet."""
    request = sim.wire.give_up(step.names[0])
    if request is None:
        return False
    sim.checks.outcome_unknown(request)
    return True


def lose(sim: Simulation, step: ChaosStep) -> bool:
    return _failed(sim, sim.wire.lose(step.names[0]))


def refuse(sim: Simulation, step: ChaosStep) -> bool:
    return _failed(sim, sim.wire.refuse(step.names[0], REFUSALS[step.get("with", "500")]))


def _failed(sim: Simulation, request: WireRequest | None) -> bool:
    """A write did not come about; but a question that fails leaves open what became of the write."""
    if request is not None and isinstance(request.effect.action, FindOut):
        sim.checks.outcome_unknown(request)
    return request is not None


def settle(sim: Simulation, step: ChaosStep) -> bool:
    """A spell of good weather: all requests land and are answered, all facts are told, until nothing is under way.

    An extender's answer makes the loop decide, which is judged by what it was told until then: so before more is told.
    """
    did = False
    for _ in range(100):
        busy = _deliver_all(sim)
        for request in list(sim.wire.requests):
            busy |= sim.wire.reply(request.name) if request.has_landed else _land(sim, request.name)
            sim.shell.send_effects()
        if busy and sim.options.number("extender"):
            sim.checks.after(sim, step)
        if not busy and not sim.wire.requests:
            break
        did = did or busy
    return did


def _deliver_all(sim: Simulation) -> bool:
    """Of every kind, and whether there was anything."""
    did = False
    for informer in sim.shell.informers.values():
        did |= informer.deliver_all()
    return did


WIRE_VERBS = {
    "deliver": deliver,
    "repeat": repeat,
    "disconnect": disconnect,
    "relist": relist,
    "land": land,
    "reply": reply,
    "timeout": give_up,
    "lose": lose,
    "refuse": refuse,
    "settle": settle,
}
