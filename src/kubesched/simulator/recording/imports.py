"""Recordings from what other tools wrote: each source is known by what is in it, not by its name.

- `kubectl get pods -A -w -o json --output-watch-events`, or the same without the last flag: when something happened is
  what the object says itself, at best to the second
- the record files of kube-scheduler-simulator
- traces of SimKube (v2 and v3): pods are made from the templates of their owners, for as long as they ran, or as many
  as these asked for
- the OpenB traces of Alibaba: lists of nodes and of pods as CSV, GPUs in thousandths of all that a node has
- manifests: what there was when the recording began, nodes for example

Where the source does not say which node a pod went to, the recording has no bindings; it can be replayed closed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kubesched.k8s.csv_table import read_table
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import CLUSTER_KINDS, ManifestError
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.times import InstantError, parse_instant
from kubesched.simulator.recording.lines import BindingSeen
from kubesched.simulator.recording.reader import BoundSeen, ObjectGone, ObjectSeen, Recorded, Synced

Object = Mapping[str, Any]

_GPU_MILLI = "openb.dev/gpu-milli"
_GPU_MODEL = "openb.dev/gpu-model"
_OPENB_START_S = 0.0
_NAMESPACE = "default"


class ImportedTraceError(KubeschedError, ValueError):
    """A source is none of the known ones, or is damaged; says which and where."""


def imported(sources: Iterable[tuple[str, bytes]]) -> list[Recorded]:
    """All events of these sources (name, content) in the order of their times; bindings where they show."""
    initial: list[KubeObject] = []
    later: list[tuple[float, int, bool, KubeObject]] = []
    for name, data in sources:
        for at_s, is_gone, item in _read(name, data):
            if at_s is None:
                initial.append(item)
            else:
                later.append((at_s, len(later), is_gone, item))
    later.sort(key=lambda one: one[:2])
    begin_s = later[0][0] if later else 0.0
    events: list[Recorded] = [ObjectSeen(begin_s, item, is_initial=True) for item in initial]
    events.append(Synced(begin_s))
    nodes: dict[str, str] = {}
    for at_s, _, is_gone, item in later:
        if isinstance(item, Pod):
            uid, node = item.metadata.uid or item.key, item.spec.node_name
            if not is_gone and node and nodes.get(uid) == "":
                seen = BindingSeen(node, item.metadata.uid, item.spec.scheduler_name, item.metadata.resource_version)
                events.append(BoundSeen(at_s, item.key, seen))
            nodes[uid] = node
        events.append(ObjectGone(at_s, item) if is_gone else ObjectSeen(at_s, item))
    return events


_Found = tuple[float | None, bool, KubeObject]
"""When (None: from the beginning), whether it is gone, and the object."""


def _read(name: str, data: bytes) -> Iterator[_Found]:
    first = data.lstrip()[:1]
    header = data.split(b"\n", 1)[0]
    if header.startswith((b"sn,", b"name,cpu_milli")):
        return _openb(name, data)
    if first == b"{":
        return _json_stream(name, _text(name, data))
    if first and first[0] >= 0x80:
        return _simkube(name, data)
    return _manifests(name, data)


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise ImportedTraceError(f"{name}: not UTF-8: byte {data[problem.start]:#04x}") from None


def _typed(name: str, where: str, document: Object) -> KubeObject | None:
    """None for a kind that scheduling does not look at."""
    try:
        found = manifests.from_dicts([document], name, kinds=CLUSTER_KINDS)
    except ManifestError as problem:
        raise ImportedTraceError(f"{name}: {where}: {problem.where}: {problem.problem}") from None
    return found.objects[0] if found.objects else None


def _manifests(name: str, data: bytes) -> Iterator[_Found]:
    try:
        found = manifests.read(data, name, kinds=CLUSTER_KINDS)
    except ManifestError as problem:
        raise ImportedTraceError(str(problem)) from None
    if not found.objects:
        raise ImportedTraceError(f"{name}: neither a trace that is known nor manifests")
    for item in found.objects:
        yield None, False, item


# -- kubectl and kube-scheduler-simulator ------------------------------------------------------------------------------


def _json_stream(name: str, text: str) -> Iterator[_Found]:
    """Documents one after another, on lines of their own or not."""
    decoder, at, number = json.JSONDecoder(), 0, 0
    before_s = 0.0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        number += 1
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError as problem:
            raise ImportedTraceError(f"{name}: document {number}: {problem}") from None
        if not isinstance(document, dict):
            raise ImportedTraceError(f"{name}: document {number}: an object is expected")
        if document.get("kind") == "List" or str(document.get("kind", "")).endswith("List"):
            yield from _manifests(name, json.dumps(document).encode())
            continue
        body, is_gone, at_s = _event(name, number, document)
        item = _typed(name, f"document {number}", body)
        if item is not None:
            before_s = max(before_s, at_s)
            yield before_s, is_gone, item


def _event(name: str, number: int, document: Object) -> tuple[Object, bool, float]:
    try:
        if "resource" in document and "event" in document:
            return document["resource"], document["event"] == "Delete", parse_instant(document["time"])
        body = document["object"] if "object" in document and "type" in document else document
        is_gone = document.get("type") == "DELETED"
        return body, is_gone, max(map(parse_instant, _times(body)), default=0.0)
    except (KeyError, TypeError, InstantError) as problem:
        raise ImportedTraceError(f"{name}: document {number}: {_plain(problem)}") from None


def _times(body: Object) -> Iterator[str]:
    """All that an object says of when something happened to it."""
    metadata, status = body.get("metadata") or {}, body.get("status") or {}
    for field in ("creationTimestamp", "deletionTimestamp"):
        if metadata.get(field):
            yield metadata[field]
    if status.get("startTime"):
        yield status["startTime"]
    for condition in status.get("conditions") or ():
        if condition.get("lastTransitionTime"):
            yield condition["lastTransitionTime"]


# -- SimKube -----------------------------------------------------------------------------------------------------------


def _simkube(name: str, data: bytes) -> Iterator[_Found]:
    try:
        trace = msgspec.msgpack.decode(data)
        events = trace["events"]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise ImportedTraceError(f"{name}: neither a trace of SimKube nor another one that is known") from None
    owners: _Owners = {}
    try:
        for event in events:
            at_s = float(event["ts"])
            changes = [(body, False) for body in event["applied_objs"]]
            changes += [(body, True) for body in event["deleted_objs"]]
            for body, is_gone in changes:
                metadata = body.get("metadata") or {}
                key = f"{metadata.get('namespace') or _NAMESPACE}/{metadata.get('name', '')}"
                owners.setdefault((str(body.get("kind")), key), []).append((at_s, None if is_gone else body))
                item = _typed(name, f"ts {event['ts']}", body)
                if item is not None and not isinstance(item, Pod):
                    yield at_s, is_gone, item
        yield from _simkube_pods(name, trace, owners)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, ImportedTraceError):
            raise
        raise ImportedTraceError(f"{name}: not a trace of SimKube v2 or v3: {_plain(problem)}") from None


_Owners = dict[tuple[str, str], list[tuple[float, Object | None]]]
"""By kind and key, what was applied of each and when; None where it was deleted."""


def _plain(problem: Exception) -> str:
    return f"{problem.args[0]} is missing" if isinstance(problem, KeyError) else str(problem)


def _simkube_pods(name: str, trace: Object, owners: _Owners) -> Iterator[_Found]:
    """As long as they ran, where the trace says so; else as many as their owners asked for, for as long."""
    numbers: Counter[tuple[str, str]] = Counter()
    paths = _template_paths(trace)
    lives = list(_lifecycles(trace))
    followed = {(kind, key) for kind, key, _, _ in lives}
    for owner, start_s, end_s in (
        *(((kind, key), start_s, end_s) for kind, key, start_s, end_s in lives),
        *((owner, *span) for owner, applied in owners.items() if owner not in followed for span in _replicas(applied)),
    ):
        applied = [(at_s, body) for at_s, body in owners.get(owner, ()) if body is not None]
        if not applied:
            continue
        known = [body for at_s, body in applied if at_s <= start_s] or [applied[0][1]]
        template = _template(known[-1], paths.get(owner[0], ()))
        if not template.get("spec"):
            continue
        kind, (namespace, _, owner_name) = owner[0], owner[1].rpartition("/")
        numbers[owner] += 1
        number = numbers[owner]
        pod_name = owner_name if (kind, number) == ("Pod", 1) else f"{owner_name}-{number}"
        metadata = {**(template.get("metadata") or {}), "name": pod_name, "namespace": namespace}
        uid = f"simkube-{kind}-{namespace}-{pod_name}"
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "uid": uid}, "spec": template["spec"]}
        item = _typed(name, f"{kind} {owner[1]}", body)
        if item is not None:
            yield start_s, False, item
            if end_s is not None:
                yield end_s, True, item


def _replicas(applied: list[tuple[float, Object | None]]) -> Iterator[tuple[float, float | None]]:
    """From when to when there is a pod, by the number that its owner asks for; None stands for its end. The youngest
    goes first."""
    since: list[float] = []
    for at_s, body in applied:
        wanted = 0 if body is None else _wanted(body)
        while len(since) > wanted:
            yield since.pop(), at_s
        since += [at_s] * (wanted - len(since))
    for start_s in since:
        yield start_s, None


def _wanted(owner: Object) -> int:
    spec = owner.get("spec") or {}
    match owner.get("kind"):
        case "Pod":
            return 1
        case "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController":
            return int(spec.get("replicas", 1))
        case "Job":
            return int(spec.get("parallelism", 1))
        case _:
            return 0


def _template_paths(trace: Object) -> dict[str, tuple[str, ...]]:
    """By kind, where its pods' templates are, as the trace's configuration says."""
    tracked = (trace.get("config") or {}).get("trackedObjects") or {}
    return {_kind_of(gvk): tuple((config or {}).get("podSpecTemplatePaths") or ()) for gvk, config in _pairs(tracked)}


def _template(owner: Object, paths: Iterable[str]) -> Object:
    """Metadata and spec of the owner's pods; a pod is its own."""
    if owner.get("kind") == "Pod":
        kept = {key: (owner.get("metadata") or {}).get(key) for key in ("labels", "annotations")}
        return {"metadata": kept, "spec": {**(owner.get("spec") or {}), "nodeName": ""}}
    for path in (*paths, "/spec/template", "/spec/jobTemplate/spec/template"):
        found: Any = owner
        for part in path.split("/")[1:]:
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, dict) and found.get("spec"):
            return found
    return {}


def _lifecycles(trace: Object) -> Iterator[tuple[str, str, float, float | None]]:
    """(kind of the owner, its key, when a pod began, when it ended) of both versions of the format."""
    for owner, by_hash in _pairs(trace.get("pod_lifecycles")):
        kind, key = _kind_of(owner[0]), str(owner[1])
        for _, lives in _pairs(by_hash):
            for life in lives:
                yield kind, key, *_span(life)
    for gvk, by_owner in _pairs(trace.get("index")):
        for key, by_time in _pairs(by_owner):
            for _, pods in _pairs(by_time) if isinstance(by_time, dict) else ():
                for pod in pods:
                    if isinstance(pod, dict) and pod.get("lifecycle"):
                        yield _kind_of(gvk), str(key), *_span(pod["lifecycle"])


def _pairs(found: Any) -> Iterable[tuple[Any, Any]]:
    return found.items() if isinstance(found, dict) else ()


def _kind_of(gvk: Any) -> str:
    """`apps/v1.Deployment`, or a mapping."""
    if isinstance(gvk, dict):
        return str(gvk.get("kind", ""))
    return str(gvk).rpartition("/")[2].rpartition(".")[2]


def _span(life: Any) -> tuple[float, float | None]:
    """`{"start_ts": 1, "end_ts": 2}`, `{"Finished": [1, 2]}` or `{"Running": 1}`."""
    if "start_ts" in life:
        end = life.get("end_ts")
        return float(life["start_ts"]), None if end is None else float(end)
    if "Finished" in life:
        start, end = life["Finished"]
        return float(start), float(end)
    return float(life.get("Running", 0)), None


# -- OpenB -------------------------------------------------------------------------------------------------------------


def _openb(name: str, data: bytes) -> Iterator[_Found]:
    for number, row in read_table(data, name).rows:
        try:
            yield from _openb_node(name, row) if "sn" in row else _openb_pod(name, row)
        except (KeyError, TypeError, ValueError) as problem:
            raise ImportedTraceError(f"{name}: line {number}: {_plain(problem)}") from None


def _openb_node(name: str, row: Object) -> Iterator[_Found]:
    amounts = {"cpu": f"{int(row['cpu_milli'])}m", "memory": f"{int(row['memory_mib'])}Mi", "pods": "110"}
    if int(row["gpu"]):
        amounts[_GPU_MILLI] = str(1000 * int(row["gpu"]))
    labels = {"kubernetes.io/hostname": row["sn"]} | ({_GPU_MODEL: row["model"]} if row["model"] else {})
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": row["sn"], "uid": row["sn"], "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    item = _typed(name, row["sn"], body)
    if item is not None:
        yield None, False, item


def _openb_pod(name: str, row: Object) -> Iterator[_Found]:
    amounts = {"cpu": f"{int(row['cpu_milli'])}m", "memory": f"{int(row['memory_mib'])}Mi"}
    gpu_milli = int(row["num_gpu"]) * int(row["gpu_milli"] or 0)
    if gpu_milli:
        amounts[_GPU_MILLI] = str(gpu_milli)
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]}
    if row["gpu_spec"]:
        wanted = {"key": _GPU_MODEL, "operator": "In", "values": row["gpu_spec"].split("|")}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    metadata = {"name": row["name"], "namespace": _NAMESPACE, "uid": row["name"]}
    item = _typed(name, row["name"], {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    if item is not None:
        yield _OPENB_START_S + float(row["creation_time"]), False, item
        if row["deletion_time"]:
            yield _OPENB_START_S + float(row["deletion_time"]), True, item
