"""Raise which maxSkew to what, or drop a topology spread constraint that the node cannot meet at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubesched.explanation.changes.change import ChangeKind, PatchPod, Proposal, Reluctance
from kubesched.explanation.changes.patches import PatchOperation, put, remove
from kubesched.explanation.changes.situation import Situation
from kubesched.explanation.findings.spread import DomainCounts
from kubesched.scheduler.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE

_PATH = ("spec", "topologySpreadConstraints")


@dataclass(frozen=True, slots=True)
class SpreadEdit:
    """What happens to one of the pod's constraints; `skew` is None for one that is dropped."""

    index: int
    topology_key: str
    max_skew: int
    skew: int | None

    @property
    def text(self) -> str:
        constraint = f"the topology spread constraint on {self.topology_key}"
        if self.skew is None:
            return f"drop {constraint}"
        return f"raise maxSkew of {constraint} from {self.max_skew} to {self.skew}"

    @property
    def operation(self) -> PatchOperation:
        if self.skew is None:
            return remove(*_PATH, self.index)
        return put(*_PATH, self.index, "maxSkew", value=self.skew)

    @property
    def order(self) -> tuple[bool, int]:
        """Removals last, and from the end: the other operations name constraints by their place."""
        return self.skew is None, -self.index


def propose_spread(situation: Situation, row: int, counts: list[DomainCounts]) -> Proposal | None:
    """For one node, the smallest skews that let the pod in. `counts` are those of the pod's hard constraints, in
    their order."""
    edits = list(_edits(situation, row, counts))
    if not edits:
        return None
    raised = [edit for edit in edits if edit.skew is not None]
    return Proposal(
        kind=ChangeKind.SPREAD if raised == edits else ChangeKind.RELAX,
        description=" and ".join(edit.text for edit in edits),
        node=situation.name(row),
        actions=(PatchPod(situation.pod.key, tuple(e.operation for e in sorted(edits, key=lambda e: e.order))),),
        details={
            "maxSkew": [{"topologyKey": e.topology_key, "from": e.max_skew, "to": e.skew} for e in raised],
            "drop": [edit.text.removeprefix("drop ") for edit in edits if edit.skew is None],
        },
        n_edits=len(edits),
        cost=sum((edit.skew or 0) - edit.max_skew for edit in raised),
        reluctance=Reluctance.LITTLE if raised == edits else Reluctance.MUCH,
        cost_to_others="costs others nothing; the loss of a domain takes more of the pods with it",
    )


def _edits(situation: Situation, row: int, counts: list[DomainCounts]) -> Iterator[SpreadEdit]:
    labels = situation.cluster.table.nodes[row].labels
    own = situation.pod.spec.topology_spread_constraints or ()
    hard = [index for index, constraint in enumerate(own) if constraint.when_unsatisfiable == DO_NOT_SCHEDULE]
    for index, of_constraint in zip(hard, counts, strict=False):  # the profile's own constraints are not the pod's
        constraint = of_constraint.constraint
        domain = labels.get(constraint.topology_key)
        skew = None if domain is None else of_constraint.skew_in(domain)
        if skew is None or skew > constraint.max_skew:
            yield SpreadEdit(index, constraint.topology_key, constraint.max_skew, skew)
