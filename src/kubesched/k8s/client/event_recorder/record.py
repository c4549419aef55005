"""What a component wants to be known: an event about an object, before it has a name, a time or a series.

Next: `series` decides whether it becomes an Event of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.k8s.model.storage import ObjectReference

NORMAL = "Normal"
WARNING = "Warning"

NOTE_LIMIT_BYTES = 1024
_CUT = " ..."


@dataclass(frozen=True, slots=True)
class EventToRecord:
    """An event that occurred. `reporting_controller` is who says it: for a pod's events the scheduler's name."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    related: ObjectReference | None = None
    reporting_host: str = ""
    """Where it is said, for kubelets: core v1 only."""

    @property
    def namespace(self) -> str:
        """Where the Event lives: with its object, and in "default" for objects that live nowhere."""
        return self.regarding.namespace or "default"


def pod_reference(namespace: str, name: str, uid: str, resource_version: str = "") -> ObjectReference:
    return ObjectReference(
        kind="Pod", namespace=namespace, name=name, uid=uid, api_version="v1", resource_version=resource_version
    )


def shorten(note: str) -> str:
    """The note as the API server takes it: at most 1024 bytes."""
    if len(note) * 4 <= NOTE_LIMIT_BYTES:
        return note
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT_BYTES:
        return note
    return encoded[: NOTE_LIMIT_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
