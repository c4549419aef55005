"""Whole runs on workloads, and their manifests."""

from __future__ import annotations

from typing import Any

from harness.workload_manifests import cron_job as cron_job
from harness.workload_manifests import objects as objects
from harness.workload_manifests import template as template
from harness.workload_manifests import workload as workload
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.workloads.actions import Bursts
from kubesched.scheduler.config import default
from kubesched.simulator.ledger import PodRecord
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.run import run_simulation
from kubesched.simulator.virtual.cluster import Progress, VirtualCluster
from kubesched.testing.make import Manifest


def scenario(*events: Manifest, name: str = "test") -> Manifest:
    return {
        "apiVersion": "kubesched.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": name},
        "events": list(events),
    }


def run(
    *items: Manifest,
    tie_break: str = "name",
    progress: Progress | None = None,
    bursts: Bursts | None = None,
    **options: Any,
) -> VirtualCluster:
    given = load(manifests.from_dicts(items, "test", kinds=SIMULATED_KINDS))
    chosen = SimulationOptions(tie_break=tie_break, **options)
    return run_simulation(given, default(), chosen, progress=progress, bursts=bursts)


def pods(cluster: VirtualCluster) -> list[Pod]:
    """Those that have neither finished nor gone, by name."""
    found = (pod for pod in cluster.store.of(Pod).values() if not pod.is_terminal)
    return sorted(found, key=lambda pod: pod.name)


def records(cluster: VirtualCluster) -> list[PodRecord]:
    return list(cluster.ledger.pods.values())


def notes(cluster: VirtualCluster, reason: str) -> list[str]:
    return [event.note for event in cluster.ledger.events if event.reason == reason]
