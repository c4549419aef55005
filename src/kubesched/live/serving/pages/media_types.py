"""Which form of an answer a client asks for: the Accept header, read as far as these pages need it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MediaRange:
    """One of the forms that a client accepts."""

    name: str
    quality: float = 1.0
    parameters: dict[str, str] = field(default_factory=dict)


def accepted(header: str) -> list[MediaRange]:
    """The best first; those that are equally good as they stand."""
    ranges = [_range(part) for part in header.split(",") if part.strip()]
    return sorted(ranges, key=lambda found: -found.quality)


def prefers_text(header: str) -> bool:
    """Whether plain text is asked for by name, before JSON."""
    for found in accepted(header):
        if found.name in ("text/plain", "text/*"):
            return True
        if found.name in ("application/json", "application/*"):
            return False
    return False


def _range(part: str) -> MediaRange:
    name, *rest = (piece.strip() for piece in part.split(";"))
    parameters = dict(piece.partition("=")[::2] for piece in rest)
    quality = 1.0
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        quality = 0.0
    return MediaRange(name.lower(), quality, parameters)
