"""A whole run: from checked input to a cluster on which everything has happened.

Next: `virtual.cluster` for how time passes, `report` for what is told about it.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from kubesched.framework.registry import Registry
from kubesched.k8s.model.collector import collector_paused
from kubesched.k8s.workloads.bursts import Bursts
from kubesched.k8s.workloads.names import SeededNames
from kubesched.older.config import Emulation
from kubesched.older.engine.variant import variant_of
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.select import ByName, Seeded, TieBreak
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.scenario.playing import plan_scenario
from kubesched.simulator.virtual.cluster import Progress, VirtualCluster
from kubesched.simulator.waiting import bursts_for

DEFAULT_UNTIL_S = 24 * 3600.0
"""How long a workload is simulated that would never end by itself."""


def run_simulation(
    given: SimulationInput,
    config: KubeSchedulerConfiguration,
    options: SimulationOptions,
    *,
    source: str = "",
    progress: Progress | None = None,
    emulation: Emulation | None = None,
    registry: Registry | None = None,
    bursts: Bursts | None = None,
) -> VirtualCluster:
    """`source` names the configuration in messages. With an `emulation`, an older scheduler decides. `registry` has the
    plugins, if it is not the in-tree ones alone; `bursts` says how far controllers look ahead, if it is not for the
    input to say."""
    if options.until_s is None and not given.ends_by_itself:
        options = replace(options, until_s=DEFAULT_UNTIL_S)
    tie_break: TieBreak = ByName() if options.tie_break == "name" else Seeded(options.seed)
    loop = build_loop(
        without_extenders(config),
        tie_break,
        registry=registry,
        source=source,
        keeps_classes=options.keeps_classes,
        variant=variant_of(emulation),
    )
    cluster = VirtualCluster(loop, SeededNames(options.seed), options, bursts or bursts_for(given))
    plan_scenario(cluster, given.steps)
    with collector_paused():
        for item in given.objects:
            cluster.intake.apply(item)
    cluster.run(progress)
    return cluster


def without_extenders(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """A simulation talks to nobody."""
    return msgspec.structs.replace(config, extenders=())
