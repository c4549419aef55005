"""From a configuration to schedulers that decide: one per profile, over one cluster."""

from __future__ import annotations

from kubesched.cluster import Cluster
from kubesched.config import KubeSchedulerConfiguration, resolve_profiles
from kubesched.engine.cycle import Scheduler
from kubesched.engine.handle import EngineHandle
from kubesched.engine.profile import build_profile
from kubesched.engine.select import TieBreak
from kubesched.framework.registry import Registry
from kubesched.plugins import registry as in_tree


def build_schedulers(
    cluster: Cluster,
    config: KubeSchedulerConfiguration,
    tie_break: TieBreak,
    *,
    registry: Registry | None = None,
    percentage: int | None = None,
    source: str = "",
) -> dict[str, Scheduler]:
    """Schedulers by scheduler name. `percentage` stands in where the configuration leaves the share of nodes open."""
    plugins = in_tree.REGISTRY if registry is None else registry
    schedulers = {}
    for resolved in resolve_profiles(config, in_tree.capabilities(plugins), source):
        handle = EngineHandle(cluster, tie_break)
        profile = build_profile(resolved, plugins, handle)
        handle.profile = profile
        share = profile.percentage_of_nodes_to_score
        if share is None:
            share = config.percentage_of_nodes_to_score
        if not share and percentage is not None:
            share = percentage
        schedulers[profile.scheduler_name] = Scheduler(cluster, profile, tie_break, share or 0)
    return schedulers
