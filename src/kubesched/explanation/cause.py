"""Why a pod is pending, as one fact and one sentence: what stands in the way on the nodes that come nearest to it.

What rules out whole sets of nodes is asked for step by step, from what can never change (no such resource, a volume in
another zone) to what may (spread, other pods). The step that leaves no node is the cause, told of the nodes that were
left until then. If some are left after all steps, the cause is what these lack. A Scene is what a sentence about these
nodes is made from.

Before any node is asked comes a claim that cannot be used on any of them: it is not there, has no volume, or none that
suits it (`claim_causes`).

Next: `cause_of_nodes`, `cause_of_places` and `headline`, which find the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from kubesched.explanation.findings.finding import HOSTNAME_LABEL, CauseKind, Fact, Finding, Nearness, Shortage
from kubesched.explanation.groups import RejectedNodes
from kubesched.explanation.layout import all_of, any_of
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model import selectors
from kubesched.k8s.model.selectors import NODE_NAME_FIELD
from kubesched.k8s.model.storage import (
    FILESYSTEM,
    NO_PROVISIONER,
    ClaimUse,
    PersistentVolume,
    PersistentVolumeClaim,
    claims_of,
    class_of_claim,
    class_of_volume,
    is_fully_bound,
    requested_storage,
    storage_of,
    waits_for_first_consumer,
)
from kubesched.scheduler.cluster import Cluster

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation


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


_NAMES_SHOWN = 4


def claim_causes(explanation: Explanation) -> Iterator[Cause]:
    """For each claim of the pod that cannot be used on any node, why."""
    objects = explanation.cluster.objects
    for use in claims_of(explanation.pod.pod):
        claim = objects.persistent_volume_claims.get(use.key)
        if claim is None:
            yield _missing_claim(explanation, use)
        elif claim.status.phase == "Lost":
            yield _claim(
                claim,
                f"has lost its volume {claim.spec.volume_name}, which does not exist",
                "Restore the volume, or delete the claim and let it be recreated (its data is gone).",
            )
        elif claim.metadata.deletion_timestamp is not None:
            yield _claim(claim, "is being deleted", "Create it again when it is gone.")
        elif is_fully_bound(claim):
            if claim.spec.volume_name not in objects.persistent_volumes:
                text = f"is bound to volume {claim.spec.volume_name}, which does not exist"
                yield _claim(claim, text, "Restore the volume, or delete the claim.")
        else:
            cause = _unbound(explanation, claim)
            if cause is not None:
                yield cause


def _missing_claim(explanation: Explanation, use: ClaimUse) -> Cause:
    fields = {"claim": use.key}
    if use.is_ephemeral:
        text = f"claim {use.name} for its ephemeral volume does not exist yet"
        return Cause(CauseKind.CLAIM, text, "kube-controller-manager creates it; see its events.", fields=fields)
    claims = explanation.cluster.objects.persistent_volume_claims
    others = [key.partition("/")[2] for key in claims if key.startswith(f"{use.namespace}/")]
    near = get_close_matches(use.name, others, 1, 0.6)
    hint = f"; there is {near[0]}" if near else ""
    text = f"claim {use.name} does not exist in namespace {use.namespace}{hint}"
    remedy = "Create it, or correct the name in the pod's volumes."
    return Cause(CauseKind.CLAIM, text, remedy, fields=fields)


def _unbound(explanation: Explanation, claim: PersistentVolumeClaim) -> Cause | None:
    """Why a claim has no volume; None for one that gets it where the pod goes."""
    objects = explanation.cluster.objects
    class_name = class_of_claim(claim)
    size = f"(asked for: {requested_storage(claim)}, {', '.join(claim.spec.access_modes or ())})"
    if claim.spec.volume_name:
        volume = objects.persistent_volumes.get(claim.spec.volume_name)
        state = "does not exist"
        if volume is not None:
            ref = volume.spec.claim_ref
            owner = "" if ref is None else f"{ref.namespace}/{ref.name}"
            is_taken = bool(owner) and owner != claim.key
            state = f"belongs to claim {owner}" if is_taken else "is not bound to it yet"
        text = f"names volume {claim.spec.volume_name}, which {state}"
        return _claim(claim, text, "Correct spec.volumeName of the claim, or free the volume.")
    if not class_name:
        text = f"is not bound: it has no storage class, and {unsuitable(objects.persistent_volumes, claim)} {size}"
        return _claim(claim, text, "Give it a storageClassName, or mark a class as the default and create it again.")
    storage_class = objects.storage_classes.get(class_name)
    if storage_class is None:
        known = sorted(objects.storage_classes)
        near = get_close_matches(class_name, known, 1, 0.5)
        there = f"; there is {any_of(known[:_NAMES_SHOWN])}" if known else "; there is none"
        text = f"is not bound: its storage class {class_name} does not exist{there}"
        meant = f"Did you mean {near[0]}? " if near else ""
        return _claim(claim, text, f"{meant}Create the class, or recreate the claim with another.")
    if waits_for_first_consumer(storage_class):
        return None
    if storage_class.provisioner in ("", NO_PROVISIONER):
        there = unsuitable(objects.persistent_volumes, claim)
        text = f"is not bound: class {class_name} has no provisioner, and {there} {size}"
        released = _released(_of_class(objects.persistent_volumes, claim))
        remedy = f"Create a PersistentVolume of class {class_name} that suits it"
        remedy += f", or remove spec.claimRef of {released.name} to use it again." if released is not None else "."
        return _claim(claim, text, remedy)
    text = f"is not bound: {storage_class.provisioner} has not made a volume of class {class_name} for it yet {size}"
    return _claim(claim, text, "See the events of the claim and the log of the provisioner.")


def _claim(claim: PersistentVolumeClaim, text: str, remedy: str) -> Cause:
    fields = {"claim": claim.key, "storageClass": class_of_claim(claim), "volume": claim.spec.volume_name}
    return Cause(CauseKind.CLAIM, f"claim {claim.name} {text}", remedy, fields=fields)


def unsuitable(volumes: Mapping[str, PersistentVolume], claim: PersistentVolumeClaim) -> str:
    """What is with the volumes of the claim's class, none of which it can have."""
    of_class = _of_class(volumes, claim)
    free = [volume for volume in of_class if volume.spec.claim_ref is None]
    of_which = "of it" if class_of_claim(claim) else "without one"
    if free:
        nearest = min(free, key=lambda volume: len(_against(volume, claim)))
        why = all_of(_against(nearest, claim)) or "cannot be reached from where the pod can run"
        if len(free) == 1:
            return f"its only free volume does not suit it: {nearest.name} {why}"
        return f"none of the {len(free)} free volumes {of_which} suits it: {nearest.name} {why}"
    released = _released(of_class)
    if released is not None:
        ref = released.spec.claim_ref
        former = "another claim" if ref is None else f"{ref.namespace}/{ref.name}"
        return f"no volume {of_which} is free: {released.name} is released, but its claimRef still names {former}"
    return f"no volume {of_which} is free"


def _of_class(volumes: Mapping[str, PersistentVolume], claim: PersistentVolumeClaim) -> list[PersistentVolume]:
    wanted = class_of_claim(claim)
    return [volume for _, volume in sorted(volumes.items()) if class_of_volume(volume) == wanted]


def _released(of_class: Sequence[PersistentVolume]) -> PersistentVolume | None:
    """One that would be free, if it did not remember the claim that it had, and none is free."""
    if any(volume.spec.claim_ref is None for volume in of_class):
        return None
    return next((volume for volume in of_class if volume.status.phase == "Released"), None)


def _against(volume: PersistentVolume, claim: PersistentVolumeClaim) -> list[str]:
    """Why the claim cannot have a free volume of its class, wherever that is."""
    spec, found = volume.spec, []
    if storage_of(spec.capacity) < requested_storage(claim):
        found.append(f"has {storage_of(spec.capacity)}")
    if not set(claim.spec.access_modes or ()) <= set(spec.access_modes or ()):
        found.append(f"allows {any_of(list(spec.access_modes or ('no access mode',)))} only")
    if (spec.volume_mode or FILESYSTEM) != (claim.spec.volume_mode or FILESYSTEM):
        found.append(f"has volumeMode {spec.volume_mode or FILESYSTEM}")
    if claim.spec.selector is not None and not _is_selected(volume, claim):
        found.append("has not the labels that the claim selects")
    if volume.metadata.deletion_timestamp is not None:
        found.append("is being deleted")
    elif volume.status.phase != "Available":
        found.append(f"is {volume.status.phase or 'not available yet'}")
    return found


def _is_selected(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    assert claim.spec.selector is not None
    try:
        return selectors.from_label_selector(claim.spec.selector).matches(volume.metadata.labels or {})
    except selectors.SelectorError:
        return False
