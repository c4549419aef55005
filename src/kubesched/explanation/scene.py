"""What a sentence about the nodes is made from: the nodes that are left, by what they are, and how they are told.

Next: `cause_of_nodes` and `cause_of_places`, which make the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.explanation.cause import Cause, NearestNodes, RulingOut
from kubesched.explanation.findings.finding import CauseKind, Fact, Finding, Shortage
from kubesched.explanation.groups import RejectedNodes
from kubesched.explanation.layout import all_of, any_of
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.cluster import Cluster

NAMES_SHOWN = 3
VALUES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Scene:
    """What a sentence is made from."""

    cluster: Cluster
    pod: PodInfo
    verdict: NearestNodes
    nominated: dict[str, list[str]]
    """Pods that nodes are kept for, by node."""

    @property
    def left(self) -> tuple[RejectedNodes, ...]:
        return self.verdict.left

    @property
    def n_left(self) -> int:
        return sum(len(group.nodes) for group in self.left)

    @property
    def n_nodes(self) -> int:
        return len(self.cluster.table.names)

    @property
    def lead(self) -> RejectedNodes:
        return self.left[0]

    def findings(self, kind: CauseKind) -> list[Finding]:
        """Of this kind, on all nodes that are left."""
        return [f for group in self.left for node in group.nodes for f in node.findings if f.kind is kind]

    def facts(self, kind: CauseKind) -> list[Fact]:
        return [finding for finding in self.findings(kind) if isinstance(finding, Fact)]

    def subject(self, *, every: bool = False) -> str:
        """The nodes that are left, and by what they are: `the 4 nodes that have nvidia.com/gpu`."""
        which = " and ".join(filter(None, map(_left_by, self.verdict.rulings)))
        if self.n_left == 1:
            return f"the only node {which}".rstrip()
        return f"{'each of ' if every else ''}the {self.n_left} nodes {which}".rstrip()

    def cause(
        self, kind: CauseKind, text: str, remedy: str, nodes: Iterable[str] | None = None, **fields: Any
    ) -> Cause:
        names = tuple(self.verdict.nodes if nodes is None else nodes)
        evidence = next((node.findings for g in self.left for node in g.nodes if node.name == names[0]), ())
        return Cause(kind, text, remedy, names, evidence, fields)


def _left_by(ruling: RulingOut) -> str:
    """What the nodes have in common that a step left."""
    finding = next(ruling.ruled_out[0].of_kind(ruling.kind))
    fields: Any = finding.fields if isinstance(finding, Fact) else {}
    match ruling.kind:
        case CauseKind.NO_SUCH_RESOURCE:
            absent = (f for g in ruling.ruled_out for f in g.of_kind(CauseKind.NO_SUCH_RESOURCE))
            names = {finding.resource for finding in absent if isinstance(finding, Shortage)}
            return f"with {all_of(sorted(names))}"
        case CauseKind.VOLUME_PLACE if isinstance(finding, Fact):
            return f"in {place_of(finding)}, where the volume of claim {name_of(fields['claim'])} is"
        case CauseKind.VOLUME_PROVISIONING if isinstance(finding, Fact) and "allowedTopologies" in fields:
            return f"in {place_of(finding)}, where class {fields['storageClass']} makes volumes"
        case CauseKind.VOLUME_PROVISIONING | CauseKind.STORAGE_CAPACITY:
            return f"with a volume for claim {name_of(fields['claim'])}"
        case CauseKind.DEVICE_PLACE:
            return f"that claim {name_of(fields['claim'])} has devices for"
        case CauseKind.NO_SUCH_DEVICE:
            return f"with such devices of class {fields['deviceClass']}"
        case CauseKind.NODE_AFFINITY:
            facts = [f for g in ruling.ruled_out for f in g.of_kind(CauseKind.NODE_AFFINITY) if isinstance(f, Fact)]
            asked = dict.fromkeys(asked_text(fact) for fact in facts if "label" in fact.fields)
            return f"matching {all_of(list(asked)[:2])}" if asked else "matching its node affinity"
        case CauseKind.TAINT:
            return "whose taints it tolerates"
        case CauseKind.TOO_LARGE:
            return "large enough"
        case CauseKind.POD_AFFINITY:
            return f"near pods {fields['podAffinity']}"
        case CauseKind.TOPOLOGY_SPREAD:
            return f"that its topology spread on {fields['topologyKey']} allows"
        case CauseKind.POD_ANTI_AFFINITY:
            return "without pods it must keep away from"
        case _:
            return ""


# -- words -------------------------------------------------------------------------------------------------------------


def asked_text(fact: Fact) -> str:
    if "nodeSelector" in fact.fields:
        ((key, value),) = fact.fields["nodeSelector"].items()
        return f"nodeSelector {key}={value}"
    return f"node affinity {fact.fields['requirement']}"


def place_of(fact: Fact) -> str:
    zones = fact.fields.get("zones")
    if zones:
        return any_of(list(zones))
    return any_of(list(fact.fields.get("required") or fact.fields.get("allowedTopologies") or ["no place"]))


def name_of(key: str) -> str:
    return key.partition("/")[2] or key


def names_text(names: Sequence[str]) -> str:
    """`a, b and c`; the first and the last of many: `gpu-0 … gpu-3`."""
    if len(names) <= NAMES_SHOWN:
        return all_of(list(names))
    return f"{names[0]} … {names[-1]}"
