"""Behind PodTopologySpread: how many pods each domain holds, and how uneven it would become.

Counts as the plugin's filter counts: `kubesched.scheduler.plugins.pod_topology_spread.filtering` has the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubesched.explanation.findings.finding import NEAR, CauseKind, Fact, Nearness, place_text
from kubesched.framework.nodes import IntArray
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.constraints import (
    InclusionPolicies,
    RowCounts,
    SpreadConstraint,
    with_all_keys,
)

_NO_DOMAIN = 2**31 - 1
"""What the emptiest of no domains counts as holding."""


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """Matching pods by domain, for one constraint."""

    constraint: SpreadConstraint
    by_domain: dict[str, int]
    is_own_kind: bool
    """Whether the pod itself would count."""

    @property
    def minimum(self) -> int:
        if len(self.by_domain) < self.constraint.min_domains:
            return 0
        return min(self.by_domain.values(), default=_NO_DOMAIN)

    def skew_in(self, domain: str) -> int:
        """How far above the emptiest domain this one would be with the pod."""
        return self.by_domain.get(domain, 0) + self.is_own_kind - self.minimum


class SkewedDomains:
    """Facts by row; nodes of one domain share them."""

    def __init__(self, cluster: Cluster, pod: PodInfo, constraints: Sequence[SpreadConstraint]) -> None:
        self._nodes = cluster.table.nodes
        self._counts = domain_counts(cluster, pod, constraints)
        self._known: dict[tuple[str | None, ...], tuple[Fact, ...]] = {}

    def of(self, row: int) -> tuple[Fact, ...]:
        labels = self._nodes[row].labels
        domains = tuple(labels.get(counts.constraint.topology_key) for counts in self._counts)
        if domains not in self._known:
            pairs = zip(self._counts, domains, strict=True)
            self._known[domains] = tuple(fact for counts, domain in pairs if (fact := _fact(counts, domain)))
        return self._known[domains]


def domain_counts(cluster: Cluster, pod: PodInfo, constraints: Sequence[SpreadConstraint]) -> list[DomainCounts]:
    nodes = cluster.nodes
    complete = with_all_keys(constraints, nodes)
    policies = InclusionPolicies(pod, nodes)
    row_counts = RowCounts(nodes, pod.namespace)
    found = []
    for constraint in constraints:
        column = nodes.label(constraint.topology_key)
        rows = np.flatnonzero(complete & policies.included(constraint))
        totals: IntArray = np.bincount(
            column.codes[rows], weights=row_counts.of(constraint.selector)[rows], minlength=len(column.values)
        ).astype(np.int64)
        by_domain = {column.values[code]: int(totals[code]) for code in np.unique(column.codes[rows]).tolist()}
        found.append(DomainCounts(constraint, by_domain, constraint.selector.matches(pod.labels)))
    return found


def _fact(counts: DomainCounts, domain: str | None) -> Fact | None:
    constraint = counts.constraint
    key = constraint.topology_key
    if domain is None:
        return _spread_fact(f"the node has no label {key}", {"topologyKey": key, "domain": None}, Nearness.EXCLUDED)
    skew = counts.skew_in(domain)
    if skew <= constraint.max_skew:
        return None
    held = counts.by_domain.get(domain, 0)
    if len(counts.by_domain) < constraint.min_domains:
        emptiest = f"one domain counts as empty ({len(counts.by_domain)} of minDomains {constraint.min_domains})"
    else:
        emptiest = f"the emptiest domain has {counts.minimum}"
    pods = "1 matching pod" if held == 1 else f"{held} matching pods"
    text = f"{pods} {place_text(key, domain)}, {emptiest}: skew {skew}, maxSkew {constraint.max_skew} ({key})"
    fields: dict[str, Any] = {
        "topologyKey": key,
        "domain": domain,
        "count": held,
        "minimum": counts.minimum,
        "skew": skew,
        "maxSkew": constraint.max_skew,
        "domains": counts.by_domain,
        "minDomains": constraint.min_domains,
        "isOwnKind": counts.is_own_kind,
    }
    return _spread_fact(text, fields, Nearness.LACKS, distance=skew - constraint.max_skew)


def _spread_fact(text: str, fields: Mapping[str, Any], nearness: Nearness, distance: float = NEAR) -> Fact:
    key = fields["topologyKey"]
    general = f"too many matching pods for the topology spread on {key}" if fields["domain"] is not None else text
    return Fact(PodTopologySpread.name, text, fields, distance, "", CauseKind.TOPOLOGY_SPREAD, nearness, general)
