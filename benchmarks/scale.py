"""How a simulation grows: time and memory of `kubesched.simulate` up to 100,000 nodes and 1,000,000 pods.

    python benchmarks/scale.py                                      # or: make bench-scale
    python benchmarks/scale.py --sizes 1000x10000 5000x50000

Each size runs in a process of its own: nodes in three zones, and Deployments of 1,000 replicas that ask for cpu and
memory in ten sizes, from manifests as dictionaries to the summary of the report. Loading is told apart. `time` is that
of the processor: what else runs on the machine does not count.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

import kubesched
from kubesched.simulator.bench.run import peak_mb

SIZES = ("1000x10000", "10000x100000", "100000x1000000")
REPLICAS = 1_000


@dataclass(frozen=True)
class Measured:
    nodes: int
    pods: int
    placed: int
    load_s: float
    simulate_s: float
    peak_mb: float

    @property
    def us_per_pod(self) -> float:
        return self.simulate_s / self.pods * 1e6


def nodes(n: int) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{i}",
                "labels": {"kubernetes.io/hostname": f"node-{i}", "topology.kubernetes.io/zone": f"zone-{i % 3}"},
            },
            "status": {"allocatable": {"pods": "110", "cpu": "16", "memory": "64Gi"}},
        }
        for i in range(n)
    ]


def deployments(n_pods: int) -> list[dict[str, Any]]:
    replicas = min(REPLICAS, n_pods)
    return [_deployment(f"web-{i}", replicas, f"{100 + i % 10 * 50}m") for i in range(n_pods // replicas)]


def _deployment(name: str, replicas: int, cpu: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "app", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def measure(n_nodes: int, n_pods: int) -> Measured:
    began_s = time.process_time()
    cluster = kubesched.load(nodes(n_nodes), deployments(n_pods))
    loaded_s = time.process_time()
    summary = kubesched.simulate(cluster).summary
    took_s = time.process_time() - loaded_s
    placed = summary["states"].get("Running", 0)
    return Measured(summary["nodes"], summary["pods"], placed, loaded_s - began_s, took_s, peak_mb())


def measured_apart(size: str) -> Measured:
    command = [sys.executable, __file__, "--one", size]
    return msgspec.json.decode(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout, type=Measured)


def growth(before: Measured, after: Measured) -> str:
    return (
        f"{after.nodes / before.nodes:g} times the nodes and {after.pods / before.pods:g} times the pods take "
        f"{after.simulate_s / before.simulate_s:.1f} times the time and {after.peak_mb / before.peak_mb:.1f} times "
        "the memory."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), metavar="NODESxPODS")
    parser.add_argument("--one", metavar="NODESxPODS", help="measure this size here, and print it as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        n_nodes, _, n_pods = chosen.one.partition("x")
        sys.stdout.buffer.write(msgspec.json.encode(measure(int(n_nodes), int(n_pods))))
        return
    print(f"{'NODES':>9} {'PODS':>10} {'PLACED':>10} {'LOADING':>9} {'TIME':>8} {'PER POD':>9} {'MEMORY':>9}")
    results: list[Measured] = []
    for size in chosen.sizes:
        found = measured_apart(size)
        results.append(found)
        print(
            f"{found.nodes:>9,} {found.pods:>10,} {found.placed:>10,} {found.load_s:>7.1f} s "
            f"{found.simulate_s:>6.1f} s {found.us_per_pod:>6.0f} us {found.peak_mb:>6,.0f} MB",
            flush=True,
        )
    for before, after in pairwise(results):
        print(growth(before, after))


if __name__ == "__main__":
    main()
