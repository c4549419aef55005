"""Behind InterPodAffinity: which term is not met, and which pod stands in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from kubesched.explanation.findings.finding import HOSTNAME_LABEL, NEAR, CauseKind, Fact, Nearness, place_text
from kubesched.framework.nodes import MISSING
from kubesched.framework.pod_info import AffinityTerm, PodInfo
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.inter_pod_affinity.filtering import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
)
from kubesched.scheduler.plugins.inter_pod_affinity.terms import ScopedTerm, all_match, scoped

_PLUGIN = InterPodAffinity.name


class UnmetPodAffinity:
    """Facts by row. What is asked of a topology's domain is asked once for all its nodes."""

    def __init__(self, cluster: Cluster, pod: PodInfo, nominated_pods: Mapping[int, Sequence[PodInfo]]) -> None:
        self._cluster = cluster
        self._pod = pod
        self._nominated_pods = nominated_pods
        self._namespace_labels = cluster.namespace_labels(pod.namespace)
        self._toward = scoped(pod.affinity.required, cluster.objects.namespaces)
        self._away = scoped(pod.affinity.required_anti, cluster.objects.namespaces)
        self._hostile = [
            (term, group.rows)
            for group in cluster.table.pods.affinity_groups(required_anti_only=True)
            for term in group.terms.required_anti
            if self._is_against_us(term)
        ]
        self._found: dict[tuple[str, str], PodInfo | None] = {}
        self._occupied: dict[int, dict[str, list[int]]] = {}

    def of(self, row: int) -> tuple[Fact, ...]:
        return (*self._lonely(row), *self._repelled(row), *self._unwelcome(row))

    # -- whom the pod must be near -------------------------------------------------------------------------------------

    def unmet_toward(self, row: int) -> list[tuple[int, ScopedTerm]]:
        """The affinity terms that the row does not meet, with their places in the pod's list."""
        return [
            (index, term)
            for index, term in enumerate(self._toward)
            if (domain := self._domain(row, term.topology_key)) is None
            or not (self._is_first_of_series or self._has_company(index, term, domain))
        ]

    def places_near(self) -> list[str]:
        """The domains that hold pods the pod must be near; nodes by their names, where a node is the domain."""
        found = set()
        for term in self._toward:
            nodes, pods = self._cluster.nodes, self._cluster.table.pods
            occupied = pods.counts(pods.classes(term.selector, term.namespaces)) > 0
            for row in np.flatnonzero(occupied).tolist():
                domain = self._domain(row, term.topology_key)
                if domain is not None and any(map(term.matches, pods.on(row))):
                    found.add(nodes.names[row] if term.topology_key == HOSTNAME_LABEL else domain)
        return sorted(found)

    def keys_without_nodes(self) -> list[str]:
        """Topology keys that the pod must be near others within, and that no node has as a label."""
        keys = dict.fromkeys(term.topology_key for term in self._toward)
        return [key for key in keys if not any(key in node.labels for node in self._cluster.table.nodes)]

    def outside_topology(self) -> tuple[PodInfo, str] | None:
        """A pod that a term speaks of on a node without the label of the term's topology, and that label."""
        found = ((info, term) for info in self._cluster.placed.values() for term in self._toward if term.matches(info))
        return next(((info, term.topology_key) for info, term in found), None)

    def in_another_namespace(self) -> PodInfo | None:
        """A pod with the labels that a term asks for, in a namespace that it does not speak of."""
        placed = self._cluster.placed.values()
        namesakes = (info for info in placed if any(term.selector.matches(info.labels) for term in self._toward))
        return next((info for info in namesakes if not any(term.matches(info) for term in self._toward)), None)

    def _lonely(self, row: int) -> Iterator[Fact]:
        for _, term in self.unmet_toward(row):
            key, domain = term.topology_key, self._domain(row, term.topology_key)
            found = f"the node has no label {key}" if domain is None else f"no such pod {place_text(key, domain)}"
            fields = {"podAffinity": term_text(term), "topologyKey": key, "domain": domain}
            text = f"pod affinity {term_text(term)}: {found}"
            general = f"pod affinity {term_text(term)}: no such pod there"
            yield Fact(_PLUGIN, text, fields, 2 * NEAR, REASON_AFFINITY, CauseKind.POD_AFFINITY, general=general)

    def _has_company(self, index: int, term: ScopedTerm, domain: str) -> bool:
        """Whether the domain holds a pod that all terms speak of."""
        key = (f"toward {index}", domain)
        if key not in self._found:
            pods = self._pods_in(term, domain)
            self._found[key] = next((other for other in pods if all_match(self._toward, other)), None)
        return self._found[key] is not None

    @cached_property
    def _is_first_of_series(self) -> bool:
        """Such a pod may go wherever the topology labels are: nobody is there yet whom it could be near."""
        if not all_match(self._toward, self._pod):
            return False
        pods = self._cluster.table.pods
        picked = [pods.classes(term.selector, term.namespaces) for term in self._toward]
        return not pods.counts(np.logical_and.reduce(picked)).any()

    # -- whom it must not be near --------------------------------------------------------------------------------------

    def unmet_away(self, row: int) -> list[tuple[int, ScopedTerm]]:
        """The anti-affinity terms that the row does not meet, with their places in the pod's list."""
        return [(index, term) for index, term in enumerate(self._away) if self._unwanted(row, index, term) is not None]

    def _repelled(self, row: int) -> Iterator[Fact]:
        for index, term in self.unmet_away(row):
            other = self._unwanted(row, index, term)
            assert other is not None
            domain = self._domain(row, term.topology_key)
            text = f"pod anti-affinity {term_text(term)}: {_whereabouts(other, term, domain)}"
            fields = {"podAntiAffinity": term_text(term), **_fields(term, domain, other)}
            yield _apart(
                text, fields, REASON_ANTI_AFFINITY, f"pod anti-affinity {term_text(term)}: such a pod is there"
            )

    def _unwanted(self, row: int, index: int, term: ScopedTerm) -> PodInfo | None:
        """A pod in the row's domain that the term speaks of."""
        domain = self._domain(row, term.topology_key)
        if domain is None:
            return None
        key = (f"away {index}", domain)
        if key not in self._found:
            self._found[key] = next(self._pods_in(term, domain), None)
        return self._found[key] or next(filter(term.matches, self._nominated_pods.get(row, ())), None)

    # -- who must not be near it ---------------------------------------------------------------------------------------

    def is_unwelcome(self, row: int) -> bool:
        return next(self._hosts(row), None) is not None

    def _unwelcome(self, row: int) -> Iterator[Fact]:
        told: set[str] = set()
        for term, other in self._hosts(row):
            if other.key in told:
                continue
            told.add(other.key)
            domain = self._domain(row, term.topology_key)
            text = f"{_whereabouts(other, term, domain)} wants no {term.selector or 'pod'} within {term.topology_key}"
            fields = {"existingAntiAffinity": str(term.selector), **_fields(term, domain, other)}
            general = f"a pod there wants no {term.selector or 'pod'} within {term.topology_key}"
            yield _apart(text, fields, REASON_EXISTING_ANTI_AFFINITY, general)

    def _hosts(self, row: int) -> Iterator[tuple[AffinityTerm, PodInfo]]:
        """Pods with a term against this one that reaches the row, one for each such term."""
        for term, rows in self._hostile:
            codes = self._cluster.nodes.label(term.topology_key).codes
            if codes[row] != MISSING:
                near = rows[codes[rows] == codes[row]]
                pods = (other for at in near[:1].tolist() for other in self._cluster.table.pods.on(at))
                yield from ((term, other) for other in pods if term in other.affinity.required_anti)
        for nominated_pod in self._nominated_pods.get(row, ()):
            terms = (term for term in nominated_pod.affinity.required_anti if self._is_against_us(term))
            yield from ((term, nominated_pod) for term in terms)

    def _is_against_us(self, term: AffinityTerm) -> bool:
        return term.matches(self._pod.namespace, self._pod.labels, self._namespace_labels)

    # -- topology ------------------------------------------------------------------------------------------------------

    def _domain(self, row: int, topology_key: str) -> str | None:
        return self._cluster.table.nodes[row].labels.get(topology_key)

    def _pods_in(self, term: ScopedTerm, domain: str) -> Iterator[PodInfo]:
        """Pods in a domain that the term speaks of."""
        for row in self._occupied_rows(term).get(domain, ()):
            yield from filter(term.matches, self._cluster.table.pods.on(row))

    def _occupied_rows(self, term: ScopedTerm) -> dict[str, list[int]]:
        """By domain, the rows with pods that the term may speak of; worked out once for all domains."""
        found = self._occupied.get(id(term))
        if found is None:
            found = self._occupied[id(term)] = {}
            pods = self._cluster.table.pods
            column = self._cluster.nodes.label(term.topology_key)
            rows = np.flatnonzero(pods.counts(pods.classes(term.selector, term.namespaces)) > 0)
            for row, code in zip(rows.tolist(), column.codes[rows].tolist(), strict=True):
                if code != MISSING:
                    found.setdefault(column.values[code], []).append(row)
        return found


def term_text(term: ScopedTerm) -> str:
    """Which pods a term speaks of, within which topology."""
    return f"{term.selector or 'any pod'} within {term.topology_key}"


def _apart(text: str, fields: Mapping[str, str | None], reason: str, general: str) -> Fact:
    return Fact(_PLUGIN, text, fields, NEAR, reason, CauseKind.POD_ANTI_AFFINITY, Nearness.LACKS, general)


def _whereabouts(other: PodInfo, term: ScopedTerm | AffinityTerm, domain: str | None) -> str:
    if not other.spec.node_name:
        told = f"{other.key} (nominated)"
    elif term.topology_key == HOSTNAME_LABEL:
        told = other.key
    else:
        told = f"{other.key} on {other.spec.node_name}"
    return f"{told} {place_text(term.topology_key, domain)}"


def _fields(term: ScopedTerm | AffinityTerm, domain: str | None, other: PodInfo) -> dict[str, str | None]:
    return {"topologyKey": term.topology_key, "domain": domain, "pod": other.key, "node": other.spec.node_name}
