"""Why a pod is pending, as one fact and one sentence: what stands in the way on the nodes that come nearest to it.

What rules out whole sets of nodes is asked for step by step, from what can never change (no such resource, a volume in
another zone) to what may (spread, other pods). The step that leaves no node is the cause, told of the nodes that were
left until then. If some are left after all steps, the cause is what these lack.

Next: `cause_of_nodes` and `cause_of_pod`, which find the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kubesched.explanation.findings.finding import CauseKind, Finding, Nearness
from kubesched.explanation.groups import RejectedNodes

NODES_IN_CAUSE = 20
"""How many nodes a cause lists for machines; the groups have all of them."""

STEPS: tuple[CauseKind, ...] = (
    CauseKind.NO_SUCH_RESOURCE,
    CauseKind.VOLUME_PLACE,
    CauseKind.DEVICE_PLACE,
    CauseKind.NO_SUCH_DEVICE,
    CauseKind.VOLUME_PROVISIONING,
    CauseKind.STORAGE_CAPACITY,
    CauseKind.NODE_AFFINITY,
    CauseKind.FEATURES,
    CauseKind.TAINT,
    CauseKind.PLUGIN,
    CauseKind.TOO_LARGE,
    CauseKind.POD_AFFINITY,
    CauseKind.TOPOLOGY_SPREAD,
    CauseKind.POD_ANTI_AFFINITY,
)
"""What rules nodes out, the most lasting first."""


@dataclass(frozen=True, slots=True)
class Cause:
    """`text` says what stands in the way, `remedy` what to do about it; both without the pod's name."""

    kind: CauseKind
    text: str
    remedy: str = ""
    nodes: tuple[str, ...] = ()
    """Where the pod comes nearest to fitting, the nearest first."""
    evidence: tuple[Finding, ...] = ()
    """Of the nearest node."""
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """What stands in the way, and what to do."""
        return f"{self.text}. {self.remedy}".strip() if self.remedy else f"{self.text}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "text": self.text,
            "remedy": self.remedy,
            "nodes": list(self.nodes[:NODES_IN_CAUSE]),
            "evidence": [finding.to_dict() for finding in self.evidence],
            **self.fields,
        }


@dataclass(frozen=True, slots=True)
class RulingOut:
    """What a step ruled out, of the nodes that were left before it."""

    kind: CauseKind
    ruled_out: tuple[RejectedNodes, ...]


@dataclass(frozen=True, slots=True)
class NearestNodes:
    """Where the steps ended. `culprit` is the step that left no node; None if `left` are nodes that lack something."""

    culprit: CauseKind | None
    left: tuple[RejectedNodes, ...]
    rulings: tuple[RulingOut, ...]

    @property
    def nodes(self) -> list[str]:
        """Those that come nearest, the nearest first."""
        return [name for group in self.left for name in group.names]


def find_nearest(groups: Sequence[RejectedNodes]) -> NearestNodes:
    """`groups` are all nodes, the nearest first, none of which fits."""
    left = tuple(groups)
    rulings: list[RulingOut] = []
    for step in STEPS:
        ruled_out = tuple(group for group in left if rules_out(group, step))
        if len(ruled_out) == len(left):
            return NearestNodes(step, left, tuple(rulings))
        if ruled_out:
            rulings.append(RulingOut(step, ruled_out))
            left = tuple(group for group in left if group not in ruled_out)
    return NearestNodes(None, left, tuple(rulings))


def rules_out(group: RejectedNodes, step: CauseKind) -> bool:
    """Plugins that are not known here rule out nodes only where they say that no eviction would help."""
    return any(
        finding.kind is step and (step is not CauseKind.PLUGIN or finding.nearness is Nearness.EXCLUDED)
        for finding in group.findings
    )
