"""Objects from JSON and YAML: single ones, lists, and streams of documents, straight into typed structs.

JSON lists are cut into items without decoding them, and each item is decoded once, into the struct of its kind. Kinds
that are not asked for (at first: those that scheduling does not look at) are left out and reported, so that a whole
dump of a cluster can be given. Where very many objects are made, which cannot form cycles, the garbage collector
pauses: a collection over half a million of them costs more than making them did.

Errors name the source, the object and the field.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import msgspec
import yaml

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import apps, core, limits, resource, scheduling, storage
from kubesched.k8s.model.apps import WORKLOAD_KINDS
from kubesched.k8s.model.kubernetes_yaml import load_documents, yaml_problem
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import UNREADABLE, plain_problem, tree_of
from kubesched.k8s.model.scheduling import CompositePodGroup, PodGroup, problem_of_group


@contextmanager
def collector_paused() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_EASED = (50_000, 20, 1_000)


@contextmanager
def collector_eased() -> Iterator[None]:
    """For work that makes very many objects which stay, and hardly any cycles: the collector looks at new objects as
    ever, if less often, and not again and again at all that there are."""
    usual = gc.get_threshold()
    gc.set_threshold(*_EASED)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


Kinds = Mapping[tuple[str, str], type[KubeObject]]

KINDS: Kinds = {
    ("", "Pod"): core.Pod,
    ("", "Node"): core.Node,
    ("", "Namespace"): core.Namespace,
    ("", "Service"): core.Service,
    ("", "ReplicationController"): core.ReplicationController,
    ("", "PersistentVolume"): storage.PersistentVolume,
    ("", "PersistentVolumeClaim"): storage.PersistentVolumeClaim,
    ("apps", "ReplicaSet"): apps.ReplicaSet,
    ("apps", "StatefulSet"): apps.StatefulSet,
    ("policy", "PodDisruptionBudget"): core.PodDisruptionBudget,
    ("scheduling.k8s.io", "PriorityClass"): core.PriorityClass,
    ("node.k8s.io", "RuntimeClass"): core.RuntimeClass,
    ("scheduling.k8s.io", "PodGroup"): scheduling.PodGroup,
    ("scheduling.k8s.io", "CompositePodGroup"): scheduling.CompositePodGroup,
    ("scheduling.k8s.io", "Workload"): scheduling.Workload,
    ("storage.k8s.io", "StorageClass"): storage.StorageClass,
    ("storage.k8s.io", "CSINode"): storage.CSINode,
    ("storage.k8s.io", "CSIDriver"): storage.CSIDriver,
    ("storage.k8s.io", "CSIStorageCapacity"): storage.CSIStorageCapacity,
    ("storage.k8s.io", "VolumeAttachment"): storage.VolumeAttachment,
    ("resource.k8s.io", "ResourceClaim"): resource.ResourceClaim,
    ("resource.k8s.io", "ResourceClaimTemplate"): resource.ResourceClaimTemplate,
    ("resource.k8s.io", "ResourceSlice"): resource.ResourceSlice,
    ("resource.k8s.io", "DeviceClass"): resource.DeviceClass,
}
"""(API group, kind) of every object the scheduler looks at."""

KINDS_WITH_WORKLOADS: Kinds = {**KINDS, **WORKLOAD_KINDS}
"""And of those that make pods."""

CLUSTER_KINDS: Kinds = {
    **KINDS_WITH_WORKLOADS,
    ("", "ResourceQuota"): limits.ResourceQuota,
    ("", "LimitRange"): limits.LimitRange,
    ("autoscaling", "HorizontalPodAutoscaler"): limits.HorizontalPodAutoscaler,
}
"""And of those that decide which pods there are: all that a dump of a cluster holds."""

_NAMESPACED: frozenset[type[KubeObject]] = frozenset(
    {
        core.Pod,
        core.Service,
        core.ReplicationController,
        storage.PersistentVolumeClaim,
        storage.CSIStorageCapacity,
        apps.ReplicaSet,
        apps.StatefulSet,
        core.PodDisruptionBudget,
        resource.ResourceClaim,
        resource.ResourceClaimTemplate,
        scheduling.CompositePodGroup,
        scheduling.PodGroup,
        scheduling.Workload,
        limits.ResourceQuota,
        limits.LimitRange,
        limits.HorizontalPodAutoscaler,
        *WORKLOAD_KINDS.values(),
    }
)


class ManifestError(KubeschedError, ValueError):
    """A source cannot be read as Kubernetes objects."""

    def __init__(self, source: str, where: str, problem: str) -> None:
        super().__init__(": ".join(part for part in (source, where, problem) if part))
        self.source = source
        self.where = where
        self.problem = problem


@dataclass(frozen=True, slots=True)
class WrittenObject:
    """An object without a uid, as it was written: a dictionary, or JSON that is not decoded yet."""

    item: KubeObject
    api_version: str
    kind: str
    source: str
    document: bytes | msgspec.Raw | dict[str, object]

    def tree(self) -> object:
        return self.document if isinstance(self.document, dict) else msgspec.json.decode(self.document)


MOST_WRITTEN = 1_000
"""So many objects of a file are kept as they were written: who writes more of them writes the same again."""


@dataclass(slots=True)
class Manifests:
    """What was read: the objects, where each came from, and the kinds that were passed over with their numbers.
    `kinds` are those that are taken. `dumped` are the resources of which a list says that it holds all there were; None
    if no list says so. `written` collects objects that no server has seen, for whoever wants to check their fields."""

    objects: list[KubeObject] = field(default_factory=list)
    sources: dict[int, str] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    kinds: Kinds = field(default_factory=lambda: KINDS)
    dumped: set[str] | None = None
    written: list[WrittenObject] | None = None

    def source_of(self, item: KubeObject) -> str:
        return self.sources.get(id(item), "")


DUMPED_FIELD = "kubesched.dev/dumped"
"""Field of a List that names the resources it holds all objects of: a kind without any can be told from one that was
not dumped."""


class _Header(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""


class _RawList(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None
    dumped: list[str] | None = msgspec.field(default=None, name=DUMPED_FIELD)


_decode_header = msgspec.json.Decoder(_Header).decode
_decode_list = msgspec.json.Decoder(_RawList).decode

_NOT_UTF_8 = "not UTF-8"


@cache
def _decoder(struct: type[KubeObject]) -> Callable[[bytes | msgspec.Raw], KubeObject]:
    return msgspec.json.Decoder(struct).decode


def read(
    data: bytes, source: str, into: Manifests | None = None, *, kinds: Kinds = KINDS, keeps_written: bool = False
) -> Manifests:
    """All objects of these kinds in a JSON or YAML text."""
    found = Manifests(kinds=kinds, written=[] if keeps_written else None) if into is None else into
    with collector_paused():
        _read(data, source, found)
    return found


def _read(data: bytes, source: str, found: Manifests) -> None:
    if data.lstrip()[:1] == b"{":
        try:
            whole = _decode_list(data)
        except RecursionError:
            raise ManifestError(source, "", "nested too deeply") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # several documents, or YAML that begins like JSON: the slower way below tells
        else:
            _read_json(data, whole, source, found)
            return
    _read_yaml(data, source, found)


def from_dicts(manifests: Iterable[object], source: str = "", *, kinds: Kinds = KINDS) -> Manifests:
    """Objects from manifests as Python dictionaries; lists among them are unpacked."""
    found = Manifests(kinds=kinds)
    for index, document in enumerate(manifests):
        _read_document(document, source, f"[{index}]", found)
    return found


# -- JSON --------------------------------------------------------------------------------------------------------------


def _read_json(data: bytes, whole: _RawList, source: str, found: Manifests) -> None:
    if not whole.kind.endswith("List") or whole.items is None:
        _read_json_item(data, whole.api_version, whole.kind, source, "", found)
    else:
        _read_json_list(whole, source, "", found)


def _read_json_list(whole: _RawList, source: str, inside: str, found: Manifests) -> None:
    item_kind = "" if whole.kind == "List" else whole.kind.removesuffix("List")
    _note_dumped(whole.dumped, found)
    for index, item in enumerate(whole.items or ()):
        where = f"{inside}items[{index}]"
        header = _json_header(item, source, where)
        kind = header.kind or item_kind
        if kind.endswith("List"):
            _read_json_list(_inner_list(item, source, where), source, f"{where}.", found)
        else:
            _read_json_item(item, header.api_version or whole.api_version, kind, source, where, found)


def _inner_list(item: msgspec.Raw, source: str, where: str) -> _RawList:
    try:
        return _decode_list(item)
    except UNREADABLE as problem:
        raise ManifestError(source, where, _told(problem)) from None


def _json_header(item: msgspec.Raw, source: str, where: str) -> _Header:
    try:
        return _decode_header(item)
    except UNREADABLE as problem:
        raise ManifestError(source, where, _told(problem)) from None


def _read_json_item(
    item: bytes | msgspec.Raw, api_version: str, kind: str, source: str, where: str, found: Manifests
) -> None:
    struct = _struct_for(api_version, kind, source, where, found)
    if struct is None:
        return
    try:
        decoded = _decoder(struct)(item)
    except UNREADABLE as problem:
        tree = tree_of(item)
        name = _name_in(tree) or where
        raise ManifestError(source, f"{kind} {name}".strip(), _told(problem, tree)) from None
    _keep(decoded, kind, source, where, found)
    _keep_written(item, api_version, kind, source, found)


# -- YAML and dictionaries ---------------------------------------------------------------------------------------------


def _read_yaml(data: bytes, source: str, found: Manifests) -> None:
    for index, document in enumerate(_yaml_documents(data, source)):
        if document is not None:
            _read_document(document, source, f"document {index + 1}", found)


def _yaml_documents(data: bytes, source: str) -> Iterator[object]:
    try:
        yield from load_documents(data)
    except yaml.YAMLError as problem:
        raise ManifestError(source, "", yaml_problem(problem, data, language="YAML or JSON")) from None


def _read_document(document: object, source: str, where: str, found: Manifests) -> None:
    if not isinstance(document, dict):
        raise ManifestError(source, where, "not a Kubernetes object: a mapping with apiVersion and kind is expected")
    kind, api_version = document.get("kind", ""), document.get("apiVersion", "")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise ManifestError(source, where, "apiVersion and kind must be texts")
    if kind.endswith("List") and "items" in document:
        items = document["items"]
        if not isinstance(items, list):
            raise ManifestError(source, f"{kind} {where}", "items: a list is expected")
        item_kind = "" if kind == "List" else kind.removesuffix("List")
        _note_dumped(document.get(DUMPED_FIELD), found)
        for index, item in enumerate(items):
            if isinstance(item, dict) and item_kind:
                item = {"apiVersion": api_version, "kind": item_kind, **item}
            _read_document(item, source, f"{where} items[{index}]", found)
        return
    struct = _struct_for(api_version, kind, source, where, found)
    if struct is None:
        return
    try:
        decoded = msgspec.convert(document, struct)
    except msgspec.ValidationError as problem:
        raise ManifestError(source, f"{kind} {_name_in(document) or where}", plain_problem(problem, document)) from None
    _keep(decoded, kind, source, where, found)
    _keep_written(document, api_version, kind, source, found)


def is_namespaced(struct: type[KubeObject]) -> bool:
    return struct in _NAMESPACED


def _told(problem: Exception, tree: object = None) -> str:
    if isinstance(problem, RecursionError):
        return "nested too deeply"
    return _NOT_UTF_8 if isinstance(problem, UnicodeDecodeError) else plain_problem(problem, tree)


# -- shared ------------------------------------------------------------------------------------------------------------


def _note_dumped(named: object, found: Manifests) -> None:
    if isinstance(named, list):
        found.dumped = (found.dumped or set()) | {name for name in named if isinstance(name, str)}


def _struct_for(api_version: str, kind: str, source: str, where: str, found: Manifests) -> type[KubeObject] | None:
    if not kind or not api_version:
        missing = "kind" if not kind else "apiVersion"
        raise ManifestError(source, where, f"not a Kubernetes object: {missing} is missing")
    group = api_version.rpartition("/")[0]
    struct = found.kinds.get((group, kind))
    if struct is None:
        name = f"{api_version} {kind}"
        found.ignored[name] = found.ignored.get(name, 0) + 1
    return struct


def _keep(item: KubeObject, kind: str, source: str, where: str, found: Manifests) -> None:
    metadata = item.metadata
    if not metadata.name:
        raise ManifestError(source, f"{kind} {where}".strip(), "metadata.name: a name is required")
    if isinstance(item, PodGroup | CompositePodGroup) and not metadata.uid and (problem := problem_of_group(item)):
        raise ManifestError(source, f"{kind} {item.key}", problem)
    if not metadata.namespace and type(item) in _NAMESPACED:
        item = msgspec.structs.replace(item, metadata=msgspec.structs.replace(metadata, namespace="default"))
    found.objects.append(item)
    if source:
        found.sources[id(item)] = source


def _keep_written(
    document: bytes | msgspec.Raw | dict[str, object], api_version: str, kind: str, source: str, found: Manifests
) -> None:
    """After `_keep`: the object is the last of those found."""
    item = found.objects[-1]
    if found.written is not None and not item.metadata.uid and len(found.written) < MOST_WRITTEN:
        found.written.append(WrittenObject(item, api_version, kind, source, document))


def _name_in(document: object) -> str:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict):
        return ""
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return f"{namespace}/{name}" if namespace else str(name or "")
