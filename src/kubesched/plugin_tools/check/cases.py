"""A case: a cluster, a pod that seeks a node, and changes that may come. All plain manifests, easy to show.

So it can be written down and taken apart. Those of a cluster that somebody has are one for each of its pending pods.

Next: `drawing` makes cases, `asking` builds one up.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

Manifest = dict[str, Any]

SUBJECT_POD = "asking"
"""The name of the pod that seeks a node, in drawn cases."""


@dataclass(frozen=True, slots=True)
class DrawnChange:
    """An object comes, becomes other than it was, or goes (`new` is None). Which one, `kind` and `name` say."""

    kind: str
    name: str
    namespace: str
    new: Manifest | None

    def is_about(self, item: Manifest) -> bool:
        metadata = item["metadata"]
        return (item["kind"], metadata["name"], metadata.get("namespace", "")) == (
            self.kind,
            self.name,
            self.namespace,
        )

    @classmethod
    def to(cls, item: Manifest) -> DrawnChange:
        return cls(item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", ""), item)

    @classmethod
    def removal(cls, item: Manifest) -> DrawnChange:
        return cls(item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", ""), None)


@dataclass(frozen=True, slots=True)
class Case:
    pod: Manifest
    objects: tuple[Manifest, ...]
    visitor: Manifest
    """A pod that is put on nodes and taken off again."""
    changes: tuple[DrawnChange, ...] = ()

    @property
    def nodes(self) -> tuple[Manifest, ...]:
        return tuple(item for item in self.objects if item["kind"] == "Node")

    def after(self, change: DrawnChange) -> Case:
        """The case as it is once the change has come."""
        if change.new is not None and change.is_about(self.pod):
            return replace(self, pod=change.new)
        position = next((at for at, item in enumerate(self.objects) if change.is_about(item)), len(self.objects))
        came = () if change.new is None else (change.new,)
        return replace(self, objects=(*self.objects[:position], *came, *self.objects[position + 1 :]))

    def as_record(self) -> dict[str, Any]:
        """For reports."""
        return {"pod": self.pod, "objects": list(self.objects)}


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
