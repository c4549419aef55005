"""What required terms among the pods of a group leave of its room: how many of them each domain may hold.

Terms about pods that run already are not looked at here: where those let no pod in, the room has none.
"""

from __future__ import annotations

from kubesched.framework.group_room import FixedLimit, GroupKind, GroupRoom, OneDomain
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.selectors import Labels
from kubesched.scheduler.plugins.inter_pod_affinity.filtering import AffinityFilterState
from kubesched.scheduler.plugins.inter_pod_affinity.terms import ScopeTerms, all_match


def bound_by_terms(room: GroupRoom, scope: ScopeTerms, namespace_labels: Labels) -> bool:
    """False where pods of the group want to be near different pods, or it is not clear whom a term is about."""
    return _bound_by_affinity(room, scope) and _bound_by_anti_affinity(room, scope, namespace_labels)


def _bound_by_affinity(room: GroupRoom, scope: ScopeTerms) -> bool:
    """The first pod goes where it likes if nobody is there whom it asks for; the others must follow it."""
    first, *others = room.representatives(_labels_and_terms)
    required = first.pod.affinity.required
    if any(other.pod.affinity.required != required for other in others):
        return False
    if not required or first.cycle.get(AffinityFilterState).finds_matching_pods:
        return True
    terms = scope(required)
    is_own_kind = {all_match(terms, kind.pod) for kind in (first, *others)}
    if is_own_kind == {True}:
        for key in {term.topology_key for term in terms}:
            room.limit_domains(OneDomain(room.nodes.label(key).codes))
    return len(is_own_kind) == 1


def _bound_by_anti_affinity(room: GroupRoom, scope: ScopeTerms, namespace_labels: Labels) -> bool:
    found: set[frozenset[str]] = set()
    for one, other in room.pairs(_labels_and_terms):
        keys = _keys_between(one, other, scope, namespace_labels)
        if keys is None:
            return False
        found.add(keys)
    for key in frozenset[str]().union(*found):
        codes = room.nodes.label(key).codes
        room.limit_domains(FixedLimit(codes, 1, 1 if all(key in keys for keys in found) else None))
    return True


def _keys_between(
    one: GroupKind, other: GroupKind, scope: ScopeTerms, namespace_labels: Labels
) -> frozenset[str] | None:
    """In which topologies the two keep away from each other. None if that depends on which of them comes first."""
    keys = set()
    for holder, met in ((one, other), (other, one)):
        away = holder.pod.affinity.required_anti
        for term, scoped in zip(away, scope(away), strict=True):
            matches = term.matches(met.pod.namespace, met.pod.labels, namespace_labels)
            if matches is not scoped.matches(met.pod):
                return None
            if matches:
                keys.add(term.topology_key)
    return frozenset(keys)


def _labels_and_terms(pod: PodInfo) -> tuple[int, int]:
    return pod.signature.label_class, pod.signature.affinity_class
