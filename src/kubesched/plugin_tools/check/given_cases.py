"""Cases from a cluster that somebody has: one for each of its pending pods."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

from kubesched.plugin_tools.check.cases import Case, Manifest

_MOST_CASES = 50


def cases_of(objects: Iterable[Manifest]) -> list[Case]:
    found = [_with_namespace(item) for item in objects]
    pending = [item for item in found if item["kind"] == "Pod" and not item.get("spec", {}).get("nodeName")]
    return [Case(pod, tuple(item for item in found if item is not pod), _visitor(pod)) for pod in pending[:_MOST_CASES]]


def _with_namespace(item: Manifest) -> Manifest:
    copied = deepcopy(item)
    if copied["kind"] == "Pod":
        copied["metadata"].setdefault("namespace", "default")
        copied.setdefault("spec", {}).setdefault("containers", [])
    return copied


def _visitor(pod: Manifest) -> Manifest:
    copied = deepcopy(pod)
    copied["metadata"] |= {"name": "visitor", "uid": "uid-visitor"}
    return copied
