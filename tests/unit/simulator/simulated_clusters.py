"""Workloads as manifests with keyword arguments, and whole runs on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubesched.config import default
from kubesched.model import manifests
from kubesched.model.core import Pod
from kubesched.model.meta import KubeObject
from kubesched.simulator.ledger import PodRecord
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.run import run_simulation
from kubesched.simulator.virtual.cluster import Progress, VirtualCluster
from kubesched.testing.make import Manifest


def template(
    name: str,
    *,
    cpu: str | int = "100m",
    duration: str = "",
    result: str = "",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """A pod template of one container, labelled `app: <name>`."""
    ours = {"kubesched.dev/duration": duration, "kubesched.dev/result": result}
    notes = {key: value for key, value in ours.items() if value} | dict(annotations or {})
    return {
        "metadata": {"labels": {"app": name}, "annotations": notes},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}], **spec},
    }


def workload(kind: str, name: str, *, pod: Mapping[str, Any] | None = None, **spec: Any) -> Manifest:
    """A Deployment, StatefulSet, DaemonSet, ReplicaSet or Job. `pod` has the arguments of its template."""
    made: Manifest = {"template": template(name, **(pod or {})), **spec}
    if kind != "Job":
        made.setdefault(
            "selector", {"app": name} if kind == "ReplicationController" else {"matchLabels": {"app": name}}
        )
    versions = {"Job": "batch/v1", "ReplicationController": "v1"}
    return {
        "apiVersion": versions.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": made,
    }


def cron_job(name: str, schedule: str, *, pod: Mapping[str, Any] | None = None, **spec: Any) -> Manifest:
    job = {"spec": {"template": template(name, restartPolicy="Never", **(pod or {}))}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": job, **spec},
    }


def scenario(*events: Manifest, name: str = "test") -> Manifest:
    return {
        "apiVersion": "kubesched.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": name},
        "events": list(events),
    }


def objects(*items: Manifest) -> list[KubeObject]:
    return manifests.from_dicts(items, kinds=SIMULATED_KINDS).objects


def run(*items: Manifest, tie_break: str = "name", progress: Progress | None = None, **options: Any) -> VirtualCluster:
    given = load(manifests.from_dicts(items, "test", kinds=SIMULATED_KINDS))
    return run_simulation(given, default(), SimulationOptions(tie_break=tie_break, **options), progress=progress)


def pods(cluster: VirtualCluster) -> list[Pod]:
    """Those that have neither finished nor gone, by name."""
    found = (pod for pod in cluster.store.of(Pod).values() if not pod.is_terminal)
    return sorted(found, key=lambda pod: pod.name)


def records(cluster: VirtualCluster) -> list[PodRecord]:
    return list(cluster.ledger.pods.values())


def notes(cluster: VirtualCluster, reason: str) -> list[str]:
    return [event.note for event in cluster.ledger.events if event.reason == reason]
