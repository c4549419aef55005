"""A case as it goes on: its changes come one after the other, and the plugin stays the same, as in a running scheduler.

Next: `checks.events` and `checks.scope`, which look at the plugin's answers before and after each change.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.plugin_tools.check.cases import Case, DrawnChange, Manifest
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """What came of a change: the object before and after, and whether it is the pod that seeks a node."""

    change: DrawnChange
    old: KubeObject | None
    new: KubeObject | None
    is_own: bool

    @property
    def node_names(self) -> frozenset[str]:
        """Of a pod: the nodes that it was and is on."""
        pods = [item for item in (self.old, self.new) if isinstance(item, Pod)]
        return frozenset(pod.spec.node_name for pod in pods)


class CaseHistory:
    def __init__(self, subject: Subject, case: Case) -> None:
        self.trial = PluginTrial(subject, case)
        self._own = _key(case.pod)
        self._known: dict[Key, KubeObject] = {}
        for item in (case.pod, *case.objects):
            self._known[_key(item)] = _built(item)

    def apply(self, change: DrawnChange) -> AppliedChange | None:
        """None for a change of an object that is not there any more."""
        key = (change.kind, change.namespace, change.name)
        old = self._known.get(key)
        cluster = self.trial.cluster
        if change.new is None:
            if old is None:
                return None
            del self._known[key]
            cluster.remove(old)
            return AppliedChange(change, old, None, is_own=False)
        new = self._known[key] = _built(change.new)
        cluster.put(new)
        is_own = key == self._own
        if is_own and isinstance(new, Pod):
            self.trial.pod = cluster.signatures.info(new)
        return AppliedChange(change, old, new, is_own)


def _built(item: Manifest) -> KubeObject:
    (built,) = manifests.from_dicts([item]).objects
    return built


def _key(item: Manifest) -> Key:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]
