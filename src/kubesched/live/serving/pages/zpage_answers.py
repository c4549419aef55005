"""Text or object: what `/statusz` and `/flagz` answer is negotiated as in Kubernetes.

Next: `zpages`, for the contents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from kubesched.live.serving import answers
from kubesched.live.serving.pages.media_types import accepted
from kubesched.live.serving.pages.zpages import GROUP
from kubesched.scheduler.config import to_yaml

VERSIONS = ("v1beta1", "v1alpha1")
DEPRECATED = "v1alpha1"
_OBJECTS = ("application/json", "application/yaml")
_OFFERED = "only the following media types are accepted: application/json, application/yaml, text/plain"


def negotiated(
    request: web.Request, kind: str, text: Callable[[], str], as_object: Callable[[str], dict[str, Any]]
) -> web.Response:
    """`as_object` is given the version that is asked for."""
    header = request.headers.get("Accept", "")
    if not header.strip():
        return answers.text(text())
    for found in accepted(header):
        if found.name in ("*/*", "text/*", "text/plain"):
            return answers.text(text())
        version = found.parameters.get("v", "")
        asks_for = (found.parameters.get("g"), found.parameters.get("as"))
        if found.name in _OBJECTS and asks_for == (GROUP, kind) and version in VERSIONS:
            return _object(request, kind, found.name, as_object(version), version)
    return answers.status_answer(request, 406, "NotAcceptable", _OFFERED)


def _object(request: web.Request, kind: str, media_type: str, value: dict[str, Any], version: str) -> web.Response:
    if media_type == "application/yaml":
        answer = answers.text(to_yaml(value), content_type=media_type)
    else:
        answer = answers.json_answer(request, value)
    if version == DEPRECATED:
        page = kind.lower()
        answer.headers["Warning"] = (
            f'299 - "This version of the {page} endpoint is deprecated. Please use a newer version."'
        )
    return answer
