"""`kubesched outage`: what if a zone, a pool or a node fails, each played to its end in virtual time.

A minute into the run, when what was pending has its place, the kubelets of the failed nodes fall silent. The nodes are
NotReady 50 s later, their pods are evicted after what they tolerate (five minutes by default), and controllers replace
them as far as the scheduler finds room. A workload survives if in the end as many of its pods run as before.

Pods of DaemonSets and static pods belong to their node, and are not missed when it goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from kubesched.framework.handle import Registry
from kubesched.k8s.loaded_cluster import Document, Objects, read_objects
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.requests import PODS, pod_resources
from kubesched.older.config import Emulation
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.node_groups import NODE, NoSuchGroupError, grouped, nodes_of
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading import assemble, plugins_from_classes
from kubesched.simulator.ledger import PodRecord
from kubesched.simulator.loading import SIMULATED_KINDS, SimulationInput, load
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.report_text import pending_messages
from kubesched.simulator.run import run_simulation
from kubesched.simulator.scenario import ScenarioStep
from kubesched.simulator.virtual.cluster import VirtualCluster

FAILS_AT_S = 60.0
"""Time for pods that were pending to be placed and start."""
PLAYED_FOR_S = 2 * 3600.0
"""How long a run goes on after the failure where workloads would never end by themselves."""

_OF_THE_NODE = ("DaemonSet ", "Node ")
"""Workloads whose pods live and die with their node."""
_NO_CONTROLLER = "it has no controller that would replace it"
_NODE_KEEPS_IT = "its pod on the failed node is Terminating, and a StatefulSet starts no second one until that is gone"


@dataclass(frozen=True, slots=True)
class FailureCase:
    """Nodes that fail together: `zone=a`."""

    name: str
    nodes: tuple[str, ...]


def failure_cases(
    nodes: Sequence[Node], every: str | None = None, fail: Sequence[str] = (), *, pairs: bool = False
) -> list[FailureCase]:
    """Every group of nodes by itself (`every="zone"`), with `pairs` every two of them; and what `fail` names, all of it
    together: `zone=a`, `pool=spot`, `node/x`, `LABEL=VALUE`. Raises `NoSuchGroupError`."""
    cases = []
    if every is not None:
        cases = [_case(every, name, members) for name, members in grouped(nodes, every).items()]
        if pairs:
            cases = [_together(pair) for pair in combinations(cases, 2)]
    if fail:
        cases.append(_together([_named(nodes, text) for text in fail]))
    return cases


def _case(by: str, name: str, members: Iterable[Node]) -> FailureCase:
    return FailureCase(f"node/{name}" if by == NODE else f"{by}={name}", tuple(node.name for node in members))


def _together(cases: Sequence[FailureCase]) -> FailureCase:
    names = dict.fromkeys(name for case in cases for name in case.nodes)
    return FailureCase(" and ".join(case.name for case in cases), tuple(names))


def _named(nodes: Sequence[Node], text: str) -> FailureCase:
    by, separator, name = text.partition("=")
    if not separator and text.startswith(f"{NODE}/"):
        by, name = NODE, text.removeprefix(f"{NODE}/")
    elif not separator:
        raise NoSuchGroupError(f'"{text}" is not of the form zone=NAME, pool=NAME, node/NAME or LABEL=VALUE')
    return _case(by, name, nodes_of(nodes, by, name))


@dataclass(frozen=True, slots=True)
class WorkloadLoss:
    """What a failure did to the pods of one workload."""

    namespace: str
    workload: str
    """`Deployment web`; `Pod x` for a pod of nobody."""
    priority: int
    had: int
    """How many ran before."""
    hit: int
    """How many of them were on the failed nodes."""
    left: int
    """How many run in the end."""
    lowest: int
    """How few ran at the worst moment."""
    replaced_s: float | None
    """From the failure until the last replacement ran; None if none did."""
    reason: str
    """Why those that are missing were not replaced; empty if none is."""
    requests: Mapping[str, int]
    """What the missing pods ask for together."""

    @property
    def missing(self) -> int:
        return max(0, self.had - self.left)


@dataclass(frozen=True, slots=True)
class CaseResult:
    case: FailureCase
    workloads: tuple[WorkloadLoss, ...]
    """Those that lost pods, the worst first."""
    preempted: int
    """Pods that had to make way for the replacements."""
    placed_if_gone: int
    """How many of the missing pods would run if the failed nodes were deleted."""

    @property
    def missing(self) -> int:
        return sum(loss.missing for loss in self.workloads)

    @property
    def hit(self) -> int:
        return sum(loss.hit for loss in self.workloads)

    @property
    def last_replacement_s(self) -> float | None:
        """From the failure until the last replacement ran; None if there was none."""
        return max((loss.replaced_s for loss in self.workloads if loss.replaced_s is not None), default=None)


@dataclass(frozen=True, repr=False)
class OutageReport:
    """Each failure case with what it did. `survives` is the answer; `str()` is the report as text."""

    results: tuple[CaseResult, ...]
    every: str | None
    n_nodes: int
    options: SimulationOptions
    gone: bool
    priority_at_least: int | None
    assumptions: tuple[str, ...]

    @property
    def survives(self) -> bool:
        """Whether every case leaves each workload with as many pods as before."""
        return not any(result.missing for result in self.results)

    @cached_property
    def ranked(self) -> list[CaseResult]:
        """The worst case first."""
        return sorted(self.results, key=lambda result: (-result.missing, -result.hit, result.case.name))

    def to_dict(self) -> dict[str, Any]:
        return {
            "survives": self.survives,
            "seed": self.options.seed,
            "priority_at_least": self.priority_at_least,
            "cases": [_case_record(result) for result in self.results],
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        from kubesched.planning.outage_text import render_outage

        return render_outage(self)

    def __repr__(self) -> str:
        from kubesched.planning.outage_text import headline

        return f"<OutageReport: {headline(self)}>"


def _case_record(result: CaseResult) -> dict[str, Any]:
    return {
        "case": result.case.name,
        "nodes": list(result.case.nodes),
        "hit": result.hit,
        "missing": result.missing,
        "preempted": result.preempted,
        "last_replacement_s": result.last_replacement_s,
        "placed_if_gone": result.placed_if_gone,
        "workloads": [
            {
                "namespace": loss.namespace,
                "workload": loss.workload,
                "priority": loss.priority,
                "had": loss.had,
                "hit": loss.hit,
                "left": loss.left,
                "lowest": loss.lowest,
                "missing": loss.missing,
                "reason": loss.reason or None,
                "requests": dict(loss.requests),
            }
            for loss in result.workloads
        ],
    }


def outage(
    objects: Objects,
    *,
    every: str | None = None,
    fail: Sequence[str] = (),
    pairs: bool = False,
    gone: bool = False,
    priority_at_least: int | None = None,
    config: Document = None,
    plugins: Iterable[type] = (),
    tie_break: str = "random",
    seed: int = 0,
) -> OutageReport:
    """Whether a cluster survives the failure of each zone, pool or node (`every="zone"`), or of what is named together
    (`fail=["zone=a", "node/x"]`).

    With `pairs`, every two of them fail together. With `gone`, the failed nodes are deleted as well, as a cloud does
    with machines that it has lost. Only pods of at least `priority_at_least` count, if it is given.
    """
    assembled = assemble(
        GivenConfiguration.read(config, None, None, None).as_of_today().config, given=plugins_from_classes(plugins)
    )
    given = load(read_objects(objects, SIMULATED_KINDS))
    cases = failure_cases([item for item in given.objects if isinstance(item, Node)], every, fail, pairs=pairs)
    player = OutagePlayer(
        given, assembled.config, SimulationOptions(seed=seed, tie_break=tie_break), assembled.registry
    )
    return player.play(cases, every=every, gone=gone, priority_at_least=priority_at_least)


@dataclass(frozen=True)
class OutagePlayer:
    """Plays failure cases on one cluster, each from the same beginning."""

    given: SimulationInput
    config: KubeSchedulerConfiguration
    options: SimulationOptions
    registry: Registry | None = None
    emulation: Emulation | None = None

    def play(
        self,
        cases: Sequence[FailureCase],
        *,
        every: str | None = None,
        gone: bool = False,
        priority_at_least: int | None = None,
        progress: Callable[[int], None] = lambda n_played: None,
    ) -> OutageReport:
        """`progress` hears how many cases were played."""
        results = []
        for n_played, case in enumerate(cases, 1):
            results.append(self._result(case, gone, priority_at_least))
            progress(n_played)
        return OutageReport(
            tuple(results),
            every,
            sum(isinstance(item, Node) for item in self.given.objects),
            self.options,
            gone,
            priority_at_least,
            tuple(self._assumptions(gone)),
        )

    def _result(self, case: FailureCase, gone: bool, priority_at_least: int | None) -> CaseResult:
        cluster = self._run(case, gone)
        losses = _losses(cluster, case, priority_at_least)
        n_missing = sum(loss.missing for loss in losses)
        placed_if_gone = 0
        if n_missing and not gone:
            otherwise = _losses(self._run(case, True), case, priority_at_least)
            placed_if_gone = max(0, n_missing - sum(loss.missing for loss in otherwise))
        n_preempted = sum(1 for preemption in cluster.ledger.preemptions if preemption.at_s >= FAILS_AT_S)
        return CaseResult(case, tuple(losses), n_preempted, placed_if_gone)

    def _run(self, case: FailureCase, gone: bool) -> VirtualCluster:
        steps = [ScenarioStep(FAILS_AT_S, "fail", "", node_names=case.nodes)]
        if gone:
            steps.append(ScenarioStep(FAILS_AT_S, "delete", "", deleted=tuple((Node, name) for name in case.nodes)))
        given = SimulationInput(self.given.objects, tuple(steps))
        until_s = None if given.ends_by_itself else FAILS_AT_S + PLAYED_FOR_S
        return run_simulation(
            given,
            self.config,
            replace(self.options, until_s=self.options.until_s or until_s),
            registry=self.registry,
            emulation=self.emulation,
        )

    def _assumptions(self, gone: bool) -> Iterable[str]:
        if not gone:
            yield "The failed nodes stay as objects, NotReady; --gone deletes them, as clouds do."
        n_silent = sum(
            isinstance(item, Pod) and not pod_resources(item).requests.keys() - {PODS} for item in self.given.objects
        )
        if n_silent:
            yield f"{n_silent} pods have no requests, so there is always room for them."
        if self.given.steps:
            yield "The scenario in the files is not played."
        yield "Nobody adds nodes, and nobody deletes pods by force."


def _losses(cluster: VirtualCluster, case: FailureCase, priority_at_least: int | None) -> list[WorkloadLoss]:
    failed = set(case.nodes)
    messages = pending_messages(cluster)
    groups: dict[tuple[str, str], list[PodRecord]] = {}
    for record in cluster.ledger.pods.values():
        if record.workload.startswith(_OF_THE_NODE):
            continue
        if priority_at_least is not None and record.priority < priority_at_least:
            continue
        namespace, _, name = record.key.partition("/")
        groups.setdefault((namespace, record.workload or f"Pod {name}"), []).append(record)
    losses = [_loss(cluster, *key, records, failed, messages) for key, records in groups.items()]
    return sorted(
        (loss for loss in losses if loss.hit or loss.missing),
        key=lambda loss: (-loss.missing, -loss.priority, loss.namespace, loss.workload),
    )


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
        reason=_reason(workload, records, messages) if n_missing else "",
        requests={name: n * n_missing for name, n in pattern.requests.items() if n and name != PODS}
        if n_missing
        else {},
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


def _reason(workload: str, records: list[PodRecord], messages: Mapping[str, str]) -> str:
    """What is most often said of those that wait; without any, why nobody replaces them."""
    counts = Counter(messages[record.uid] for record in records if record.uid in messages)
    if counts:
        return counts.most_common(1)[0][0]
    if workload.startswith("Pod "):
        return _NO_CONTROLLER
    return _NODE_KEEPS_IT if workload.startswith("StatefulSet ") else "it was not replaced in time"
