"""Update: an object is replaced by another one of the same name.

Guarantees that nobody's change is lost when the request names the version it changes, that a no-op is not written, and
that taking away the last finalizer of an object on its way out removes it. ``apply_update`` is also what patches and
most subresources end in. Read ``patch.py`` next.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.errors import (
    StatusError,
    bad_request,
    conflict,
    modified,
    not_found,
    resource_details,
    unclassified,
)
from kubesched.playground.apiserver.served_resource import Object, ServedResource
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.create import create, place_in_namespace
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions, decode_stored, version_error

_SERVER_OWNED = ("creationTimestamp", "generation")
_OF_STATUS = ("status", "approval")
_KEPT_WHEN_ABSENT = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def update(api: Api, target: Target, obj: Object, options: WriteOptions) -> tuple[Stored, bool]:
    """Replaces the object; True says that it was created instead."""
    resource, metadata = target.resource, obj["metadata"]
    if not metadata.get("name"):
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if metadata["name"] != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    place_in_namespace(target, metadata)
    before = api.store.get(resource.storage_key, writing.key_of(target))
    if before is None:
        if not resource.create_on_update or target.subresource:
            raise not_found(resource, target.name)
        if not options.dry_run:
            metadata.pop("resourceVersion", None)
        return create(api, target, obj, options), True
    _check_uid(target, metadata, before, options)
    return apply_update(api, target, obj, before, options), False


def apply_update(api: Api, target: Target, new: Object, before: Stored, options: WriteOptions) -> Stored:
    """Checks the new state against the old one and writes it."""
    resource = target.resource
    old = writing.load(resource, before)
    options.check_grants(target, new, old)
    _check_version(target, new["metadata"], before)
    _take_over_metadata(new["metadata"], old["metadata"])
    if target.subresource == "status":
        _keep_all_but_status(new, old, resource.status_keeps)
    resource.set_times(new, api.now())
    # before anything else changes the object: a manager owns what it sent
    writing.record_manager(new, old, target, options, api.now())
    if target.subresource not in _OF_STATUS and "status" in resource.subresources:
        _restore(new, old, "status")
    context = options.context(api, target.subresource)
    resource.prepare_update(new, old, context)
    new = api.admission.mutate(target, "UPDATE", new, old, options)
    if resource.tracks_generation and target.subresource != "status" and _wants_new_generation(resource, new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    writing.check(resource, new, old, context)
    resource.validate_admission(new, old, context)
    api.admission.validate(target, "UPDATE", new, old, options)
    charges = writing.charges_of(api, target, new, old)
    if is_finished(new["metadata"], old["metadata"]):
        return writing.remove(api, target, new, before, options)
    writing.charge(api, charges, options)
    return writing.save(api, target, new, before, options)


def _check_uid(target: Target, new: dict[str, Any], before: Stored, options: WriteOptions) -> None:
    """A uid in the body of an update must be the stored one; a patch is told by validation instead."""
    uid = decode_stored(before)["metadata"].get("uid") if new.get("uid") else None
    if uid is not None and new["uid"] != uid:
        what = f"UID in precondition: {new['uid']}, UID in object meta: {uid}"
        raise precondition_failed(target, what, options.dry_run)


def _check_version(target: Target, new: dict[str, Any], before: Stored) -> None:
    """The version that the request names must be the stored one."""
    resource, name = target.resource, target.name
    version = new.get("resourceVersion") or ""
    error = version_error(version)
    if error:
        raise unclassified(error)
    if not int(version or "0"):
        if not resource.unconditional_update and target.subresource in ("", "status"):
            raise _version_required(target)
    elif int(version) != before.revision:
        raise modified(resource, name)


def _version_required(target: Target) -> StatusError:
    why = "Invalid value: 0: must be specified for an update"
    details = resource_details(target.resource, target.name)
    details["causes"] = [{"reason": "FieldValueInvalid", "message": why, "field": "metadata.resourceVersion"}]
    what = f'{target.resource.group_resource} "{target.name}" is invalid'
    return StatusError(422, "Invalid", f"{what}: metadata.resourceVersion: {why}", details)


def precondition_failed(target: Target, what: str, dry_run: bool) -> StatusError:
    """A uid or version that the request insists on is not the stored one; a dry run knows no root of the store."""
    resource = target.resource
    folder = f"{resource.group}/{resource.plural}" if resource.is_custom else resource.plural
    root = "" if dry_run else "/registry"
    path = "/".join(part for part in (folder, target.namespace, target.name) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {root}/{path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {what}"
    )
    return conflict(resource, target.name, why)


def _take_over_metadata(new: dict[str, Any], old: dict[str, Any]) -> None:
    """What a client cannot change comes from the old object."""
    for name in _SERVER_OWNED:
        _restore(new, old, name)
    for name in _KEPT_WHEN_ABSENT:
        if name in old and not new.get(name):
            new[name] = old[name]
    if "managedFields" not in new and "managedFields" in old:
        new["managedFields"] = old["managedFields"]


def _keep_all_but_status(new: Object, old: Object, kept_metadata: tuple[str, ...]) -> None:
    for name in set(new) | set(old):
        if name not in ("metadata", "status"):
            _restore(new, old, name)
    for name in ("ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds", *kept_metadata):
        _restore(new["metadata"], old["metadata"], name)


def _restore(new: dict[str, Any], old: dict[str, Any], name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _wants_new_generation(resource: ServedResource, new: Object, old: Object) -> bool:
    """A change of the wish counts, not one of the description or of the state."""
    ignored = ("metadata", "status")
    if any(new[name] != old.get(name) for name in new if name not in ignored):
        return True
    if any(name not in new for name in old if name not in ignored):
        return True
    counted = resource.counted_metadata
    return any((new["metadata"].get(name) or {}) != (old["metadata"].get(name) or {}) for name in counted)


def is_finished(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """The object was being deleted and nothing holds it any more."""
    if new.get("finalizers") or not old.get("deletionTimestamp"):
        return False
    return bool(old.get("finalizers")) and not old.get("deletionGracePeriodSeconds")
