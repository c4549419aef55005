"""Failures played to their end in virtual time: what became of every pod since.

A minute into the run, when what was pending has its place, the kubelets of the failed nodes fall silent. The nodes are
NotReady 50 s later, their pods are evicted after what they tolerate (five minutes by default), and controllers replace
them as far as the scheduler finds room. A workload survives if in the end as many of its pods run as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.older.config import Emulation
from kubesched.planning.headroom import is_headroom
from kubesched.planning.outage_report import (
    OF_THE_NODE,
    CaseResult,
    FailureCase,
    OutageRules,
    WorkloadLoss,
    asked_together,
    why_missing,
    worst_first,
)
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.ledger import PodRecord
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.report_text import pending_messages
from kubesched.simulator.run import run_simulation
from kubesched.simulator.scenario import ScenarioStep
from kubesched.simulator.virtual.cluster import VirtualCluster

FAILS_AT_S = 60.0
"""Time for pods that were pending to be placed and start."""
PLAYED_FOR_S = 2 * 3600.0
"""How long a run goes on after the failure where workloads would never end by themselves."""


@dataclass(frozen=True)
class OutageRuns:
    """Plays failure cases on one cluster, each from the same beginning."""

    given: SimulationInput
    config: KubeSchedulerConfiguration
    options: SimulationOptions
    registry: Registry | None = None
    emulation: Emulation | None = None
    stopped: Callable[[], str] = lambda: ""

    def result(self, case: FailureCase, rules: OutageRules) -> CaseResult | None:
        """None if it was stopped."""
        cluster = self._run(case, rules)
        losses = _losses(cluster, case, rules.priority_at_least)
        n_missing = sum(loss.missing for loss in losses)
        placed_if_gone = 0
        if n_missing and not rules.gone and not cluster.is_stopped:
            otherwise = self._run(case, replace(rules, gone=True))
            n_missing_then = sum(loss.missing for loss in _losses(otherwise, case, rules.priority_at_least))
            placed_if_gone = max(0, n_missing - n_missing_then)
        if self.stopped():
            return None
        n_preempted = sum(1 for preemption in cluster.ledger.preemptions if preemption.at_s >= FAILS_AT_S)
        return CaseResult(case, tuple(losses), n_preempted, placed_if_gone)

    def assumptions(self) -> Iterable[str]:
        if self.given.steps:
            yield "The scenario in the files is not played."

    def _run(self, case: FailureCase, rules: OutageRules) -> VirtualCluster:
        steps = [ScenarioStep(FAILS_AT_S, "fail", "", node_names=case.nodes)]
        if rules.gone:
            steps.append(ScenarioStep(FAILS_AT_S, "delete", "", deleted=tuple((Node, name) for name in case.nodes)))
        given = SimulationInput(self.given.objects, tuple(steps))
        until_s = None if given.ends_by_itself else FAILS_AT_S + PLAYED_FOR_S
        return run_simulation(
            given,
            self.config,
            replace(self.options, until_s=self.options.until_s or until_s),
            registry=self.registry,
            emulation=self.emulation,
            progress=self._look,
            before=lambda cluster: _delete_by_force(cluster, case, rules.force_delete_after_s),
        )

    def _look(self, cluster: VirtualCluster) -> None:
        cluster.is_stopped = bool(self.stopped())


def _delete_by_force(cluster: VirtualCluster, case: FailureCase, after_s: float | None) -> None:
    """Whatever is Terminating on a failed node for so long goes for good."""
    if after_s is None:
        return
    failed = set(case.nodes)

    def hear(before: KubeObject | None, after: KubeObject | None) -> None:
        is_marked = isinstance(after, Pod) and after.is_terminating and after.spec.node_name in failed
        if is_marked and not (isinstance(before, Pod) and before.is_terminating):
            assert isinstance(after, Pod)
            cluster.clock.after(after_s, partial(cluster.deletions.finish, after))

    cluster.store.listen(hear, Pod)


def _losses(cluster: VirtualCluster, case: FailureCase, priority_at_least: int | None) -> list[WorkloadLoss]:
    failed = set(case.nodes)
    messages = pending_messages(cluster)
    groups: dict[tuple[str, str], list[PodRecord]] = {}
    for record in cluster.ledger.pods.values():
        if record.workload.startswith(OF_THE_NODE):
            continue
        if priority_at_least is not None and record.priority < priority_at_least and not is_headroom(record.key):
            continue
        namespace, _, name = record.key.partition("/")
        groups.setdefault((namespace, record.workload or f"Pod {name}"), []).append(record)
    losses = [_loss(cluster, *key, records, failed, messages) for key, records in groups.items()]
    return worst_first(losses)


def _loss(
    cluster: VirtualCluster,
    namespace: str,
    workload: str,
    records: list[PodRecord],
    failed: set[str],
    messages: Mapping[str, str],
) -> WorkloadLoss:
    before = [record for record in records if _ran_at(record, FAILS_AT_S)]
    after = [record for record in records if _is_served(cluster, record, failed)]
    n_missing = max(0, len(before) - len(after))
    pattern = records[0]
    hit = [record for record in before if record.node in failed]
    return WorkloadLoss(
        namespace,
        workload,
        pattern.priority,
        had=len(before),
        hit=len(hit),
        left=len(after),
        lowest=_lowest(records, failed, len(before)),
        replaced_s=_replaced_s(records, failed, len(hit)),
        reason=why_missing(workload, _said_of(records, messages)) if n_missing else "",
        requests=asked_together(pattern.requests, n_missing),
    )


def _ran_at(record: PodRecord, at_s: float) -> bool:
    since_s = 0.0 if record.was_there else record.started_s
    return since_s is not None and since_s <= at_s and (record.ended_s is None or record.ended_s > at_s)


def _is_served(cluster: VirtualCluster, record: PodRecord, failed: set[str]) -> bool:
    """It runs on a node that works, or came to its end there after the failure."""
    if not record.node or record.node in failed:
        return False
    if record.is_gone or record.ended_s is not None:
        return record.phase == "Succeeded" and (record.ended_s or 0.0) > FAILS_AT_S
    pod = cluster.store.find(Pod, record.key)
    return pod is not None and not pod.is_terminating


def _lowest(records: list[PodRecord], failed: set[str], n_before: int) -> int:
    """The least number of pods that ran at one time since the failure; at most as many as before."""
    changes: Counter[float] = Counter()
    running = 0
    for record in records:
        since_s = 0.0 if record.was_there else record.started_s
        if since_s is None:
            continue
        until_s = min(record.ended_s or float("inf"), FAILS_AT_S if record.node in failed else float("inf"))
        if record.phase == "Succeeded":
            until_s = float("inf")
        if until_s <= FAILS_AT_S:
            continue
        if since_s <= FAILS_AT_S:
            running += 1
        else:
            changes[since_s] += 1
        changes[until_s] -= 1
    lowest = running
    for at_s in sorted(changes):
        if at_s != float("inf"):
            running += changes[at_s]
            lowest = min(lowest, running)
    return min(lowest, n_before)


def _replaced_s(records: list[PodRecord], failed: set[str], n_hit: int) -> float | None:
    """When as many had started as were hit, or the last that did."""
    started = sorted(
        record.started_s - FAILS_AT_S
        for record in records
        if record.created_s > FAILS_AT_S and record.started_s is not None and record.node not in failed
    )
    return round(started[min(n_hit, len(started)) - 1], 3) if started and n_hit else None


def _said_of(records: list[PodRecord], messages: Mapping[str, str]) -> list[str]:
    return [messages[record.uid] for record in records if record.uid in messages]
