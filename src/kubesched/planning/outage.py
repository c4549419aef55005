"""`kubesched outage`: what if a zone, a pool or a node fails.

A workload survives if in the end as many of its pods run as before. Cases of zones and pools are played to their end in
virtual time (`OutageRuns`); those of single nodes, and failures at random, which are many, are tried on the cluster at
rest (`outage_trials`), unless they are to be played in full, too.

A minute into a run that is played, when what was pending has its place, the kubelets of the failed nodes fall silent.
The nodes are NotReady 50 s later, their pods are evicted after what they tolerate (five minutes by default), and
controllers replace them as far as the scheduler finds room.

Pods of DaemonSets and static pods belong to their node, and are not missed when it goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from random import Random

from kubesched.explanation.layout import listed
from kubesched.framework.handle import Registry
from kubesched.k8s.loaded_cluster import Document, Objects
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.times import Span, span_s
from kubesched.older.config import Emulation
from kubesched.planning.headroom import headroom_sets, is_headroom
from kubesched.planning.node_groups import ALL_NODES, NODE, NodeSelection, NoSuchGroupError, grouped, nodes_of
from kubesched.planning.outage_report import (
    OF_THE_NODE,
    CaseResult,
    FailureCase,
    OutageReport,
    OutageRules,
    WorkloadLoss,
    asked_together,
    why_missing,
    worst_first,
)
from kubesched.planning.outage_trials import OutageTrials
from kubesched.planning.provenance import Provenance
from kubesched.planning.several_runs import Run, Runs, in_order
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.guesses import extender_guess
from kubesched.simulator.ledger import PodRecord
from kubesched.simulator.library import fresh_cluster
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.options import SimulationOptions, several
from kubesched.simulator.report_text import pending_messages
from kubesched.simulator.run import run_simulation
from kubesched.simulator.scenario import ScenarioStep
from kubesched.simulator.trial import LoadedWorld
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


DEFAULT_TRIALS = 200
"""How often nodes fail at random."""
AS_IT_IS = OutageRules()


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


def random_failures(nodes: Sequence[Node], n_nodes: int, n_trials: int, seed: int) -> list[FailureCase]:
    """So many trials, in each of which so many nodes fail together. Raises `NoSuchGroupError`."""
    names = sorted(node.name for node in nodes)
    if n_nodes > len(names):
        raise NoSuchGroupError(f"{n_nodes} nodes cannot fail at random: there are {len(names)}")
    random = Random(seed)
    failed = (tuple(sorted(random.sample(names, n_nodes))) for _ in range(n_trials))
    return [FailureCase(f"trial {number}: {listed(chosen, 5)}", chosen) for number, chosen in enumerate(failed, 1)]


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


def outage(
    objects: LoadedWorld | Objects,
    *,
    every: str | None = None,
    fail: Sequence[str] = (),
    pairs: bool = False,
    random: int = 0,
    trials: int = DEFAULT_TRIALS,
    full: bool = False,
    gone: bool = False,
    force_delete_after: Span | None = None,
    priority_at_least: int | None = None,
    nodes: str = "",
    exclude_nodes: str = "",
    keep: Sequence[str] = (),
    seeds: int = 1,
    orders: int = 1,
    jobs: int = 1,
    config: Document = None,
    plugins: Iterable[type] = (),
    tie_break: str = "random",
    seed: int = 0,
) -> OutageReport:
    """Whether a cluster survives the failure of each zone, pool or node (`every="zone"`, which is what is asked unless
    anything is), or of what is named together (`fail=["zone=a", "node/x"]`), or of so many nodes at `random`, tried so
    many times (`trials`).

    With `pairs`, every two of them fail together. With `gone`, the failed nodes are deleted as well, as a cloud does
    with machines that it has lost. With `force_delete_after`, pods that are Terminating on them for so long are deleted
    by force, so that StatefulSets can replace them. Only pods of at least `priority_at_least` count, if it is given.
    Cases of nodes are tried on the cluster at rest; with `full`, they are played in virtual time as those of zones are.
    `nodes` and `exclude_nodes` are label selectors of nodes that may, or may not, fail: of a zone, only these do. With
    several `seeds` and `orders` of arrival, every case is played in each of these runs; the worst one counts.
    `keep` is room that counts as lost if it is not there afterwards: `20x500m/1Gi`, also with `@zone`, or a file with
    CapacityBuffers. A world brings its configuration and plugins, and is played as it was loaded.
    """
    asked = fresh_cluster(objects, config, plugins)
    options = SimulationOptions(seed=seed, tie_break=tie_break)
    kept = several("keep", keep)
    player = OutagePlayer(
        asked.given,
        asked.config,
        options,
        asked.registry,
        keep=kept,
        jobs=jobs,
        selection=NodeSelection(nodes, exclude_nodes),
        runs=Runs(seed, seeds, orders),
    )
    return player.report(
        every=every or (None if fail or random else "zone"),
        fail=several("fail", fail),
        pairs=pairs,
        random=random,
        trials=trials,
        full=full,
        rules=OutageRules(gone, None if force_delete_after is None else span_s(force_delete_after), priority_at_least),
    )


@dataclass(frozen=True)
class OutagePlayer:
    """Plays failure cases on one cluster, each from the same beginning."""

    given: SimulationInput
    config: KubeSchedulerConfiguration
    options: SimulationOptions
    registry: Registry | None = None
    emulation: Emulation | None = None
    keep: Sequence[str] = ()
    """Room that is to be there afterwards, too."""
    jobs: int = 1
    """In so many processes; the report is the same."""
    selection: NodeSelection = ALL_NODES
    """The nodes that may fail."""
    runs: Runs | None = None
    """With which seeds and orders; None: with the seed of the options."""

    def report(
        self,
        *,
        every: str | None = None,
        fail: Sequence[str] = (),
        pairs: bool = False,
        random: int = 0,
        trials: int = DEFAULT_TRIALS,
        full: bool = False,
        rules: OutageRules = AS_IT_IS,
        progress: Callable[[int, int], None] = lambda n_done, n_cases: None,
        stopped: Callable[[], str] = lambda: "",
    ) -> OutageReport:
        """`progress` hears how many cases were played, and how many there are; in several runs, each counts by itself.
        Once `stopped` says why (`time`, `interrupted`), the cases played so far are the report; with several processes,
        those that are under way then are waited for."""
        nodes = [item for item in self.given.objects if isinstance(item, Node)]
        mortal = self.selection.of(nodes)
        cases = failure_cases(mortal, every, fail, pairs=pairs)
        if random:
            cases += random_failures(mortal, random, trials, self.options.seed)
        runs = self.runs or Runs(self.options.seed)
        is_tried = (every == NODE or bool(random)) and not full and self.emulation is None
        played = [(run, case) for run in runs.all for case in cases]
        in_one = self.jobs == 1 or len(played) == 1
        teller = _CaseTeller(self, rules, is_tried, stopped if in_one else _never)
        results: list[list[CaseResult]] = [[] for _ in cases]
        n_played = 0
        for result in spread_over(_told_case, teller, played, jobs=self.jobs):
            if result is None:
                break
            results[n_played % len(cases)].append(_without_headroom(result) if self.keep else result)
            n_played += 1
            progress(n_played, len(played))
            if stopped():
                break
        question = (cases, rules, full, self.keep, self.options)
        return OutageReport(
            tuple(_of_all_runs(found) for found in results if found),
            every,
            len(nodes),
            self.options,
            rules,
            (*self._assumptions(rules), *teller.at(runs.all[0]).assumptions()),
            random,
            len(played) - n_played,
            stopped() if n_played < len(played) else "",
            Provenance(self.given.objects, self.config, None, question, runs=runs),
        )

    def kept_free(self, order: int) -> SimulationInput:
        """With sets whose pods stand for the room to keep: controllers make them anew, as they do others."""
        sets = headroom_sets(self.keep, self.given.objects)
        given = in_order(self.given, order)
        return replace(given, objects=(*given.objects, *sets)) if sets else given

    def _assumptions(self, rules: OutageRules) -> Iterable[str]:
        if self.runs is not None and len(self.runs) > 1:
            yield self.runs.told
        yield from self.selection.told("Only {} fail.")
        if not rules.gone:
            yield "The failed nodes stay registered, NotReady; --gone deletes them, as clouds do."
        if self.keep:
            yield "Room to keep stands for pods of the lowest priority: it is lost if others need it."
        if rules.force_delete_after_s is None:
            yield "Nobody adds nodes, and nobody deletes pods by force (--force-delete-after)."
        else:
            yield "Nobody adds nodes."
        yield from (*self.given.guesses, *extender_guess(self.config))


def _never() -> str:
    return ""


@dataclass(frozen=True)
class _CaseTeller:
    """Plays cases in this process, or in another one, which loads the cluster once."""

    player: OutagePlayer
    rules: OutageRules
    is_tried: bool
    stopped: Callable[[], str]

    _latest: dict[Run, OutageTrials | OutageRuns] = field(default_factory=dict, compare=False)

    def at(self, run: Run) -> OutageTrials | OutageRuns:
        """The latest is kept: cases come run by run."""
        if run not in self._latest:
            self._latest.clear()
            player = self.player
            given, options = player.kept_free(run.order), replace(player.options, seed=run.seed)
            self._latest[run] = (
                OutageTrials.of(given, player.config, options, player.registry)
                if self.is_tried
                else OutageRuns(given, player.config, options, player.registry, player.emulation, self.stopped)
            )
        return self._latest[run]


def _told_case(teller: _CaseTeller, asked: tuple[Run, FailureCase]) -> CaseResult | None:
    """None if it was stopped."""
    run, case = asked
    return None if teller.stopped() else teller.at(run).result(case, teller.rules)


def _of_all_runs(found: Sequence[CaseResult]) -> CaseResult:
    """The worst of them, with what the others leave without a node."""
    worst = max(found, key=lambda one: one.missing)
    return worst if len(found) == 1 else replace(worst, by_run=tuple(one.missing for one in found))


def _without_headroom(result: CaseResult) -> CaseResult:
    """Room to keep is named only where it is lost."""
    losses = []
    for loss in result.workloads:
        if not is_headroom(f"{loss.namespace}/{loss.workload.partition(' ')[2]}"):
            losses.append(loss)
        elif loss.missing:
            losses.append(replace(loss, workload="room to keep"))
    return replace(result, workloads=tuple(losses))
