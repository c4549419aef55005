"""Daemon sets: one pod on every node that the template allows, tied to that node before the scheduler sees it.

Next: `daemon_nodes`, which says which nodes those are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.expansion.actions import Plan
from kubesched.expansion.daemon_nodes import DaemonRules, node_of, tied_to_node, with_daemon_tolerations
from kubesched.expansion.names import NameSource
from kubesched.expansion.percentages import share_of
from kubesched.expansion.pod_states import is_healthy
from kubesched.expansion.revisions import REVISION_HASH_LABEL, Revisions
from kubesched.expansion.templates import EMPTY_TEMPLATE, pod_from_template
from kubesched.model.core import Node, Pod, PodSpec
from kubesched.model.workloads import DaemonSet, DaemonSetUpdateStrategy

GENERATION_LABEL = "pod-template-generation"


def sync_daemon_set(
    owner: DaemonSet, pods: Sequence[Pod], nodes: Iterable[Node], names: NameSource, revisions: Revisions
) -> Plan:
    """`pods` are those of the set; on which node each is, or is to be, its affinity tells."""
    plan = Plan()
    spec = with_daemon_tolerations((owner.spec.template or EMPTY_TEMPLATE).spec)
    rules = DaemonRules.of(spec)
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    n_eligible = 0
    kept: list[Pod] = []
    for node in nodes:
        here = by_node.pop(node.name, [])
        if rules.should_run_on(node):
            n_eligible += 1
            kept.extend(_keep_one(plan, here))
            if not here:
                plan.create(_daemon(owner, spec, node.name, names, revisions))
        elif not rules.may_stay_on(node):
            _leave(plan, here)
    for left in by_node.values():  # their node is gone, or was never there
        _leave(plan, left)
    _roll(plan, owner, kept, n_eligible, revisions)
    return plan


def _daemon(owner: DaemonSet, spec: PodSpec, node_name: str, names: NameSource, revisions: Revisions) -> Pod:
    template = owner.spec.template
    labels = {
        REVISION_HASH_LABEL: revisions.current(owner, template),
        GENERATION_LABEL: str(max(1, owner.metadata.generation)),
    }
    name = names.name(f"{owner.name}-")
    return pod_from_template(template or EMPTY_TEMPLATE, owner, name, labels=labels, spec=tied_to_node(spec, node_name))


def _keep_one(plan: Plan, here: Sequence[Pod]) -> list[Pod]:
    """What stays of the daemons on a node: the first that has not ended, and those that are on their way out."""
    kept: list[Pod] = []
    for pod in here:
        if pod.is_terminating:
            kept.append(pod)
        elif pod.is_terminal or any(not known.is_terminating for known in kept):
            plan.delete(pod)
        else:
            kept.append(pod)
    return kept


def _leave(plan: Plan, pods: Iterable[Pod]) -> None:
    for pod in pods:
        if not pod.is_terminating:
            plan.delete(pod)


def _roll(plan: Plan, owner: DaemonSet, pods: Sequence[Pod], n_eligible: int, revisions: Revisions) -> None:
    """Replaces daemons of an older template, a few at a time."""
    template, strategy = owner.spec.template, owner.spec.update_strategy or DaemonSetUpdateStrategy()
    outdated = [pod for pod in pods if not pod.is_terminating and not revisions.is_current(owner, template, pod)]
    if not outdated or strategy.type != "RollingUpdate":
        return
    rolling = strategy.rolling_update
    allowed = 1 if rolling is None or rolling.max_unavailable is None else rolling.max_unavailable
    room = share_of(allowed, n_eligible, rounding_up=True) - (n_eligible - sum(map(is_healthy, pods)))
    for pod in sorted(outdated, key=is_healthy):  # those that do not run cost nothing
        if is_healthy(pod):
            if room <= 0:
                return
            room -= 1
        plan.delete(pod)
