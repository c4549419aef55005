"""kubesched: the Kubernetes scheduler in Python.

    import kubesched

    cluster = kubesched.load("dump.json", "app/")            # files, directories, YAML texts, dictionaries
    print(kubesched.explain(cluster, "shop/web-1"))          # why a pod goes where it goes, or nowhere
    print(kubesched.explain(cluster, "shop/deployment/web")) # a workload, a namespace or a node, as kubectl names them
    print(kubesched.simulate(cluster, until="1h30m"))        # what becomes of workloads, in virtual time
    kubesched.simulate(cluster, sequence=["shop/web-1"])     # pods one after another
    print(kubesched.sweep(cluster, seeds=20, jobs=4))        # how much of it is chance
    print(kubesched.outage(cluster, every="zone"))           # whether it survives the loss of any zone
    print(kubesched.replay("day.jsonl.gz"))                  # whether we decide as a recorded scheduler did
    print(kubesched.optimal(cluster))                        # how near to optimal it is as it stands
    print(kubesched.plan(cluster, "catalogue.yaml"))         # which nodes to buy, at the least cost
    kubesched.world(cluster).trial()                         # what if nodes or pods came or went

Whatever cannot be read or done is a `KubeschedError`. Plugin authors import `kubesched.framework`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.explanation.explain import Explanation, NotExplainableError
    from kubesched.explanation.group_trees import GroupTreeExplanation
    from kubesched.explanation.overview import NodeOverview, PodsOverview
    from kubesched.explanation.placement import NodeAnswer, UnknownNodeError
    from kubesched.explanation.pod_groups import PodGroupExplanation
    from kubesched.explanation.targets import TargetError
    from kubesched.k8s.errors import KubeschedError, KubeschedWarning
    from kubesched.k8s.loaded_cluster import InputError, LoadedCluster, NoSuchObjectError
    from kubesched.k8s.model.manifests import ManifestError
    from kubesched.planning.autoscaling.autoscaler import autoscaler
    from kubesched.planning.capacity import capacity
    from kubesched.planning.capacity_report import CapacityReport
    from kubesched.planning.catalogue import Catalogue, CatalogueError
    from kubesched.planning.catalogue_files import catalogue
    from kubesched.planning.check import check
    from kubesched.planning.check_report import CheckReport
    from kubesched.planning.compare import compare
    from kubesched.planning.compare_metrics import CompareError
    from kubesched.planning.compare_report import ComparisonReport
    from kubesched.planning.consolidate.consolidation import consolidate
    from kubesched.planning.consolidate.report import ConsolidationReport
    from kubesched.planning.optimal import optimal
    from kubesched.planning.optimal_report import OptimalityReport
    from kubesched.planning.outage import outage
    from kubesched.planning.outage_report import OutageReport
    from kubesched.planning.plan.library import plan
    from kubesched.planning.plan.model import PlanError
    from kubesched.planning.plan.report import PlanReport
    from kubesched.planning.upgrade import upgrade
    from kubesched.planning.upgrade_report import UpgradeReport
    from kubesched.scheduler.config import ConfigError
    from kubesched.simulator.asking import explain
    from kubesched.simulator.column_table import ColumnTable
    from kubesched.simulator.library import load, simulate, world
    from kubesched.simulator.options import OptionError
    from kubesched.simulator.replay.agreement import Agreement
    from kubesched.simulator.replay.closed import ClosedReplay
    from kubesched.simulator.replay.library import replay
    from kubesched.simulator.report import SimulationReport
    from kubesched.simulator.sequence import PlacedSequence
    from kubesched.simulator.settling import PendingPod, Settled, TrialError
    from kubesched.simulator.sweep import SweepReport, sweep
    from kubesched.simulator.trial import LoadedWorld, WorldTrial

    __version__: str

__all__ = [
    "Agreement",
    "CapacityReport",
    "Catalogue",
    "CatalogueError",
    "CheckReport",
    "ClosedReplay",
    "ColumnTable",
    "CompareError",
    "ComparisonReport",
    "ConfigError",
    "ConsolidationReport",
    "Explanation",
    "GroupTreeExplanation",
    "InputError",
    "KubeschedError",
    "KubeschedWarning",
    "LoadedCluster",
    "LoadedWorld",
    "ManifestError",
    "NoSuchObjectError",
    "NodeAnswer",
    "NodeOverview",
    "NotExplainableError",
    "OptimalityReport",
    "OptionError",
    "OutageReport",
    "PendingPod",
    "PlacedSequence",
    "PlanError",
    "PlanReport",
    "PodGroupExplanation",
    "PodsOverview",
    "Settled",
    "SimulationReport",
    "SweepReport",
    "TargetError",
    "TrialError",
    "UnknownNodeError",
    "UpgradeReport",
    "WorldTrial",
    "__version__",
    "autoscaler",
    "capacity",
    "catalogue",
    "check",
    "compare",
    "consolidate",
    "explain",
    "load",
    "optimal",
    "outage",
    "plan",
    "replay",
    "simulate",
    "sweep",
    "upgrade",
    "world",
]

_HOMES = {
    "CompareError": "kubesched.planning.compare_metrics",
    "ComparisonReport": "kubesched.planning.compare_report",
    "compare": "kubesched.planning.compare",
    "CheckReport": "kubesched.planning.check_report",
    "check": "kubesched.planning.check",
    "Agreement": "kubesched.simulator.replay.agreement",
    "ClosedReplay": "kubesched.simulator.replay.closed",
    "replay": "kubesched.simulator.replay.library",
    "autoscaler": "kubesched.planning.autoscaling.autoscaler",
    "CapacityReport": "kubesched.planning.capacity_report",
    "capacity": "kubesched.planning.capacity",
    "Catalogue": "kubesched.planning.catalogue",
    "CatalogueError": "kubesched.planning.catalogue",
    "catalogue": "kubesched.planning.catalogue_files",
    "LoadedCluster": "kubesched.k8s.loaded_cluster",
    "ColumnTable": "kubesched.simulator.column_table",
    "ConfigError": "kubesched.scheduler.config",
    "UpgradeReport": "kubesched.planning.upgrade_report",
    "upgrade": "kubesched.planning.upgrade",
    "ConsolidationReport": "kubesched.planning.consolidate.report",
    "consolidate": "kubesched.planning.consolidate.consolidation",
    "Explanation": "kubesched.explanation.explain",
    "InputError": "kubesched.k8s.loaded_cluster",
    "KubeschedError": "kubesched.k8s.errors",
    "KubeschedWarning": "kubesched.k8s.errors",
    "NodeAnswer": "kubesched.explanation.placement",
    "NodeOverview": "kubesched.explanation.overview",
    "GroupTreeExplanation": "kubesched.explanation.group_trees",
    "PodGroupExplanation": "kubesched.explanation.pod_groups",
    "PodsOverview": "kubesched.explanation.overview",
    "TargetError": "kubesched.explanation.targets",
    "UnknownNodeError": "kubesched.explanation.placement",
    "ManifestError": "kubesched.k8s.model.manifests",
    "NoSuchObjectError": "kubesched.k8s.loaded_cluster",
    "NotExplainableError": "kubesched.explanation.explain",
    "OptimalityReport": "kubesched.planning.optimal_report",
    "optimal": "kubesched.planning.optimal",
    "OptionError": "kubesched.simulator.options",
    "OutageReport": "kubesched.planning.outage_report",
    "PendingPod": "kubesched.simulator.settling",
    "PlacedSequence": "kubesched.simulator.sequence",
    "PlanError": "kubesched.planning.plan.model",
    "PlanReport": "kubesched.planning.plan.report",
    "plan": "kubesched.planning.plan.library",
    "Settled": "kubesched.simulator.settling",
    "SimulationReport": "kubesched.simulator.report",
    "SweepReport": "kubesched.simulator.sweep",
    "TrialError": "kubesched.simulator.settling",
    "WorldTrial": "kubesched.simulator.trial",
    "LoadedWorld": "kubesched.simulator.trial",
    "explain": "kubesched.simulator.asking",
    "load": "kubesched.simulator.library",
    "outage": "kubesched.planning.outage",
    "simulate": "kubesched.simulator.library",
    "sweep": "kubesched.simulator.sweep",
    "world": "kubesched.simulator.library",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, when it is asked for: `kubesched --help` need not load NumPy."""
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _load_from_source() -> None:
    """From here on, our modules are loaded from their source, even where compiled ones lie beside it."""
    import sys
    from importlib.abc import MetaPathFinder
    from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader

    class SourceFinder(MetaPathFinder):
        def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
            if not fullname.startswith(f"{__name__}."):
                return None
            finders = (FileFinder(directory, (SourceFileLoader, SOURCE_SUFFIXES)) for directory in path or ())
            return next((found for finder in finders if (found := finder.find_spec(fullname, target))), None)

    sys.meta_path.insert(0, SourceFinder())


if os.environ.get("KUBESCHED_PURE") == "1":
    _load_from_source()
