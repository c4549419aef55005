"""What a configuration says about filling nodes: evenly, as by default, or one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import structs

from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.plan.model import Floats
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.config.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from kubesched.scheduler.engine.profile import ScoreStep
from kubesched.scheduler.plugins.node_resources_fit.scoring import broken_linear

_FIT, _BALANCED, _TAINTS = "NodeResourcesFit", "NodeResourcesBalancedAllocation", "TaintToleration"


@dataclass(frozen=True, slots=True)
class RehearsedScores:
    """What a rehearsal knows of the scores: the strategy, and how much each plugin counts."""

    strategy: ScoringStrategy = field(default_factory=lambda: ScoringStrategy(LEAST_ALLOCATED))
    fit: int = 1
    balanced: int = 1
    taints: int = 3
    _curve: Floats | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        ratio = self.strategy.requested_to_capacity_ratio
        if self.strategy.type == REQUESTED_TO_CAPACITY_RATIO and ratio is not None:
            object.__setattr__(self, "_curve", broken_linear(ratio.shape).astype(np.float64))

    def of_use(self, share: Floats) -> Floats:
        """What NodeResourcesFit gives a node of which such shares of cpu and memory are used: (..., 2) -> (...)."""
        if self._curve is not None:
            by_resource = self._curve[np.floor(100 * share + 1e-9).clip(0, 100).astype(np.intp)]
            n_counted = np.maximum((by_resource > 0).sum(axis=-1), 1)
            rounded: Floats = np.floor(by_resource.sum(axis=-1) / n_counted + 0.5)
            return rounded
        used = share if self.strategy.type == MOST_ALLOCATED else 1 - share
        mean: Floats = np.floor(100 * used + 1e-9).sum(axis=-1) // 2
        return mean


def rehearsed_scores(config: KubeSchedulerConfiguration, steps: Sequence[ScoreStep]) -> RehearsedScores | None:
    """Of the profile that has these steps; None if a rehearsal does not know such scores."""
    strategies = {args.scoring_strategy for args in _fit_args(config)}
    if len(strategies) > 1:
        return None
    strategy = next(iter(strategies), ScoringStrategy(LEAST_ALLOCATED))
    counted = {spec.name: spec.weight or 1 for spec in strategy.resources}
    if set(counted) != {CPU, MEMORY} or len(set(counted.values())) > 1:
        return None
    weights = {step.name: step.weight for step in steps}
    return RehearsedScores(strategy, weights.get(_FIT, 0), weights.get(_BALANCED, 0), weights.get(_TAINTS, 0))


def filling_nodes(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration | None:
    """The same with MostAllocated in each profile; None if that changes nothing."""
    profiles = []
    for profile in config.profiles:
        entries = tuple(
            structs.replace(entry, args=structs.replace(entry.args, scoring_strategy=_filling(entry.args)))
            if isinstance(entry.args, NodeResourcesFitArgs)
            else entry
            for entry in profile.plugin_config
        )
        profiles.append(structs.replace(profile, plugin_config=entries))
    changed = structs.replace(config, profiles=tuple(profiles))
    return None if changed == config else changed


def fills_evenly(config: KubeSchedulerConfiguration) -> bool:
    """Whether the scores are those by default: nodes are filled alike."""
    return all(args.scoring_strategy.type == LEAST_ALLOCATED for args in _fit_args(config))


def _fit_args(config: KubeSchedulerConfiguration) -> list[NodeResourcesFitArgs]:
    return [e.args for p in config.profiles for e in p.plugin_config if isinstance(e.args, NodeResourcesFitArgs)]


def _filling(args: NodeResourcesFitArgs) -> ScoringStrategy:
    return ScoringStrategy(MOST_ALLOCATED, args.scoring_strategy.resources)
