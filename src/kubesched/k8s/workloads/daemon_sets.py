"""Daemon sets: one pod on every node that the template allows, tied to that node before the scheduler sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from msgspec.structs import replace

from kubesched.k8s.model import selectors
from kubesched.k8s.model.apps import DaemonSet, DaemonSetUpdateStrategy
from kubesched.k8s.model.core import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, CompiledNodeSelector, Selector
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from kubesched.k8s.workloads.actions import NameSource, Plan
from kubesched.k8s.workloads.pod_states import available_next_s, is_available
from kubesched.k8s.workloads.replicas import share_of
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, REVISION_HASH_LABEL, Revisions, pod_from_template

_TOLERATED: tuple[tuple[str, str], ...] = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
"""Taints (key, effect) that a daemon puts up with for good."""

_NETWORK_UNAVAILABLE = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def with_daemon_tolerations(spec: PodSpec) -> PodSpec:
    wanted = (*_TOLERATED, _NETWORK_UNAVAILABLE) if spec.host_network else _TOLERATED
    added = tuple(Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted)
    known = tuple(toleration for toleration in spec.tolerations or () if toleration not in added)
    return replace(spec, tolerations=(*known, *added))


@dataclass(frozen=True, slots=True)
class DaemonRules:
    """What a daemon's spec says about nodes, compiled once for all of them."""

    node_name: str
    labels: Selector
    affinity: CompiledNodeSelector | None
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, spec: PodSpec) -> DaemonRules:
        required = _required(spec)
        return cls(
            node_name=spec.node_name,
            labels=selectors.from_labels(spec.node_selector),
            affinity=None if required is None else selectors.from_node_selector(required),
            tolerations=spec.tolerations or (),
        )

    def should_run_on(self, node: Node) -> bool:
        return self._is_meant_for(node) and find_untolerated(node.spec.taints or (), self.tolerations) is None

    def may_stay_on(self, node: Node) -> bool:
        """A daemon that runs leaves only for a taint that drives pods out, or when the node is not meant at all."""
        drives_out = find_untolerated(node.spec.taints or (), self.tolerations, (NO_EXECUTE,)) is not None
        return self._is_meant_for(node) and not drives_out

    def _is_meant_for(self, node: Node) -> bool:
        if self.node_name and self.node_name != node.name:
            return False
        return self.labels.matches(node.labels) and (self.affinity is None or self.affinity.matches(node))


def tied_to_node(spec: PodSpec, node_name: str) -> PodSpec:
    """The node's name takes the place of all that was required of a node before."""
    affinity = spec.affinity or Affinity()
    field = NodeSelectorRequirement(NODE_NAME_FIELD, "In", (node_name,))
    required = NodeSelector((NodeSelectorTerm(match_fields=(field,)),))
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=required
    )
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))


def node_of(pod: Pod) -> str:
    """Where a daemon runs, or is to run."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = _required(pod.spec)
    for term in () if required is None else required.node_selector_terms:
        for field in term.match_fields or ():
            if field.key == NODE_NAME_FIELD and field.values:
                return field.values[0]
    return ""


def _required(spec: PodSpec) -> NodeSelector | None:
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    return None if affinity is None else affinity.required_during_scheduling_ignored_during_execution


GENERATION_LABEL = "pod-template-generation"


def sync_daemon_set(
    owner: DaemonSet,
    pods: Sequence[Pod],
    nodes: Iterable[Node],
    names: NameSource,
    revisions: Revisions,
    now_s: float = inf,
) -> Plan:
    """`pods` are those of the set; on which node each is, or is to be, its affinity tells."""
    plan = Plan()
    spec = with_daemon_tolerations((owner.spec.template or EMPTY_TEMPLATE).spec)
    rules = DaemonRules.of(spec)
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    may_surge = _limits(owner, 1)[0] > 0
    kept: dict[str, list[Pod]] = {}
    for node in nodes:
        here = by_node.pop(node.name, [])
        if rules.should_run_on(node):
            kept[node.name] = _keep(plan, owner, here, revisions, may_surge)
            if not here:
                plan.create(_daemon(owner, spec, node.name, names, revisions))
        elif not rules.may_stay_on(node):
            _leave(plan, here)
    for left in by_node.values():  # their node is gone, or was never there
        _leave(plan, left)
    strategy = owner.spec.update_strategy or DaemonSetUpdateStrategy()
    if strategy.type == "RollingUpdate":
        surge, unavailable = _limits(owner, len(kept))
        if surge:
            for node_name in _surge(plan, owner, kept, surge, revisions, now_s):
                plan.create(_daemon(owner, spec, node_name, names, revisions))
        else:
            _roll(plan, owner, kept, unavailable, revisions, now_s)
    next_s = available_next_s(pods, owner.spec.min_ready_seconds, now_s)
    if next_s is not None:
        plan.look_again(next_s)
    return plan


def _limits(owner: DaemonSet, n_eligible: int) -> tuple[int, int]:
    """(surge, unavailable): one daemon at a time may be missing, unless the set says otherwise."""
    strategy = owner.spec.update_strategy or DaemonSetUpdateStrategy()
    rolling = strategy.rolling_update
    if rolling is None:
        return 0, 1
    surge = share_of(rolling.max_surge or 0, n_eligible, rounding_up=True)
    allowed = 1 if rolling.max_unavailable is None else rolling.max_unavailable
    unavailable = share_of(allowed, n_eligible, rounding_up=True)
    return surge, unavailable if surge or unavailable else 1


def _daemon(owner: DaemonSet, spec: PodSpec, node_name: str, names: NameSource, revisions: Revisions) -> Pod:
    template = owner.spec.template
    labels = {
        REVISION_HASH_LABEL: revisions.current(owner, template),
        GENERATION_LABEL: str(max(1, owner.metadata.generation)),
    }
    name = names.name(f"{owner.name}-")
    return pod_from_template(template or EMPTY_TEMPLATE, owner, name, labels=labels, spec=tied_to_node(spec, node_name))


def _keep(plan: Plan, owner: DaemonSet, here: Sequence[Pod], revisions: Revisions, may_surge: bool) -> list[Pod]:
    """What stays of the daemons on a node: the first that has not ended, and those that are on their way out; in a
    surge, one of the old template beside one of the new."""
    kept: list[Pod] = []
    seen: set[bool] = set()
    for pod in here:
        kind = may_surge and revisions.is_current(owner, owner.spec.template, pod)
        if pod.is_terminating:
            kept.append(pod)
        elif pod.is_terminal or kind in seen:
            plan.delete(pod)
        else:
            seen.add(kind)
            kept.append(pod)
    return kept


def _leave(plan: Plan, pods: Iterable[Pod]) -> None:
    for pod in pods:
        if not pod.is_terminating:
            plan.delete(pod)


def _roll(
    plan: Plan, owner: DaemonSet, kept: Mapping[str, Sequence[Pod]], most: int, revisions: Revisions, now_s: float
) -> None:
    """Replaces daemons of an older template, a few at a time."""
    pods = [pod for here in kept.values() for pod in here]
    template, min_ready_s = owner.spec.template, owner.spec.min_ready_seconds
    outdated = [pod for pod in pods if not pod.is_terminating and not revisions.is_current(owner, template, pod)]
    works = {pod.name: is_available(pod, min_ready_s, now_s) for pod in pods}
    room = most - (len(kept) - sum(works.values()))
    for pod in sorted(outdated, key=lambda one: works[one.name]):  # those that do not run cost nothing
        if works[pod.name]:
            if room <= 0:
                return
            room -= 1
        plan.delete(pod)


def _surge(
    plan: Plan, owner: DaemonSet, kept: Mapping[str, Sequence[Pod]], most: int, revisions: Revisions, now_s: float
) -> list[str]:
    """Old daemons go when the new one beside them is available. Returns the nodes that get a new one now."""
    template, min_ready_s = owner.spec.template, owner.spec.min_ready_seconds
    at_once: list[str] = []
    later: list[str] = []
    n_surging = 0
    for node_name, here in kept.items():
        staying = [pod for pod in here if not pod.is_terminating]
        old = [pod for pod in staying if not revisions.is_current(owner, template, pod)]
        new = [pod for pod in staying if pod not in old]
        if old and new:
            if is_available(new[0], min_ready_s, now_s):
                plan.delete(old[0])
            else:
                n_surging += 1
        elif old:
            (later if is_available(old[0], min_ready_s, now_s) else at_once).append(node_name)
    return at_once + later[: max(0, most - n_surging)]
