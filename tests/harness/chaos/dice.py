"""Pods, nodes, claims and volumes drawn at random, few of each and under few names, so that they meet.

Next: `draws`, which draws steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from harness.chaos.trace import ChaosStep

POD_NAMES = tuple(f"p{i}" for i in range(10))
NODE_NAMES = tuple(f"n{i}" for i in range(4))
CLAIM_NAMES = tuple(f"c{i}" for i in range(5))
VOLUME_NAMES = ("v0", "v1", "v2")
APPS = ("web", "db")
GROUP_NAMES = ("g0", "g1")
COMPOSITE_NAMES = ("c0", "c1")

PodFeature = tuple[str, float, tuple[object, ...]]
"""A setting of pods, how many of the pods have it in a run that knows it, and its values."""

POD_FEATURES: tuple[PodFeature, ...] = (
    ("gate", 0.3, (1,)),
    ("claim", 0.6, CLAIM_NAMES),
    ("port", 0.4, (80,)),
    ("apart", 0.4, APPS),
    ("near", 0.3, APPS),
    ("spread", 0.4, APPS),
    ("zone", 0.4, ("a", "b")),
    ("tolerates", 0.4, (1,)),
    ("never", 0.3, (1,)),
    ("scheduler", 0.15, ("other",)),
)

VERBS_OF_FEATURE = {
    "claim": ("claim", "volume", "control", "refuse", "timeout"),
    "gate": ("ungate",),
    "permit": ("allow", "relabel"),
    "priority": ("lose", "refuse", "timeout", "reap"),
}
"""What makes most of a feature."""

PRIORITIES: PodFeature = ("priority", 0.6, (1, 5, 10))
MEMBERS: PodFeature = ("group", 0.7, GROUP_NAMES)
PERMITS: PodFeature = ("permit", 0.5, (3, 30, 30, "deny"))
"""Features of most runs, of runs with pod groups, and of runs with a turnstile."""


class Dice:
    """Chance, and which features pods of this run may have."""

    def __init__(
        self,
        random: Random,
        features: Sequence[PodFeature],
        *,
        gives_priorities: bool = True,
        gives_parents: bool = False,
    ) -> None:
        """Without `gives_priorities`, groups and their pods have none."""
        self.random = random
        self._gives_parents = gives_parents
        self._features = features
        self._gives_priorities = gives_priorities

    def node(self, name: str, *, is_open: bool = False) -> ChaosStep:
        """One that `is_open` takes any pod."""
        random = self.random
        settings = {"cpu": random.choice((2, 4, 6)), "zone": random.choice("ab")}
        if random.random() < 0.1 and not is_open:
            settings[random.choice(("tainted", "cordoned"))] = 1
        if random.random() < 0.1:
            settings["pods"] = random.choice((1, 2))
        return ChaosStep.of("node", name, **settings)

    def pod(self, name: str) -> ChaosStep:
        random = self.random
        settings: dict[str, object] = {"cpu": random.choice((1, 1, 2, 2, 3)), "app": random.choice(APPS)}
        for key, share, values in self._features:
            if random.random() < share:
                settings[key] = random.choice(values)
        if "group" in settings and not self._gives_priorities:
            for key in ("priority", "never"):
                settings.pop(key, None)
        return ChaosStep.of("pod", name, **settings)

    def group(self, name: str) -> ChaosStep:
        random = self.random
        settings: dict[str, object] = {"gang": random.choice((0, 2, 2, 3)), "priority": random.choice((0, 1, 5, 10))}
        for key in ("whole", "near"):
            if random.random() < 0.3:
                settings[key] = 1
        if not self._gives_priorities:
            del settings["priority"]
        if self._gives_parents and random.random() < 0.8:
            settings["parent"] = random.choice(COMPOSITE_NAMES)
        return ChaosStep.of("group", name, **settings)

    def composite(self, name: str) -> ChaosStep:
        """Now and then two are each other's parents, or one its own."""
        random = self.random
        settings: dict[str, object] = {"gang": random.choice((0, 1, 1, 2)), "priority": random.choice((0, 1, 5, 10))}
        for key in ("whole", "near"):
            if random.random() < 0.3:
                settings[key] = 1
        if not self._gives_priorities:
            del settings["priority"]
        if random.random() < 0.3:
            settings["parent"] = random.choice(COMPOSITE_NAMES)
        return ChaosStep.of("composite", name, **settings)

    def claim(self, name: str) -> ChaosStep:
        return ChaosStep.of("claim", name, **{"class": self.random.choice(("made", "local"))})

    def volume(self, name: str, node_names: Sequence[str] = NODE_NAMES) -> ChaosStep:
        return ChaosStep.of("volume", name, node=self.random.choice(node_names))
