"""The life of a CustomResourceDefinition beyond its being stored: accepted after its creation, ended with its objects.

The real server's controllers do this moments later; here it happens within the request, as writes of their own, so
that watches see the same steps. ``create.py``, ``delete.py`` and ``writing.py`` call this.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.apiserver.api import Api, decode_stored
from kubesched.apiserver.kinds.kind import Object, ServedResource
from kubesched.apiserver.patching.apply import record
from kubesched.apiserver.storage.store import ObjectKey, Stored

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_MANAGER = "kube-apiserver"
_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def establish(api: Api, resource: ServedResource, stored: Stored) -> None:
    """Accepts the names of a new definition: there is nobody who could have taken them."""
    definition, now = decode_stored(stored), api.now()
    before = decode_stored(stored)
    definition["status"]["conditions"] = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    definition["status"]["acceptedNames"] = dict(definition["spec"]["names"])
    record(definition, before, resource, _MANAGER, "status", now)
    api.store.put(DEFINITIONS, stored.key, definition, resource.selectable_fields, stored.revision)


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
    refresh(api)


def _condition(kind: str, reason: str, message: str, now: str) -> Object:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
