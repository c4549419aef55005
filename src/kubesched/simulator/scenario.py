"""What happens to the cluster in the course of a run: nodes come, are drained, fail; objects change.

A scenario file has kind `Scenario`, API version `kubesched.dev/v1alpha1`, and a list of events with their times. It is
checked before the run begins: errors name file, scenario and field. Each step is carried out at its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, NodeSpec, NodeStatus
from kubesched.k8s.model.limits import LimitRange, ResourceQuota
from kubesched.k8s.model.manifests import KINDS_WITH_WORKLOADS, Kinds, ManifestError
from kubesched.k8s.model.meta import KubeObject, KubeStruct, ObjectMeta
from kubesched.k8s.model.spelling import camel
from kubesched.k8s.model.times import Duration, DurationError
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.simulator.virtual.cluster import VirtualCluster

SCENARIO_GROUP = "kubesched.dev"
SCENARIO_VERSION = f"{SCENARIO_GROUP}/v1alpha1"

SIMULATED_OBJECTS: Kinds = {
    **KINDS_WITH_WORKLOADS,
    ("", "ResourceQuota"): ResourceQuota,
    ("", "LimitRange"): LimitRange,
}
"""What a simulated cluster holds."""

OneOrMore = str | tuple[str, ...]


class NodeTemplate(KubeStruct, frozen=True, forbid_unknown_fields=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodeBatch(KubeStruct, frozen=True, forbid_unknown_fields=True):
    """So many nodes of one template; they are numbered on from the template's name."""

    template: NodeTemplate
    count: int = 1


class ObjectName(KubeStruct, frozen=True, forbid_unknown_fields=True):
    kind: str
    name: str
    namespace: str = ""


class ScenarioEvent(KubeStruct, frozen=True, forbid_unknown_fields=True):
    """One thing that happens at a time. Exactly one of the fields beside `at` is set."""

    at: str
    add_nodes: NodeBatch | None = None
    drain: OneOrMore | None = None
    cordon: OneOrMore | None = None
    uncordon: OneOrMore | None = None
    fail: OneOrMore | None = None
    recover: OneOrMore | None = None
    apply: tuple[dict[str, Any], ...] | None = None
    delete: tuple[ObjectName, ...] | None = None


class Scenario(KubeObject, frozen=True, forbid_unknown_fields=True):
    api_version: str = ""
    kind: str = ""
    events: tuple[ScenarioEvent, ...] = ()


MOST_NODES = 100_000
"""With those of the files."""

HOSTNAME_LABEL = "kubernetes.io/hostname"

NODE_VERBS = ("drain", "cordon", "uncordon", "fail", "recover")
_VERBS = ("add_nodes", *NODE_VERBS, "apply", "delete")
_STRUCTS = {kind: struct for (_, kind), struct in SIMULATED_OBJECTS.items()}


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """What happens `at_s` seconds after the start: nodes that a verb is about, or objects to put or to delete."""

    at_s: float
    verb: str
    source: str
    """The file it stands in."""
    node_names: tuple[str, ...] = ()
    objects: tuple[KubeObject, ...] = ()
    deleted: tuple[tuple[type[KubeObject], str], ...] = ()


def read_scenarios(scenarios: Iterable[tuple[Scenario, str]], nodes: Iterable[str]) -> list[ScenarioStep]:
    """All steps in the order of their times. `scenarios` come with their sources, `nodes` are those of the files."""
    known = set(nodes)
    steps: list[ScenarioStep] = []
    named: list[tuple[str, _Place]] = []
    for scenario, source in scenarios:
        if scenario.api_version != SCENARIO_VERSION:
            raise ManifestError(source, f"Scenario {scenario.name}", f"apiVersion: {SCENARIO_VERSION} is expected")
        for index, event in enumerate(scenario.events):
            place = _Place(source, scenario.name, index)
            step = _step(event, place, known)
            known.update(item.name for item in step.objects if isinstance(item, Node))
            named.extend((name, place.at_field(step.verb)) for name in step.node_names)
            steps.append(step)
    for name, place in named:
        if name not in known:
            raise place.error(f'there is no node "{name}"')
    return sorted(steps, key=lambda step: step.at_s)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in which file something stands."""

    source: str
    scenario: str
    index: int
    field: str = ""

    def at_field(self, field: str) -> _Place:
        return _Place(self.source, self.scenario, self.index, camel(field))

    def error(self, problem: str) -> ManifestError:
        path = f"events[{self.index}]" + (f".{self.field}" if self.field else "")
        return ManifestError(self.source, f"Scenario {self.scenario}", f"{path}: {problem}")


def _step(event: ScenarioEvent, place: _Place, known: set[str]) -> ScenarioStep:
    at_s = _time(event.at, place)
    set_verbs = [verb for verb in _VERBS if getattr(event, verb) is not None]
    if len(set_verbs) != 1:
        listed = ", ".join(map(camel, _VERBS))
        found = "none is set" if not set_verbs else f"{' and '.join(map(camel, set_verbs))} are set"
        raise place.error(f"exactly one of {listed} is expected; {found}")
    verb = set_verbs[0]
    if event.add_nodes is not None:
        return ScenarioStep(at_s, verb, place.source, objects=tuple(_nodes(event.add_nodes, place, known)))
    if event.apply is not None:
        return ScenarioStep(at_s, verb, place.source, objects=_applied(event.apply, place))
    if event.delete is not None:
        return ScenarioStep(at_s, verb, place.source, deleted=tuple(_deleted(event.delete, place)))
    names: OneOrMore = getattr(event, verb)
    return ScenarioStep(at_s, verb, place.source, node_names=(names,) if isinstance(names, str) else names)


def _time(text: str, place: _Place) -> float:
    try:
        found = Duration.parse(text).seconds
    except DurationError as error:
        raise place.at_field("at").error(str(error)) from None
    if found < 0:
        raise place.at_field("at").error(f'"{text}" is negative')
    return found


def _nodes(batch: NodeBatch, place: _Place, known: set[str]) -> Iterator[Node]:
    template = batch.template
    prefix = template.metadata.name
    if not prefix:
        raise place.at_field("add_nodes.template.metadata.name").error("a name is required")
    if batch.count < 1:
        raise place.at_field("add_nodes.count").error(f"at least 1 is expected, not {batch.count}")
    if len(known) + batch.count > MOST_NODES:
        problem = f"{batch.count:,} nodes, {len(known) + batch.count:,} with those before: at most {MOST_NODES:,}"
        raise place.at_field("add_nodes.count").error(problem)
    taken, number = set(known), 0
    for _ in range(batch.count):
        number += 1
        while f"{prefix}-{number}" in taken:
            number += 1
        name = f"{prefix}-{number}"
        labels = {**(template.metadata.labels or {}), HOSTNAME_LABEL: name}
        yield Node(replace(template.metadata, name=name, labels=labels), template.spec, template.status)


def _applied(documents: Iterable[object], place: _Place) -> tuple[KubeObject, ...]:
    try:
        found = manifests.from_dicts(documents, place.source, kinds=SIMULATED_OBJECTS)
    except ManifestError as error:
        raise place.at_field("apply").error(f"{error.where}: {error.problem}") from None
    if found.ignored:
        raise place.at_field("apply").error(f"{next(iter(found.ignored))} is not a kind that is simulated")
    return tuple(found.objects)


def _deleted(names: Iterable[ObjectName], place: _Place) -> Iterator[tuple[type[KubeObject], str]]:
    for index, wanted in enumerate(names):
        struct = _STRUCTS.get(wanted.kind)
        if struct is None:
            raise place.at_field(f"delete[{index}].kind").error(f'"{wanted.kind}" is not a kind that is simulated')
        namespace = (wanted.namespace or "default") if manifests.is_namespaced(struct) else ""
        yield struct, f"{namespace}/{wanted.name}" if namespace else wanted.name


BY_SCENARIO = "deleted by the scenario"


def plan_scenario(cluster: VirtualCluster, steps: Iterable[ScenarioStep]) -> None:
    """From now on the steps are on the cluster's clock."""
    for step in steps:
        cluster.clock.at(cluster.clock.start_s + step.at_s, partial(_play, cluster, step))


def _play(cluster: VirtualCluster, step: ScenarioStep) -> None:
    if step.verb in NODE_VERBS:
        for name in step.node_names:
            _change_node(cluster, step.verb, name)
    for item in step.objects:
        _put(cluster, item)
    for kind, key in step.deleted:
        known = cluster.store.find(kind, key)
        if known is None:
            _complain(cluster, kind, key, "delete", "it does not exist")
        else:
            cluster.deletions.delete(known, BY_SCENARIO)


def _change_node(cluster: VirtualCluster, verb: str, name: str) -> None:
    if not cluster.has_node(name):
        _complain(cluster, Node, name, verb, "it does not exist")
        return
    cluster.ledger.event("Normal", "Scenario", "Node", name, verb)
    match verb:
        case "drain":
            cluster.drains.start(name)
        case "cordon":
            cluster.drains.cordon(name)
        case "uncordon":
            cluster.drains.cordon(name, closed=False)
        case "fail":
            cluster.faults.fail(name)
        case "recover":
            cluster.faults.recover(name)


def _put(cluster: VirtualCluster, item: KubeObject) -> None:
    try:
        cluster.admission.apply(item)
    except AdmissionError as refusal:
        _complain(cluster, type(item), item.key, "apply", str(refusal))
    else:
        cluster.ledger.event("Normal", "Scenario", type(item).__name__, item.key, "apply")


def _complain(cluster: VirtualCluster, kind: type[KubeObject], key: str, verb: str, problem: str) -> None:
    cluster.ledger.event("Warning", "ScenarioFailed", kind.__name__, key, f"cannot {verb} it: {problem}")
