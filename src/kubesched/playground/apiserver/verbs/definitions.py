"""The life of a CustomResourceDefinition beyond its being stored: accepted after its creation, ended with its objects.

The real server's controllers do this moments later; here it happens within the request, as writes of their own, so
that watches see the same steps. ``create.py``, ``delete.py`` and ``writing.py`` call this.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.playground.apiserver.api import Api, decode_stored
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.kinds.kind import Object
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.storage.store import ObjectKey

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


def end(api: Api, name: str, refresh: Callable[[Api], None]) -> None:
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
    refresh(api)


def _condition(kind: str, reason: str, message: str, now: str, value: str = "True") -> Object:
    return {"type": kind, "status": value, "lastTransitionTime": now, "reason": reason, "message": message}
