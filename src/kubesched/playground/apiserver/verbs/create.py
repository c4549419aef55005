"""Create: a new object under the name it carries, or under a generated one.

Guarantees the real server's order: namespace, metadata, managed fields (a manager owns what it sent, not what admission
adds), the kind's admission, validation, quotas, then the store (a taken name is told last). Read ``writing.py`` for the
shared steps and ``update.py`` for its sibling.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.errors import already_exists, bad_request, unclassified
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.storage.store import ObjectKey, Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions, version_error

_SET_BY_SERVER = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
)


def create(api: Api, target: Target, obj: Object, options: WriteOptions) -> Stored:
    """Stores a new object; ``obj`` has passed ``writing.read_as_kind``."""
    resource, metadata = target.resource, obj["metadata"]
    place_in_namespace(target, metadata)
    writing.refuse_terminating_namespace(api, target, metadata.get("name", ""))
    options.check_grants(target, obj, None)
    version = metadata.pop("resourceVersion", "")
    fill_metadata(api, target, metadata)
    resource.set_times(obj, api.now())
    writing.record_manager(obj, None, target, options, api.now())
    context = options.context(api)
    resource.prepare_create(obj, context)
    obj = api.admission.mutate(target, "CREATE", obj, None, options)
    metadata = obj["metadata"]
    writing.check(resource, obj, None, context)
    resource.validate_admission(obj, None, context)
    api.admission.validate(target, "CREATE", obj, None, options)
    charges = writing.charges_of(api, target, obj, None)
    if version and not options.dry_run and not version_error(version) and int(version):
        raise unclassified("resourceVersion should not be set on objects to be created")
    if api.store.get(resource.storage_key, ObjectKey(metadata.get("namespace", ""), metadata["name"])):
        raise already_exists(resource, metadata["name"])
    writing.charge(api, charges, options)
    stored = writing.save(api, target, obj, None, options)
    return writing.with_version(stored, version) if version and options.dry_run else stored


def place_in_namespace(target: Target, metadata: dict[str, Any]) -> None:
    """The object lies in the namespace of the path; another one in the body is refused."""
    if not target.resource.namespaced:
        if metadata.pop("namespace", ""):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        return
    if metadata.get("namespace", "") not in ("", target.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = target.namespace


def fill_metadata(api: Api, target: Target, metadata: dict[str, Any]) -> None:
    """Sets what only the server may set, and the name when only its beginning is given."""
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:58] + api.new_suffix()
    metadata["uid"] = api.new_uid()
    metadata["creationTimestamp"] = api.now()
    if target.resource.tracks_generation:
        metadata["generation"] = 1
