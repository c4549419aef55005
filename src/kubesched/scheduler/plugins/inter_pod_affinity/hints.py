"""Which changes can make a pod schedulable that InterPodAffinity rejected.

Terms are asked here as they stand, without resolving namespace selectors against namespaces; and several terms against
other pods count as one, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.events import Hint
from kubesched.framework.pod_info import AffinityTerm, PodInfo, compile_pod_affinity
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.plugins.inter_pod_affinity.terms import UNLABELLED


def after_pod_change(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    before = old if isinstance(old, Pod) else None
    after = new if isinstance(new, Pod) else None
    if before is not None and after is not None and (after.metadata.uid or after.pod_key) == pod.uid:
        # Its labels changed: others may no longer have terms against it.
        return Hint.QUEUE
    if any(changed is not None and not _has_node(changed) for changed in (before, after)):
        return Hint.SKIP
    if pod.affinity.mistakes:
        return Hint.QUEUE  # terms that cannot be understood are always worth a try
    return _queue_if(_may_help(pod, before, after))


def after_node_change(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    before = old if isinstance(old, Node) else None
    if not isinstance(new, Node):
        return Hint.QUEUE
    terms = pod.affinity
    if terms.mistakes:
        return Hint.QUEUE
    if before is None:
        # A node without the topology label takes every pod that only wants to be away from others.
        return _queue_if(any(t.topology_key in new.labels for t in terms.required) or bool(terms.required_anti))
    joined = any(_has_other_value(before, new, term.topology_key, new) for term in terms.required)
    left = any(_has_other_value(before, new, term.topology_key, before) for term in terms.required_anti)
    return _queue_if(joined or left)


def _has_node(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _may_help(pod: PodInfo, before: Pod | None, after: Pod | None) -> bool:
    toward, away = pod.affinity.required, pod.affinity.required_anti
    if after is not None and before is not None:
        came = not _speak_all_of(toward, before) and _speak_all_of(toward, after)
        went = _speak_all_of(away, before) and not _speak_all_of(away, after)
        return came or went
    if after is not None:
        return _speak_all_of(toward, after)
    if before is None:
        return False
    if _speak_all_of(away, before):
        return True
    its_own = compile_pod_affinity(before)
    return bool(its_own.mistakes) or _speak_all_of(its_own.required_anti, pod.pod)


def _speak_all_of(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    return bool(terms) and all(term.matches(pod.namespace, pod.labels, UNLABELLED) for term in terms)


def _has_other_value(before: Node, after: Node, key: str, holder: Node) -> bool:
    """Whether the label changed, and the holder, of the two, has it."""
    return key in holder.labels and before.labels.get(key) != after.labels.get(key)


def _queue_if(worth_it: bool) -> Hint:
    return Hint.QUEUE if worth_it else Hint.SKIP
