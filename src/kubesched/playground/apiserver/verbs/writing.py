"""The steps that creating and updating share: reading the body as the kind, checking, charging quotas, storing.

An object that would not change is not written: its version stays. A dry run does everything but the writing. Read
``create.py`` and ``update.py`` for who calls this.

Custom kinds are kept served: a CustomResourceDefinition is accepted after its creation and ended with its objects. The
real server's controllers do this moments later; here it happens within the request, as writes of their own, so that
watches see the same steps.

What would exceed a quota of the namespace is refused, what is admitted is added to its ``status.used``. A controller
says what is used at first and gives back what is deleted; here it only grows. Between ``charges_of`` and ``charge``
nobody else writes, so there is nothing to lock and nothing to try again. Both come last before an object is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from kubesched.k8s.model import limits as rules
from kubesched.k8s.model import quantity
from kubesched.k8s.model.requests import Amounts
from kubesched.playground.apiserver.body_text import Repeated
from kubesched.playground.apiserver.errors import StatusError, bad_request, forbidden, invalid
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.kinds import custom
from kubesched.playground.apiserver.openapi.decoding import forget_empty_lists
from kubesched.playground.apiserver.patching.apply import mark_reset, record, type_for
from kubesched.playground.apiserver.served_resource import DecodeError, Object, ServedResource, WriteContext
from kubesched.playground.apiserver.storage.store import ObjectKey, Stored
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions, decode_stored

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_MANAGER = "kube-apiserver"
_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def accept_names(api: Api, name: str) -> None:
    """Accepts the names of a definition, new or changed, unless another one of its group has them."""
    stored, resource = api.store.get(DEFINITIONS, ObjectKey("", name)), api.resource_of(DEFINITIONS)
    if stored is None or resource is None:
        return
    definition, before = decode_stored(stored), decode_stored(stored)
    status, names = definition["status"], definition["spec"]["names"]
    conflict = _conflict(api, definition)
    if conflict:
        reason, message = conflict
        _set_condition(api, status, "NamesAccepted", reason, message, "False")
        if not _is_true(status, "Established"):
            _set_condition(api, status, "Established", "NotAccepted", "not all names are accepted", "False")
    else:
        _set_condition(api, status, "NamesAccepted", "NoConflicts", "no conflicts found")
        if not _is_true(status, "Established"):
            why = "the initial names have been accepted"
            _set_condition(api, status, "Established", "InitialNamesAccepted", why)
        status["acceptedNames"] = dict(names)
    if definition == before:
        return
    record(definition, before, resource, _MANAGER, "status", api.now())
    api.store.put(DEFINITIONS, stored.key, definition, resource.selectable_fields, stored.revision)


def is_established(definition: Object) -> bool:
    """Whether its kinds are served."""
    return _is_true(definition["status"], "Established")


def _conflict(api: Api, definition: Object) -> tuple[str, str] | None:
    """Which name another definition of the same group has been given, if any."""
    spec, own = definition["spec"], definition["metadata"]["name"]
    others = [
        one["status"].get("acceptedNames") or {}
        for one in api.list(DEFINITIONS)
        if one["spec"].get("group") == spec.get("group") and one["metadata"]["name"] != own
    ]
    taken = {name for one in others for name in (one.get("plural"), one.get("singular"), *one.get("shortNames", ()))}
    taken_kinds = {name for one in others for name in (one.get("kind"), one.get("listKind"))}
    names = spec["names"]
    wanted = [("PluralConflict", names.get("plural")), ("SingularConflict", names.get("singular"))]
    wanted += [("ShortNamesConflict", name) for name in names.get("shortNames", ())]
    for reason, name in wanted:
        if name and name in taken:
            return reason, f"{quoted(name)} is already in use"
    for reason, name in (("KindConflict", names.get("kind")), ("ListKindConflict", names.get("listKind"))):
        if name and name in taken_kinds:
            return reason, f"{quoted(name)} is already in use"
    return None


def _is_true(status: Object, kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions") or ())


def _set_condition(api: Api, status: Object, kind: str, reason: str, message: str, value: str = "True") -> None:
    conditions = status["conditions"] = list(status.get("conditions") or [])
    made = _condition(kind, reason, message, api.now(), value)
    for position, one in enumerate(conditions):
        if one["type"] == kind:
            if one["status"] == value:
                made["lastTransitionTime"] = one["lastTransitionTime"]
            conditions[position] = made
            return
    conditions.append(made)


def mark_terminating(api: Api, definition: Object) -> None:
    """Says on the definition that it goes, and that its objects go first."""
    metadata, now = definition["metadata"], api.now()
    metadata["deletionTimestamp"] = now
    finalizers = metadata.setdefault("finalizers", [])
    if _FINALIZER not in finalizers:
        finalizers.append(_FINALIZER)
    why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    conditions = definition["status"].get("conditions") or []
    definition["status"]["conditions"] = [*conditions, _condition("Terminating", "InstanceDeletionPending", why, now)]


def end_definition(api: Api, name: str) -> None:
    """Removes a definition that is going, once none of its objects is left and nobody else holds it."""
    stored = api.store.get(DEFINITIONS, ObjectKey("", name))
    definition = decode_stored(stored) if stored else None
    if stored is None or definition is None or not definition["metadata"].get("deletionTimestamp"):
        return
    held = definition["metadata"].get("finalizers") != [_FINALIZER]
    resource = api.resource_of(DEFINITIONS)
    if held or resource is None or next(iter(api.list(name)), None) is not None:
        return
    del definition["metadata"]["finalizers"]
    api.store.delete(DEFINITIONS, stored.key, definition, resource.selectable_fields)
    for other in api.list(DEFINITIONS):  # a name is free again
        if other["spec"].get("group") == definition["spec"].get("group"):
            accept_names(api, other["metadata"]["name"])
    refresh_custom_kinds(api)


def _condition(kind: str, reason: str, message: str, now: str, value: str = "True") -> Object:
    return {"type": kind, "status": value, "lastTransitionTime": now, "reason": reason, "message": message}


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
    if resource.storage_key == DEFINITIONS:
        accept_names(api, stored.key.name)
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
    if resource.storage_key == DEFINITIONS:
        refresh_custom_kinds(api)
    elif resource.is_custom:
        end_definition(api, resource.group_resource)
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
    present = [one for one in api.list(DEFINITIONS) if is_established(one)]
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


_QUOTAS = "resourcequotas"


@dataclass(frozen=True, slots=True)
class Charge:
    """A quota as it will be when the object is stored."""

    before: Stored
    used: Amounts


def charges_of(api: Api, target: Target, new: Object, old: Object | None) -> list[Charge]:
    """What storing the object adds to the quotas of its namespace. Raises StatusError when one would be exceeded."""
    quotas = api.store.list(_QUOTAS, target.namespace) if target.resource.namespaced else ()
    if not quotas or not _is_looked_at(target, new, old):
        return []
    of, now = target.resource.group_resource, api.clock()
    taken = rules.usage(of, new, now)
    had = rules.usage(of, old, now) if old is not None else {}
    found: list[Charge] = []
    for stored in quotas:
        quota = decode_stored(stored)
        hard, used = (_amounts((quota.get("status") or {}).get(name)) for name in ("hard", "used"))
        names = rules.counted_names(of, hard)
        selectors = rules.scope_selectors(quota["spec"])
        if not names or not rules.is_in_scope(of, selectors, new):
            continue
        _refuse_uncountable(target, new, stored.key.name, names, used)
        more = taken
        if old is not None and rules.is_in_scope(of, selectors, old):
            more = {name: amount - had[name] if name in had else amount for name, amount in taken.items()}
        more = {name: amount for name, amount in more.items() if name in hard and amount.nanos > 0}
        if more:
            raised = used | {name: used.get(name, _NOTHING) + amount for name, amount in more.items()}
            if target.subresource != "status" and (why := rules.exceeded(stored.key.name, more, used, hard)):
                raise _refused(target, new, why)
            found.append(Charge(stored, raised))
    return found


def charge(api: Api, charges: Iterable[Charge], options: WriteOptions) -> None:
    """Writes what the quotas are charged with."""
    resource = api.resource_of(_QUOTAS)
    assert resource is not None
    for one in () if options.dry_run else charges:
        quota, before, now = decode_stored(one.before), decode_stored(one.before), api.now()
        quota["status"]["used"] = {name: str(one.used[name]) for name in sorted(one.used)}
        record(quota, before, resource, _MANAGER, "status", now)
        api.store.put(_QUOTAS, one.before.key, quota, resource.selectable_fields, one.before.revision)


_NOTHING = quantity.from_int(0)


def _is_looked_at(target: Target, new: Object, old: Object | None) -> bool:
    """Most kinds count when they are created; some can come to take more later."""
    of, through = target.resource.group_resource, target.subresource
    if of in rules.NEVER_COUNTED:
        return False
    if old is None:
        return not through
    if of == rules.PODS:
        is_moved = not through and rules.is_terminating(new) != rules.is_terminating(old)
        return is_moved or through == "resize"
    if of == rules.CLAIMS and through == "status":
        return _allocated(new) != _allocated(old) or rules.attribute_classes(new) != rules.attribute_classes(old)
    return not through and of in (rules.SERVICES, rules.CLAIMS, rules.DEVICE_CLAIMS)


def _allocated(claim: Object) -> object:
    return ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")


def _refuse_uncountable(target: Target, obj: Object, quota: str, names: list[str], used: Amounts) -> None:
    """Nothing is admitted under a quota that does not know what is used, or whose measure the object leaves out."""
    if why := rules.uncountable(target.resource.group_resource, quota, names, obj):
        raise _refused(target, obj, why)
    if any(name not in used for name in names):
        listed = ",".join(sorted(names))
        raise _refused(target, obj, f"status unknown for quota: {quota}, resources: {listed}")


def _refused(target: Target, obj: Object, why: str) -> StatusError:
    return forbidden(target.resource, obj["metadata"].get("name", ""), why)


def _amounts(given: object) -> Amounts:
    return {name: quantity.parse(text) for name, text in given.items()} if isinstance(given, dict) else {}
