"""Workloads as the server has them, whole: the model keeps only what scheduling looks at, and a pod needs the rest.

A `WholeObject` has both: the typed object, on which the rules of `kubesched.k8s.workloads` work, and spec and status as
they came. Its typed template carries a fingerprint of the whole template, so that templates which differ in what the
model leaves out (a command, a probe) differ for the rules, too. `whole_bodies` takes it off again.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import ReplicationController
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.deployments import TEMPLATE_HASH_LABEL

FINGERPRINT_NOTE = "kubesched.dev/template-fingerprint"
"""Only in memory: never written to a server."""

Body = dict[str, Any]

_EMPTY = msgspec.Raw(b"{}")
_encode_in_order = msgspec.json.Encoder(order="deterministic").encode


class WorkloadDocument(KubeObject, frozen=True):
    """An object whose spec and status are left as text."""

    spec: msgspec.Raw = _EMPTY
    status: msgspec.Raw = _EMPTY


class DeploymentDocument(WorkloadDocument, frozen=True):
    """Stands for a `Deployment`."""


class ReplicaSetDocument(WorkloadDocument, frozen=True):
    """Stands for a `ReplicaSet`."""


class ReplicationControllerDocument(WorkloadDocument, frozen=True):
    """Stands for a `ReplicationController`."""


class StatefulSetDocument(WorkloadDocument, frozen=True):
    """Stands for a `StatefulSet`."""


class DaemonSetDocument(WorkloadDocument, frozen=True):
    """Stands for a `DaemonSet`."""


class JobDocument(WorkloadDocument, frozen=True):
    """Stands for a `Job`."""


class CronJobDocument(WorkloadDocument, frozen=True):
    """Stands for a `CronJob`."""


TYPED: dict[type[WorkloadDocument], type[KubeObject]] = {
    DeploymentDocument: Deployment,
    ReplicaSetDocument: ReplicaSet,
    ReplicationControllerDocument: ReplicationController,
    StatefulSetDocument: StatefulSet,
    DaemonSetDocument: DaemonSet,
    JobDocument: Job,
    CronJobDocument: CronJob,
}


@dataclass(frozen=True, slots=True)
class WholeObject:
    """`spec` and `status` are not to be changed: copy first."""

    typed: KubeObject
    spec: Body
    status: Body

    @classmethod
    def of(cls, document: WorkloadDocument) -> Self:
        """Raises msgspec.ValidationError if the content is not what the kind has."""
        return cls.made(TYPED[type(document)], document, msgspec.json.decode(document.spec), document.status)

    @classmethod
    def of_body(cls, kind: type[KubeObject], body: bytes) -> Self:
        """From an answer of the server."""
        document = msgspec.json.decode(body, type=WorkloadDocument)
        return cls.made(kind, document, msgspec.json.decode(document.spec), document.status)

    @classmethod
    def made(cls, kind: type[KubeObject], named: KubeObject, spec: Body, raw_status: msgspec.Raw) -> Self:
        status: Body = msgspec.json.decode(raw_status)
        found = msgspec.convert({"spec": spec, "status": status}, kind)
        found = replace(found, metadata=named.metadata)
        return cls(_with_fingerprint(found, spec.get("template")), spec, status)


def _with_fingerprint(item: KubeObject, template: Body | None) -> KubeObject:
    if template is None or isinstance(item, Job | CronJob):
        return item
    typed = item.spec.template  # type: ignore[attr-defined]
    annotations = {**(typed.metadata.annotations or {}), FINGERPRINT_NOTE: fingerprint(template)}
    marked = replace(typed, metadata=replace(typed.metadata, annotations=annotations))
    return replace(item, spec=replace(item.spec, template=marked))  # type: ignore[attr-defined]


def fingerprint(template: Body) -> str:
    """Alike for templates that differ in the label of the replica set only."""
    metadata = dict(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != TEMPLATE_HASH_LABEL}
    plain = {"metadata": {**metadata, "labels": labels}, "spec": template.get("spec")}
    return blake2b(_encode_in_order(plain), digest_size=12).hexdigest()
