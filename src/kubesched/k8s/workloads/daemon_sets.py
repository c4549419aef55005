"""Daemon sets: one pod on every node that the template allows, tied to that node before the scheduler sees it.

Next: `daemon_nodes`, which says which nodes those are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from kubesched.k8s.model.core import Node, Pod, PodSpec
from kubesched.k8s.model.workloads import DaemonSet, DaemonSetUpdateStrategy
from kubesched.k8s.workloads.actions import Plan
from kubesched.k8s.workloads.daemon_nodes import DaemonRules, node_of, tied_to_node, with_daemon_tolerations
from kubesched.k8s.workloads.names import NameSource
from kubesched.k8s.workloads.percentages import share_of
from kubesched.k8s.workloads.pod_states import available_next_s, is_available
from kubesched.k8s.workloads.revisions import REVISION_HASH_LABEL, Revisions
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, pod_from_template

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
