"""Label keys of affinity terms and spread constraints, merged into their selectors with the pod's own values.

A selector that already says so, because the pod comes from an API server, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from kubesched.k8s.model.core import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
)
from kubesched.k8s.model.meta import LabelSelector, LabelSelectorRequirement

Labels = Mapping[str, str]
Side = TypeVar("Side", PodAffinity, PodAntiAffinity)


def with_label_keys_merged(pod: Pod) -> Pod:
    spec = pod.spec
    affinity = None if spec.affinity is None else _merge_affinity(spec.affinity, pod.labels)
    constraints = spec.topology_spread_constraints
    if constraints:
        constraints = tuple(_merge_constraint(constraint, pod.labels) for constraint in constraints)
    if affinity == spec.affinity and constraints == spec.topology_spread_constraints:
        return pod
    return replace(pod, spec=replace(spec, affinity=affinity, topology_spread_constraints=constraints))


def _merge_affinity(affinity: Affinity, labels: Labels) -> Affinity:
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    if near is None and apart is None:
        return affinity
    return replace(
        affinity,
        pod_affinity=None if near is None else _merge_side(near, labels),
        pod_anti_affinity=None if apart is None else _merge_side(apart, labels),
    )


def _merge_side(side: Side, labels: Labels) -> Side:
    required = side.required_during_scheduling_ignored_during_execution
    preferred = side.preferred_during_scheduling_ignored_during_execution
    return replace(
        side,
        required_during_scheduling_ignored_during_execution=required
        and tuple(_merge_term(term, labels) for term in required),
        preferred_during_scheduling_ignored_during_execution=preferred
        and tuple(
            replace(weighted, pod_affinity_term=_merge_term(weighted.pod_affinity_term, labels))
            for weighted in preferred
        ),
    )


def _merge_term(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    if term.label_selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    selector = _merged(term.label_selector, term.match_label_keys or (), "In", labels)
    selector = _merged(selector, term.mismatch_label_keys or (), "NotIn", labels)
    return replace(term, label_selector=selector)


def _merge_constraint(constraint: TopologySpreadConstraint, labels: Labels) -> TopologySpreadConstraint:
    if constraint.label_selector is None or not constraint.match_label_keys:
        return constraint
    selector = _merged(constraint.label_selector, constraint.match_label_keys, "In", labels)
    return replace(constraint, label_selector=selector)


def _merged(selector: LabelSelector, keys: Iterable[str], operator: str, labels: Labels) -> LabelSelector:
    known = selector.match_expressions or ()
    wanted = (LabelSelectorRequirement(key, operator, (labels[key],)) for key in keys if key in labels)
    added = tuple(requirement for requirement in wanted if requirement not in known)
    return replace(selector, match_expressions=(*known, *added)) if added else selector
