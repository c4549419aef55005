"""Refusals of the API server as exceptions: each carries the Kubernetes Status that the client receives.

Guarantees the real server's code, reason, message and details for each kind of refusal. Raised by verbs, kinds and
patching; turned into an answer by ``http/app.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.playground.apiserver.served_resource import InvalidField, ServedResource


class StatusError(Exception):
    """A request refused with a Kubernetes Status."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.continue_token = ""

    def status(self) -> dict[str, Any]:
        """The Status object, keys in the real server's order."""
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        if self.message:
            body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def resource_details(resource: ServedResource, name: str = "", **more: Any) -> dict[str, Any]:
    """The details of an error about one object; ``kind`` there holds the plural, as in the real server."""
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    return {**details, "kind": resource.plural, **more}


def not_found(resource: ServedResource, name: str) -> StatusError:
    message = f'{resource.group_resource} "{name}" not found'
    return StatusError(404, "NotFound", message, resource_details(resource, name))


def already_exists(resource: ServedResource, name: str) -> StatusError:
    message = f'{resource.group_resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, resource_details(resource, name))


def conflict(resource: ServedResource, name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, resource_details(resource, name))


def modified(resource: ServedResource, name: str) -> StatusError:
    """The object changed since the version that the request names."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def forbidden(resource: ServedResource, name: str, why: str) -> StatusError:
    """An admission rule refuses; authorization has its own wording."""
    name = name or "Unknown"
    message = f'{resource.group_resource} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, resource_details(resource, name))


def invalid(resource: ServedResource, name: str, errors: Sequence[InvalidField]) -> StatusError:
    """Validation found errors; all are told."""
    texts = list(dict.fromkeys(f"{e.field}: {e.message}" for e in errors))
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    group = resource.stored_as.partition(".")[2] if resource.stored_as else resource.group
    kind_text = f"{resource.kind}.{group}" if group else resource.kind
    causes = [{"reason": e.reason, "message": e.message, "field": e.field} for e in errors]
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details |= {"kind": resource.kind, "causes": causes}
    return StatusError(422, "Invalid", f'{kind_text} "{name}" is invalid: {listed}', details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unclassified(message: str) -> StatusError:
    """An error of the client that the real server answers as it answers failures of its own: 500, no reason."""
    return StatusError(500, "", message)


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def method_not_supported(resource: ServedResource | None, action: str) -> StatusError:
    if resource is None:
        return StatusError(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
        )
    message = f'{action} is not supported on resources of kind "{resource.group_resource}"'
    return StatusError(405, "MethodNotAllowed", message, resource_details(resource))


def no_such_path() -> StatusError:
    """The path names nothing that is served and looks like a resource request."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def unsupported_media_type(allowed: Sequence[str]) -> StatusError:
    listed = ", ".join(allowed)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return StatusError(415, "UnsupportedMediaType", message)
