"""Relax or correct what: labels, requirements, terms, ports and skews that keep the pod off a node.

Each `propose_…` gives the least that has to be raised or dropped for one node, as far as one plugin is concerned.

Corrected is a label or a resource that no node has, and that looks like a slip for one that some have. Where it is no
slip, the label may be missing from the nodes: `label_node` puts it on one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kubesched.explanation.changes.what_if import (
    Change,
    ChangeKind,
    PatchNode,
    PatchOperation,
    PatchPod,
    Proposal,
    Reluctance,
    Situation,
    put,
    remove,
)
from kubesched.explanation.evidence import LEFT_OUT
from kubesched.explanation.findings.finding import HOSTNAME_LABEL, meant_resource, offered_resources
from kubesched.explanation.findings.node_affinity import BUILT_IN_LABELS, meant_value, unmet
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity, term_text
from kubesched.explanation.findings.spread import DomainCounts
from kubesched.explanation.findings.taints import is_same_port, port_text
from kubesched.explanation.layout import all_of
from kubesched.k8s.model.core import Container, ContainerPort, Node, NodeSelectorTerm, ResourceRequirements
from kubesched.k8s.model.requests import is_restartable
from kubesched.k8s.model.selectors import compile_node_term
from kubesched.scheduler.plugins.node_affinity import NodeAffinity, node_selector_of
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


_OF_PROVIDERS = ("amazonaws.com", "karpenter.sh", "k8s.aws", "azure.com", "google.com", "kubernetes.io", "k8s.io")
"""Domains of labels that say what a machine is or where it stands: putting one on by hand would be a lie."""

Correction = tuple[str, list[PatchOperation]]
"""What is corrected to what, in words and as operations."""


def correct_slips(situation: Situation) -> list[Change]:
    """Labels and resources that no node has; nothing if one of them is no slip."""
    found: list[Correction] = []
    for corrections in (_selector(situation), _affinity(situation), _resources(situation)):
        for correction in corrections:
            if correction is None:
                return []
            found.append(correction)
    if not found:
        return []
    texts = [text for text, _ in found]
    proposal = Proposal(
        kind=ChangeKind.CORRECT,
        description=f"correct {' and '.join(texts)}",
        node=situation.name(0),
        actions=(PatchPod(situation.pod.key, tuple(operation for _, several in found for operation in several)),),
        details={"correct": texts},
        n_edits=len(texts),
        reluctance=Reluctance.NONE,
        cost_to_others="costs others nothing, if that was meant",
    )
    change = situation.what_if.first_that_helps([proposal])
    return [] if change is None else [replace(change, proposal=replace(proposal, node=change.node))]


def _selector(situation: Situation) -> Iterator[Correction | None]:
    nodes = situation.cluster.table.nodes
    for key, value in sorted((situation.pod.spec.node_selector or {}).items()):
        if any(node.labels.get(key) == value for node in nodes):
            continue
        meant = meant_label(nodes, key, value)
        if meant is None:
            yield None
            continue
        operations = [remove("spec", "nodeSelector", key)] if meant[0] != key else []
        operations.append(put("spec", "nodeSelector", meant[0], value=meant[1]))
        yield f"nodeSelector {key}={value} to {meant[0]}={meant[1]}", operations


def _affinity(situation: Situation) -> Iterator[Correction | None]:
    """Of an affinity with one term, the values that no node has."""
    nodes = situation.cluster.table.nodes
    required = node_selector_of(situation.pod.spec)
    if required is None or len(required.node_selector_terms) != 1:
        return
    for position, requirement in enumerate(compile_node_term(required.node_selector_terms[0]).labels):
        if requirement.operator != "In" or any(requirement.matches(node.labels.get(requirement.key)) for node in nodes):
            continue
        values = {node.labels[requirement.key] for node in nodes if requirement.key in node.labels}
        meant = meant_value(requirement.key, requirement.values[0], values)
        if meant is None:
            yield None
            continue
        path = (*_NODE_AFFINITY, "nodeSelectorTerms", 0, "matchExpressions", position, "values")
        yield f"node affinity {requirement} to {requirement.key}={meant}", [put(*path, value=[meant])]


def _resources(situation: Situation) -> Iterator[Correction | None]:
    offered = offered_resources(situation.cluster)
    spec = situation.pod.spec
    for resource in sorted(situation.pod.resources.wanted):
        meant = meant_resource(resource, offered)
        if not meant:
            continue
        operations: list[PatchOperation] = []
        for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or ())):
            for index, container in enumerate(containers):
                asked = container.resources or ResourceRequirements()
                for kind, amounts in (("requests", asked.requests), ("limits", asked.limits)):
                    if amounts and resource in amounts:
                        path = ("spec", field, index, "resources", kind)
                        operations.append(remove(*path, resource))
                        operations.append(put(*path, meant, value=amounts[resource]))
        yield f"the resource {resource} to {meant}", operations


def meant_label(nodes: Sequence[Node], key: str, value: str) -> tuple[str, str] | None:
    """The label that nodes have and that this one may be a slip for; None if there is none, or several are as near."""
    values = {node.labels[key] for node in nodes if key in node.labels}
    if values:
        near = meant_value(key, value, values)
        return None if near is None else (key, near)
    keys = {label for node in nodes if value in node.labels.values() for label in node.labels}
    meant = meant_value("", key, keys)
    if meant is None or not any(node.labels.get(meant) == value for node in nodes):
        return None
    return meant, value


# -- labels that nodes could have --------------------------------------------------------------------------------------


def label_node(situation: Situation) -> list[Change]:
    """Puts the labels on a node that no node has, and that nothing but somebody's hand puts there."""
    nodes = situation.cluster.table.nodes
    wanted = dict(_asked_for(situation))
    absent = {key: value for key, value in wanted.items() if not any(node.labels.get(key) == value for node in nodes)}
    if not absent or not all(_is_put_by_hand(key) for key in absent):
        return []
    rows = situation.failures.only({NodeAffinity.name, LEFT_OUT}).tolist()
    unmarked = (row for row in rows if absent.keys().isdisjoint(nodes[row].labels))  # another value is not a gap
    change = situation.what_if.first_that_helps(_labelled(situation, row, absent) for row in unmarked)
    return [] if change is None else [change]


def _labelled(situation: Situation, row: int, labels: dict[str, str]) -> Proposal:
    name = situation.name(row)
    return Proposal(
        kind=ChangeKind.LABEL_NODE,
        description=f"label {name} with {all_of([f'{key}={value}' for key, value in labels.items()])}",
        node=name,
        actions=(PatchNode(name, tuple(put("metadata", "labels", key, value=v) for key, v in labels.items())),),
        details={"labels": labels},
        n_edits=len(labels),
        reluctance=Reluctance.OTHERS,
        cost_to_others="see that it is true of the node; other pods that ask for it may come, too",
    )


def _asked_for(situation: Situation) -> Iterator[tuple[str, str]]:
    yield from (situation.pod.spec.node_selector or {}).items()
    required = node_selector_of(situation.pod.spec)
    for term in () if required is None else required.node_selector_terms[:1]:
        for requirement in compile_node_term(term).labels:
            if requirement.operator == "In":
                yield requirement.key, requirement.values[0]


def _is_put_by_hand(label: str) -> bool:
    domain, slash, _ = label.rpartition("/")
    is_of_provider = bool(slash) and any(domain == known or domain.endswith(f".{known}") for known in _OF_PROVIDERS)
    return label not in BUILT_IN_LABELS and label != HOSTNAME_LABEL and not is_of_provider
