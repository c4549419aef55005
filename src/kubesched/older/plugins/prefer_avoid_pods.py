"""NodePreferAvoidPods: nodes whose annotation asks that pods of some controllers go elsewhere."""

from __future__ import annotations

import json

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import controller_of
from kubesched.older.plugins.rejection import OlderPlugin

PREFER_AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_AVOIDED_KINDS = ("ReplicationController", "ReplicaSet")


class NodePreferAvoidPods(OlderPlugin):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        owner = controller_of(pod.pod.metadata)
        if owner is None or owner.kind not in _AVOIDED_KINDS:
            return self.generation.highest_score
        avoided = _avoided(node)
        return 0 if (owner.kind, owner.uid) in avoided else self.generation.highest_score


def _avoided(node: NodeInfo) -> set[tuple[str, str]]:
    """Kind and uid of the controllers; an annotation that cannot be read names none."""
    text = (node.node.metadata.annotations or {}).get(PREFER_AVOID_PODS_ANNOTATION)
    try:
        entries = (json.loads(text).get("preferAvoidPods") or []) if text else []
        controllers = [(entry.get("podSignature") or {}).get("podController") or {} for entry in entries]
        return {(controller.get("kind", ""), controller.get("uid", "")) for controller in controllers}
    except (ValueError, AttributeError, TypeError):
        return set()
