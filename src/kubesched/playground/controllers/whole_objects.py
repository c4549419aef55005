"""Workloads as the server has them, whole: the model keeps only what scheduling looks at, and a pod needs the rest.

A `WholeObject` has both: the typed object, on which the rules of `kubesched.k8s.workloads` work, and spec and status as
they came. Its typed template carries a fingerprint of the whole template, so that templates which differ in what the
model leaves out (a command, a probe) differ for the rules, too.

From what the rules plan to what is written: the rules make a pod from a typed template; then the whole template is
taken instead, and changed where the rules changed theirs. Pure functions, dictionaries in and out.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, PodTemplateSpec, ReplicationController
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
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


_NOT_IN_DRIVERS = re.compile(r"[^a-z0-9.-]")
_LONGEST_DRIVER = 63


def plain(item: msgspec.Struct) -> Body:
    """As JSON has it."""
    found: Body = msgspec.json.decode(msgspec.json.encode(item))
    return found


def pod_body(planned: Pod, whole_template: Body, typed_template: PodTemplateSpec) -> Body:
    spec = deepcopy(whole_template.get("spec") or {})
    base, wanted = plain(typed_template.spec), plain(planned.spec)
    for key in base.keys() | wanted.keys():
        if base.get(key) == wanted.get(key):
            continue
        if key == "volumes":
            spec[key] = _volumes(spec.get(key) or [], base.get(key) or [], wanted.get(key) or [])
        elif key in wanted:
            spec[key] = wanted[key]
        else:
            spec.pop(key, None)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata_body(planned.metadata), "spec": spec}


def replica_set_body(planned: ReplicaSet, deployment_spec: Body) -> Body:
    planned_template = planned.spec.template or PodTemplateSpec()
    template = deepcopy(deployment_spec.get("template") or {})
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = dict(planned_template.metadata.labels or {})
    spec: Body = {
        "replicas": planned.spec.replicas,
        "selector": None if planned.spec.selector is None else plain(planned.spec.selector),
        "template": template,
    }
    if deployment_spec.get("minReadySeconds"):
        spec["minReadySeconds"] = deployment_spec["minReadySeconds"]
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata_body(planned.metadata), "spec": spec}


def job_body(planned: Job, cron_job_spec: Body) -> Body:
    spec = deepcopy((cron_job_spec.get("jobTemplate") or {}).get("spec") or {})
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata_body(planned.metadata), "spec": spec}


def claim_body(planned: PersistentVolumeClaim, stateful_set_spec: Body | None, set_name: str) -> Body:
    """Of a stateful set's claim, the template's own spec; of others, what the model has."""
    spec: Body = plain(planned.spec)
    for template in (stateful_set_spec or {}).get("volumeClaimTemplates") or ():
        if planned.name.startswith(f"{template['metadata']['name']}-{set_name}-"):
            spec = deepcopy(template.get("spec") or {})
    metadata = metadata_body(planned.metadata)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume_body(planned: PersistentVolume) -> Body:
    spec = {**plain(planned.spec), "persistentVolumeReclaimPolicy": "Delete"}
    if planned.spec.csi is not None:
        spec["csi"]["driver"] = driver_name(planned.spec.csi.driver)
    else:
        spec["hostPath"] = {"path": f"/var/lib/simulated-volumes/{planned.name}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata_body(planned.metadata),
        "spec": spec,
    }


def driver_name(provisioner: str) -> str:
    """Provisioners have a slash in their names more often than not, and drivers never."""
    return _NOT_IN_DRIVERS.sub(".", provisioner.lower())[:_LONGEST_DRIVER].strip(".-")


def other_body(planned: KubeObject, api_version: str, kind: str) -> Body:
    """Of kinds that the model has in full."""
    body = plain(planned)
    return {**body, "apiVersion": api_version, "kind": kind, "metadata": metadata_body(planned.metadata)}


def metadata_body(metadata: ObjectMeta) -> Body:
    body = plain(metadata)
    annotations = body.get("annotations") or {}
    if annotations.pop(FINGERPRINT_NOTE, None) is not None and not annotations:
        del body["annotations"]
    for reference in body.get("ownerReferences") or ():
        if reference.get("controller"):
            reference["blockOwnerDeletion"] = True
    return body


def _volumes(whole: list[Body], base: list[Body], wanted: list[Body]) -> list[Body]:
    """A volume that the rules left as it is comes whole."""
    whole_by_name = {volume["name"]: volume for volume in whole}
    base_by_name = {volume["name"]: volume for volume in base}
    return [
        whole_by_name[volume["name"]] if volume == base_by_name.get(volume["name"]) else volume for volume in wanted
    ]
