"""Relax what: labels, requirements, terms, ports and skews that keep the pod off a node, raised or dropped.

Each `propose_…` gives the least that has to go for one node, as far as one plugin is concerned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kubesched.explanation.changes.change import (
    Change,
    ChangeKind,
    PatchOperation,
    PatchPod,
    Proposal,
    Reluctance,
    put,
    remove,
)
from kubesched.explanation.changes.what_if import Situation
from kubesched.explanation.findings.node_affinity import BUILT_IN_LABELS, unmet
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity, term_text
from kubesched.explanation.findings.spread import DomainCounts
from kubesched.explanation.findings.taints import is_same_port, port_text
from kubesched.k8s.model.core import Container, ContainerPort, Node, NodeSelectorTerm
from kubesched.k8s.model.requests import is_restartable
from kubesched.k8s.model.selectors import compile_node_term
from kubesched.scheduler.plugins.node_affinity import node_selector_of
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


def lower_min_domains(situation: Situation, counts: list[DomainCounts]) -> list[Change]:
    """For constraints that want more domains than there are: as many as there are."""
    own = situation.pod.spec.topology_spread_constraints or ()
    hard = [index for index, constraint in enumerate(own) if constraint.when_unsatisfiable == DO_NOT_SCHEDULE]
    lowered = [
        (index, of_constraint.constraint.topology_key, of_constraint.constraint.min_domains, n_domains)
        for index, of_constraint in zip(hard, counts, strict=False)
        if 0 < (n_domains := len(of_constraint.by_domain)) < of_constraint.constraint.min_domains
    ]
    if not lowered:
        return []
    steps = [
        f"minDomains of the topology spread constraint on {key} from {old} to {new}" for _, key, old, new in lowered
    ]
    proposal = Proposal(
        kind=ChangeKind.RELAX,
        description=f"lower {' and '.join(steps)}",
        node=situation.name(0),
        actions=(
            PatchPod(situation.pod.key, tuple(put(*_PATH, i, "minDomains", value=new) for i, _, _, new in lowered)),
        ),
        details={"minDomains": [{"topologyKey": key, "from": old, "to": new} for _, key, old, new in lowered]},
        n_edits=len(lowered),
        reluctance=Reluctance.LITTLE,
        cost_to_others="costs others nothing; the pods share fewer domains",
    )
    change = situation.what_if.first_that_helps([proposal])
    return [] if change is None else [change]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE_AFFINITY = ("spec", "affinity", "nodeAffinity", REQUIRED)

Drop = tuple[str, PatchOperation]
"""What is dropped, in words and as an operation."""


def relaxation(situation: Situation, row: int, drops: Sequence[Drop]) -> Proposal | None:
    """Drops all of these; None if there is nothing to drop."""
    if not drops:
        return None
    texts = [text for text, _ in drops]
    # Later entries of a list first: a removal must not move what is still to be removed.
    operations = sorted((operation for _, operation in drops), key=lambda operation: operation.path, reverse=True)
    return Proposal(
        kind=ChangeKind.RELAX,
        description=f"drop {' and '.join(texts)}",
        node=situation.name(row),
        actions=(PatchPod(situation.pod.key, tuple(operations)),),
        details={"drop": texts},
        n_edits=len(drops),
        reluctance=Reluctance.LAST if any(_is_built_in(text) for text in texts) else Reluctance.MUCH,
        cost_to_others="costs others nothing; see that the pod can do without",
    )


def _is_built_in(text: str) -> bool:
    """Whether it says what a program can run on at all."""
    return any(f" {label}" in text for label in BUILT_IN_LABELS)


# -- labels and node affinity ------------------------------------------------------------------------------------------


def propose_node_affinity(situation: Situation, row: int) -> Proposal | None:
    node = situation.cluster.table.nodes[row]
    drops = [
        (f"the nodeSelector {key}={value}", remove("spec", "nodeSelector", key))
        for key, value in sorted((situation.pod.spec.node_selector or {}).items())
        if node.labels.get(key) != value
    ]
    drops.extend(_node_affinity_drops(situation, node))
    return relaxation(situation, row, drops)


def drop_node_affinity(situation: Situation, row: int) -> Proposal | None:
    """All of the required node affinity."""
    if node_selector_of(situation.pod.spec) is None:
        return None
    return relaxation(situation, row, [("the required node affinity", remove(*_NODE_AFFINITY))])


def _node_affinity_drops(situation: Situation, node: Node) -> list[Drop]:
    """Of the term that comes closest, the requirements that are not met; the whole affinity, if that leaves none."""
    selector = node_selector_of(situation.pod.spec)
    if selector is None or any(_matches(term, node) for term in selector.node_selector_terms):
        return []
    closest: list[Drop] | None = None
    for index, term in enumerate(selector.node_selector_terms):
        drops = _term_drops(index, term, node)
        if drops is not None and (closest is None or len(drops) < len(closest)):
            closest = drops
    return closest or [("the required node affinity", remove(*_NODE_AFFINITY))]


def _matches(term: NodeSelectorTerm, node: Node) -> bool:
    compiled = compile_node_term(term)
    return bool(compiled.labels or compiled.fields) and compiled.matches(node.labels, node.name)


def _term_drops(index: int, term: NodeSelectorTerm, node: Node) -> list[Drop] | None:
    """None for a term that would be left without any requirement: such a term matches no node."""
    compiled = compile_node_term(term)
    failing = {id(requirement) for requirement, _ in unmet(compiled, node)}
    n_requirements = len(compiled.labels) + len(compiled.fields)
    if compiled.error is not None or len(failing) >= n_requirements:
        return None
    path = (*_NODE_AFFINITY, "nodeSelectorTerms", index)
    return [
        (f"the node affinity requirement {requirement}", remove(*path, field, position))
        for field, requirements in (("matchExpressions", compiled.labels), ("matchFields", compiled.fields))
        for position, requirement in enumerate(requirements)
        if id(requirement) in failing
    ]


# -- pod affinity ------------------------------------------------------------------------------------------------------


def propose_pod_affinity(situation: Situation, row: int, unmet_terms: UnmetPodAffinity) -> Proposal | None:
    """The pod's own terms that the node does not meet; None if it is another pod's term that stands against it."""
    if unmet_terms.is_unwelcome(row):
        return None
    path = ("spec", "affinity")
    drops = [
        (f"the pod affinity term {term_text(term)}", remove(*path, "podAffinity", REQUIRED, index))
        for index, term in unmet_terms.unmet_toward(row)
    ]
    drops.extend(
        (f"the pod anti-affinity term {term_text(term)}", remove(*path, "podAntiAffinity", REQUIRED, index))
        for index, term in unmet_terms.unmet_away(row)
    )
    return relaxation(situation, row, drops)


# -- host ports --------------------------------------------------------------------------------------------------------


def propose_ports(situation: Situation, row: int) -> Proposal | None:
    holders = [*situation.cluster.table.pods.on(row), *situation.nominated_pods.get(row, ())]
    taken = [port for holder in holders for port in holder.host_ports]
    spec = situation.pod.spec
    drops = []
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or ())):
        for index, container in enumerate(containers):
            for position, port in enumerate(container.ports or ()):
                if _is_held(port, container, field) and any(is_same_port(port, other) for other in taken):
                    path = ("spec", field, index, "ports", position)
                    # On the host's network a port is a host port, whatever it says.
                    where = path if spec.host_network else (*path, "hostPort")
                    drops.append((f"the host port {port_text(port)} of container {container.name}", remove(*where)))
    return relaxation(situation, row, drops)


def _is_held(port: ContainerPort, container: Container, field: str) -> bool:
    return port.host_port > 0 and (field == "containers" or is_restartable(container))
