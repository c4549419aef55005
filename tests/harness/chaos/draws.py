"""One step at a time, drawn at random: for each verb how often and how, with an eye on the state of the run.

Next: `dice` for the objects in them, and `weather`, which decides how often in which run.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.chaos.api_server import KINDS
from harness.chaos.dice import (
    APPS,
    CLAIM_NAMES,
    COMPOSITE_NAMES,
    GROUP_NAMES,
    NODE_NAMES,
    POD_NAMES,
    VOLUME_NAMES,
    Dice,
)
from harness.chaos.simulation import Simulation
from harness.chaos.trace import ChaosStep
from harness.chaos.turnstile import PERMIT_LABEL
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.scheduling import CompositePodGroup, PodGroup
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, is_fully_bound

Draw = Callable[[Dice, Simulation], ChaosStep | None]
"""A step, or None where there is nothing to take it on."""


# -- one draw for each verb --------------------------------------------------------------------------------------------


def _some_pod(dice: Dice, sim: Simulation, suits: Callable[[Pod], bool]) -> str | None:
    names = [pod.name for pod in sim.server.all(Pod).values() if suits(pod)]
    return dice.random.choice(names) if names else None


def _on_pod(verb: str, suits: Callable[[Pod], bool] = lambda pod: True, **settings: object) -> Draw:
    def draw(dice: Dice, sim: Simulation) -> ChaosStep | None:
        name = _some_pod(dice, sim, suits)
        return None if name is None else ChaosStep.of(verb, name, **settings)

    return draw


def _pod(dice: Dice, sim: Simulation) -> ChaosStep | None:
    taken = {pod.name for pod in sim.server.all(Pod).values()}
    free = [name for name in POD_NAMES if name not in taken]
    return dice.pod(dice.random.choice(free)) if free else None


def _relabel(dice: Dice, sim: Simulation) -> ChaosStep | None:
    """Often of a pod that waits at the turnstile, which is when it matters."""
    at_turnstile = [waiting.info.uid for waiting in sim.shell.loop.waiting_pods()]
    if at_turnstile and dice.random.random() < 0.8:
        name = _some_pod(dice, sim, lambda pod: pod.metadata.uid in at_turnstile)
    else:
        name = _some_pod(dice, sim, lambda pod: True)
    return None if name is None else ChaosStep.of("relabel", name, app=dice.random.choice(APPS))


def _resize(dice: Dice, sim: Simulation) -> ChaosStep | None:
    name = _some_pod(dice, sim, lambda pod: True)
    return None if name is None else ChaosStep.of("resize", name, cpu=dice.random.choice((1, 2, 3)))


def _other(dice: Dice, sim: Simulation) -> ChaosStep | None:
    name = _some_pod(dice, sim, lambda pod: not pod.spec.node_name)
    return None if name is None else ChaosStep.of("other", name, dice.random.choice(NODE_NAMES))


def _node(dice: Dice, _sim: Simulation) -> ChaosStep:
    return dice.node(dice.random.choice(NODE_NAMES))


def _drop(kind: str, of: type[Node] | type[PersistentVolume] | type[PersistentVolumeClaim]) -> Draw:
    def draw(dice: Dice, sim: Simulation) -> ChaosStep | None:
        names = [item.name for item in sim.server.all(of).values()]
        return ChaosStep.of("drop", kind, dice.random.choice(names)) if names else None

    return draw


def _beat(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("beat", dice.random.choice(NODE_NAMES))


def _claim(dice: Dice, _sim: Simulation) -> ChaosStep:
    return dice.claim(dice.random.choice(CLAIM_NAMES))


def _volume(dice: Dice, _sim: Simulation) -> ChaosStep:
    return dice.volume(dice.random.choice(VOLUME_NAMES))


def _unfinished_claim(verb: str) -> Draw:
    def draw(dice: Dice, sim: Simulation) -> ChaosStep | None:
        names = [claim.name for claim in sim.server.all(PersistentVolumeClaim).values() if not is_fully_bound(claim)]
        return ChaosStep.of(verb, dice.random.choice(names)) if names else None

    return draw


def _group(dice: Dice, _sim: Simulation) -> ChaosStep:
    return dice.group(dice.random.choice(GROUP_NAMES))


def _composite(dice: Dice, _sim: Simulation) -> ChaosStep:
    return dice.composite(dice.random.choice(COMPOSITE_NAMES))


def _drop_composite(dice: Dice, sim: Simulation) -> ChaosStep | None:
    names = [group.name for group in sim.server.all(CompositePodGroup).values()]
    return ChaosStep.of("drop", "composite", dice.random.choice(names)) if names else None


def _drop_group(dice: Dice, sim: Simulation) -> ChaosStep | None:
    names = [group.name for group in sim.server.all(PodGroup).values()]
    return ChaosStep.of("drop", "group", dice.random.choice(names)) if names else None


def _budget(dice: Dice, _sim: Simulation) -> ChaosStep:
    random = dice.random
    return ChaosStep.of("budget", "b0", app=random.choice(APPS), allowed=random.choice((0, 1)))


def _schedule(dice: Dice, sim: Simulation) -> ChaosStep:
    """A process that lost its lease is not idle for long."""
    return _restart(dice, sim) if not sim.shell.is_leading and dice.random.random() < 0.3 else ChaosStep("schedule")


def _deliver(dice: Dice, sim: Simulation) -> ChaosStep | None:
    """Mostly the next change of one object, sometimes all of a kind, or of all kinds."""
    random = dice.random
    if any(informer.is_down for informer in sim.shell.informers.values()) and random.random() < 0.2:
        return _relist(dice, sim)
    waiting = [(kind, key) for kind, informer in sim.shell.informers.items() for key in informer.waiting]
    if not waiting:
        return None
    if random.random() < 0.2:
        return ChaosStep("deliver")
    kind, key = random.choice(waiting)
    return ChaosStep.of("deliver", kind) if random.random() < 0.3 else ChaosStep.of("deliver", kind, key)


def _repeat(dice: Dice, sim: Simulation) -> ChaosStep | None:
    known = [(kind, key) for kind, informer in sim.shell.informers.items() for key in informer.known]
    return ChaosStep.of("repeat", *dice.random.choice(known)) if known else None


def _disconnect(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("disconnect", dice.random.choice(("pods", "pods", "nodes", "claims", "volumes")))


def _relist(dice: Dice, sim: Simulation) -> ChaosStep:
    down = [kind for kind, informer in sim.shell.informers.items() if informer.is_down]
    kind = dice.random.choice(down or ["pods", "nodes", "claims", "volumes"])
    lag = dice.random.choice((0, 0, 1, 3))
    return ChaosStep.of("relist", kind, lag=lag) if lag else ChaosStep.of("relist", kind)


def _requests(sim: Simulation, *, landed: bool | None, answered: bool) -> list[str]:
    """`landed`: those that have, or have not; `answered`: only those that somebody waits for."""
    return [
        request.name
        for request in sim.wire.requests
        if (landed is None or request.has_landed is landed) and (request.answer is not None or not answered)
    ]


def _on_request(verb: str, *, landed: bool, answered: bool = True) -> Draw:
    def draw(dice: Dice, sim: Simulation) -> ChaosStep | None:
        names = _requests(sim, landed=landed, answered=answered)
        return ChaosStep.of(verb, dice.random.choice(names)) if names else None

    return draw


def _harm(verb: str, *, landed: bool | None = None, answered: bool = True) -> Draw:
    """Evictions are few, so they are harmed first."""

    def draw(dice: Dice, sim: Simulation) -> ChaosStep | None:
        names = _requests(sim, landed=landed, answered=answered)
        if dice.random.random() < 0.5:
            names = [name for name in names if name.startswith("evict/")] or names
        return ChaosStep.of(verb, dice.random.choice(names)) if names else None

    return draw


def _refuse(dice: Dice, sim: Simulation) -> ChaosStep | None:
    step = _harm("refuse", landed=False)(dice, sim)
    return None if step is None else ChaosStep.of("refuse", *step.names, **{"with": dice.random.choice(_CODES)})


_CODES = ("409", "429", "500")


def _sleep(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("sleep", **{"for": dice.random.choice((0.4, 1, 2, 12))})


def _wait(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("wait", **{"for": dice.random.choice((0.3, 1, 1, 3, 11))})


def _wait_long(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("wait", **{"for": dice.random.choice((70, 350, 650))})


def _allow(dice: Dice, sim: Simulation) -> ChaosStep | None:
    """Or not, mostly so if the pod would pass by now."""
    waiting = sim.shell.loop.waiting_pods()
    if not waiting:
        return None
    info = dice.random.choice(waiting).info
    pod = sim.server.find(Pod, info.name)
    would_pass = pod is not None and PERMIT_LABEL not in pod.labels
    if dice.random.random() < (0.8 if would_pass else 0.3):
        return ChaosStep.of("allow", info.name, **{"not": 1})
    return ChaosStep.of("allow", info.name)


def _restart(dice: Dice, sim: Simulation) -> ChaosStep:
    random = dice.random
    groups = sim.options.number("groups")
    kinds = [
        kind for kind in KINDS if (kind != "groups" or groups) and (kind != "composites" or groups == WITH_COMPOSITES)
    ]
    return ChaosStep.of("restart", first=random.choice(kinds), lag=random.choice((0, 0, 2, 5)))


def _lose_lease(_dice: Dice, sim: Simulation) -> ChaosStep | None:
    return ChaosStep("lose-lease") if sim.shell.is_leading else None


# -- what stands still, or jumps ---------------------------------------------------------------------------------------


def _pause(dice: Dice, _sim: Simulation) -> ChaosStep:
    random = dice.random
    late = {"late": 1} if random.random() < 0.5 else {}
    return ChaosStep.of("pause", **{"for": random.choice((3, 12, 40, 300)), **late})


def _clock(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("clock", by=dice.random.choice((-30, -3, 20, 3600)))


def _freeze(dice: Dice, sim: Simulation) -> ChaosStep | None:
    random = dice.random
    if sim.wire.frozen:
        return None
    return ChaosStep.of("freeze", random.choice(("server", "network")), **{"for": random.choice((3, 12, 60, 300))})


def _suspend_lease(_dice: Dice, sim: Simulation) -> ChaosStep | None:
    return ChaosStep("suspend-lease") if sim.shell.holds_lease else None


def _withhold(dice: Dice, sim: Simulation) -> ChaosStep | None:
    """Also by a lease that is about to run out: the gate looks later than the shell."""
    if dice.random.random() < 0.3:
        return ChaosStep("withhold")
    return _harm("withhold", landed=False)(dice, sim)


def end_of_pause(dice: Dice, sim: Simulation) -> ChaosStep | None:
    """Nothing stands still for long."""
    random = dice.random
    if sim.wire.frozen and random.random() < 0.15:
        return ChaosStep("thaw")
    if sim.shell.is_suspended and random.random() < 0.25:
        return ChaosStep("regain-lease" if random.random() < 0.8 else "lose-lease")
    return None


def _only(verb: str) -> Draw:
    return lambda dice, sim: ChaosStep(verb)


DRAWS: dict[str, tuple[float, Draw]] = {
    "pod": (12, _pod),
    "schedule": (14, _schedule),
    "deliver": (12, _deliver),
    "land": (10, _on_request("land", landed=False, answered=False)),
    "reply": (8, _on_request("reply", landed=True)),
    "wait": (4, _wait),
    "settle": (3, _only("settle")),
    "delete": (4, _on_pod("delete", lambda pod: not pod.is_terminating)),
    "terminate": (1, _on_pod("terminate")),
    "reap": (4, _on_pod("reap", lambda pod: pod.is_terminating)),
    "run": (2, _on_pod("run", lambda pod: bool(pod.spec.node_name))),
    "done": (2, _on_pod("run", lambda pod: bool(pod.spec.node_name), done=1)),
    "relabel": (2.5, _relabel),
    "touch": (1.5, _on_pod("touch")),
    "ungate": (2, _on_pod("ungate", lambda pod: bool(pod.spec.scheduling_gates))),
    "resize": (1, _resize),
    "other": (1.5, _other),
    "node": (2.5, _node),
    "beat": (0.7, _beat),
    "drop node": (1, _drop("node", Node)),
    "claim": (1.5, _claim),
    "volume": (1.5, _volume),
    "control": (3, _unfinished_claim("control")),
    "give-up": (1, _unfinished_claim("give-up")),
    "drop claim": (0.5, _drop("claim", PersistentVolumeClaim)),
    "drop volume": (0.5, _drop("volume", PersistentVolume)),
    "budget": (0.5, _budget),
    "repeat": (1.5, _repeat),
    "disconnect": (1.5, _disconnect),
    "relist": (1.5, _relist),
    "timeout": (2.5, _harm("timeout")),
    "lose": (1.5, _harm("lose", landed=False, answered=False)),
    "refuse": (2, _refuse),
    "sleep": (1, _sleep),
    "wait long": (0.4, _wait_long),
    "tick": (2, _only("tick")),
    "allow": (4, _allow),
    "restart": (0.6, _restart),
    "lose-lease": (0.4, _lose_lease),
}
"""How often, before the weather has its say, and how."""

PAUSES: dict[str, tuple[float, Draw]] = {
    "pause": (1, _pause),
    "clock": (0.6, _clock),
    "freeze": (0.8, _freeze),
    "suspend-lease": (1, _suspend_lease),
    "withhold": (1.5, _withhold),
    "swallow": (0.6, _harm("swallow")),
}
"""The same for runs in which things stand still, or jump."""

GROUPS: dict[str, tuple[float, Draw]] = {"group": (4, _group), "drop group": (0.5, _drop_group)}
"""The same for runs with pod groups."""

COMPOSITES: dict[str, tuple[float, Draw]] = {"composite": (4, _composite), "drop composite": (1, _drop_composite)}
"""And for runs with groups of groups."""

WITH_COMPOSITES = 4
"""The option `groups` of such runs."""
