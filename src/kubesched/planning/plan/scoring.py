"""What a configuration says about filling nodes: evenly, as by default, or one after another."""

from __future__ import annotations

from msgspec import structs

from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.config.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    NodeResourcesFitArgs,
    ScoringStrategy,
)


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
    given = [e.args for p in config.profiles for e in p.plugin_config if isinstance(e.args, NodeResourcesFitArgs)]
    return all(args.scoring_strategy.type == LEAST_ALLOCATED for args in given)


def _filling(args: NodeResourcesFitArgs) -> ScoringStrategy:
    return ScoringStrategy(MOST_ALLOCATED, args.scoring_strategy.resources)
