"""`kubesched capacity`: how many more copies of a pod the scheduler would place, on which nodes, and what stops it.

What is pending is placed first. Then copies come one after another until one finds no node. With `by`, each group of
nodes is asked by itself, with all other nodes cordoned: they still count as topology domains. Several seeds and orders
of arrival are several runs, and what fits is what fits in all of them.

Next: `copies`, which places the copies; `remedies` for what would let more fit; `capacity_report`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from dataclasses import replace as changed
from functools import cached_property
from os import PathLike
from random import Random
from typing import Any

from msgspec.structs import replace

from kubesched.explanation.changes.what_if import Change
from kubesched.explanation.layout import counted
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import Document, LoadedCluster, path_exists
from kubesched.k8s.model.core import Pod, PodStatus
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.planning.capacity_report import ALL_NODES, CapacityReport, FittingCopies, Remedy, by_count
from kubesched.planning.copies import Application, CopyAdmission, CopyRules, place_copies
from kubesched.planning.headroom import is_headroom, keep_free, told
from kubesched.planning.many_copies import count_copies
from kubesched.planning.node_groups import NodeSelection, grouped
from kubesched.planning.provenance import Provenance
from kubesched.planning.remedies import MOST_MORE, best_first, changed_replicas, explained, of_nodes, of_pod, tried
from kubesched.planning.resting_workloads import (
    Replica,
    ShapeError,
    find_workload,
    pod_of_shape,
    replicas_of,
    scaled_workloads,
    title_of,
)
from kubesched.planning.several_runs import Run, Runs
from kubesched.planning.spare_one import groups_to_lose, homeless, spared_by
from kubesched.simulator.library import world as load_world
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.options import several
from kubesched.simulator.settling import Settled
from kubesched.simulator.trial import LoadedWorld, Manifest, WorldTrial, copies_of

MOST_COPIES = 100_000
NAMESPACE = "namespace"
_FEW_ENOUGH_TO_PLACE_ANEW = 20_000


class CapacityError(KubeschedError, ValueError):
    """What is asked for is no pod that could be counted."""


def capacity(
    world: LoadedWorld | LoadedCluster | str | PathLike[str] | Mapping[str, Any] | Iterable[Any],
    pod: Manifest | None = None,
    *,
    shapes: str | Sequence[str] = (),
    workloads: str | Sequence[str] = (),
    every: bool = False,
    app: Sequence[LoadedCluster | str | PathLike[str] | Mapping[str, Any]] = (),
    by: str | Sequence[str] = (),
    nodes: str = "",
    exclude_nodes: str = "",
    ignore_pending: bool = False,
    quota: bool = True,
    preemption: str = "never",
    let_lose: bool = False,
    most: int = MOST_COPIES,
    seeds: int = 1,
    orders: int = 1,
    keep: str | Sequence[str] = (),
    remedies: bool = True,
    jobs: int = 1,
    config: Document = None,
    seed: int = 0,
    tie_break: str = "random",
    plugins: Iterable[type] = (),
) -> CapacityReport:
    """How many more copies of a pod fit, on which nodes, what stops the next one, and what would let more fit.

    `world` is what `kubesched.world` gave, or what it takes. The `pod` is a manifest, a path, or `namespace/name` of a
    pod that is there; `shapes` are amounts such as `500m/1Gi` or `cpu=1,nvidia.com/gpu=1`; `workloads` are workloads of
    the cluster, such as `deployment/shop/web`, of which replicas are added, and `every` means each that can be scaled.
    `app` is an application in files, of which whole copies are added, each in namespaces of its own.

    With `by` (`zone`, `pool`, or a label) each group of nodes is asked by itself, too; with `namespace`, each
    namespace with its quotas. `nodes` and `exclude_nodes` are label selectors of nodes that the copies may, or may not,
    go to. Pending pods are placed before the copies, unless `ignore_pending`. At most `most` copies are tried. Quotas
    and limit ranges of their namespace hold for the copies, unless `quota` is False. Copies preempt nobody; with
    `preemption="count"` they do, and count if those who must leave find another node, or if they may be lost
    (`let_lose`). `keep` is room that stays free meanwhile: `20x500m/1Gi`, also with `@zone`, or a file with
    CapacityBuffers; with `n-1:zone`, what fits is what fits after the loss of any one zone. With several `seeds` and
    `orders` (in which pending pods arrive), what fits is what fits in all of these runs. `remedies=False` saves the
    time of trying out what would let more fit; with `every`, nothing is tried. `jobs` is a number of processes.
    """
    if not isinstance(world, LoadedWorld):
        world = load_world(world, config=config, seed=seed, tie_break=tie_break, plugins=plugins)
    shapes, workloads, by, keep = (
        several(name, given)
        for name, given in (("shapes", shapes), ("workloads", workloads), ("by", by), ("keep", keep))
    )
    if not 1 <= most <= MOST_COPIES:
        raise CapacityError(f"{most:,} copies: from 1 to {MOST_COPIES:,} can be tried")
    rules = CopyRules(most, quota, _may_preempt(preemption), let_lose, may_lack_places=every)
    if keep and let_lose:
        raise CapacityError("keep and let_lose exclude each other: room to keep is never given up")
    if app and rules.may_preempt:
        raise CapacityError("preemption is counted for pods, shapes and workloads, not for whole applications")
    spared, keep = spared_by(keep)
    if spared and by:
        raise CapacityError(f"keep n-1:{spared} is about all nodes together: not with by")
    runs = Runs(seed, seeds, orders)
    counting = _Counting(
        world,
        pod,
        shapes,
        workloads,
        every,
        tuple(app),
        by,
        NodeSelection(nodes, exclude_nodes),
        rules,
        runs,
        ignore_pending,
        keep,
        spared,
        remedies and not every and not spared,
    )
    return counting.report(jobs)


@dataclass(frozen=True)
class _Counting:
    """What is asked, and how it is answered: cell by cell, in this process or in several."""

    world: LoadedWorld
    pod: Manifest | None
    shapes: Sequence[str]
    workloads: Sequence[str]
    every: bool
    app: Sequence[LoadedCluster | str | PathLike[str] | Mapping[str, Any]]
    by: Sequence[str]
    selection: NodeSelection
    asked_rules: CopyRules
    runs: Runs
    ignores_pending: bool
    keep: Sequence[str]
    spared: str
    """`zone` or `node`, if what fits must fit after the loss of any one."""
    tries_remedies: bool

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, which read anew what is asked."""
        return _Counting, tuple(getattr(self, one.name) for one in fields(self))

    @cached_property
    def asked(self) -> list[_Asked]:
        world = self.world
        found = [
            *_asked_pods(world, self.pod, self.shapes),
            *(_Asked.of_workload(world, find_workload(world, name)) for name in self.workloads),
            *(_Asked.of_workload(world, item) for item in (scaled_workloads(world) if self.every else ())),
            *([_Asked.of_app(Application.read(world, self.app))] if self.app else []),
        ]
        if not found:
            raise CapacityError(
                "there is no workload with replicas" if self.every else "a pod, a shape, a workload or an app is needed"
            )
        return found

    @cached_property
    def rules(self) -> CopyRules:
        return changed(self.asked_rules, most_anew=_FEW_ENOUGH_TO_PLACE_ANEW // len(self.asked))

    @cached_property
    def groups(self) -> list[_Group]:
        return _groups(self.world, self.by, _closed(self.world, self.selection))

    def report(self, jobs: int) -> CapacityReport:
        asked, groups, runs = self.asked, self.groups, self.runs
        if NAMESPACE in self.by and any(one.template is None for one in asked):
            raise CapacityError("by namespace: only pods and shapes can be in any namespace")
        copied = [(one.title, one.template, one.application and one.application.pods) for one in asked]
        kept = (self.ignores_pending, self.keep, self.spared)
        question = (copied, self.every, self.by, self.selection, self.rules, kept)
        about = Provenance.of_world(self.world, question, runs=runs)
        with self.begun(runs.all[0]) as begun:
            assumptions = tuple(self._assumptions(begun))
        is_alone = len(runs) == 1
        found = self._cells(runs.all, self.tries_remedies and is_alone, jobs)
        answers = [_of_all_runs([found[run, cell] for run in runs.all]) for cell in _cells_of(asked, groups)]
        if self.tries_remedies and not is_alone:
            worst = {
                cell: runs.all[one.by_run.index(one.fits)]
                for cell, one in zip(_cells_of(asked, groups), answers, strict=True)
            }
            tried = self._tried([(run, (place,), (number,)) for (number, place), run in worst.items()], True, jobs)
            for number, (cell, run) in enumerate(worst.items()):
                one = tried[run, cell]
                answers[number] = changed(answers[number], remedies=one.remedies, reasons=one.reasons)
        if self.every:
            room = {one.pod: one.fits for one in answers if one.group == ALL_NODES}
            answers.sort(key=lambda one: (room[one.pod], one.pod))
        return CapacityReport(tuple(answers), assumptions, self.every, runs.seed, about)

    def _cells(self, runs: Sequence[Run], tries_remedies: bool, jobs: int) -> dict[tuple[Run, _Cell], FittingCopies]:
        """A run is begun once for all that is asked; where more processes than runs are, once for a part of it."""
        places, numbers = tuple(range(len(self.groups))), tuple(range(len(self.asked)))
        parts: list[_Part] = [(run, places, numbers) for run in runs]
        if jobs > len(runs):
            size = -(-len(numbers) // jobs)
            chunks = [numbers[begin : begin + size] for begin in range(0, len(numbers), size)]
            parts = [(run, (place,), chunk) for run in runs for place in places for chunk in chunks]
        return self._tried(parts, tries_remedies, jobs)

    def _tried(self, parts: Sequence[_Part], tries_remedies: bool, jobs: int) -> dict[tuple[Run, _Cell], FittingCopies]:
        found = list(spread_over(_count, (self, tries_remedies), parts, jobs=jobs))
        return {
            (run, (number, place)): one
            for (run, places, numbers), by_group in zip(parts, found, strict=True)
            for place, answers in zip(places, by_group, strict=True)
            for number, one in zip(numbers, answers, strict=True)
        }

    def answers(self, numbers: Sequence[int], place: int, begun: _Begun, tries_remedies: bool) -> list[FittingCopies]:
        asked = [self.asked[number] for number in numbers]
        group = self.groups[place]
        found = [_answers(self.world, asked, group, self.rules, tries_remedies)]
        for name, failed in begun.losses.items():
            with self.world.trial() as trial:
                for node in failed:
                    trial.delete_node(node)
                left = homeless(self.world, settled := trial.settle(), settled.preempted)
                new = {key: text for key, text in left.items() if key not in begun.waiting and not is_headroom(key)}
                if new:
                    message = f"after the loss of {name}, {counted(len(new), 'pod')} would have no node even without it"
                    lost = [_none(one, group, message) for one in asked]
                else:
                    lost = [_after(one, name) for one in _answers(self.world, asked, group, self.rules, False)]
                found.append(lost)
        return [min(each, key=lambda one: one.fits) for each in zip(*found, strict=True)]

    @contextmanager
    def begun(self, run: Run) -> Iterator[_Begun]:
        """For as long, the world is as the run finds it: its pending pods are placed, and room is kept."""
        world = self.world
        n_waited = len(world.pending)
        with world.trial() as trial:
            if run.seed != self.runs.seed:
                trial.reseed(run.seed)
            if self.ignores_pending:
                for key in world.pending:
                    trial.delete_pod(key)
            elif run.order:
                pending = world.pending
                Random(run.order).shuffle(pending)
                trial.reorder_pending(pending)
            settled = trial.settle()
            kept = keep_free(trial, self.keep)
            losses = groups_to_lose(world, self.spared) if self.spared else {}
            yield _Begun(settled, n_waited, kept, frozenset(one.pod for one in settled.pending), losses)

    def _assumptions(self, begun: _Begun) -> Iterator[str]:
        rules = self.rules
        if self.ignores_pending:
            yield f"{counted(begun.n_waited, 'pending pod')} left out."
        else:
            placed = counted(len(begun.settled.placed), "pending pod")
            yield f"{placed} placed before the copies, {len(begun.settled.pending)} stay pending."
        preempting = "Copies preempt nobody."
        if rules.may_preempt:
            who = "whoever must leave may be lost" if rules.may_lose else "whoever must leave finds another node"
            preempting = f"Copies preempt others: {who}."
        unasked = "Webhooks and autoscalers" if rules.has_quota else "Quotas, limit ranges, webhooks and autoscalers"
        yield f"{preempting} {unasked} are not simulated."
        yield from told(*begun.kept)
        if self.spared:
            yield f"What fits still fits after the loss of any one {self.spared}, whose pods come first then."
        if len(self.runs) > 1:
            yield self.runs.told
        yield from self.world.guesses


def _may_preempt(preemption: str) -> bool:
    if preemption not in ("never", "count"):
        raise CapacityError(f'preemption "{preemption}" is neither never nor count')
    return preemption == "count"


# -- cells of a run ----------------------------------------------------------------------------------------------------

_Cell = tuple[int, int]
"""Which of those that are asked, on which group of nodes."""
_Part = tuple[Run, tuple[int, ...], tuple[int, ...]]
"""In a run, on these groups of nodes: these of those that are asked."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """What a run begins with."""

    settled: Settled
    n_waited: int
    kept: tuple[int, int]
    """How many pods stand for room to keep, and for how many of them there is none."""
    waiting: frozenset[str]
    losses: Mapping[str, list[str]]
    """The zones or nodes of which any one may be lost, with their nodes."""


def _count(shared: tuple[_Counting, bool], part: _Part) -> list[list[FittingCopies]]:
    """In this process, or in another one: for each group, of each that is asked."""
    counting, tries_remedies = shared
    run, places, numbers = part
    with counting.begun(run) as begun:
        return [counting.answers(numbers, place, begun, tries_remedies) for place in places]


def _cells_of(asked: Sequence[_Asked], groups: Sequence[_Group]) -> list[_Cell]:
    return [(number, place) for number in range(len(asked)) for place in range(len(groups))]


def _none(asked: _Asked, group: _Group, message: str) -> FittingCopies:
    return FittingCopies(asked.title, group.name, 0, {}, "unschedulable", message, ())


def _after(one: FittingCopies, name: str) -> FittingCopies:
    return changed(one, message=f"after the loss of {name}: {one.message}") if one.message else one


def _of_all_runs(found: Sequence[FittingCopies]) -> FittingCopies:
    if len(found) == 1:
        return found[0]
    return changed(min(found, key=lambda one: one.fits), by_run=tuple(one.fits for one in found))


# -- what is asked -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be copied."""

    title: str
    namespace: str
    replicas: Callable[[], Iterator[Replica]]
    template: Pod | None = None
    """Of a pod that can be in any namespace."""
    application: Application | None = None

    @classmethod
    def of_pod(cls, world: LoadedWorld, pod: Manifest) -> _Asked:
        with world.trial() as trial:
            admitted = trial.read_pod(pod)
        if admitted.spec.node_name:
            raise CapacityError(f"pod {admitted.pod_key}: spec.nodeName is set, so the scheduler has nothing to decide")
        replicas = lambda: map(Replica, copies_of(admitted, sys.maxsize))  # noqa: E731
        return cls(admitted.name, admitted.namespace, replicas, admitted)

    @classmethod
    def of_workload(cls, world: LoadedWorld, workload: KubeObject) -> _Asked:
        return cls(title_of(workload), workload.namespace, lambda: replicas_of(world, workload))

    @classmethod
    def of_app(cls, application: Application) -> _Asked:
        title = f"app of {counted(len(application.pods), 'pod')}"
        return cls(title, "", lambda: iter(()), application=application)

    def in_namespace(self, name: str) -> _Asked:
        assert self.template is not None
        moved = replace(self.template, metadata=replace(self.template.metadata, namespace=name))
        replicas = lambda: map(Replica, copies_of(moved, sys.maxsize))  # noqa: E731
        return changed(self, namespace=name, replicas=replicas, template=moved)


def _asked_pods(world: LoadedWorld, pod: Manifest | None, shapes: Sequence[str]) -> list[_Asked]:
    pods = [] if pod is None else [_given_pod(world, pod)]
    try:
        pods += [pod_of_shape(shape) for shape in shapes]
    except ShapeError as error:
        raise CapacityError(str(error)) from None
    return [_Asked.of_pod(world, one) for one in pods]


def _given_pod(world: LoadedWorld, given: Manifest) -> Manifest:
    """A pod that is there stands for its like: without its node, its owners and what became of it."""
    if not isinstance(given, str) or given.count("/") != 1 or "\n" in given or path_exists(given):
        return given
    info = world.pod(given)
    metadata = ObjectMeta(f"{info.name}-copy", info.namespace, labels=info.labels)
    return replace(info.pod, metadata=metadata, spec=replace(info.spec, node_name=""), status=PodStatus())


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    closed: frozenset[str]
    """The nodes that are cordoned."""
    namespace: str = ""


def _groups(world: LoadedWorld, by: Sequence[str], closed: frozenset[str]) -> list[_Group]:
    groups = [_Group(ALL_NODES, closed)]
    for label in by:
        if label == NAMESPACE:
            groups += [_Group(f"{NAMESPACE}={name}", closed, name) for name in _namespaces(world)]
            continue
        for value, members in grouped(world.cluster.table.nodes, label).items():
            inside = {node.name for node in members}
            outside = frozenset(name for name in world.nodes if name not in inside)
            groups.append(_Group(f"{label}={value}", closed | outside))
    return groups


def _namespaces(world: LoadedWorld) -> list[str]:
    infos = (*world.cluster.placed.values(), *world.cluster.pending.values())
    named = {*world.cluster.objects.namespaces, *(info.namespace for info in infos)}
    return sorted(named | {item.namespace for item in world.bounds})


def _closed(world: LoadedWorld, selection: NodeSelection) -> frozenset[str]:
    """The nodes that copies may not go to."""
    return frozenset(world.nodes).difference(node.name for node in selection.of(world.cluster.table.nodes))


# -- counting ----------------------------------------------------------------------------------------------------------


def _answers(
    world: LoadedWorld, asked: Sequence[_Asked], group: _Group, rules: CopyRules, tries_remedies: bool
) -> list[FittingCopies]:
    """Nodes are closed once for all that is asked of a group."""
    with _restricted(world, group):
        return [_answer(world, one, group, rules, tries_remedies) for one in asked]


def _answer(world: LoadedWorld, asked: _Asked, group: _Group, rules: CopyRules, tries_remedies: bool) -> FittingCopies:
    if group.namespace:
        asked = asked.in_namespace(group.namespace)
    fill = _copy_app if asked.application is not None else _fill
    return fill(world, asked, group, rules, tries_remedies and group.name == ALL_NODES)


@contextmanager
def _restricted(world: LoadedWorld, group: _Group) -> Iterator[None]:
    with world.trial() as trial:
        for name in world.nodes:
            if name in group.closed:
                trial.cordon(name)
        yield


def _fill(world: LoadedWorld, asked: _Asked, group: _Group, rules: CopyRules, tries_remedies: bool) -> FittingCopies:
    if not tries_remedies and not rules.may_preempt:
        counted_at_once = _counted(world, asked, group, rules)
        if counted_at_once is not None:
            return counted_at_once
    replicas = asked.replicas()
    found_remedies: list[Remedy] = []
    changes: list[Change] = []
    reasons: dict[str, int] = {}

    def more(trial: WorldTrial, most: int, has_quota: bool = rules.has_quota) -> int:
        return len(place_copies(trial, replicas, asked.namespace, changed(rules, most=most, has_quota=has_quota)).nodes)

    with world.trial() as trial:
        found = place_copies(trial, replicas, asked.namespace, rules)
        if tries_remedies and found.limit == "quota":
            with trial.trial() as inner:
                n_more = more(inner, MOST_MORE, False)
            found_remedies = [tried(f"lift the quotas and limit ranges of namespace {asked.namespace}", n_more)]
        elif tries_remedies and found.failed is not None:
            explanation, changes = explained(trial, found.failed, Counter(found.nodes))
            reasons = {one.summary(): len(one.nodes) for one in explanation.groups}
            found_remedies = of_nodes(trial, changes, group.closed, more)
    n_fits = len(found.nodes)
    if changes and n_fits <= rules.most_anew:
        most = n_fits + MOST_MORE

        def fitting(change: Change) -> int:
            with world.trial() as trial:
                trial.carry_out(change.proposal.actions)
                anew = changed_replicas(asked.replicas(), change)
                return len(place_copies(trial, anew, asked.namespace, changed(rules, most=most)).nodes)

        found_remedies += of_pod(changes, n_fits, fitting)
    return FittingCopies(
        asked.title,
        group.name,
        n_fits,
        by_count(Counter(found.nodes)),
        found.limit,
        found.message,
        found.plugins,
        victims=by_count(found.victims),
        reasons=reasons,
        remedies=best_first(found_remedies),
    )


def _counted(world: LoadedWorld, asked: _Asked, group: _Group, rules: CopyRules) -> FittingCopies | None:
    """Without placing copies one by one; None if that has to be done."""
    first = next(asked.replicas())
    if first.claims:
        return None
    if rules.has_quota:
        admission = CopyAdmission(world, asked.namespace)
        if admission.has_quotas:
            return None
        try:
            first = admission.let_in(first)
        except AdmissionError:
            return None
    found = count_copies(world, first.pod, rules.most)
    if found is None or (found.per_node is None and not rules.may_lack_places):
        return None
    limit = "unschedulable" if found.message else "max"
    per_node = by_count(Counter(found.per_node or {}))
    return FittingCopies(asked.title, group.name, found.n, per_node, limit, found.message, found.plugins)


def _copy_app(
    world: LoadedWorld, asked: _Asked, group: _Group, rules: CopyRules, tries_remedies: bool
) -> FittingCopies:
    application = asked.application
    assert application is not None
    found_remedies: list[Remedy] = []
    with world.trial() as trial:
        n_fits, per_node, failed = application.place_copies(world, 1, rules.most)
        if tries_remedies and failed is not None:
            found_remedies = of_nodes(
                trial, (), group.closed, lambda _trial, most: application.place_copies(world, n_fits + 1, most)[0]
            )
    answer = FittingCopies(asked.title, group.name, n_fits, by_count(per_node), "max", "", ())
    if failed is None:
        return answer
    return changed(
        answer,
        limit="unschedulable",
        message=failed.message,
        plugins=failed.plugins,
        failed_pod=failed.pod,
        remedies=best_first(found_remedies),
    )
