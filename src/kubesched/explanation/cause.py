"""Why a pod is pending, as one fact and one sentence: what stands in the way on the nodes that come nearest to it.

What rules out whole sets of nodes is asked for step by step, from what can never change (no such resource, a volume in
another zone) to what may (spread, other pods). The step that leaves no node is the cause, told of the nodes that were
left until then. If some are left after all steps, the cause is what these lack. A Scene is what a sentence about these
nodes is made from.

Next: `cause_of_nodes`, `cause_of_places` and `headline`, which find the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kubesched.explanation.findings.finding import HOSTNAME_LABEL, CauseKind, Fact, Finding, Nearness, Shortage
from kubesched.explanation.groups import RejectedNodes
from kubesched.explanation.layout import all_of, any_of
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.selectors import NODE_NAME_FIELD
from kubesched.scheduler.cluster import Cluster

NODES_IN_CAUSE = 20
"""How many nodes a cause lists for machines; the groups have all of them."""

STEPS: tuple[CauseKind, ...] = (
    CauseKind.NO_SUCH_RESOURCE,
    CauseKind.VOLUME_PLACE,
    CauseKind.DEVICE_PLACE,
    CauseKind.NO_SUCH_DEVICE,
    CauseKind.DEVICE_TAINT,
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
    """`groups` are all nodes, the nearest first, none of which fits. Where nodes are both tainted and too small, a
    toleration would be in vain: then their size is the cause."""
    left = tuple(groups)
    rulings: list[RulingOut] = []
    for step in STEPS:
        ruled_out = tuple(group for group in left if rules_out(group, step))
        if len(ruled_out) == len(left):
            is_small = step is CauseKind.TAINT and all(rules_out(group, CauseKind.TOO_LARGE) for group in left)
            return NearestNodes(CauseKind.TOO_LARGE if is_small else step, left, tuple(rulings))
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


NAME_LABELS = (HOSTNAME_LABEL, NODE_NAME_FIELD)
"""What nodes are asked for by, one by one."""
NAMES_SHOWN = 3
VALUES_SHOWN = 4
ON_NODE = "on node "


@dataclass(frozen=True, slots=True)
class Scene:
    """What a sentence is made from."""

    cluster: Cluster
    pod: PodInfo
    verdict: NearestNodes
    nominated: dict[str, list[str]]
    """Pods that nodes are kept for, by node."""
    others: tuple[RejectedNodes, ...] = ()
    """Nodes that are left, too, but that something else stands against."""

    @property
    def left(self) -> tuple[RejectedNodes, ...]:
        return self.verdict.left

    @property
    def n_left(self) -> int:
        return sum(len(group.nodes) for group in self.left)

    @property
    def n_others(self) -> int:
        return sum(len(group.nodes) for group in self.others)

    @property
    def n_nodes(self) -> int:
        return len(self.cluster.table.names)

    def about(self, groups: Sequence[RejectedNodes]) -> Scene:
        """The same, seen from some of the nodes that are left."""
        others = tuple(group for group in self.left if group not in groups)
        return replace(self, verdict=replace(self.verdict, left=tuple(groups)), others=others)

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
        if self.others:
            return f"{self.n_left} of the {self.n_left + self.n_others} nodes {which}".rstrip()
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
            holds = f"with the volume of claim {name_of(fields['claim'])}"
            place = place_of(finding)
            return holds if place.startswith(ON_NODE) else f"{place} {holds}"
        case CauseKind.VOLUME_PROVISIONING if isinstance(finding, Fact) and "allowedTopologies" in fields:
            return f"{place_of(finding)} for volumes of class {fields['storageClass']}"
        case CauseKind.VOLUME_PROVISIONING | CauseKind.STORAGE_CAPACITY:
            return f"with a volume for claim {name_of(fields['claim'])}"
        case CauseKind.DEVICE_PLACE:
            return f"that claim {name_of(fields['claim'])} has devices for"
        case CauseKind.NO_SUCH_DEVICE:
            return f"with such devices of class {fields['deviceClass']}"
        case CauseKind.DEVICE_TAINT:
            return f"with devices of class {fields['deviceClass']} that have no taint"
        case CauseKind.NODE_AFFINITY:
            facts = [f for g in ruling.ruled_out for f in g.of_kind(CauseKind.NODE_AFFINITY) if isinstance(f, Fact)]
            if facts and all(fact.fields.get("label") in NAME_LABELS for fact in facts):
                return "that it asks for by name"
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
    """Where a volume is, or may be made: `in eu-west-1a`, `on node a`, `where disk=ssd`."""
    if "selectedNode" in fact.fields:
        return f"{ON_NODE}{fact.fields['selectedNode']}"
    zones = fact.fields.get("zones")
    if zones:
        return f"in {any_of(list(zones))}"
    required = list(fact.fields.get("required") or fact.fields.get("allowedTopologies") or ["nowhere"])
    on_node = f"{HOSTNAME_LABEL}="
    if all(place.startswith(on_node) for place in required):
        return f"{ON_NODE}{any_of([place.removeprefix(on_node) for place in required])}"
    return f"where {any_of(required)}"


def name_of(key: str) -> str:
    return key.partition("/")[2] or key


def names_text(names: Sequence[str]) -> str:
    """`a, b and c`; the first and the last of many: `gpu-0 … gpu-3`."""
    if len(names) <= NAMES_SHOWN:
        return all_of(list(names))
    return f"{names[0]} … {names[-1]}"
