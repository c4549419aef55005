"""One step at a time, drawn at random: for each verb how often and how, with an eye on the state of the run.

Next: `weather`, which decides how often in which run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from kubesched.model.core import Node, Pod
from kubesched.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.testing.chaos.api_server import KINDS
from kubesched.testing.chaos.simulation import Simulation
from kubesched.testing.chaos.trace import ChaosStep

POD_NAMES = tuple(f"p{i}" for i in range(8))
NODE_NAMES = tuple(f"n{i}" for i in range(4))
CLAIM_NAMES = ("c0", "c1", "c2")
VOLUME_NAMES = ("v0", "v1", "v2")
APPS = ("web", "db")

PodFeature = tuple[str, tuple[object, ...]]
"""A setting of pods, and its values."""

POD_FEATURES: tuple[PodFeature, ...] = (
    ("priority", (1, 5, 10)),
    ("priority", (1, 5, 10)),
    ("gate", (1,)),
    ("claim", CLAIM_NAMES),
    ("port", (80,)),
    ("apart", APPS),
    ("near", APPS),
    ("spread", APPS),
    ("zone", ("a", "b")),
    ("tolerates", (1,)),
    ("never", (1,)),
    ("scheduler", ("other",)),
)

POORLY_HINTED = ("apart",)
"""Features left out of strict runs, for there are changes of which kube-scheduler's hints say that they do not help,
and they do: a new node, for a pod that others keep off theirs."""

VERBS_OF_FEATURE = {
    "claim": ("claim", "volume", "control", "refuse", "timeout"),
    "gate": ("ungate",),
    "permit": ("allow", "relabel"),
    "priority": ("lose", "refuse", "reap"),
}
"""What makes most of a feature."""

PERMITS: PodFeature = ("permit", (3, 30, "deny"))
"""Of runs with a turnstile."""


class Dice:
    """Chance, and which features pods of this run may have."""

    def __init__(self, random: Random, features: Sequence[PodFeature]) -> None:
        self.random = random
        self._features = features

    def node(self, name: str) -> ChaosStep:
        random = self.random
        settings = {"cpu": random.choice((2, 3, 4, 6)), "zone": random.choice("ab")}
        if random.random() < 0.1:
            settings["tainted"] = 1
        if random.random() < 0.1:
            settings["cordoned"] = 1
        if random.random() < 0.15:
            settings["pods"] = random.choice((1, 2))
        return ChaosStep.of("node", name, **settings)

    def pod(self, name: str) -> ChaosStep:
        random = self.random
        settings: dict[str, object] = {"cpu": random.choice((1, 1, 2, 3)), "app": random.choice(APPS)}
        for feature in self._features:
            if random.random() < 0.5:
                key, values = feature
                settings[key] = random.choice(values)
        return ChaosStep.of("pod", name, **settings)


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
    class_name = dice.random.choice(("made", "local"))
    return ChaosStep.of("claim", dice.random.choice(CLAIM_NAMES), **{"class": class_name})


def _volume(dice: Dice, _sim: Simulation) -> ChaosStep:
    random = dice.random
    return ChaosStep.of("volume", random.choice(VOLUME_NAMES), node=random.choice(NODE_NAMES))


def _on_claim(verb: str) -> Draw:
    def draw(dice: Dice, sim: Simulation) -> ChaosStep | None:
        names = [claim.name for claim in sim.server.all(PersistentVolumeClaim).values()]
        return ChaosStep.of(verb, dice.random.choice(names)) if names else None

    return draw


def _budget(dice: Dice, _sim: Simulation) -> ChaosStep:
    random = dice.random
    return ChaosStep.of("budget", "b0", app=random.choice(APPS), allowed=random.choice((0, 1)))


def _deliver(dice: Dice, sim: Simulation) -> ChaosStep | None:
    """Mostly the next change of one object, sometimes all of a kind, or of all kinds."""
    random = dice.random
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


def _on_request(verb: str, *, landed: bool, answered: bool = True) -> Draw:
    """`answered`: only requests that somebody waits for."""

    def draw(dice: Dice, sim: Simulation) -> ChaosStep | None:
        names = [
            request.name
            for request in sim.wire.requests
            if request.has_landed is landed and (request.answer is not None or not answered)
        ]
        return ChaosStep.of(verb, dice.random.choice(names)) if names else None

    return draw


def _timeout(dice: Dice, sim: Simulation) -> ChaosStep | None:
    names = [request.name for request in sim.wire.requests if request.answer is not None]
    return ChaosStep.of("timeout", dice.random.choice(names)) if names else None


def _refuse(dice: Dice, sim: Simulation) -> ChaosStep | None:
    step = _on_request("refuse", landed=False)(dice, sim)
    return None if step is None else ChaosStep.of("refuse", *step.names, **{"with": dice.random.choice(_CODES)})


_CODES = ("409", "429", "500")


def _sleep(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("sleep", **{"for": dice.random.choice((0.4, 1, 2, 12))})


def _wait(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("wait", **{"for": dice.random.choice((0.3, 1, 1, 3, 11))})


def _wait_long(dice: Dice, _sim: Simulation) -> ChaosStep:
    return ChaosStep.of("wait", **{"for": dice.random.choice((70, 350, 650))})


def _allow(dice: Dice, sim: Simulation) -> ChaosStep | None:
    names = [waiting.info.name for waiting in sim.shell.loop.waiting_pods()]
    if not names:
        return None
    name = dice.random.choice(names)
    return ChaosStep.of("allow", name) if dice.random.random() < 0.7 else ChaosStep.of("allow", name, **{"not": 1})


def _restart(dice: Dice, _sim: Simulation) -> ChaosStep:
    random = dice.random
    return ChaosStep.of("restart", first=random.choice(tuple(KINDS)), lag=random.choice((0, 0, 2, 5)))


def _lose_lease(_dice: Dice, sim: Simulation) -> ChaosStep | None:
    return ChaosStep("lose-lease") if sim.shell.holds_lease else None


def _only(verb: str) -> Draw:
    return lambda dice, sim: ChaosStep(verb)


DRAWS: dict[str, tuple[float, Draw]] = {
    "pod": (8, _pod),
    "schedule": (14, _only("schedule")),
    "deliver": (12, _deliver),
    "land": (10, _on_request("land", landed=False, answered=False)),
    "reply": (8, _on_request("reply", landed=True)),
    "wait": (4, _wait),
    "settle": (2, _only("settle")),
    "delete": (3, _on_pod("delete")),
    "terminate": (1, _on_pod("terminate")),
    "reap": (3, _on_pod("reap", lambda pod: pod.is_terminating)),
    "run": (2, _on_pod("run", lambda pod: bool(pod.spec.node_name))),
    "done": (2, _on_pod("run", lambda pod: bool(pod.spec.node_name), done=1)),
    "relabel": (1.5, _relabel),
    "touch": (1.5, _on_pod("touch")),
    "ungate": (2, _on_pod("ungate", lambda pod: bool(pod.spec.scheduling_gates))),
    "resize": (1, _resize),
    "other": (1.5, _other),
    "node": (2.5, _node),
    "beat": (0.7, _beat),
    "drop node": (1, _drop("node", Node)),
    "claim": (2.5, _claim),
    "volume": (2.5, _volume),
    "control": (3, _on_claim("control")),
    "give-up": (1, _on_claim("give-up")),
    "drop claim": (0.5, _drop("claim", PersistentVolumeClaim)),
    "drop volume": (0.5, _drop("volume", PersistentVolume)),
    "budget": (0.5, _budget),
    "repeat": (1.5, _repeat),
    "disconnect": (1.5, _disconnect),
    "relist": (1.5, _relist),
    "timeout": (2.5, _timeout),
    "lose": (1.5, _on_request("lose", landed=False, answered=False)),
    "refuse": (2, _refuse),
    "sleep": (1, _sleep),
    "wait long": (0.4, _wait_long),
    "tick": (2, _only("tick")),
    "allow": (4, _allow),
    "restart": (0.6, _restart),
    "lose-lease": (0.4, _lose_lease),
}
"""How often, before the weather has its say, and how."""
