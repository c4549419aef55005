"""JSON merge patches, as RFC 7386 has them: what leads from one object to another, and the object after a patch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The patch from one to the other; empty if they are alike."""
    patch: dict[str, Any] = {}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[key] = merge_patch(old, new)
        else:
            patch[key] = new
    return patch


def merged(whole: Any, patch: Any) -> Any:
    """What becomes of an object by a patch; it stays as it was itself."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(whole) if isinstance(whole, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
