"""The weather of a run: some kinds of faults and features are left out altogether, others are frequent.

Every seed has its own. Runs that leave most out go deep where those that try everything do not get.

Next: `draws` for the steps themselves.
"""

from __future__ import annotations

from random import Random

from harness.chaos.dice import (
    CLAIM_NAMES,
    COMPOSITE_NAMES,
    GROUP_NAMES,
    MEMBERS,
    NODE_NAMES,
    PERMITS,
    POD_FEATURES,
    PRIORITIES,
    VERBS_OF_FEATURE,
    VOLUME_NAMES,
    Dice,
)
from harness.chaos.draws import COMPOSITES, DRAWS, GROUPS, PAUSES, WITH_COMPOSITES, end_of_pause
from harness.chaos.simulation import Simulation
from harness.chaos.trace import ChaosStep

_ALWAYS = ("pod", "schedule", "deliver", "land", "reply", "wait", "settle", "delete", "reap")
"""What every run does; the rest comes and goes."""

_MAKE_ROOM = ("delete", "terminate", "done", "node", "drop node", "other", "resize")
"""What crowded runs leave out, in which pods get a place by eviction or not at all."""

_FAILS_EVICTIONS = ("refuse", "lose", "timeout")
_ALL_DRAWS = {**DRAWS, **PAUSES, **GROUPS, **COMPOSITES}
_WITHOUT_PAUSES = 0.4
_LAST_WORD = 0.5
"""How often a run ends with a step that later ones would heal."""


FIRST_WITH_GROUPS = 1_000_000
"""From this seed on runs have pod groups."""
FIRST_WITH_COMPOSITES = 2_000_000
"""From this seed on they have groups of groups, too, and the scheduler is that of v1.37."""
EQUAL_PRIORITIES = 2
"""The option `next` of runs in which pods of a group have its priority and one preemption policy, as v1.37 demands."""


def options_for(seed: int) -> ChaosStep:
    random = Random(f"options {seed}")
    if seed >= FIRST_WITH_COMPOSITES:
        return ChaosStep.of(
            "options",
            seed=seed if random.random() < 0.7 else 0,
            groups=WITH_COMPOSITES,
            strict=int(random.random() < 0.5),
            next=1 if random.random() < 0.2 else EQUAL_PRIORITIES,
        )
    if seed >= FIRST_WITH_GROUPS:
        return ChaosStep.of(
            "options",
            seed=seed if random.random() < 0.7 else 0,
            groups=random.choice((1, 1, 2, 3)),
            strict=int(random.random() < 0.5),
            next=_next_version(Random(f"next version {seed}")),
        )
    return ChaosStep.of(
        "options",
        seed=seed if random.random() < 0.7 else 0,
        strict=int(random.random() < 0.5),
        permit=int(random.random() < 0.3),
        extender=random.choice((0, 0, 0, 0, 0, 1, 2)),
    )


def _next_version(random: Random) -> int:
    """By chance of its own, so that runs of today's version stay what they were."""
    return random.choice((1, EQUAL_PRIORITIES)) if random.random() < 0.35 else 0


class Weather:
    def __init__(self, seed: int, options: ChaosStep) -> None:
        self._random = random = Random(f"weather {seed}")
        features = random.sample(POD_FEATURES, random.choice((0, 1, 2, 3, 4)))
        if random.random() < 0.6:
            features.append(PRIORITIES)
        self._is_crowded = PRIORITIES in features and random.random() < 0.4
        if options.number("permit"):
            features.append(PERMITS)
        self._has_groups = bool(options.number("groups"))
        if self._has_groups:
            features.append(MEMBERS)
        self._has_composites = options.number("groups") == WITH_COMPOSITES
        self._dice = Dice(
            random,
            features,
            gives_priorities=options.number("next") != EQUAL_PRIORITIES,
            gives_parents=self._has_composites,
        )
        self._has_claims = any(name == "claim" for name, _, _ in features)
        wanted = {verb for feature, _, _ in features for verb in VERBS_OF_FEATURE.get(feature, ())}
        self._verbs = list(DRAWS)
        self._weights = [self._weight(verb, verb in wanted) for verb in self._verbs]
        if self._has_groups:
            self._verbs += GROUPS
            self._weights += [weight for weight, _ in GROUPS.values()]
        if self._has_composites:
            self._verbs += COMPOSITES
            self._weights += [weight for weight, _ in COMPOSITES.values()]
        self.n_steps = random.choice((40, 80, 160, 300))
        self._add_pauses(Random(f"time and sleep {seed}"))

    def _add_pauses(self, random: Random) -> None:
        """By chance of its own, so that runs without them stay what they were."""
        if random.random() < _WITHOUT_PAUSES:
            return
        for verb, (weight, _) in PAUSES.items():
            self._verbs.append(verb)
            self._weights.append(weight * random.choice((0.0, 0.5, 1.0, 1.0, 3.0)))

    def _weight(self, verb: str, is_wanted: bool) -> float:
        weight = DRAWS[verb][0]
        if self._is_crowded and verb in _MAKE_ROOM:
            return 0.0
        if verb in _ALWAYS:
            return weight
        if not is_wanted and self._random.random() < 0.45:
            return 0.0
        return weight * self._random.choice((0.5, 1.0, 3.0))

    def first_steps(self) -> list[ChaosStep]:
        """Some nodes, and claims and volumes if pods use them; told to the loop."""
        dice = self._dice
        n_nodes = self._random.choice((1, 1, 2) if self._is_crowded else (1, 2, 2, 3, 3, 4))
        names = NODE_NAMES[:n_nodes]
        steps = [dice.node(name, is_open=True) for name in names]
        if self._has_claims:
            steps += [*map(dice.claim, CLAIM_NAMES), *(dice.volume(name, names) for name in VOLUME_NAMES[:2])]
        if self._has_groups:
            steps += map(dice.group, GROUP_NAMES)
        if self._has_composites:
            steps += map(dice.composite, COMPOSITE_NAMES)
        return [*steps, ChaosStep("deliver")]

    def is_over_after(self, step: ChaosStep) -> bool:
        """A pod that should have been tried again and was not, is as soon as anything else changes. So some runs end
        with what makes pods wait anew: an eviction that failed, a pod turned down at the turnstile."""
        is_failed_eviction = step.verb in _FAILS_EVICTIONS and step.names[0].startswith("evict/")
        is_turned_down = step.verb == "allow" and bool(step.get("not"))
        return (is_failed_eviction or is_turned_down) and self._random.random() < _LAST_WORD

    def next_step(self, sim: Simulation) -> ChaosStep:
        while True:
            if (end := end_of_pause(self._dice, sim)) is not None:
                return end
            verb = self._random.choices(self._verbs, self._weights)[0]
            step = _ALL_DRAWS[verb][1](self._dice, sim)
            if step is not None:
                return step
