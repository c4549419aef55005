"""What containers really use, by a CSV: `namespace,kind,name,container,resource,p50,p95,max`, and the nodes that would
be overfull if all pods on them used their p95 at once.

Requests that are cut to what is used on average save nodes; how far that goes at the expense of safety is told here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.manifest_files import read_file
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.quantity import QuantityError, parse
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.scheduler.cluster import Cluster

_COLUMNS = ("namespace", "kind", "name", "container", "resource", "p95")
_NANOS = {CPU: 10**6, MEMORY: 10**9}
"""A milli-cpu, a byte."""


class UsageError(KubeschedError, ValueError):
    """The file cannot be read; says where."""


@dataclass(frozen=True, slots=True)
class PodUsage:
    by_container: Mapping[tuple[str, str, str, str, str], int]
    """By namespace, kind, name, container and resource: the p95, in milli-cpus or bytes."""

    def overfull(self, cluster: Cluster, workloads: Mapping[PodKey, str]) -> list[str]:
        """The nodes whose pods' p95 add up to more than they have; a pod that nothing is known about counts with what
        it requests. `workloads` says who makes a pod: `Deployment web`."""
        nodes = cluster.nodes
        used = {resource: [0] * len(cluster.table.names) for resource in _NANOS}
        for row in range(len(cluster.table.names)):
            for info in cluster.table.pods.on(row):
                for resource, amounts in used.items():
                    amounts[row] += self._of(info, resource, workloads.get(info.key, ""))
        return [
            name
            for row, name in enumerate(cluster.table.names)
            if any(used[resource][row] > int(nodes.allocatable(resource)[row]) for resource in _NANOS)
        ]

    def _of(self, info: PodInfo, resource: str, workload: str) -> int:
        kind, _, name = (workload or f"Pod {info.name}").partition(" ")
        known = [
            self.by_container.get((info.namespace, kind, name, container.name, resource))
            for container in info.spec.containers
        ]
        if all(one is None for one in known):
            return int(info.resources.requests.get(resource, 0))
        return sum(one or 0 for one in known)


def read_usage(filename: str) -> PodUsage:
    """Raises UsageError and InputError."""
    try:
        text = read_file(filename).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{filename}: not a text file") from None
    found: dict[tuple[str, str, str, str, str], int] = {}
    for row in (reader := csv.DictReader(io.StringIO(text))):
        if any(row.get(column) is None for column in _COLUMNS):
            raise UsageError(f"{filename}: line {reader.line_num}: {','.join(_COLUMNS)} are expected")
        resource = row["resource"]
        if resource not in _NANOS:
            continue
        try:
            amount = parse(row["p95"]).nanos
        except QuantityError:
            raise UsageError(f'{filename}: line {reader.line_num}: p95: "{row["p95"]}" is not an amount') from None
        key = (row["namespace"], row["kind"], row["name"], row["container"], resource)
        found[key] = -(-amount // _NANOS[resource])
    if not found:
        raise UsageError(f"{filename}: no line says what cpu or memory is used")
    return PodUsage(found)
