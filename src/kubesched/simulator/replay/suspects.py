"""What in the other scheduler's configuration would explain that it decided otherwise: every small change is tried.

Of each decision that differs: is the node the best one with another weight of one plugin, without it, or with one that
we do not have? `kubesched.simulator.replay.agreement` counts, and names the change that explains most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kubesched.framework.handle import Registry
from kubesched.framework.nodes import IntArray
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.filter import feasible_nodes_to_find
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.image_locality import ImageLocality
from kubesched.simulator.replay.cut_search import CutSearch

_WEIGHTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 50, 75, 100)
_MOST_TRIED = 500
"""Decisions; a configuration that is not the same shows in fewer."""


@dataclass(frozen=True, slots=True, order=True)
class ConfigChange:
    """What would be different there."""

    plugin: str
    weight: int
    """Of its scores there; 0 if it takes no part at all."""
    ours: int
    """The same here."""

    def __str__(self) -> str:
        if not self.weight:
            return f"without {self.plugin}"
        return f"with weight {self.weight} of {self.plugin}{f' ({self.ours} here)' if self.ours else ''}"


class ChangesTried:
    """`parallelism` is that of the configuration: how a search is cut short depends on it."""

    def __init__(self, cluster: Cluster, parallelism: int, registry: Registry | None) -> None:
        self._cluster = cluster
        self._parallelism = parallelism
        self._registry = registry
        self._n = 0
        self._default: Profile | None = None
        self._variants: dict[tuple[str, str], ProfileScheduler] = {}
        """By profile and plugin, schedulers that do without it, or have it besides."""

    def explaining(
        self, scheduler: ProfileScheduler, complete: Decision, node: str, images: IntArray | None
    ) -> tuple[ConfigChange, ...]:
        """With which changes the node is the best one, in the state as it is now. `images` is what ImageLocality may
        give instead."""
        self._n += 1
        row = self._cluster.table.rows.get(node)
        if self._n > _MOST_TRIED or row is None:
            return ()
        return tuple(dict.fromkeys(self._explaining(scheduler, complete, row, images)))

    def _explaining(
        self, scheduler: ProfileScheduler, complete: Decision, row: int, images: IntArray | None
    ) -> Iterator[ConfigChange]:
        weights = {step.name: step.weight for step in scheduler.profile.score}
        rejecting = self._rejecting(complete, row)
        if rejecting:
            if self._is_best(scheduler, self._variant(scheduler, rejecting), complete, row):
                yield ConfigChange(rejecting, 0, weights.get(rejecting, 0))
            return
        if complete.scored is None:
            return
        found = {
            one.plugin: (one.weight, one.weighted // one.weight) for one in complete.scored.by_plugin if one.weight
        }
        bases = [found]
        if images is not None and ImageLocality.name in found:
            bases.append(found | {ImageLocality.name: (found[ImageLocality.name][0], images)})
        for base in bases:
            ours = sum((weight * scores for weight, scores in base.values()), np.zeros_like(complete.scored.total))
            for plugin, (own, scores) in base.items():
                for weight in _WEIGHTS:
                    if weight != own and self._wins(scheduler, complete, ours + (weight - own) * scores, row):
                        yield ConfigChange(plugin, weight, own)
        for name, weight in self._not_here(scheduler).items():
            if self._is_best(scheduler, self._variant(scheduler, name), complete, row):
                yield ConfigChange(name, weight, 0)

    def _rejecting(self, complete: Decision, row: int) -> str:
        """The plugin that says that the node cannot take the pod; empty if it can."""
        if complete.filtered is None:
            return "" if complete.prefilter is None else complete.prefilter.status.plugin
        places = np.flatnonzero(complete.filtered.nodes.rows == row)
        if len(places) == 0:
            return ""
        place = int(places[0])
        return "" if complete.filtered.fits[place] else complete.filtered.status(place).plugin

    def _is_best(self, scheduler: ProfileScheduler, variant: ProfileScheduler, complete: Decision, row: int) -> bool:
        variant.next_start = scheduler.next_start
        decision = variant.decide(complete.pod, complete=True)
        return decision.scored is not None and self._wins(variant, decision, decision.scored.total, row)

    def _wins(self, scheduler: ProfileScheduler, complete: Decision, total: IntArray, row: int) -> bool:
        """Among all nodes, or among some that a search may have seen which is cut short."""
        scored = complete.scored
        if scored is None:
            return False
        theirs = total[scored.nodes.rows == row]
        if len(theirs) == 0 or theirs[0] == total.max():
            return len(theirs) > 0
        enough = feasible_nodes_to_find(scheduler.percentage, self._cluster.table.n)
        if enough >= len(total):
            return False
        search = CutSearch.of(scored.nodes.rows, total, self._cluster.rows_in_order, enough, self._parallelism)
        return search.may_choose(row)

    # -- other schedulers ----------------------------------------------------------------------------------------------

    def _not_here(self, scheduler: ProfileScheduler) -> Mapping[str, int]:
        """Plugins of the default configuration that this one lacks, with their weights."""
        if self._default is None:
            built = build_schedulers(self._cluster, default(), ByName(), registry=self._registry)
            self._default = next(iter(built.values())).profile
        here = scheduler.profile.plugins
        return {step.name: step.weight for step in self._default.score if step.name not in here}

    def _variant(self, scheduler: ProfileScheduler, plugin: str) -> ProfileScheduler:
        """Without the plugin; with it, if it is one that is not here."""
        key = scheduler.profile.scheduler_name, plugin
        if key not in self._variants:
            profile = scheduler.profile
            changed = _without(profile, plugin) if plugin in profile.plugins else self._with(profile, plugin)
            self._variants[key] = ProfileScheduler(
                self._cluster, changed, scheduler.tie_break, scheduler.percentage, scheduler.handle
            )
        return self._variants[key]

    def _with(self, profile: Profile, plugin: str) -> Profile:
        there = self._default
        assert there is not None
        return replace(
            profile,
            plugins={**profile.plugins, plugin: there.plugins[plugin]},
            pre_filter=profile.pre_filter + [one for one in there.pre_filter if one.name == plugin],
            filter=profile.filter + [one for one in there.filter if one.name == plugin],
            pre_score=profile.pre_score + [one for one in there.pre_score if one.name == plugin],
            score=profile.score + [one for one in there.score if one.name == plugin],
        )


def _without(profile: Profile, plugin: str) -> Profile:
    return replace(
        profile,
        plugins={name: one for name, one in profile.plugins.items() if name != plugin},
        pre_filter=[one for one in profile.pre_filter if one.name != plugin],
        pre_filter_extensions=[one for one in profile.pre_filter_extensions if one.name != plugin],
        filter=[one for one in profile.filter if one.name != plugin],
        pre_score=[one for one in profile.pre_score if one.name != plugin],
        score=[one for one in profile.score if one.name != plugin],
    )
