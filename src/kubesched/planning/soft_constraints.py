"""How far soft constraints are met in a cluster as it stands: preferred affinity, and spreading where it may give way.

Next: `compare_metrics`, which compares them between variants.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from kubesched.framework.nodes import MISSING, IntArray
from kubesched.framework.pod_info import AffinityTerm, PodSignature
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.selectors import Selector, SelectorError
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_affinity import preferred_node_affinity, preferred_terms_of
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SCHEDULE_ANYWAY, compiled_constraints


def preferences_met_percent(cluster: Cluster) -> float:
    """Of the weight of all preferred terms of pods that have a node, the share that their nodes meet; 100 if no pod has
    a preference."""
    met = wanted = 0
    for signature, n_by_row in _rows_of_kinds(cluster).items():
        for row, n in n_by_row.items():
            got, asked = _of_node(signature, cluster.table.nodes[row])
            met, wanted = met + n * got, wanted + n * asked
        for term, likes in _preferred_pods(signature):
            together = _together(cluster, signature, term)
            rows = np.array(list(n_by_row), dtype=np.intp)
            weights = np.array(list(n_by_row.values())) * term.weight
            met += int(weights[(together[rows] > 0) == likes].sum())
            wanted += int(weights.sum())
    return 100 * met / wanted if wanted else 100.0


def soft_skew(cluster: Cluster) -> float:
    """By how many matching pods the fullest domain is ahead of the emptiest, on the average of all `ScheduleAnyway`
    constraints of kinds of pods; 0 if there are none."""
    skews = []
    for signature in _rows_of_kinds(cluster):
        pod = signature.pod
        try:
            constraints = list(
                compiled_constraints(pod.spec.topology_spread_constraints or (), pod.labels, SCHEDULE_ANYWAY)
            )
        except SelectorError:
            continue  # such a pod is not scheduled by what it says
        for one in constraints:
            held = _by_domain(cluster, one.topology_key, one.selector, frozenset({pod.namespace}))
            if len(held):
                skews.append(int(held.max() - held.min()))
    return sum(skews) / len(skews) if skews else 0.0


def _rows_of_kinds(cluster: Cluster) -> dict[PodSignature, Counter[int]]:
    found: dict[PodSignature, Counter[int]] = {}
    for info in cluster.placed.values():
        row = cluster.table.rows.get(info.spec.node_name)
        if row is not None:  # its node may be gone
            found.setdefault(info.signature, Counter())[row] += 1
    return found


def _of_node(signature: PodSignature, node: Node) -> tuple[int, int]:
    """Weight that the node has for the pod, of how much it could have."""
    terms = preferred_terms_of(signature.pod.spec)
    if not terms:
        return 0, 0
    return preferred_node_affinity(signature.pod.spec).on_node(node), sum(term.weight for term in terms)


def _preferred_pods(signature: PodSignature) -> list[tuple[AffinityTerm, bool]]:
    terms = signature.affinity
    return [*((one, True) for one in terms.preferred), *((one, False) for one in terms.preferred_anti)]


def _together(cluster: Cluster, signature: PodSignature, term: AffinityTerm) -> IntArray:
    """By row: how many others of those that the term means are in the domain of a pod there."""
    known = cluster.objects.namespaces
    labels = {name: item.metadata.labels or {} for name, item in known.items()}
    picked = frozenset(name for name in labels if term.namespace_selector.matches(labels[name]))
    counts = _counts(cluster, term.selector, term.namespaces | picked)
    codes = cluster.table.label_column(term.topology_key).codes.data[: cluster.table.n]
    totals = np.bincount(codes[codes != MISSING], weights=counts[codes != MISSING], minlength=int(codes.max()) + 1)
    itself = term.matches(signature.pod.namespace, signature.pod.labels, labels.get(signature.pod.namespace, {}))
    return np.where(codes == MISSING, 0, totals[codes].astype(np.int64) - itself)


def _by_domain(cluster: Cluster, key: str, selector: Selector, namespaces: frozenset[str]) -> IntArray:
    counts = _counts(cluster, selector, namespaces)
    codes = cluster.table.label_column(key).codes.data[: cluster.table.n]
    labelled = codes != MISSING
    totals = np.bincount(codes[labelled], weights=counts[labelled])
    held: IntArray = totals[np.unique(codes[labelled])].astype(np.int64)
    return held


def _counts(cluster: Cluster, selector: Selector, namespaces: frozenset[str]) -> IntArray:
    pods = cluster.table.pods
    return pods.counts(pods.classes(selector, namespaces))[: cluster.table.n]
