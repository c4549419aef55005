"""Delete: one object or a collection; with grace for pods, held by finalizers, guarded by preconditions.

Guarantees the real server's events: an object that only waits for finalizers or its grace period is MODIFIED, then
DELETED when nothing holds it. Nothing here deletes dependents: that is a controller's work. ``update.py`` removes
objects whose last finalizer goes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kubesched.playground.apiserver.errors import StatusError, forbidden, not_found, resource_details
from kubesched.playground.apiserver.served_resource import Object, ServedResource
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.request import (
    Api,
    Query,
    Target,
    WriteOptions,
    integer,
    options_error,
    single,
    truth,
)

RETURNS_DELETED = frozenset(
    {
        "pods",
        "podtemplates",
        "services",
        "serviceaccounts",
        "persistentvolumes",
        "persistentvolumeclaims",
        "resourcequotas",
        "namespaces",
        "csinodes.storage.k8s.io",
        "csidrivers.storage.k8s.io",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourceslices.resource.k8s.io",
        "deviceclasses.resource.k8s.io",
    }
)
"""Resources whose deletion is answered with the object instead of a Status."""

_ORPHANING = ("jobs.batch", "replicationcontrollers")
"""Resources whose dependents stay unless the request says otherwise."""

_JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)
_UNDELETABLE_NAMESPACES = ("default", "kube-system", "kube-public")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete, from query and body."""

    grace_s: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """What became of the object; ``gone`` says that it is no longer stored."""

    stored: Stored
    gone: bool


def delete_options(query: Query, body: Object) -> DeleteOptions:
    """Options from the body, or from the query when there is no body."""
    grace = body.get("gracePeriodSeconds", integer(query, "gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or single(query, "propagationPolicy")
    preconditions = body.get("preconditions") or {}
    orphan = body.get("orphanDependents", truth(query, "orphanDependents"))
    if any(value != "All" for value in body.get("dryRun") or []):
        shown = json.dumps(body["dryRun"], separators=(",", ":"))
        message = f'Unsupported value: {shown}: supported values: "All"'
        raise options_error("DeleteOptions", [("FieldValueNotSupported", "dryRun", message)])
    if propagation and orphan is not None:
        message = f'Invalid value: "{propagation}": orphanDependents and deletionPropagation cannot be both set'
        raise options_error("DeleteOptions", [("FieldValueInvalid", "propagationPolicy", message)])
    if propagation not in ("", "Orphan", "Background", "Foreground"):
        allowed = '"Foreground", "Background", "Orphan", "nil"'
        message = f'Unsupported value: "{propagation}": supported values: {allowed}'
        raise options_error("DeleteOptions", [("FieldValueNotSupported", "propagationPolicy", message)])
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    return DeleteOptions(
        grace,
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        propagation,
        bool(body.get("dryRun") or query.get("dryRun")),
    )


def delete(api: Api, target: Target, options: WriteOptions, how: DeleteOptions) -> Deletion:
    """Deletes one object, or begins to."""
    before = api.store.get(target.resource.storage_key, writing.key_of(target))
    if before is None:
        raise not_found(target.resource, target.name)
    if target.resource.storage_key == "namespaces" and target.name in _UNDELETABLE_NAMESPACES:
        raise forbidden(target.resource, target.name, "this namespace may not be deleted")
    if target.resource.storage_key == "jobs.batch" and not how.propagation:
        options.warnings.append(_JOB_WARNING)
    obj = writing.load(target.resource, before)
    _check_preconditions(target, obj["metadata"], how)
    api.admission.validate(target, "DELETE", None, obj, options)
    if target.resource.storage_key == "namespaces":
        return _delete_namespace(api, target, obj, before, options)
    if target.resource.storage_key == writing.DEFINITIONS and not obj["metadata"].get("deletionTimestamp"):
        return _delete_definition(api, target, obj, before, options)
    return _delete_object(api, target, obj, before, options, how)


def delete_collection(
    api: Api, target: Target, selected: Sequence[Stored], options: WriteOptions, how: DeleteOptions
) -> None:
    """Deletes all that were selected; one that vanished meanwhile is no error."""
    for stored in selected:
        one = Target(target.resource, stored.key.namespace, stored.key.name)
        if api.store.get(target.resource.storage_key, stored.key):
            delete(api, one, options, how)


def _check_preconditions(target: Target, metadata: dict[str, Any], how: DeleteOptions) -> None:
    resource, name = target.resource, target.name
    if how.uid is not None and how.uid != metadata.get("uid"):
        why = (
            f"the UID in the precondition ({how.uid}) does not match the UID in record ({metadata.get('uid')}). "
            "The object might have been deleted and then recreated"
        )
        raise _precondition_conflict(resource, name, why)
    if how.version is not None and how.version != metadata.get("resourceVersion"):
        why = (
            f"the ResourceVersion in the precondition ({how.version}) does not match the ResourceVersion in record "
            f"({metadata.get('resourceVersion')}). The object might have been modified"
        )
        raise _precondition_conflict(resource, name, why)


def _precondition_conflict(resource: ServedResource, name: str, why: str) -> StatusError:
    """As any conflict, but told with the kind in the place of the resource."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = {**resource_details(resource, name), "kind": resource.kind}
    return StatusError(409, "Conflict", f'Operation cannot be fulfilled on {kind} "{name}": {why}', details)


def _delete_object(
    api: Api, target: Target, obj: Object, before: Stored, options: WriteOptions, how: DeleteOptions
) -> Deletion:
    metadata = obj["metadata"]
    is_pod = target.resource.storage_key == "pods"
    grace_s = _pod_grace_s(obj, how) if is_pod else 0
    pending = metadata.get("deletionGracePeriodSeconds") if metadata.get("deletionTimestamp") else None
    if pending and (how.grace_s is None or grace_s >= pending):
        return Deletion(before, False)  # it is on its way, and this would not hasten it
    finalizers = _finalizers(target, metadata, how)
    held = bool(finalizers) or grace_s > 0
    if not held and not is_pod:
        return Deletion(writing.remove(api, target, obj, before, options), True)
    if held and metadata.get("deletionTimestamp") and not _hastens(metadata, grace_s, finalizers):
        return Deletion(before, False)
    _set_finalizers(metadata, finalizers)
    _mark(api, metadata, grace_s)
    marked = writing.save(api, target, obj, before, options)
    if held:
        return Deletion(marked, False)
    current = marked if not options.dry_run else before
    return Deletion(writing.remove(api, target, obj, current, options), True)


def _hastens(metadata: dict[str, Any], grace_s: int, finalizers: list[str]) -> bool:
    """A second deletion changes something only when it is sooner or held otherwise."""
    is_sooner = grace_s < metadata.get("deletionGracePeriodSeconds", 0)
    return bool(is_sooner or finalizers != metadata.get("finalizers", []))


def _mark(api: Api, metadata: dict[str, Any], grace_s: int) -> None:
    """Says on the object that it is being deleted."""
    began = "deletionTimestamp" in metadata
    if not began or grace_s < metadata.get("deletionGracePeriodSeconds", 0):
        due = api.clock() + timedelta(seconds=grace_s)
        metadata["deletionTimestamp"] = due.strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["deletionGracePeriodSeconds"] = grace_s
    if not began and metadata.get("generation"):
        metadata["generation"] += 1


def _pod_grace_s(pod: Object, how: DeleteOptions) -> int:
    """Seconds until the pod is gone: none when no kubelet has it or it has ended."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    wished = how.grace_s if how.grace_s is not None else spec.get("terminationGracePeriodSeconds", 30)
    return 1 if wished < 0 else int(wished)


def _finalizers(target: Target, metadata: dict[str, Any], how: DeleteOptions) -> list[str]:
    """The object's finalizers with those that the propagation policy adds."""
    present = list(metadata.get("finalizers", []))
    policy = how.propagation
    if not policy and target.resource.storage_key in _ORPHANING:
        policy = "Orphan"
    if not policy:
        return present
    kept = [name for name in present if name not in ("orphan", "foregroundDeletion")]
    wanted = {"Orphan": ["orphan"], "Foreground": ["foregroundDeletion"]}.get(policy, [])
    return kept + wanted


def _set_finalizers(metadata: dict[str, Any], finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _delete_definition(api: Api, target: Target, obj: Object, before: Stored, options: WriteOptions) -> Deletion:
    """A definition goes after its objects; those that finalizers hold keep it."""
    writing.mark_terminating(api, obj)
    marked = writing.save(api, target, obj, before, options)
    if not options.dry_run:
        served = [kind for kind in api.custom_kinds if kind.group_resource == target.name]
        for stored in list(api.store.list(target.name)) if served else ():
            delete(api, Target(served[0], stored.key.namespace, stored.key.name), options, DeleteOptions())
        writing.end_definition(api, target.name)
    return Deletion(marked, False)


def _delete_namespace(api: Api, target: Target, obj: Object, before: Stored, options: WriteOptions) -> Deletion:
    """A namespace only begins to go; it vanishes when its finalizers are taken away."""
    if not obj["metadata"].get("deletionTimestamp"):
        obj["metadata"]["deletionTimestamp"] = api.now()
        obj.setdefault("status", {})["phase"] = "Terminating"
    if obj.get("spec", {}).get("finalizers") or obj["metadata"].get("finalizers"):
        return Deletion(writing.save(api, target, obj, before, options), False)
    return Deletion(writing.remove(api, target, obj, before, options), True)
