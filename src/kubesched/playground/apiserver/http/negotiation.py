"""Which form of an answer a client wants: JSON or YAML, the object itself, its metadata only, or a table.

Reads Accept as the real server does, with its refusals, but for protobuf: who takes JSON, too, gets JSON, which is at
hand. ``answers.py`` makes the forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kubesched.playground.apiserver.errors import StatusError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MEDIA_TYPES = (JSON, YAML, PROTOBUF)

_STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The chosen form; ``transform`` is "" for the object as it is, ``version`` that of meta.k8s.io for a transform."""

    media_type: str = JSON
    transform: str = ""
    version: str = "v1"


def not_acceptable(is_collection: bool) -> StatusError:
    offered = ", ".join(MEDIA_TYPES + _STREAMS if is_collection else MEDIA_TYPES)
    message = f"406: Not Acceptable\n\nAvailable representations: {offered}"
    return StatusError(406, "NotAcceptable", message, {})


def only_accepted(offered: tuple[str, ...] = MEDIA_TYPES) -> StatusError:
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(offered)}")


@lru_cache(maxsize=256)
def choose(accept: str, transforms: tuple[str, ...] = TRANSFORMS, is_collection: bool = True) -> Wanted:
    """The first clause that can be served; protobuf only if no other can."""
    if not accept.strip():
        return Wanted()
    known, takes_protobuf = False, False
    for media_type, parameters in accepted(accept):
        if media_type == "*/*":
            media_type = JSON
        if media_type not in MEDIA_TYPES:
            continue
        known = True
        wanted = _as_wanted(media_type, parameters, transforms)
        if wanted is not None and media_type != PROTOBUF:
            return wanted
        takes_protobuf = takes_protobuf or (wanted is not None and not wanted.transform)
    if takes_protobuf:
        return Wanted(PROTOBUF)
    raise only_accepted() if known else not_acceptable(is_collection)


def _as_wanted(media_type: str, parameters: dict[str, str], transforms: tuple[str, ...]) -> Wanted | None:
    """None when the clause asks for a transform that does not exist here."""
    transform = parameters.get("as", "")
    if not transform:
        return Wanted(media_type)
    group, version = parameters.get("g", ""), parameters.get("v", "")
    if transform not in transforms:
        return None
    if transform == "APIGroupDiscoveryList":
        return Wanted(media_type, transform, version) if version == "v2" else None
    if group != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    return Wanted(media_type, transform, version)


def accepted(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Media types with their parameters, by falling quality."""
    found: list[tuple[float, int, str, dict[str, str]]] = []
    for at, clause in enumerate(accept.split(",")):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(_parameter(part) for part in rest if part)
        found.append((-_quality(parameters.pop("q", "1")), at, media_type.lower(), parameters))
    return [(media_type, parameters) for _, _, media_type, parameters in sorted(found, key=lambda f: f[:2])]


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip().lower(), value.strip().strip('"')


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
