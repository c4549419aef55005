"""JSON merge patch (RFC 7396): objects merge key by key, null removes, everything else replaces."""

from __future__ import annotations

from typing import Any


def apply(document: Any, patch: Any) -> Any:
    """A new document; neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    merged: dict[str, Any] = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = apply(merged.get(name), value)
    return merged
