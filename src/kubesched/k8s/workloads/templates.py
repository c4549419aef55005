"""Pods from templates: labels, owner and spec of a pod that a controller makes, and which template a pod was made from.

Pods of a stateful set or daemon set carry the hash of their template as a label. Pods that were there before, with a
hash that is not ours, count as made from the first template that was seen.

Next: `admission`, through which every new pod goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, PodSpec, PodTemplateSpec, ReplicationController
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, OwnerReference
from kubesched.k8s.model.quantity import QuantityError, parse
from kubesched.k8s.workloads.actions import safe_hash

EMPTY_TEMPLATE = PodTemplateSpec()

_API: dict[type[KubeObject], tuple[str, str]] = {
    Deployment: ("apps/v1", "Deployment"),
    ReplicaSet: ("apps/v1", "ReplicaSet"),
    StatefulSet: ("apps/v1", "StatefulSet"),
    DaemonSet: ("apps/v1", "DaemonSet"),
    Job: ("batch/v1", "Job"),
    CronJob: ("batch/v1", "CronJob"),
    ReplicationController: ("v1", "ReplicationController"),
    Pod: ("v1", "Pod"),
}

_encode = msgspec.json.Encoder(order="deterministic").encode


def owner_reference(owner: KubeObject) -> OwnerReference:
    return _owner_references(Pod if isinstance(owner, Pod) else type(owner), owner.name, owner.metadata.uid)[0]


@lru_cache(maxsize=4096)
def _owner_references(owner: type[KubeObject], name: str, uid: str) -> tuple[OwnerReference]:
    """Those of all objects that belong to this owner: they share one, which counts where there are a million."""
    api_version, kind = _API[owner]
    return (OwnerReference(kind=kind, name=name, uid=uid, api_version=api_version, controller=True),)


def pod_from_template(
    template: PodTemplateSpec,
    owner: KubeObject,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """A pod that belongs to the owner. `labels` and `annotations` come on top of the template's; `spec` stands in for
    the template's where a controller changes it."""
    metadata = template.metadata
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=owner.namespace,
            labels=_joined(metadata.labels, labels),
            annotations=_joined(metadata.annotations, annotations),
            owner_references=_owner_references(type(owner), owner.name, owner.metadata.uid),
            finalizers=finalizers,
        ),
        spec=template.spec if spec is None else spec,
    )


def _joined(given: dict[str, str] | None, more: Mapping[str, str] | None) -> dict[str, str] | None:
    """With nothing more, the pods of a template share what it has."""
    return {**(given or {}), **more} if more else given or None


def template_hash(template: PodTemplateSpec | None, *, without: Iterable[str] = (), salt: int = 0) -> str:
    """Templates that differ have different hashes; labels named by `without` do not count. With a salt it is another
    one, for a name that is taken."""
    text = _encode(without_labels(template or EMPTY_TEMPLATE, without))
    return safe_hash(text + str(salt).encode() if salt else text)


def without_labels(template: PodTemplateSpec, keys: Iterable[str]) -> PodTemplateSpec:
    dropped = set(keys)
    labels = template.metadata.labels or {}
    if not dropped & labels.keys():
        return template
    kept = {key: value for key, value in labels.items() if key not in dropped}
    return replace(template, metadata=replace(template.metadata, labels=kept or None))


# -- templates that mean the same --------------------------------------------------------------------------------------

_SERVER_DEFAULTS = {"restart_policy": "Always", "termination_grace_period_seconds": 30}
_AMOUNTS = frozenset({"requests", "limits", "overhead"})


def same_template(one: PodTemplateSpec | None, other: PodTemplateSpec | None, *, without: Iterable[str] = ()) -> bool:
    """Whether both make the same pods: one may be as written by hand and the other as an API server stores it, with
    its defaults filled in, amounts in their canonical form and empty lists left out. Labels and annotations named by
    `without` do not count."""
    if one == other:
        return True
    keys = frozenset(without)
    return _plain(one or EMPTY_TEMPLATE, keys) == _plain(other or EMPTY_TEMPLATE, keys)


def _plain(template: PodTemplateSpec, without: frozenset[str]) -> object:
    metadata = template.metadata
    kept = [
        {key: value for key, value in (texts or {}).items() if key not in without}
        for texts in (metadata.labels, metadata.annotations)
    ]
    return kept, {**_SERVER_DEFAULTS, **_said(template.spec)}


def _said(value: msgspec.Struct) -> dict[str, object]:
    """The fields that are neither empty nor as they would be anyway."""
    defaults = {known.name: known.default for known in msgspec.structs.fields(value)}
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    said = {name: _canonical(item, name) for name, item in fields.items() if item != defaults[name]}
    return {name: item for name, item in said.items() if item not in (None, {}, [])}


def _canonical(value: object, name: str = "") -> object:
    if isinstance(value, msgspec.Struct):
        return _said(value)
    if isinstance(value, dict) and name in _AMOUNTS:
        return {key: _amount(item) for key, item in value.items()}
    return [_canonical(item) for item in value] if isinstance(value, tuple) else value


def _amount(value: object) -> object:
    try:
        return parse(value).nanos if isinstance(value, str | int | float) else value
    except QuantityError:
        return value


REVISION_HASH_LABEL = "controller-revision-hash"


class Revisions:
    """The hashes seen so far, by owner."""

    def __init__(self) -> None:
        self._hashes: dict[str, list[str]] = {}
        self._last: dict[str, tuple[PodTemplateSpec | None, str]] = {}

    def current(self, owner: KubeObject, template: PodTemplateSpec | None) -> str:
        uid = owner.metadata.uid
        known = self._last.get(uid)
        if known is not None and known[0] is template:
            return known[1]
        found = template_hash(template)
        self._last[uid] = (template, found)
        hashes = self._hashes.setdefault(uid, [])
        if found not in hashes:
            hashes.append(found)
        return found

    def is_current(self, owner: KubeObject, template: PodTemplateSpec | None, pod: Pod) -> bool:
        current = self.current(owner, template)
        hashes = self._hashes[owner.metadata.uid]
        own = pod.labels.get(REVISION_HASH_LABEL, "").rpartition("-")[2]
        return (own if own in hashes else hashes[0]) == current
