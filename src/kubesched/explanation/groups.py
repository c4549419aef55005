"""The nodes that do not fit, in groups that are rejected for the same reasons, the nearest to fitting first.

A group is named by what its nodes have in common; numbers and pods may differ from node to node. Within a group the
nearest node comes first, too.

Next: `cause`, which reads the groups to say why a pod is pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.explanation.evidence import Evidence, Failures
from kubesched.explanation.findings.finding import CauseKind, Fact, Finding, Nearness, Shortage
from kubesched.explanation.layout import any_of, listed, readable
from kubesched.explanation.record import status_record
from kubesched.framework.status import Status
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable

FOUND_SHOWN = 3
_Row = tuple[float, str, tuple[Finding, ...]]


@dataclass(frozen=True, slots=True)
class GroupedNode:
    """A node of a group, with the reasons against it."""

    name: str
    distance: float
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, repr=False)
class RejectedNodes:
    """Nodes of which the same is true, the nearest first."""

    nearness: Nearness
    statuses: tuple[Status, ...]
    """What each plugin says, in kube-scheduler's words, the first rejection first."""
    nodes: tuple[GroupedNode, ...]

    def __repr__(self) -> str:
        return f"<RejectedNodes: {listed(self.names, FOUND_SHOWN)}: {self.summary()}>"

    @property
    def distance(self) -> float:
        return self.nodes[0].distance

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of the nearest node. All nodes have as many, of the same kinds, in the same order."""
        return self.nodes[0].findings

    @property
    def kinds(self) -> frozenset[CauseKind]:
        return frozenset(finding.kind for finding in self.findings)

    @property
    def names(self) -> list[str]:
        return [node.name for node in self.nodes]

    @property
    def order(self) -> tuple[int, float, int, str]:
        return self.nearness, self.distance, -len(self.nodes), self.nodes[0].name

    def of_kind(self, kind: CauseKind) -> Iterator[Finding]:
        return (finding for finding in self.findings if finding.kind is kind)

    def reasons(self) -> str:
        """In kube-scheduler's words, what it met first."""
        return ", ".join(sorted(self.statuses[0].reasons)) or "rejected without a reason"

    def summary(self) -> str:
        """Every reason against the group, in one sentence."""
        columns = list(zip(*(node.findings for node in self.nodes), strict=True))
        if any(_is_cordon(column[0]) for column in columns):  # says what the taint that goes with it would say again
            columns = [c for c in columns if c[0].kind is not CauseKind.CORDONED or _is_cordon(c[0])]
        return "; ".join(dict.fromkeys(_in_common(column) for column in columns))

    def to_dict(self) -> dict[str, Any]:
        return {
            "nearness": self.nearness.word,
            "count": len(self.nodes),
            "summary": self.summary(),
            "kinds": sorted(kind.value for kind in self.kinds),
            "rejections": [status_record(status) for status in self.statuses],
            "nodes": self.names,
            "nearest": {
                "node": self.nodes[0].name,
                "distance": round(self.distance, 4),
                "evidence": [finding.to_dict() for finding in self.findings],
            },
        }


def group_nodes(
    failures: Failures, evidence: Evidence, names: Sequence[str], rows: Iterable[int]
) -> list[RejectedNodes]:
    """These rows, all of which are rejected, in groups, the nearest first."""
    found: dict[tuple[object, ...], tuple[tuple[Status, ...], list[GroupedNode]]] = {}
    for statuses, alike in failures.patterns(list(rows)):
        for row in alike:
            findings = tuple(finding for status in statuses for finding in evidence.behind(status, row))
            distance = sum(finding.distance for finding in findings)
            key = tuple(map(_shared_key, findings))
            known = found.setdefault(key, (statuses, []))
            known[1].append(GroupedNode(names[row], distance, findings))
    groups = [
        RejectedNodes(
            max(finding.nearness for finding in nodes[0].findings),
            statuses,
            tuple(sorted(nodes, key=lambda node: (node.distance, node.name))),
        )
        for statuses, nodes in found.values()
    ]
    return sorted(groups, key=lambda group: group.order)


def _shared_key(finding: Finding) -> tuple[object, ...]:
    """What the findings of a group have in common."""
    if isinstance(finding, Shortage):  # most nodes of most clusters: not worth a sentence for each
        return finding.plugin, finding.resource, finding.nearness, finding.instead
    return finding.plugin, finding.shared, finding.nearness


def _is_cordon(finding: Finding) -> bool:
    return finding.plugin == NodeUnschedulable.name


def _in_common(column: Sequence[Finding]) -> str:
    """One finding of every node of a group, as one sentence."""
    first = column[0]
    if isinstance(first, Shortage):
        return _amounts(first, [finding for finding in column if isinstance(finding, Shortage)])
    texts = dict.fromkeys(finding.text for finding in column)
    if len(texts) == 1:  # the plugin's own words, which do not say whose they are
        return f"{first.text} ({first.plugin})" if first.kind is CauseKind.PLUGIN and first.plugin else first.text
    values = [finding.fields.get("found") for finding in column if isinstance(finding, Fact)]
    told = sorted({value for value in values if isinstance(value, str)})
    if told and len(told) <= FOUND_SHOWN:
        lacks = " or no such label" if None in values else ""
        return f"{first.shared}: has {any_of(told)}{lacks}"
    return first.shared


def _amounts(first: Shortage, column: Sequence[Shortage]) -> str:
    if first.nearness is Nearness.EXCLUDED:
        return first.shared
    requested = f"{first.resource}: requested {readable(first.resource, first.requested)}"
    if first.nearness is Nearness.TOO_SMALL:
        return f"{requested}, allocatable {_range(first.resource, [s.allocatable for s in column])}"
    free = _range(first.resource, [shortage.free for shortage in column])
    return f"{requested}, free {free} of {_range(first.resource, [s.allocatable for s in column])}"


def _range(resource: str, amounts: Sequence[int]) -> str:
    low, high = min(amounts), max(amounts)
    return readable(resource, low) if low == high else f"{readable(resource, low)} to {readable(resource, high)}"
