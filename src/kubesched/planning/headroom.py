"""Room to keep free: what `--keep` asks for, as pods of the lowest priority that stand for it.

`20x500m/1Gi` and `20x500m/1Gi@zone` name pods by their amounts; a file has CapacityBuffers, as Karpenter and Cluster
Autoscaler read them. The pods must find a node, as all others must; reports do not count them.

Next: the commands of planning, each of which has them placed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import manifests_in, path_exists, read_file
from kubesched.k8s.model.apps import Deployment, Job, ReplicaSet, ReplicaSetSpec, StatefulSet
from kubesched.k8s.model.autoscaling import PodTemplate
from kubesched.k8s.model.core import Pod, PodTemplateSpec, ReplicationController
from kubesched.k8s.model.manifests import Kinds
from kubesched.k8s.model.meta import KubeObject, KubeStruct, LabelSelector, ObjectMeta, ResourceList
from kubesched.k8s.model.quantity import QuantityError, parse
from kubesched.k8s.model.requests import pod_resources
from kubesched.k8s.workloads.admission import admit_pod
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, pod_from_template
from kubesched.planning.catalogue import ZONE
from kubesched.planning.resting_workloads import ShapeError, pod_of_shape
from kubesched.simulator.trial import WorldTrial

NAMESPACE = "kubesched-keep"
"""Of pods that are named by their amounts."""
MOST_PODS = 100_000
SPARE_ONE = "n-1:"
_NAME = "kubesched-keep-"
_PRIORITY = -(10**9)
_AMOUNTS = re.compile(r"(\d{1,6})x([^@]+)(?:@(.+))?")
_LOOKS_LIKE_AMOUNTS = re.compile(r"\d+x[^/]*/[^/]*|\d+x\S+=\S*")
_Scalable = Deployment | ReplicaSet | StatefulSet | ReplicationController | Job


class HeadroomError(KubeschedError, ValueError):
    """What is to be kept free cannot be understood."""


class _ObjectName(KubeStruct, frozen=True):
    name: str = ""


class _ScalableName(KubeStruct, frozen=True):
    kind: str = ""
    name: str = ""


class _BufferSpec(KubeStruct, frozen=True):
    pod_template_ref: _ObjectName | None = None
    scalable_ref: _ScalableName | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: ResourceList | None = None


class CapacityBuffer(KubeObject, frozen=True):
    """Of autoscaling.x-k8s.io: room for so many more pods of a template or a workload."""

    spec: _BufferSpec = _BufferSpec()


_KINDS: Kinds = {("autoscaling.x-k8s.io", "CapacityBuffer"): CapacityBuffer, ("", "PodTemplate"): PodTemplate}


def is_headroom(key: str) -> bool:
    """Whether the pod stands for room to keep."""
    return key.partition("/")[2].startswith(_NAME)


def headroom_sets(keep: Sequence[str], objects: Iterable[KubeObject]) -> list[ReplicaSet]:
    """The pods to find room for, as sets; `objects` are searched for the workloads that buffers name. Raises
    HeadroomError, and whatever is wrong with the manifests."""
    scalable = [item for item in objects if isinstance(item, _Scalable)] if keep else []
    found: list[ReplicaSet] = []
    for text in keep:
        if text.startswith(SPARE_ONE):
            raise HeadroomError(f'keep "{text}" is not for this command; name the room: 20x500m/1Gi')
        named = [_of_amounts(text)] if is_of_amounts(text) else _of_file(text, scalable)
        found += [_named(one, len(found) + place) for place, one in enumerate(named)]
    if sum(one.spec.replicas or 0 for one in found) > MOST_PODS:
        raise HeadroomError(f"keep: room for more than {MOST_PODS:,} pods is asked for")
    return found


def headroom_pods(keep: Sequence[str], objects: Iterable[KubeObject]) -> list[Pod]:
    """The same as pods that wait for a node."""
    found = []
    for one in headroom_sets(keep, objects):
        pattern = admit_pod(pod_from_template(one.spec.template or EMPTY_TEMPLATE, one, one.name), {})
        names = [f"{one.name}-{number}" for number in range(one.spec.replicas or 0)]
        found += [replace(pattern, metadata=replace(pattern.metadata, name=name)) for name in names]
    return found


def keep_free(trial: WorldTrial, keep: Sequence[str]) -> tuple[int, int]:
    """The scheduler finds room for it, after everybody else who waits. Gives how many pods stand for it, and for how
    many of them there is none; these are gone."""
    pods = headroom_pods(keep, trial.world.workloads)
    for pod in pods:
        trial.add_admitted(pod)
    missing = [one.pod for one in trial.settle().pending if is_headroom(one.pod)] if pods else []
    for key in missing:
        trial.delete_pod(key)
    return len(pods), len(missing)


def told(n_pods: int, n_missing: int) -> Iterator[str]:
    """What a report says of it."""
    if n_missing:
        yield f"Of the room to keep, for {n_pods} pods, there is none for {n_missing} even now."
    elif n_pods:
        yield f"Room for {n_pods} pods is kept free."


def is_of_amounts(text: str) -> bool:
    return _AMOUNTS.fullmatch(text) is not None or _LOOKS_LIKE_AMOUNTS.match(text) is not None


def _named(one: ReplicaSet, place: int) -> ReplicaSet:
    """Nobody else's name, by which its pods are known."""
    name = f"{_NAME}{place}-{one.name}".rstrip("-")
    template = one.spec.template or EMPTY_TEMPLATE
    spec = replace(template.spec, priority=_PRIORITY, priority_class_name="", preemption_policy="Never", node_name="")
    labels = template.metadata.labels or {"kubesched.dev/keep": str(place)}
    template = PodTemplateSpec(ObjectMeta(labels=labels), spec)
    selector = LabelSelector(match_labels=labels)
    about = ObjectMeta(name, one.namespace, uid=name)
    return ReplicaSet(about, ReplicaSetSpec(one.spec.replicas, selector, template))


def _of_amounts(text: str) -> ReplicaSet:
    """`20x500m/1Gi`, or `20x500m/1Gi@a` in zone a."""
    match = _AMOUNTS.fullmatch(text)
    try:
        pattern = pod_of_shape(match[2]) if match is not None else None
    except ShapeError:
        pattern = None
    if match is None or pattern is None:
        raise HeadroomError(f'keep "{text}" is not of the form 20x500m/1Gi or 20x500m/1Gi@ZONE')
    spec = replace(pattern.spec, node_selector={ZONE: match[3]} if match[3] else None)
    return ReplicaSet(ObjectMeta("", NAMESPACE), ReplicaSetSpec(int(match[1]), None, PodTemplateSpec(spec=spec)))


# -- capacity buffers --------------------------------------------------------------------------------------------------


def _of_file(filename: str, scalable: Sequence[_Scalable]) -> list[ReplicaSet]:
    if not path_exists(filename):
        raise HeadroomError(f'keep "{filename}" is neither of the form 20x500m/1Gi or 20x500m/1Gi@ZONE, nor a file')
    found = manifests_in(read_file(filename), filename, _KINDS)
    templates = {item.key: item for item in found.objects if isinstance(item, PodTemplate)}
    buffers = [item for item in found.objects if isinstance(item, CapacityBuffer)]
    if not buffers:
        raise HeadroomError(f"{filename}: no CapacityBuffer in it; room by amounts is 20x500m/1Gi")
    return [_of_buffer(one, templates, scalable, f"{filename}: CapacityBuffer {one.key}") for one in buffers]


def _of_buffer(
    buffer: CapacityBuffer, templates: dict[str, PodTemplate], scalable: Sequence[_Scalable], where: str
) -> ReplicaSet:
    spec = buffer.spec
    for name, number in (("replicas", spec.replicas), ("percentage", spec.percentage)):
        if number is not None and number < 0:
            raise HeadroomError(f"{where}: spec.{name}: must not be negative, but is {number}")
    if (spec.pod_template_ref is None) == (spec.scalable_ref is None):
        raise HeadroomError(f"{where}: spec: one of podTemplateRef and scalableRef is expected")
    asked = [] if spec.replicas is None else [spec.replicas]
    if spec.pod_template_ref is not None:
        name = spec.pod_template_ref.name
        known = templates.get(f"{buffer.namespace}/{name}")
        if known is None:
            raise HeadroomError(f"{where}: spec.podTemplateRef: there is no PodTemplate {name} in this file")
        template = known.template
    else:
        workload = _scaled_by(buffer, scalable, where)
        template = workload.spec.template or EMPTY_TEMPLATE
        if spec.percentage is not None:
            asked.append(-(-_n_replicas(workload) * spec.percentage // 100))
    within = _n_within(spec.limits or {}, template, where)
    if not asked and within is None:
        raise HeadroomError(
            f"{where}: spec: nothing says how many: replicas, percentage, or limits on what it requests"
        )
    # Both given, the smaller counts, as Karpenter's field says and Cluster Autoscaler 1.36 does; 1.37 takes the larger.
    n = min([*asked, *([] if within is None else [within])])
    return ReplicaSet(ObjectMeta(buffer.name, buffer.namespace), ReplicaSetSpec(n, None, template))


def _scaled_by(buffer: CapacityBuffer, scalable: Sequence[_Scalable], where: str) -> _Scalable:
    wanted = buffer.spec.scalable_ref
    assert wanted is not None
    for item in scalable:
        if (type(item).__name__, item.key) == (wanted.kind, f"{buffer.namespace}/{wanted.name}"):
            return item
    raise HeadroomError(f"{where}: spec.scalableRef: there is no {wanted.kind} {buffer.namespace}/{wanted.name}")


def _n_replicas(workload: _Scalable) -> int:
    if not isinstance(workload, Job):
        return n_wanted(workload)
    return 1 if workload.spec.parallelism is None else workload.spec.parallelism


def _n_within(limits: ResourceList, template: PodTemplateSpec, where: str) -> int | None:
    """How many pods request no more than the limits in all; None if they limit nothing that a pod requests."""
    asked = pod_resources(admit_pod(Pod(spec=template.spec), {})).requests
    numbers = []
    for name, text in limits.items():
        try:
            limit = parse(text)
        except QuantityError as error:
            raise HeadroomError(f"{where}: spec.limits.{name}: {error}") from None
        if asked.get(name, 0) > 0:
            numbers.append(max(0, (limit.milli_value if name == "cpu" else limit.value) // asked[name]))
    return min(numbers, default=None)
