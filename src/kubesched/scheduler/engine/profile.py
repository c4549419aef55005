"""A profile: the plugins that decide for one scheduler name, by extension point, in their order.

Filter and score plugins are brought into one form, whole tables: a plugin that answers node by node is adapted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kubesched.framework.caching import (
    FollowsNodes,
    FollowsObjects,
    FollowsPods,
    LooksAtClaims,
    Scope,
    filter_scope_for,
    reads_objects,
    score_scope_for,
    states_scope,
)
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import (
    Bind,
    EmitsEffects,
    Filter,
    FilterNode,
    NormalizeScore,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFilterExtensions,
    PreScore,
    QueueSort,
    Reserve,
    Score,
    ScoreNode,
)
from kubesched.framework.groups import (
    CompletesGroups,
    CountedPlacementScore,
    PlacementGenerate,
    PlacementScore,
    PodGroupPostFilter,
)
from kubesched.framework.handle import Handle, Registry
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import Scores
from kubesched.framework.status import Status
from kubesched.framework.verdicts import Verdicts
from kubesched.scheduler.config import ResolvedProfile
from kubesched.scheduler.engine.observations import Observers

if TYPE_CHECKING:
    from kubesched.scheduler.engine.metrics.timing import ExtensionPointWatch


@dataclass(frozen=True, slots=True)
class FilterStep:
    """`node_by_node` says that every node asked about costs a call: only live ones should be."""

    name: str
    filter: Callable[[CycleState, PodInfo, NodeTable], Verdicts]
    node_by_node: bool
    filter_node: Callable[[CycleState, PodInfo, NodeInfo], Status] | None
    scope_for: Callable[[PodInfo], Scope | None]
    """What the answer depends on, for this pod; None if the plugin does not say."""


@dataclass(frozen=True, slots=True)
class ScoreStep:
    name: str
    weight: int
    score: Callable[[CycleState, PodInfo, NodeTable], Scores]
    normalize: Callable[[CycleState, PodInfo, NodeTable, Scores], Scores] | None
    score_node: Callable[[CycleState, PodInfo, NodeInfo], int] | None
    scope_for: Callable[[PodInfo], Scope | None]


def filter_step(plugin: Plugin) -> FilterStep:
    scope_for = filter_scope_for(plugin)
    ask = plugin.filter_node if isinstance(plugin, FilterNode) else None
    if isinstance(plugin, Filter):
        return FilterStep(plugin.name, plugin.filter, False, ask, scope_for)
    assert ask is not None

    def filter_each(cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        return Verdicts.from_statuses([ask(cycle, pod, node) for node in nodes.each()])

    return FilterStep(plugin.name, filter_each, True, ask, scope_for)


def score_step(plugin: Plugin, weight: int) -> ScoreStep:
    normalize = plugin.normalize_score if isinstance(plugin, NormalizeScore) else None
    scope_for = score_scope_for(plugin)
    ask = plugin.score_node if isinstance(plugin, ScoreNode) else None
    if isinstance(plugin, Score):
        return ScoreStep(plugin.name, weight, plugin.score, normalize, ask, scope_for)
    assert ask is not None

    def score_each(cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return np.array([ask(cycle, pod, node) for node in nodes.each()], np.int64)

    return ScoreStep(plugin.name, weight, score_each, normalize, ask, scope_for)


@dataclass(frozen=True, slots=True)
class Profile:
    """Plugins by extension point. A plugin that takes part in several extension points is one object."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    plugins: Mapping[str, Plugin]
    pre_enqueue: list[PreEnqueue]
    queue_sort: list[QueueSort]
    pre_filter: list[PreFilter]
    pre_filter_extensions: list[PreFilterExtensions]
    filter: list[FilterStep]
    post_filter: list[PostFilter]
    pre_score: list[PreScore]
    score: list[ScoreStep]
    reserve: list[Reserve]
    permit: list[Permit]
    pre_bind: list[PreBind]
    bind: list[Bind]
    post_bind: list[PostBind]
    emitters: list[EmitsEffects]
    followers: Mapping[str, FollowsPods]
    """By name, the plugins whose prepared state can follow pods."""
    placement_generate: list[PlacementGenerate] = field(default_factory=list)
    placement_score: list[tuple[PlacementScore, int]] = field(default_factory=list)
    """With their weights."""
    pod_group_post_filter: list[PodGroupPostFilter] = field(default_factory=list)
    node_followers: list[FollowsNodes] | None = None
    """Those of them that tell whether they mind nodes that come and go; None if not all do."""
    object_followers: list[FollowsObjects] | None = None
    """The plugins that look at objects other than nodes and pods when a node is sought; None if not all of them tell
    which."""
    claim_plugins: Mapping[str, LooksAtClaims] = field(default_factory=dict)
    """By name, the plugins that look at claims of pods."""
    watch: ExtensionPointWatch | None = None
    """Measures how long extension points take."""
    unmeasured: Profile | None = None
    """The same profile, if in this one every call of a plugin is measured: too much for trials by the thousand."""
    observers: Observers = field(default_factory=Observers)
    """Who is told what the plugins do."""
    completes_groups: Sequence[CompletesGroups] | None = field(init=False)
    """The Permit plugins, if for all of them it is the number of its pods that decides about a group."""
    counted_scores: Sequence[tuple[CountedPlacementScore, int]] | None = field(init=False)
    """Those that score placements, if none of them needs more than the number of pods."""

    def __post_init__(self) -> None:
        """What is asked for every group is found out once: it takes longer than the group's pods."""
        completing = [plugin for plugin in self.permit if isinstance(plugin, CompletesGroups)]
        counting = [
            (plugin, weight) for plugin, weight in self.placement_score if isinstance(plugin, CountedPlacementScore)
        ]
        whole = len(completing) == len(self.permit)
        object.__setattr__(self, "completes_groups", completing if whole else None)
        whole = len(counting) == len(self.placement_score)
        object.__setattr__(self, "counted_scores", counting if whole else None)


def build_profile(
    resolved: ResolvedProfile,
    registry: Registry,
    handle: Handle,
    watch: ExtensionPointWatch | None = None,
    observers: Observers | None = None,
) -> Profile:
    """Makes one object of every enabled plugin, and lines them up."""
    plugins = {name: registry[name](resolved.plugin_args.get(name), handle) for name in resolved.plugin_names}

    def plugins_at(point: str) -> Any:
        return [plugins[plugin.name] for plugin in resolved.points[point]]

    followers = {name: plugin for name, plugin in plugins.items() if isinstance(plugin, FollowsPods)}
    node_followers = [plugin for plugin in followers.values() if isinstance(plugin, FollowsNodes)]
    return Profile(
        scheduler_name=resolved.scheduler_name,
        percentage_of_nodes_to_score=resolved.percentage_of_nodes_to_score,
        plugins=plugins,
        pre_enqueue=plugins_at("preEnqueue"),
        queue_sort=plugins_at("queueSort"),
        pre_filter=plugins_at("preFilter"),
        pre_filter_extensions=[p for p in plugins_at("preFilter") if isinstance(p, PreFilterExtensions)],
        filter=[filter_step(plugin) for plugin in plugins_at("filter")],
        post_filter=plugins_at("postFilter"),
        pre_score=plugins_at("preScore"),
        score=[score_step(plugins[scored.name], scored.weight) for scored in resolved.points["score"]],
        reserve=plugins_at("reserve"),
        permit=plugins_at("permit"),
        pre_bind=plugins_at("preBind"),
        bind=plugins_at("bind"),
        post_bind=plugins_at("postBind"),
        followers=followers,
        node_followers=node_followers if len(node_followers) == len(followers) else None,
        placement_generate=plugins_at("placementGenerate"),
        placement_score=list(
            zip(plugins_at("placementScore"), (one.weight for one in resolved.points["placementScore"]), strict=True)
        ),
        pod_group_post_filter=[p for p in plugins_at("postFilter") if isinstance(p, PodGroupPostFilter)],
        emitters=[plugin for plugin in plugins.values() if isinstance(plugin, EmitsEffects)],
        object_followers=_object_followers(
            plugins[plugin.name]
            for point in _NODE_SEEKING
            for plugin in resolved.points[point]
            if not _is_asked_every_time(plugins[plugin.name])
        ),
        claim_plugins={name: plugin for name, plugin in plugins.items() if isinstance(plugin, LooksAtClaims)},
        watch=watch,
        observers=Observers() if observers is None else observers,
    )


_NODE_SEEKING = ("preFilter", "filter", "preScore", "score")


def _is_asked_every_time(plugin: Plugin) -> bool:
    """It prepares nothing, and never says what its answer depends on: nothing that it said is kept."""
    prepares = isinstance(plugin, PreFilter | PreScore)
    return not prepares and not states_scope(plugin)


def _object_followers(plugins: Iterable[Plugin]) -> list[FollowsObjects] | None:
    found: dict[str, FollowsObjects] = {}
    for plugin in plugins:
        if not reads_objects(plugin):
            continue
        if not isinstance(plugin, FollowsObjects):
            return None
        found[plugin.name] = plugin
    return list(found.values())
