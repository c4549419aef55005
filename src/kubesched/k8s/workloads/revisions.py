"""Which template a pod of a stateful set or daemon set was made from.

Pods carry the hash of their template as a label. Pods that were there before, with a hash of somebody else's making,
count as made from the first template that was seen.
"""

from __future__ import annotations

from kubesched.k8s.model.core import Pod, PodTemplateSpec
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.templates import template_hash

REVISION_HASH_LABEL = "controller-revision-hash"


class Revisions:
    """The hashes seen so far, by owner."""

    def __init__(self) -> None:
        self._hashes: dict[str, list[str]] = {}
        self._last: dict[str, tuple[PodTemplateSpec | None, str]] = {}

    def current(self, owner: KubeObject, template: PodTemplateSpec | None) -> str:
        uid = owner.metadata.uid
        known = self._last.get(uid)
        if known is not None and known[0] is template:
            return known[1]
        found = template_hash(template)
        self._last[uid] = (template, found)
        hashes = self._hashes.setdefault(uid, [])
        if found not in hashes:
            hashes.append(found)
        return found

    def is_current(self, owner: KubeObject, template: PodTemplateSpec | None, pod: Pod) -> bool:
        current = self.current(owner, template)
        hashes = self._hashes[owner.metadata.uid]
        own = pod.labels.get(REVISION_HASH_LABEL, "").rpartition("-")[2]
        return (own if own in hashes else hashes[0]) == current
