"""What `explain` and `kubectl why` are asked about: a pod, a workload, a namespace or a node, by the names kubectl has.

    web-1, pod/web-1, shop/web-1                      a pod
    deployment/web, shop/sts/db                       a workload: its pods, grouped by cause
    namespace/shop                                    all that waits in a namespace
    node/general-1                                    who could not come to a node
    podgroup/training, ml/pg/training                 a pod group: who is missing, which placement came nearest
    compositepodgroup/training                        a group of groups: which of them lack pods, or room

Without a name it is all that waits, in one namespace or in all of them.

Next: `kubesched.simulator.asking`, which answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

from kubesched.k8s.errors import KubeschedError

_WORKLOADS = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("replicationcontroller", "replicationcontrollers", "rc"), "ReplicationController"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "CronJob"),
}
_PODS = ("pod", "pods", "po")
_NAMESPACES = ("namespace", "namespaces", "ns")
_NODES = ("node", "nodes", "no")
_POD_GROUPS = ("podgroup", "podgroups", "pg")
_COMPOSITES = ("compositepodgroup", "compositepodgroups", "cpg")


class TargetError(KubeschedError, ValueError):
    """Two namespaces are named."""


class AskedKind(Enum):
    POD = auto()
    WORKLOAD = auto()
    NAMESPACE = auto()
    ALL_NAMESPACES = auto()
    NODE = auto()
    POD_GROUP = auto()
    COMPOSITE_POD_GROUP = auto()


@dataclass(frozen=True, slots=True)
class AskedAbout:
    """`text` is what was typed; `workload` the kind, as in manifests. Nothing says which namespace: an empty one."""

    text: str
    kind: AskedKind
    name: str
    namespace: str = ""
    workload: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace or 'default'}/{self.name}"

    def within(self, namespace: str) -> AskedAbout:
        """In this namespace, if none was named."""
        return self if self.namespace else replace(self, namespace=namespace)


def read_target(text: str | None, namespace: str | None = None) -> AskedAbout:
    """Raises TargetError."""
    if text is None:
        if namespace:
            return AskedAbout(namespace, AskedKind.NAMESPACE, namespace)
        return AskedAbout("all namespaces", AskedKind.ALL_NAMESPACES, "")
    if not isinstance(text, str):
        raise TargetError(f'a name such as "shop/web-1" is expected after the cluster, not {text!r}')
    *before, name = text.split("/")
    kind = before.pop() if before and _is_kind(before[-1]) else ""
    named = "/".join(before)
    if namespace is not None and named and named != namespace:
        raise TargetError(f"{text} is not in the namespace {namespace}: specify the namespace once")
    found = _target(text, kind.lower(), name)
    return replace(found, namespace=named or namespace or "")


def _is_kind(word: str) -> bool:
    return word.lower() in (*_WORKLOADS, *_PODS, *_NAMESPACES, *_NODES, *_POD_GROUPS, *_COMPOSITES)


def _target(text: str, kind: str, name: str) -> AskedAbout:
    if kind in _WORKLOADS:
        return AskedAbout(text, AskedKind.WORKLOAD, name, workload=_WORKLOADS[kind])
    if kind in _NAMESPACES:
        return AskedAbout(text, AskedKind.NAMESPACE, name)
    if kind in _NODES:
        return AskedAbout(text, AskedKind.NODE, name)
    if kind in _POD_GROUPS:
        return AskedAbout(text, AskedKind.POD_GROUP, name)
    if kind in _COMPOSITES:
        return AskedAbout(text, AskedKind.COMPOSITE_POD_GROUP, name)
    return AskedAbout(text, AskedKind.POD, name)
