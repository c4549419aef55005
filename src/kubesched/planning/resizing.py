"""Requests of containers: others, by a factor or as a recommendation says, and what containers really use.

Read are a factor (`cpu*0.7`), a CSV `namespace,kind,name,container,resource,value`, the JSON of krr, and the
recommendations in the status of VerticalPodAutoscalers.

Requests that are cut to what is used on average save nodes; how far that goes at the expense of safety is told by a CSV
of what is used, `namespace,kind,name,container,resource,p50,p95,max`: nodes that would be overfull if all pods on them
used their p95 at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from msgspec.structs import replace

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.csv_table import Row, read_table
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import read_file
from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import (
    Container,
    Pod,
    PodSpec,
    PodTemplateSpec,
    ReplicationController,
    ResourceRequirements,
)
from kubesched.k8s.model.kubernetes_yaml import load_documents, yaml_problem
from kubesched.k8s.model.meta import Amount, KubeObject, PodKey, controller_of
from kubesched.k8s.model.quantity import QuantityError, parse
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.scheduler.cluster import Cluster

_FACTOR = re.compile(r"(cpu|memory)\*(\d+(?:\.\d+)?)")
_BOUNDS = ("target", "lowerBound", "upperBound", "uncappedTarget")
"""What a VerticalPodAutoscaler recommends."""
_COLUMNS = ("namespace", "kind", "name", "container", "resource", "value")

ContainerKey = tuple[str, str, str, str]
"""(namespace, kind, name, container); an empty container stands for all of the workload."""


class ResizeError(KubeschedError, ValueError):
    """A recommendation cannot be read; says where."""


@dataclass(frozen=True, slots=True)
class Resizing:
    factors: Mapping[str, float] = field(default_factory=dict)
    wanted: Mapping[ContainerKey, Mapping[str, str]] = field(default_factory=dict)

    def apply(self, objects: Iterable[KubeObject]) -> list[KubeObject]:
        """What a controller has made stays as it is: the controller makes another one."""
        return [item if controller_of(item.metadata) is not None else self.resized(item) for item in objects]

    def told(self, objects: Iterable[KubeObject]) -> str:
        """How much of it there is something for."""
        if self.factors:
            return "requests " + " and ".join(f"of {name} times {factor:g}" for name, factor in self.factors.items())
        there = {(item.namespace or "default", type(item).__name__, item.name) for item in objects}
        n_there = sum(key[:3] in there for key in self.wanted)
        told = f"{n_there} of {len(self.wanted)} recommendations are for workloads that are there"
        return told if n_there else f"{told}: nothing changes"

    def resized(self, item: KubeObject) -> KubeObject:
        """A workload, or a pod without a node, with other requests."""
        match item:
            case Pod() if not item.spec.node_name:
                return replace(item, spec=self._spec(item, item.spec))
            case CronJob():
                job = item.spec.job_template
                if job.spec.template is None:
                    return item
                template = self._template(item, job.spec.template)
                job = replace(job, spec=replace(job.spec, template=template))
                return replace(item, spec=replace(item.spec, job_template=job))
            case Deployment() | StatefulSet() | DaemonSet() | ReplicaSet() | ReplicationController() | Job():
                if item.spec.template is None:
                    return item
                return replace(item, spec=replace(item.spec, template=self._template(item, item.spec.template)))
            case _:
                return item

    def _template(self, owner: KubeObject, template: PodTemplateSpec) -> PodTemplateSpec:
        return replace(template, spec=self._spec(owner, template.spec))

    def _spec(self, owner: KubeObject, spec: PodSpec) -> PodSpec:
        return replace(spec, containers=tuple(self._container(owner, one) for one in spec.containers))

    def _container(self, owner: KubeObject, container: Container) -> Container:
        resources = container.resources or ResourceRequirements()
        requests = dict(resources.requests or {})
        for resource, factor in self.factors.items():
            if resource in requests:
                requests[resource] = _times(resource, requests[resource], factor)
        keys = [(owner.namespace or "default", type(owner).__name__, owner.name, name) for name in (container.name, "")]
        wanted = next((self.wanted[key] for key in keys if key in self.wanted), {})
        if not requests and not wanted:
            return container
        return replace(container, resources=replace(resources, requests={**requests, **wanted}))


def _times(resource: str, amount: Amount, factor: float) -> str:
    nanos = parse(amount).nanos * factor
    return f"{max(1, round(nanos / 10**6))}m" if resource == CPU else str(max(1, round(nanos / 10**9)))


def read_resizing(text: str, data: bytes | None = None) -> Resizing:
    """A factor as `cpu*0.7` (several with `;`), or the content of the file that `text` names; `vpa.yaml@lowerBound` are
    other recommendations than the target. Raises ResizeError."""
    if data is None:
        factors = {}
        for part in text.split(";"):
            found = _FACTOR.fullmatch(part.strip())
            if found is None:
                raise ResizeError(f'resize: "{part}" is neither a file nor of the form cpu*0.7')
            factors[found[1]] = float(found[2])
        return Resizing(factors)
    source, _, bound = text.partition("@")
    if bound and bound not in _BOUNDS:
        raise ResizeError(f'{source}: "{bound}" is none of {", ".join(_BOUNDS)}')
    try:
        return Resizing(wanted=_wanted(source, data.decode(), bound or _BOUNDS[0]))
    except UnicodeDecodeError:
        raise ResizeError(f"{source}: not a text file") from None


def _wanted(source: str, text: str, bound: str) -> dict[ContainerKey, dict[str, str]]:
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except ValueError as problem:
            raise ResizeError(f"{source}: {problem}") from None
        if "scans" in document:
            return _krr(source, document)
    if text.partition("\n")[0].strip().startswith("namespace,"):
        return _csv(source, text)
    try:
        documents = list(load_documents(text))
    except yaml.YAMLError as problem:
        raise ResizeError(f"{source}: {yaml_problem(problem, text.encode())}") from None
    items = [item for one in documents if isinstance(one, dict) for item in one.get("items", [one])]
    found = _vpa([item for item in items if item.get("kind") == "VerticalPodAutoscaler"], bound)
    if not found:
        raise ResizeError(f"{source}: neither CSV ({','.join(_COLUMNS)}), nor krr's JSON, nor VerticalPodAutoscalers")
    return found


def _csv(source: str, text: str) -> dict[ContainerKey, dict[str, str]]:
    found: dict[ContainerKey, dict[str, str]] = {}
    for number, row in read_table(text, source).rows:
        try:
            namespace, kind, name, container, resource, value = _texts(row, _COLUMNS)
        except LookupError:
            raise ResizeError(f"{source}: line {number}: {','.join(_COLUMNS)} are expected") from None
        found.setdefault((namespace, kind, name, container), {})[resource] = _amount(f"{source}: line {number}", value)
    return found


def _texts(row: Row, names: Iterable[str]) -> list[str]:
    """Raises LookupError for a row that lacks one of these."""
    found = [row.get(name) for name in names]
    if None in found:
        raise LookupError
    return [text or "" for text in found]


def _krr(source: str, document: Mapping[str, Any]) -> dict[ContainerKey, dict[str, str]]:
    found: dict[ContainerKey, dict[str, str]] = {}
    for index, scan in enumerate(document["scans"]):
        about = scan.get("object") or {}
        key = tuple(str(about.get(name, "")) for name in ("namespace", "kind", "name", "container"))
        requests = ((scan.get("recommended") or {}).get("requests")) or {}
        for resource in (CPU, MEMORY):
            value = (requests.get(resource) or {}).get("value")
            if isinstance(value, int | float):
                text = f"{max(1, round(value * 1000))}m" if resource == CPU else str(round(value))
                found.setdefault(key, {})[resource] = _amount(f"{source}: scans[{index}]", text)  # type: ignore[arg-type]
    return found


def _vpa(items: Iterable[Mapping[str, Any]], bound: str) -> dict[ContainerKey, dict[str, str]]:
    found: dict[ContainerKey, dict[str, str]] = {}
    for item in items:
        target = ((item.get("spec") or {}).get("targetRef")) or {}
        namespace = (item.get("metadata") or {}).get("namespace") or "default"
        recommendation = ((item.get("status") or {}).get("recommendation")) or {}
        for one in recommendation.get("containerRecommendations") or ():
            key = namespace, str(target.get("kind", "")), str(target.get("name", "")), str(one.get("containerName", ""))
            amounts = {name: str(value) for name, value in (one.get(bound) or {}).items() if name in (CPU, MEMORY)}
            if amounts:
                found[key] = amounts
    return found


def _amount(where: str, text: str) -> str:
    try:
        parse(text)
    except QuantityError:
        raise ResizeError(f'{where}: "{text}" is not an amount') from None
    return text


_USAGE_COLUMNS = ("namespace", "kind", "name", "container", "resource", "p95")
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
    found: dict[tuple[str, str, str, str, str], int] = {}
    for number, row in read_table(read_file(filename), filename).rows:
        try:
            namespace, kind, name, container, resource, used = _texts(row, _USAGE_COLUMNS)
        except LookupError:
            raise UsageError(f"{filename}: line {number}: {','.join(_USAGE_COLUMNS)} are expected") from None
        if resource not in _NANOS:
            continue
        try:
            amount = parse(used).nanos
        except QuantityError:
            raise UsageError(f'{filename}: line {number}: p95: "{used}" is not an amount') from None
        found[namespace, kind, name, container, resource] = -(-amount // _NANOS[resource])
    if not found:
        raise UsageError(f"{filename}: no line says what cpu or memory is used")
    return PodUsage(found)
