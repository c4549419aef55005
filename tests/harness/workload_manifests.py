"""Workloads as manifests with keyword arguments: what controllers are given in tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import KubeObject
from kubesched.simulator.loading import SIMULATED_KINDS
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


def objects(*items: Manifest) -> list[KubeObject]:
    return manifests.from_dicts(items, kinds=SIMULATED_KINDS).objects
