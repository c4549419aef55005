"""The story of a plan: read the problem, bound it, propose mixes, let the scheduler judge, repair, improve, prove.

Next: `search` for what happens to a proposal, `reading` for how the problem is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil

import msgspec
import numpy as np

from kubesched.explanation.layout import counted
from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.catalogue import ZONE, Catalogue
from kubesched.planning.plan import packing, patterns, rounding
from kubesched.planning.plan.bounds import CostBound, aggregate_bound, rounded_up
from kubesched.planning.plan.certificate import certificate_of
from kubesched.planning.plan.enumeration import Cut, cuts_of, exhaust
from kubesched.planning.plan.fleets import FleetSearch, Rehearsal, RehearsedSearch
from kubesched.planning.plan.joining import JoiningRehearsal, JoiningSearch
from kubesched.planning.plan.judge import Mix, MixJudge, MixVerdict
from kubesched.planning.plan.model import PackingModel, PlanError
from kubesched.planning.plan.reading import ReadProblem, read_problem
from kubesched.planning.plan.report import EXHAUSTED, PROVEN, WITHIN, PlanReport
from kubesched.planning.plan.reporting import PlanFacts, finished_report
from kubesched.planning.plan.request import (
    EVENLY,
    IN_TURN,
    REST_LATER,
    TOGETHER,
    TURNS,
    PlannedWorld,
    PlanRequest,
    buyable_options,
    least_nodes,
    limits_of,
    planned_world,
)
from kubesched.planning.plan.scoring import RehearsedScores, filling_nodes, fills_evenly, rehearsed_scores
from kubesched.planning.plan.search import MixSearch, StoppedError
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.loading import SimulationInput

_ZONES_TRIED = 4
_EXHAUSTIBLE_NODES = 16
_JUDGED_PODS = 200_000
"""Pods times mixes up to which every cheaper mix is judged."""
_NOTICEABLE = 0.01
"""Of the cost."""
_BOUND_SHARE = 0.4
"""Of the time that is left, for the bound."""
_KEPT_FOR_NOTES = 0.2
"""Of the whole time, for what the answer would be otherwise."""
_REHEARSAL_SHARE = 0.7
"""Of the time that is left, for rehearsals."""
_JOINING_SHARE = 0.7
"""Of the time that is left, for rehearsals of nodes that join one by one."""
_MIP_SHARE = 0.2
"""Of the time that is left, for the mixed integer program."""


@dataclass(slots=True)
class PlanWatch:
    """When to stop, and whom to tell how it goes."""

    limit_s: float
    clock: Callable[[], float] = time.monotonic
    is_interrupted: Callable[[], bool] = lambda: False
    told: Callable[[str], None] = lambda _text: None
    is_strict: bool = False
    """Whether it stops in time even if there is no plan yet."""
    stopped: str = ""
    kept_s: float = field(default=0.0, init=False)
    """Of the limit, what is kept for later."""
    _begun_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun_s = self.clock()

    @property
    def left_s(self) -> float:
        return max(0.0, self.limit_s - self.kept_s - (self.clock() - self._begun_s))

    def goes_on(self) -> bool:
        if self.is_interrupted():
            self.stopped = "interrupted"
        elif not self.left_s:
            self.stopped = "time"
        return not self.stopped


class Planner:
    def __init__(
        self,
        given: SimulationInput,
        catalogue: Catalogue,
        request: PlanRequest,
        config: KubeSchedulerConfiguration,
        registry: Registry | None = None,
        watch: PlanWatch | None = None,
        jobs: int = 1,
    ) -> None:
        """Seeds and orders are tried in so many processes (`jobs`); the plan is the same."""
        if not request.from_scratch and not any(isinstance(item, Node) for item in given.objects):
            raise PlanError("there are no nodes; --from-scratch plans a cluster that has none yet")
        self._given = given
        self._catalogue = catalogue
        self._request = request
        self._config = config
        self._registry = registry
        self._jobs = jobs
        self._watch = watch or PlanWatch(request.time_limit_s)
        nodes = () if request.from_scratch else (item for item in given.objects if isinstance(item, Node))
        self._options, self._n_unpriced = buyable_options(catalogue.beside(nodes), request)

    def plan(self) -> PlanReport:
        watch = self._watch
        watch.kept_s = watch.limit_s * (_KEPT_FOR_NOTES if self._request.fill == EVENLY else 0.0)
        report = self._plan()
        watch.kept_s = 0.0
        notes = list(self._otherwise(report)) if watch.stopped != "interrupted" and watch.left_s else []
        return replace(report, notes=(*report.notes, *notes))

    def _otherwise(self, report: PlanReport) -> Iterator[str]:
        """What the answer would be if nodes were filled in turn or one after another, if spread constraints were read
        otherwise, or without the limits asked for."""
        request = self._request
        if request.fill == EVENLY and _is_lost_to_the_scheduler(report):
            in_turn = self._asked_again(replace(request, fill=IN_TURN, alternatives=0))
            if in_turn.answer == "yes" and in_turn.cost < report.cost:
                n = sum(one.count for one in in_turn.mix if one.turn > 1)
                yield f"With --fill in-turn (soft taints on {n} nodes): {_told(in_turn)}, {_less(report, in_turn)}."
        if report.answer == "yes" and request.spread == "literal" and not request.ideal and _spreads(self._given):
            intent = self._asked_again(replace(request, spread="intent", alternatives=0))
            if (intent.answer, intent.cost, intent.n_nodes) != ("yes", report.cost, report.n_nodes):
                yield f"As if an empty node stood in every zone (--spread intent): {_told(intent)}."
        packing_config = filling_nodes(self._config)
        if packing_config is not None and _is_lost_to_the_scheduler(report):
            packed = self._asked_again(replace(request, alternatives=0), packing_config)
            if packed.answer == "yes" and packed.cost < report.cost:
                yield f"With scoringStrategy MostAllocated: {_told(packed)}, {_less(report, packed)}."
        unlimited = replace(request, max_nodes=None, max_types=None, spot_share_percent=None)
        if report.answer == "no" and not report.unplaceable and unlimited != request:
            yield f"Without --max-nodes, --max-types and --spot-share: {_told(self._asked_again(unlimited))}."

    def _asked_again(self, request: PlanRequest, config: KubeSchedulerConfiguration | None = None) -> PlanReport:
        limit_s = max(1.0, self._watch.left_s / 2)
        watch = PlanWatch(limit_s, self._watch.clock, self._watch.is_interrupted, is_strict=True)
        asked = (self._given, self._catalogue, request, config or self._config, self._registry, watch, self._jobs)
        return Planner(*asked)._plan()

    def _plan(self) -> PlanReport:
        request = self._request
        planned = planned_world(
            self._given,
            self._options,
            self._config,
            registry=self._registry,
            tie_break=request.tie_break,
            seed=request.seed,
            from_scratch=request.from_scratch,
            keep=request.keep,
            selection=request.selection,
        )
        problem = read_problem(
            planned,
            objective=request.objective,
            intent=request.spread == "intent",
            headroom_percent=request.headroom_percent,
            zones_apart=request.survive == "zone" or bool(least_nodes(self._options, request)),
            follows_weights=request.follow_weights,
        )
        limits = limits_of(problem.model, self._options, request)
        problem.model = problem.model.with_limits(limits)
        if request.fill == IN_TURN and not request.ideal:
            problem.model = problem.model.in_turns(TURNS, len(self._options))
            planned = planned.in_turns(TURNS)
        facts = PlanFacts(planned, problem, self._catalogue, request, self._n_unpriced, self._given)
        if problem.unplaceable:
            return finished_report(facts, "no", stopped=self._watch.stopped)
        if request.ideal:
            return self._packed(facts)
        verified = _Verified(facts, self._watch, self._config, self._jobs)
        try:
            return verified.report()
        finally:
            verified.close()

    def _packed(self, facts: PlanFacts) -> PlanReport:
        """By packing alone."""
        model = facts.problem.model
        bound = aggregate_bound(model)
        found: list[packing.Packing] = []
        lefts = {tuple(packing.left_by_existing(model, order).tolist()) for order in packing.orders(model)}
        for left in sorted(lefts):
            rest = model.with_demand(np.array(left, dtype=np.int64))
            found += [one for one in _packings(rest, bound) if one is not None]
        kind = "aggregate"
        if patterns.has_solver() and len(model.options):
            starts = [] if model.existing else found
            answer = patterns.pattern_bound(model, starts, bound, goes_on=self._watch.goes_on)
            if answer is not None:
                bound, kind = answer.bound, "pattern"
                if not model.existing:
                    found += rounding.rounded(model, answer, max(1.0, self._watch.left_s * _MIP_SHARE))
        found = [one for one in found if packing.is_within_limits(model, packing.counts_of(model, one))]
        if not found:
            return self._partly_packed(facts, bound)
        best = min(
            found, key=lambda one: (model.cost(packing.counts_of(model, one)), sum(packing.counts_of(model, one)))
        )
        cost = model.cost(packing.counts_of(model, best))
        return finished_report(
            facts,
            "yes",
            packed=best,
            bound=bound,
            bound_cost=min(cost, rounded_up(model, bound.cost)),
            bound_kind=kind,
            stopped=self._watch.stopped,
        )

    def _partly_packed(self, facts: PlanFacts, bound: CostBound) -> PlanReport:
        """The limits are too small for all pods: the largest first, as many as there is room for."""
        model, most = facts.problem.model, facts.request.max_nodes
        if model.existing:
            model = model.with_demand(packing.left_by_existing(model, packing.decreasing(model)))
            facts.problem.model = model
        tried = [packing.single_type(model, o, most)[0] for o in range(len(model.options))]
        tried = [one for one in tried if packing.is_within_limits(model, packing.counts_of(model, one))]
        best = max(tried, key=lambda one: int(packing.placed_by(model, one).sum()), default=())
        return finished_report(
            facts, "no", packed=best, bound=bound, bound_kind="aggregate", stopped=self._watch.stopped
        )


def _spreads(given: SimulationInput) -> bool:
    """Whether any workload or pod must be spread."""
    return any(b"DoNotSchedule" in msgspec.json.encode(item) for item in given.objects if not isinstance(item, Node))


def _is_lost_to_the_scheduler(report: PlanReport) -> bool:
    """Whether a packing by hand would be noticeably cheaper."""
    ideal = report.ideal_cost
    return report.answer == "yes" and ideal is not None and report.cost > ideal * (1 + _NOTICEABLE)


def _less(report: PlanReport, other: PlanReport) -> str:
    return f"{100 * (report.cost - other.cost) / report.cost:.1f} % less"


def _scores_of(config: KubeSchedulerConfiguration, planned: PlannedWorld) -> RehearsedScores | None:
    """If the pods to place have one profile, and a rehearsal knows its scores."""
    world = planned.world
    schedulers = {info.spec.scheduler_name: world.scheduler_of(info) for info in world.cluster.pending.values()}
    known = [one for one in schedulers.values() if one is not None]
    return rehearsed_scores(config, known[0].profile.score) if len(known) == 1 else None


def _told(report: PlanReport) -> str:
    if report.answer != "yes":
        return "no plan"
    return f"{counted(report.n_nodes, 'node')} for {report.money(report.cost)}"


def _packings(model: PackingModel, bound: CostBound) -> Iterator[packing.Packing | None]:
    """Proposals that need no solver."""
    yield packing.best_single_type(model)
    yield packing.by_first_fit(model)
    yield packing.by_value(model, np.maximum(np.array(bound.values, dtype=np.float64), 1.0))


class _Verified:
    """A plan that the scheduler judges."""

    def __init__(self, facts: PlanFacts, watch: PlanWatch, config: KubeSchedulerConfiguration, jobs: int) -> None:
        self._facts = facts
        self._problem: ReadProblem = facts.problem
        self._planned: PlannedWorld = facts.planned
        self._request: PlanRequest = facts.request
        self._options = options = facts.planned.options
        self._watch = watch
        self._fills_evenly = fills_evenly(config)
        self._scores = _scores_of(config, facts.planned)
        self._model = facts.problem.model
        request = self._request
        self._judge = MixJudge(
            facts.planned,
            excused=facts.excused,
            seeds=range(request.seed, request.seed + request.seeds),
            orders=request.orders,
            survive=request.survive,
            priority_at_least=request.priority_at_least,
            arrival=request.arrival,
            headroom_percent=request.headroom_percent,
            ghosts=[n for one in self._model.options for n in one.members if not facts.planned.turn_of(n)]
            if request.spread == "intent"
            else (),
            jobs=jobs,
        )
        self.close = self._judge.close
        self._bound, self._kind = aggregate_bound(self._model), "aggregate"
        self._search = MixSearch(
            self._model,
            self._judge,
            self._bound,
            len(options),
            zone_matters=facts.problem.zones_apart,
            most_nodes=request.max_nodes,
            max_types=request.max_types,
            least=least_nodes(options, request),
            pools=tuple(option.pool.name for option in options),
            turns=facts.planned.turns,
        )
        self._judge.watch = self._look
        self._ideal: int | None = None
        self._packed_mixes: list[Mix] = []
        self._cuts: list[Cut] = []
        self._refused: list[tuple[int, ...]] = []
        self._level = WITHIN

    def _look(self) -> None:
        """Before every trial: stops if it is time, and once there is something to stop with."""
        watch = self._watch
        if not watch.goes_on() and (self._search.best is not None or watch.is_strict or watch.stopped == "interrupted"):
            raise StoppedError

    def report(self) -> PlanReport:
        empty: MixVerdict | None = None
        try:
            empty = self._judge.verdict((0,) * len(self._options))
            if empty.is_yes and self._search.is_allowed(empty.mix):
                self._search.best = empty
            else:
                self._find(empty)
        except StoppedError:
            pass
        return self._finish(empty)

    def _find(self, empty: MixVerdict) -> None:
        search, model = self._search, self._model
        left = self._left(empty)
        starts = [one for one in _packings(left, self._bound) if one is not None]
        fleets = FleetSearch(search, left, self._tell, fills_evenly=self._fills_evenly)
        if self._request.arrival != TOGETHER and self._is_rehearsable():
            self._let_join(fleets, starts)
        fleets.first()
        self._propose(left, starts)
        self._tell("proposals")
        if self._is_optimal():
            return
        if patterns.has_solver() and len(model.options) and self._kind == "aggregate":
            self._bound_by_patterns(starts)
            if self._is_optimal():
                return
        self._rehearse(fleets)
        fleets.rest()
        if search.best is not None and not self._judge.has_order(search.best.mix):
            search.improve()
        self._tell("improved")
        if not self._is_optimal():
            self._exhaust()

    def _left(self, empty: MixVerdict) -> PackingModel:
        """The pods that find no room on the nodes that are there."""
        if not self._model.existing:
            return self._model
        counts = np.zeros(len(self._model.classes), dtype=np.int64)
        numbers = {key: c for c, one in enumerate(self._model.classes) for key in one.pods}
        for key in empty.pending:
            if key in numbers:
                counts[numbers[key]] += 1
        return self._model.with_demand(counts)

    def _propose(self, left: PackingModel, packings: list[packing.Packing]) -> None:
        """The cheapest first, each as the zones allow it."""
        search = self._search
        for one in packings:
            cost = left.cost(packing.counts_of(left, one))
            self._ideal = cost if self._ideal is None else min(cost, self._ideal)
        mixes = {
            mix: None
            for one in sorted(packings, key=lambda one: left.cost(packing.counts_of(left, one)))
            for mix in (search.spread(packing.counts_of(left, one)),)
            if mix is not None
        }
        self._packed_mixes += list(mixes)[:2]
        if self._problem.zones_apart:
            mixes.update(dict.fromkeys(self._by_zones(left)))
        for mix in sorted(mixes, key=search.rank):
            if search.propose(search.completed(search.in_turn(mix))):
                self._tell("a plan")

    def _by_zones(self, left: PackingModel) -> Iterator[tuple[int, ...]]:
        """Everything in one zone, everything over all zones alike, and so that any zone may be missing."""
        search = self._search
        zones = sorted({zone for one in left.options for zone in one.zones})
        values = np.maximum(np.array(self._bound.values, dtype=np.float64), 1.0)
        inside = {zone: np.array([zone in one.zones for one in left.options]) for zone in zones}
        for zone in zones[:_ZONES_TRIED]:
            packed = packing.by_value(left, values, among=inside[zone])
            if packed is not None:
                mix = search.spread(packing.counts_of(left, packed))
                if mix is not None:
                    yield mix
        for parts in {len(zones), len(zones) - 1} - {0, 1} | ({1} if len(zones) == 2 else set()):
            total = [0] * len(left.options)
            for k, zone in enumerate(zones):
                share = (left.demand + (parts - 1 - k % parts)) // parts
                packed = packing.by_value(left, values, left=share, among=inside[zone])
                if packed is None:
                    break
                total = [a + b for a, b in zip(total, packing.counts_of(left, packed), strict=True)]
            mix = search.spread(total)
            if mix is not None:
                yield mix

    def _bound_by_patterns(self, starts: list[packing.Packing], *, is_rounded: bool = True) -> None:
        until_s = self._watch.left_s * (1 - _BOUND_SHARE)
        answer = patterns.pattern_bound(
            self._model,
            [] if self._model.existing else starts,
            self._bound,
            goes_on=lambda: self._watch.goes_on() and self._watch.left_s > until_s,
            told=lambda gap: self._tell(f"bound within {100 * gap:.1f} %"),
        )
        if answer is None:
            return
        self._bound, self._kind = answer.bound, "pattern"
        self._search.take_bound(answer.bound)
        if is_rounded and self._watch.goes_on() and not self._model.existing:
            self._propose(self._model, rounding.rounded(self._model, answer, max(1.0, self._watch.left_s * _MIP_SHARE)))
            self._tell("rounded")

    def _rehearse(self, fleets: FleetSearch) -> None:
        """Many fleets at once, where what counts is what a rehearsal knows."""
        search, model = self._search, self._model
        if not self._is_rehearsable() or self._scores is None or model.existing or search.best is None:
            return
        if self._request.arrival != TOGETHER:
            return
        if sum(search.best.mix) <= _EXHAUSTIBLE_NODES:
            return
        until_s = self._watch.left_s * (1 - _REHEARSAL_SHARE)
        arrivals = [self._judge.arrivals(order) for order in range(self._request.orders)]
        RehearsedSearch(
            search,
            Rehearsal(model, arrivals, search.turns, self._scores),
            lambda: self._watch.goes_on() and self._watch.left_s > until_s,
            self._tell,
        ).run(fleets, [search.in_turn(mix) for mix in self._packed_mixes])

    def _is_rehearsable(self) -> bool:
        """Whether what counts is what a rehearsal knows."""
        model = self._model
        known = {CPU, MEMORY} <= set(model.resources) and not model.apart.any()
        return known and not self._problem.zones_apart and not self._request.survive

    def _let_join(self, fleets: FleetSearch, starts: list[packing.Packing]) -> None:
        """Nodes that join one by one, in an order that is chosen for them."""
        search, model, watch = self._search, self._model, self._watch
        if patterns.has_solver():
            self._bound_by_patterns(starts, is_rounded=False)
        if search.turns > 1 or not len(model.options):
            return
        some_first = self._request.arrival == REST_LATER and self._fills_evenly and not model.existing
        orders = [self._judge.queue(order) for _, order in self._judge.circumstances]
        whole_s = watch.left_s
        kept_s = whole_s * (1 - _JOINING_SHARE)
        JoiningSearch(
            search,
            self._judge,
            JoiningRehearsal(model, orders),
            fleets.all_directions(),
            some_first,
            lambda: max(0.0, watch.left_s - kept_s) / max(1e-9, whole_s - kept_s) if watch.goes_on() else 0.0,
            self._tell,
        ).run()

    def _exhaust(self) -> None:
        search = self._search
        if search.best is None or sum(search.best.mix) > _EXHAUSTIBLE_NODES or self._request.survive:
            return
        self._cuts = cuts_of(self._model, np.array(self._bound.values, dtype=np.int64))
        self._tell("every cheaper mix")
        most_trials = max(50, _JUDGED_PODS // max(1, self._model.n_pods))
        is_through, self._refused = exhaust(search, self._cuts, most_trials)
        if self._request.arrival != TOGETHER and self._refused:
            self._refused = []  # in another order of joining, they might do
        elif is_through:
            self._level = EXHAUSTED if self._refused else PROVEN

    # -- bounds --------------------------------------------------------------------------------------------------------

    def bound_cost(self) -> int:
        """With what surviving a failure costs on top: if any zone may be missing, the others pay for all pods."""
        least = self._bound.cost
        if self._request.survive and self._all_come_back() and least:
            zones = {zone for one in self._model.options for zone in one.zones}
            nodes = self._planned.world.cluster.table.nodes
            zones |= {node.labels[ZONE] for node in nodes if ZONE in node.labels}
            if self._request.survive == "zone" and len(zones) > 1:
                least = ceil(least * len(zones) / (len(zones) - 1))
            elif self._request.survive == "node":
                least += int(self._model.price.min())
        return rounded_up(self._model, least)

    def _all_come_back(self) -> bool:
        """Whether each pod to place has a controller that recreates it wherever it was."""
        pods = (self._planned.world.cluster.find_pod(key) for key in self._problem.pods)
        return self._request.priority_at_least is None and all(
            info is not None and controller_of(info.pod.metadata) is not None for info in pods
        )

    def _is_optimal(self) -> bool:
        best = self._search.best
        if best is not None and self._search.cost(best.mix) <= self.bound_cost():
            self._level = PROVEN
            return True
        return False

    def _tell(self, what: str) -> None:
        best = self._search.best
        cost = "" if best is None else f", best {self._facts.money(self._search.cost(best.mix))}"
        self._watch.told(f"{what}{cost}")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _finish(self, empty: MixVerdict | None) -> PlanReport:
        best, search = self._search.best, self._search
        if best is None:
            answer = "undecided" if self._watch.stopped else "no"
            return finished_report(
                self._facts,
                answer,
                verdict=self._nearest() or empty,
                bound=self._bound,
                bound_cost=self.bound_cost(),
                bound_kind=self._kind,
                stopped=self._watch.stopped,
                n_trials=self._judge.n_trials,
            )
        cost = search.cost(best.mix)
        bound = cost if self._level == PROVEN else min(cost, self.bound_cost())
        kind = "integral" if self._level == PROVEN and self._cuts else self._kind
        report = finished_report(
            self._facts,
            "yes",
            verdict=best,
            bound=self._bound,
            bound_cost=bound,
            bound_kind=kind,
            level=self._level,
            ideal=self._ideal,
            judge=self._judge,
            search=search,
            stopped=self._watch.stopped,
            n_trials=self._judge.n_trials,
        )
        certificate = certificate_of(
            self._model,
            self._bound,
            search.counts(best.mix),
            self._level,
            bound,
            survive=self._request.survive if self._all_come_back() else "",
            cuts=self._cuts if self._level in (PROVEN, EXHAUSTED) else [],
            refused=self._refused,
            currency=self._facts.catalogue.currency,
        )
        return replace(report, certificate=certificate)

    def _nearest(self) -> MixVerdict | None:
        """Of what was refused within the limits, the mix that left the fewest pods."""
        allowed = [v for v in self._judge.no_verdicts if self._search.is_allowed(v.mix) and any(v.mix)]
        return min(allowed, key=lambda v: (len(v.pending), self._search.rank(v.mix)), default=None)
