"""The weather of a run: some kinds of faults and features are left out altogether, others are frequent.

Every seed has its own. Runs that leave most out go deep where those that try everything do not get.

Next: `draws` for the steps themselves.
"""

from __future__ import annotations

from random import Random

from kubesched.testing.chaos.draws import (
    DRAWS,
    NODE_NAMES,
    PERMITS,
    POD_FEATURES,
    POORLY_HINTED,
    VERBS_OF_FEATURE,
    Dice,
)
from kubesched.testing.chaos.simulation import Simulation
from kubesched.testing.chaos.trace import ChaosStep

_ALWAYS = ("pod", "schedule", "deliver", "land", "reply", "wait", "settle")
"""What every run does; the rest comes and goes."""


def options_for(seed: int) -> ChaosStep:
    random = Random(f"options {seed}")
    return ChaosStep.of(
        "options",
        seed=seed if random.random() < 0.7 else 0,
        strict=int(random.random() < 0.5),
        permit=int(random.random() < 0.3),
        extender=random.choice((0, 0, 0, 0, 0, 1, 2)),
    )


class Weather:
    def __init__(self, seed: int, options: ChaosStep) -> None:
        self._random = random = Random(f"weather {seed}")
        features = [feature for feature in POD_FEATURES if random.random() < 0.35]
        if options.number("strict"):
            features = [feature for feature in features if feature[0] not in POORLY_HINTED]
        if options.number("permit"):
            features.append(PERMITS)
        self._dice = Dice(random, features)
        wanted = {verb for feature, _ in features for verb in VERBS_OF_FEATURE.get(feature, ())}
        self._verbs = list(DRAWS)
        self._weights = [self._weight(verb, verb in wanted) for verb in self._verbs]
        self.n_steps = random.choice((50, 120, 240))

    def _weight(self, verb: str, is_wanted: bool) -> float:
        weight = DRAWS[verb][0]
        if verb in _ALWAYS:
            return weight
        if not is_wanted and self._random.random() < 0.45:
            return 0.0
        return weight * self._random.choice((0.5, 1.0, 3.0))

    def first_steps(self) -> list[ChaosStep]:
        """Some nodes, told to the loop."""
        names = NODE_NAMES[: self._random.randint(1, 3)]
        return [*(self._dice.node(name) for name in names), ChaosStep("deliver")]

    def next_step(self, sim: Simulation) -> ChaosStep:
        while True:
            verb = self._random.choices(self._verbs, self._weights)[0]
            step = DRAWS[verb][1](self._dice, sim)
            if step is not None:
                return step
