"""Workload files written for one test, and what they came to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from kubesched.simulator.bench.run import BenchRun, BenchSettings
from kubesched.simulator.bench.runner import run_operations
from kubesched.simulator.bench.workload_file import BenchWorkload, read_workloads

Operations = Sequence[Any]
"""As a file has them: mappings of fields."""

NODE = """
apiVersion: v1
kind: Node
metadata: {name: "node-{{ .Index }}"}
status: {capacity: {cpu: "2", memory: 4Gi, pods: "10"}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-, labels: {app: web}}
spec: {containers: [{name: app, image: app:1, resources: {requests: {cpu: 500m}}}]}
"""
TOO_LARGE = """
apiVersion: v1
kind: Pod
metadata: {generateName: large-, labels: {app: large}}
spec: {priority: 10, containers: [{name: app, resources: {requests: {cpu: "9"}}}]}
"""
TEMPLATES = {"node.yaml": NODE, "pod.yaml": POD, "large.yaml": TOO_LARGE}

MEASURED = {"opcode": "createPods", "count": 1, "podTemplatePath": "pod.yaml", "collectMetrics": True}


def write_file(folder: Path, operations: Operations, templates: dict[str, str], **case: Any) -> Path:
    for name, text in {**TEMPLATES, **templates}.items():
        (folder / name).write_text(text)
    workloads = case.pop("workloads", [{"name": "default", "params": case.pop("params", {})}])
    path = folder / "workloads.yaml"
    path.write_text(
        yaml.safe_dump([{"name": "case", "workloadTemplate": list(operations), "workloads": workloads, **case}])
    )
    return path


def workload_of(
    folder: Path, operations: Operations, templates: dict[str, str] | None = None, **case: Any
) -> BenchWorkload:
    (found,) = read_workloads(write_file(folder, operations, templates or {}, **case))
    return found


def run_of(folder: Path, operations: Operations, templates: dict[str, str] | None = None, **case: Any) -> BenchRun:
    """The run after its last operation."""
    run = BenchRun(workload_of(folder, operations, templates, **case), BenchSettings())
    run_operations(run)
    return run


def placements(run: BenchRun) -> dict[str, str]:
    return {key: pod.spec.node_name for key, pod in run.world.pods.items()}
