"""Who stays on a node whatever a preemptor does: pods it may not evict, and those nominated to the node before it.

Where the preemptor does not fit beside these, evictions are in vain; and stay so while others come and go.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.pod_info import PodInfo, PodSignature

Staying = tuple[tuple[str, PodSignature, bool], ...]
"""By uid: the pod's signature, and whether it is on its way out. All of a pod that a filter of one node may look at."""


def who_stays(pods: Sequence[PodInfo], nominated_pods: Sequence[PodInfo], priority: int) -> Staying | None:
    """None if nobody would have to go."""
    staying = [(other.uid, other.signature, other.pod.is_terminating) for other in pods if other.priority >= priority]
    if len(staying) == len(pods):
        return None
    staying.extend(
        (nominated_pod.uid, nominated_pod.signature, nominated_pod.pod.is_terminating)
        for nominated_pod in nominated_pods
    )
    return tuple(staying)
