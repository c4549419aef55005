"""What a plugin from outside costs per decision, on top of the in-tree ones.

    python benchmarks/outside_plugins.py [--nodes 5000] [--pods 300]

A plugin that filters and scores, in each of its forms, beside a scheduler without it. Pods with the same
signature are decided and bound one after another, by turns with every scheduler, so that
whatever else the machine does disturbs all of them alike.
Prints milliseconds of CPU time; asserts nothing.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from typing import Any

import numpy as np

from kubesched.explanation.explain import build_cluster
from kubesched.framework import OK, NodeInfo, NodeTable, PodInfo, Scope, Status, Verdicts
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugin_loading import assemble, plugins_from_classes
from kubesched.testing import make

LABEL = "tier"
CLOSED = Status.unschedulable("node(s) are of a closed tier")


class Scalar:
    """Looks at a label, and says nothing of what else it looks at: asked about every node, every time."""

    name = "Tiers"

    def filter_node(self, cycle: Any, pod: PodInfo, node: NodeInfo) -> Status:
        return CLOSED if node.labels.get(LABEL) == "closed" else OK

    def score_node(self, cycle: Any, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.labels.get(LABEL) == "good" else 0


class ScopedScalar(Scalar):
    """The same, which says that it looks at nothing but the node."""

    filter_scope = score_scope = Scope.NODE
    reads_objects = False


class Tabular:
    """The same for the whole table, asked every time."""

    name = "Tiers"

    def filter(self, cycle: Any, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        return Verdicts.reject(nodes.label(LABEL).where(lambda tier: tier == "closed"), CLOSED.message)

    def score(self, cycle: Any, pod: PodInfo, nodes: NodeTable) -> Any:
        return nodes.label(LABEL).measure(lambda tier: 100 if tier == "good" else 0)


class ScopedTabular(Tabular):
    filter_scope = score_scope = Scope.NODE
    reads_objects = False


FORMS: dict[str, tuple[type, ...]] = {
    "in-tree plugins alone": (),
    "scalar": (Scalar,),
    "scalar, scope NODE": (ScopedScalar,),
    "table": (Tabular,),
    "table, scope NODE": (ScopedTabular,),
}


def cluster_of(n_nodes: int, n_pods: int) -> Cluster:
    tiers = ("good", "fair", "closed")
    items = [make.node(f"node-{i:05}", cpu=64, labels={LABEL: tiers[i % 3]}) for i in range(n_nodes)]
    items += [make.pod(f"pod-{i:05}", cpu="100m", labels={"app": "a"}) for i in range(n_pods)]
    return build_cluster(manifests.from_dicts(items))


def scheduler_on(cluster: Cluster, plugins: tuple[type, ...], *, keeps_classes: bool) -> ProfileScheduler:
    found = assemble(default(), given=plugins_from_classes(plugins))
    schedulers = build_schedulers(cluster, found.config, ByName(), registry=found.registry, keeps_classes=keeps_classes)
    return schedulers["default-scheduler"]


def measured(n_nodes: int, n_pods: int, *, keeps_classes: bool) -> dict[str, list[float]]:
    """By form, milliseconds of every decision."""
    schedulers = {
        form: scheduler_on(cluster_of(n_nodes, n_pods), plugins, keeps_classes=keeps_classes)
        for form, plugins in FORMS.items()
    }
    pods = {form: list(scheduler.cluster.pending.values()) for form, scheduler in schedulers.items()}
    took: dict[str, list[float]] = {form: [] for form in FORMS}
    gc.collect()
    gc.freeze()  # as the live scheduler does with what it has read
    for i in range(n_pods):
        for form, scheduler in schedulers.items():
            started = time.process_time()
            decision = scheduler.decide(pods[form][i])
            took[form].append((time.process_time() - started) * 1e3)
            assert decision.node_name, decision.message
            scheduler.cluster.assume(pods[form][i], decision.node_name)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=300)
    options = parser.parse_args()
    for keeps_classes in (True, False):
        print(f"{options.nodes} nodes, {'with' if keeps_classes else 'without'} the class cache")
        took = measured(options.nodes, options.pods, keeps_classes=keeps_classes)
        plain = np.array(took["in-tree plugins alone"])
        for form, times in took.items():
            on_top = statistics.median(np.array(times) - plain)
            mean = statistics.mean(times) - float(plain.mean())
            print(f"  {form:22} median {statistics.median(times):7.3f} ms, on top {on_top:7.3f} (mean {mean:7.3f})")


if __name__ == "__main__":
    main()
