"""The steps that creating and updating share: reading the body as the kind, checking, storing, keeping custom kinds
served.

An object that would not change is not written: its version stays. A dry run does everything but the writing. Read
``create.py`` and ``update.py`` for who calls this.
"""

from __future__ import annotations

import msgspec

from kubesched.playground.apiserver.api import Api, decode_stored
from kubesched.playground.apiserver.errors import StatusError, bad_request, invalid
from kubesched.playground.apiserver.kinds import custom
from kubesched.playground.apiserver.kinds.kind import DecodeError, Object, ServedResource, WriteContext
from kubesched.playground.apiserver.openapi.empty_lists import forget_empty_lists
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.patching.apply.managed import mark_reset, type_for
from kubesched.playground.apiserver.repeated_fields import Repeated
from kubesched.playground.apiserver.storage.store import ObjectKey, Stored
from kubesched.playground.apiserver.verbs import definitions
from kubesched.playground.apiserver.verbs.request import Target, WriteOptions


def key_of(target: Target) -> ObjectKey:
    return ObjectKey(target.namespace if target.resource.namespaced else "", target.name)


def read_as_kind(
    resource: ServedResource,
    obj: Object,
    options: WriteOptions,
    repeated: Repeated,
    kind: str = "",
    version: str = "",
) -> None:
    """Checks the body against the kind's schema, in place; unknown and repeated fields are refused, told or ignored."""
    prefix = (
        f'{kind or resource.kind} in version "{version or resource.version}" cannot be handled as a {resource.kind}: '
    )
    try:
        if not isinstance(obj.get("metadata", {}) or {}, dict):
            raise DecodeError(_wrong_metadata(obj["metadata"], resource))
        mark_reset(obj)
        unknown = resource.decode(obj)
    except DecodeError as error:
        raise bad_request(prefix + str(error)) from None
    obj["metadata"] = obj.get("metadata") or {}
    report_fields(repeated.findings(unknown), options, prefix)


def report_fields(findings: list[str], options: WriteOptions, prefix: str) -> None:
    """What fieldValidation says about unknown and repeated fields."""
    if not findings or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        raise bad_request(f"{prefix}strict decoding error: {', '.join(findings)}")
    warn_of_fields(findings, options)


def warn_of_fields(findings: list[str], options: WriteOptions) -> None:
    """A warning for each; what the YAML decoder says in one text is told line by line."""
    for finding in findings:
        _, is_yaml, lines = finding.partition("yaml: unmarshal errors:\n")
        options.warnings.extend([line.strip() for line in lines.splitlines()] if is_yaml else [finding])


def _wrong_metadata(value: object, resource: ServedResource) -> str:
    word = {str: "string", bool: "bool", list: "array"}.get(type(value), "number")
    return f"json: cannot unmarshal {word} into Go struct field {resource.kind}.metadata of type v1.ObjectMeta"


def check(resource: ServedResource, new: Object, old: Object | None, context: WriteContext) -> None:
    """Refuses what the kind's validation finds wrong."""
    errors = resource.validate_in_context(new, old, context)
    errors += resource.validate_through.get(context.subresource, resource.validate)(new, old)
    if errors:
        raise invalid(resource, new["metadata"].get("name", ""), errors)


def load(resource: ServedResource, stored: Stored) -> Object:
    """The stored object in the version of this resource, free to be changed."""
    obj = decode_stored(stored)
    return resource.from_stored(obj) if resource.from_stored else obj


def save(api: Api, target: Target, obj: Object, before: Stored | None, options: WriteOptions) -> Stored:
    """Writes the object (unless dry run or unchanged) and returns it as stored."""
    resource = target.resource
    stored_form = resource.to_stored(obj) if resource.to_stored else obj
    key = ObjectKey(target.namespace if resource.namespaced else "", obj["metadata"]["name"])
    if before is not None and _unchanged(stored_form, before):
        return before
    _order_metadata(stored_form)
    if options.dry_run:
        return _as_if_stored(key, stored_form, before)
    fields = storage_resource(api, resource).selectable_fields
    stored = api.store.put(resource.storage_key, key, stored_form, fields, before.revision if before else 0)
    if resource.storage_key == definitions.DEFINITIONS:
        definitions.accept_names(api, stored.key.name)
        refresh_custom_kinds(api)
    return stored


_METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


def _order_metadata(obj: Object) -> None:
    """The real server's order of fields, so that text that shows objects is the same too."""
    metadata = obj["metadata"]
    metadata.setdefault("resourceVersion", "")
    obj["metadata"] = {name: metadata[name] for name in _METADATA_ORDER if name in metadata}


def remove(api: Api, target: Target, obj: Object, before: Stored, options: WriteOptions) -> Stored:
    """Takes the object out of the store; ``obj`` is the last state, which watches are told."""
    resource = target.resource
    stored_form = resource.to_stored(obj) if resource.to_stored else obj
    if options.dry_run:
        return _as_if_stored(before.key, stored_form, before)
    fields = storage_resource(api, resource).selectable_fields
    stored = api.store.delete(resource.storage_key, before.key, stored_form, fields)
    if resource.storage_key == definitions.DEFINITIONS:
        refresh_custom_kinds(api)
    elif resource.is_custom:
        definitions.end(api, resource.group_resource, refresh_custom_kinds)
    return stored


def storage_resource(api: Api, resource: ServedResource) -> ServedResource:
    """The resource whose form the objects are stored in."""
    if not resource.stored_as:
        return resource
    return api.resource_of(resource.stored_as) or resource


def _unchanged(obj: Object, before: Stored) -> bool:
    """Equal but for the version and for the times in managed fields."""
    old = decode_stored(before)
    return _comparable(obj) == _comparable(old)


def _comparable(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    if "managedFields" in metadata:
        metadata["managedFields"] = [
            {name: value for name, value in entry.items() if name != "time"} for entry in metadata["managedFields"]
        ]
    return {**obj, "metadata": metadata}


def _as_if_stored(key: ObjectKey, obj: Object, before: Stored | None) -> Stored:
    if before is None:
        obj["metadata"].pop("resourceVersion", None)
    else:
        obj["metadata"]["resourceVersion"] = str(before.revision)
    return Stored(key, before.revision if before else 0, msgspec.json.encode(obj), {}, {})


def with_version(stored: Stored, version: str) -> Stored:
    """What a dry run shows of an object that was sent with a version: nothing gave it another one."""
    obj = decode_stored(stored)
    obj["metadata"]["resourceVersion"] = version
    _order_metadata(obj)
    return msgspec.structs.replace(stored, raw=msgspec.json.encode(obj))


def refresh_custom_kinds(api: Api) -> None:
    """Serves the kinds of the CustomResourceDefinitions as they are now."""
    present = [one for one in api.list(definitions.DEFINITIONS) if definitions.is_established(one)]
    api.serve_custom(kind for definition in present for kind in custom.served_resources(definition))


def refuse_terminating_namespace(api: Api, target: Target, name: str) -> None:
    """Creating in a namespace that is missing or going is refused."""
    if not target.resource.namespaced:
        return
    namespace = api.get("namespaces", "", target.namespace)
    if namespace is None:
        details = {"name": target.namespace, "kind": "namespaces"}
        raise StatusError(404, "NotFound", f'namespaces "{target.namespace}" not found', details)
    if namespace["metadata"].get("deletionTimestamp"):
        raise _namespace_terminating(target, name)


def _namespace_terminating(target: Target, name: str) -> StatusError:
    resource, namespace, name = target.resource, target.namespace, name or "Unknown"
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    details = {"name": name, **({"group": resource.group} if resource.group else {}), "kind": resource.plural}
    message = f'{resource.group_resource} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, {**details, "causes": [cause]})


def record_manager(new: Object, old: Object | None, target: Target, options: WriteOptions, now: str) -> None:
    """Notes in managedFields which fields this request's manager wrote."""
    if not options.is_apply:
        record(new, old, target.resource, options.manager, target.subresource, now)
    if not target.resource.is_custom:
        forget_empty_lists(new, type_for(target.resource))
