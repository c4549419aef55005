"""Raise which maxSkew to what, or drop a topology spread constraint that the node cannot meet at all."""

from __future__ import annotations

from kubesched.explanation.changes.change import ChangeKind, PatchPod, Proposal
from kubesched.explanation.changes.patches import Operation, put, remove
from kubesched.explanation.changes.situation import Situation
from kubesched.explanation.findings.spread import DomainCounts
from kubesched.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE

_PATH = ("spec", "topologySpreadConstraints")


def propose_spread(situation: Situation, row: int, counts: list[DomainCounts]) -> Proposal | None:
    """For one node, the smallest skews that let the pod in. `counts` are those of the pod's hard constraints, in
    their order."""
    labels = situation.cluster.table.nodes[row].labels
    texts: list[str] = []
    operations: list[Operation] = []
    details: list[dict[str, object]] = []
    n_dropped = raised_by = 0
    for index, of_constraint in zip(_hard_constraints(situation), counts, strict=False):
        constraint = of_constraint.constraint
        domain = labels.get(constraint.topology_key)
        where = f"the topology spread constraint on {constraint.topology_key}"
        if domain is None:
            texts.append(f"drop {where}")
            operations.append(remove(*_PATH, index))
            n_dropped += 1
        elif (skew := of_constraint.skew_in(domain)) > constraint.max_skew:
            texts.append(f"raise maxSkew of {where} from {constraint.max_skew} to {skew}")
            operations.append(put(*_PATH, index, "maxSkew", value=skew))
            details.append({"topologyKey": constraint.topology_key, "from": constraint.max_skew, "to": skew})
            raised_by += skew - constraint.max_skew
    if not texts:
        return None
    # Removals last, and from the end: the other operations name constraints by their place.
    operations.sort(key=lambda operation: (operation.op == "remove", -_place(operation)))
    return Proposal(
        kind=ChangeKind.RELAX if n_dropped else ChangeKind.SPREAD,
        description=" and ".join(texts),
        node=situation.name(row),
        actions=(PatchPod(situation.pod.key, tuple(operations)),),
        details={"maxSkew": details} if details else {"drop": texts},
        n_edits=len(texts),
        cost=raised_by,
    )


def _hard_constraints(situation: Situation) -> list[int]:
    """Where the pod's own hard constraints stand in its list."""
    own = situation.pod.spec.topology_spread_constraints or ()
    return [index for index, constraint in enumerate(own) if constraint.when_unsatisfiable == DO_NOT_SCHEDULE]


def _place(operation: Operation) -> int:
    place = operation.path[len(_PATH)]
    assert isinstance(place, int)
    return place
