"""Makes the report of a plan from what was found."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from kubesched.explanation.layout import counted
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import node_units, pod_resources
from kubesched.planning.catalogue import NANOS, Catalogue, price_text
from kubesched.planning.headroom import is_headroom
from kubesched.planning.new_nodes import node_from_offer
from kubesched.planning.plan import packing
from kubesched.planning.plan.bounds import CostBound
from kubesched.planning.plan.judge import Mix, MixJudge, MixVerdict
from kubesched.planning.plan.patterns import has_solver
from kubesched.planning.plan.reading import ReadProblem
from kubesched.planning.plan.report import WITHIN, Alternative, BoughtNodes, NewNode, PlanReport
from kubesched.planning.plan.request import FILL_AFTER, IN_TURN, LATER, TOGETHER, PlannedWorld, PlanRequest
from kubesched.planning.plan.search import MixSearch
from kubesched.simulator.guesses import Guess
from kubesched.simulator.loading import SimulationInput

_QUICK = 20_000
"""Nodes times pods up to which nodes are let join one by one."""
_CHANCES = 5
"""How many other seeds and orders a plan is tried with in the end."""


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What a plan was made of."""

    planned: PlannedWorld
    problem: ReadProblem
    catalogue: Catalogue
    request: PlanRequest
    n_unpriced: int
    given: SimulationInput

    @property
    def excused(self) -> list[PodKey]:
        """Pods that wait and are not planned for."""
        planned_for = set(self.problem.pods)
        return [key for key in self.planned.world.pending if key not in planned_for]

    def money(self, nanos: int) -> str:
        if self.request.objective == "nodes":
            return f"{nanos // NANOS} nodes"
        return f"{price_text(nanos)} {self.catalogue.currency}"

    def inputs_hash(self) -> str:
        written = msgspec.json.encode((self.given.objects, self.catalogue.to_dict(), self.request))
        return hashlib.sha256(written).hexdigest()[:16]


def finished_report(
    facts: PlanFacts,
    answer: str,
    *,
    verdict: MixVerdict | None = None,
    packed: packing.Packing = (),
    bound: CostBound | None = None,
    bound_cost: int | None = None,
    bound_kind: str = "aggregate",
    level: str = WITHIN,
    ideal: int | None = None,
    judge: MixJudge | None = None,
    search: MixSearch | None = None,
    stopped: str = "",
    n_trials: int = 0,
) -> PlanReport:
    request, problem, options = facts.request, facts.problem, facts.planned.options
    mix = verdict.mix if verdict is not None else _mix_of(facts, packed)
    in_nodes = request.objective == "nodes"
    prices = [NANOS if in_nodes else option.offer.price or 0 for option in options]
    cost = sum(n * p for n, p in zip(mix, prices, strict=True))
    least = cost if bound_cost is None else bound_cost
    unit = NANOS if in_nodes else 1
    if request.ideal and bound is not None and answer == "yes" and cost <= least:
        level = "proven"
    pending = _pending(facts, verdict, packed) if verdict is not None or answer != "yes" else {}
    return PlanReport(
        answer=answer,
        objective=request.objective,
        currency=facts.catalogue.currency,
        mix=tuple(_bought(facts, mix)),
        nodes=tuple(_new_nodes(facts, verdict)),
        cost=cost // unit,
        bound=-(-least // unit),
        bound_kind=bound_kind,
        level=level,
        ideal_cost=None if ideal is None else ideal // unit,
        single_type=_single_type(facts, search, judge, unit),
        verified="packing" if request.ideal else "scheduler",
        n_pods=sum(1 for key in problem.pods if not is_headroom(key)),
        pending=pending,
        unplaceable=tuple(problem.unplaceable),
        alternatives=tuple(_alternatives(facts, search, judge, cost, unit)),
        dropped=problem.dropped,
        notes=tuple(_notes(facts, verdict, None if stopped else judge, answer)),
        assumptions=tuple(_assumptions(facts)),
        stopped=stopped,
        n_trials=n_trials,
        seeds=tuple(range(request.seed, request.seed + request.seeds)),
        orders=request.orders,
        inputs_hash=facts.inputs_hash(),
        new_objects=tuple(new_objects(facts, _options_of(mix) if verdict is None else verdict.nodes.values())),
        n_first=None if verdict is None or request.arrival == TOGETHER else verdict.n_first,
    )


def new_objects(facts: PlanFacts, nodes: Iterable[int]) -> list[KubeObject]:
    """The nodes of these options, and what comes with them."""
    return [
        item
        for option, number in facts.planned.numbered(nodes)
        for item in node_from_offer(facts.planned.options[option], number)
    ]


def _options_of(mix: Mix) -> list[int]:
    return [option for option, count in enumerate(mix) for _ in range(count)]


def _mix_of(facts: PlanFacts, packed: packing.Packing) -> Mix:
    model = facts.problem.model
    counts = packing.counts_of(model, packed)
    mix = [0] * len(facts.planned.options)
    for one, count in zip(model.options, counts, strict=True):
        for n in range(count):
            mix[one.members[n % len(one.members)]] += 1
    return tuple(mix)


def _bought(facts: PlanFacts, mix: Mix) -> list[BoughtNodes]:
    found = []
    for number, (option, count) in enumerate(zip(facts.planned.options, mix, strict=True)):
        if count:
            offer = option.offer
            price = offer.price or 0
            found.append(
                BoughtNodes(
                    option.name,
                    option.shape.name,
                    offer.zone,
                    offer.capacity_type,
                    option.pool.name,
                    count,
                    price,
                    facts.planned.turn_of(number) + 1,
                )
            )
    return sorted(found, key=lambda one: (one.turn, -one.count * one.price, one.name))


def _new_nodes(facts: PlanFacts, verdict: MixVerdict | None) -> list[NewNode]:
    if verdict is None:
        return []
    on_node: dict[str, list[PodKey]] = {name: [] for name in verdict.nodes}
    for key, name in verdict.placed.items():
        if name in on_node:
            on_node[name].append(key)
    found = []
    for name, option in verdict.nodes.items():
        chosen = facts.planned.options[option]
        requested: Counter[str] = Counter()
        for daemon in facts.planned.daemons[option]:
            requested.update(pod_resources(daemon).wanted)
        keys = []
        for key in on_node[name]:
            requested.update(facts.problem.requests.get(key, {}))
            if not is_headroom(key):
                keys.append(key)
        amounts = node_units(dict(chosen.shape.allocatable), "allocatable")
        found.append(NewNode(name, chosen.name, tuple(sorted(keys)), dict(requested), amounts))
    return found


def _pending(facts: PlanFacts, verdict: MixVerdict | None, packed: packing.Packing) -> dict[PodKey, str]:
    if verdict is not None:
        return verdict.pending
    if not packed:
        return {}
    model = facts.problem.model
    left = model.demand - packing.placed_by(model, packed)
    return {
        key: "no room on so many nodes"
        for c, one in enumerate(model.classes)
        for key in one.pods[len(one.pods) - max(0, int(left[c])) :]
    }


def _single_type(
    facts: PlanFacts, search: MixSearch | None, judge: MixJudge | None, unit: int
) -> tuple[str, int, int] | None:
    """Among the plans that the scheduler accepted, or by packing."""
    model = facts.problem.model
    if search is not None and judge is not None:
        found = [(search.cost(v.mix), search.counts(v.mix)) for v in judge.yes_verdicts if _n_types(search, v) == 1]
        if found:
            cost, counts = min(found)
            number = next(k for k, n in enumerate(counts) if n)
            return model.options[number].name, counts[number], cost // unit
        return None
    packed = packing.best_single_type(model) if len(model.options) and facts.request.ideal else None
    if not packed:
        return None
    counts = packing.counts_of(model, packed)
    number = next(k for k, n in enumerate(counts) if n)
    return model.options[number].name, counts[number], model.cost(counts) // unit


def _n_types(search: MixSearch, verdict: MixVerdict) -> int:
    return sum(1 for n in search.counts(verdict.mix) if n)


def _alternatives(
    facts: PlanFacts, search: MixSearch | None, judge: MixJudge | None, cost: int, unit: int
) -> list[Alternative]:
    """Plans that the scheduler accepted and that no other one beats in cost, nodes and types at once."""
    if search is None or judge is None or not facts.request.alternatives:
        return []
    accepted = [(search.cost(v.mix), sum(v.mix), _n_types(search, v), v.mix) for v in judge.yes_verdicts]
    front: list[Alternative] = []
    seen: set[tuple[int, int, int]] = set()
    for price, nodes, types, mix in sorted(accepted):
        if (price, nodes, types) in seen:
            continue
        if any(one.cost <= price and one.nodes <= nodes and one.types <= types for one in front):
            continue
        seen.add((price, nodes, types))
        names: dict[str, int] = {}
        for option, n in zip(facts.planned.options, mix, strict=True):
            if n:
                names[option.name] = names.get(option.name, 0) + n
        front.append(Alternative(price, nodes, types, names))
    others = [replace(one, cost=one.cost // unit) for one in front if one.cost != cost]
    return others[: facts.request.alternatives]


def _notes(facts: PlanFacts, verdict: MixVerdict | None, judge: MixJudge | None, answer: str) -> list[str]:
    request = facts.request
    notes = []
    if verdict is not None and verdict.failure and answer != "yes":
        notes.append(f"It does not survive the loss of {verdict.failure}.")
    if answer == "yes" and verdict is not None and judge is not None and any(verdict.mix):
        other = LATER if request.arrival == TOGETHER else TOGETHER
        is_quick = sum(verdict.mix) * len(facts.problem.pods) <= _QUICK
        found = judge.quietly(verdict.mix, other) if is_quick or other == TOGETHER else verdict
        if not found.is_yes:
            when = {LATER: "nodes join one by one while the pods wait", TOGETHER: "all nodes are there first"}[other]
            n = len(found.pending)
            notes.append(f"If {when}, {counted(n, 'pod')} {'stays' if n == 1 else 'stay'} pending on these nodes.")
        last_seed, n_orders = request.seed + request.seeds - 1, request.orders
        chances = [judge.quietly(verdict.mix, seed=last_seed + k, order=n_orders + k) for k in range(1, _CHANCES + 1)]
        n_yes = sum(one.is_yes for one in chances)
        asked = f"{counted(request.seeds, 'seed')} and {counted(request.orders, 'order')} of arrival"
        notes.append(
            f"It holds for {asked}, and for {n_yes} of {_CHANCES} others"
            + (" (more: --seeds and --orders)." if n_yes < _CHANCES else ".")
        )
    if answer == "no" and verdict is not None and facts.problem.model.limits:
        names = ", ".join(row.name for row in facts.problem.model.limits)
        notes.append(f"Limits that hold: {names}.")
    return notes


def _assumptions(facts: PlanFacts) -> list[str]:
    request, problem = facts.request, facts.problem
    found = [*request.selection.told("Of the existing nodes, pods without a node use only {}.")]
    if request.arrival == TOGETHER:
        found.append("The nodes exist before the pods; DaemonSet pods are placed first.")
    else:
        first = "" if request.arrival == LATER else "; the first ones exist before the pods"
        found.append(
            f"Nodes join one by one, in the order above{first}. Each joins when the pods that fit on those before have "
            "been placed; DaemonSet pods are placed first."
        )
    if request.fill == IN_TURN:
        found.append(
            f"Nodes of a later turn have soft taints ({FILL_AFTER}1, ...: PreferNoSchedule): the scheduler takes them "
            "where those before have no room. Nodes that are written have them."
        )
    for reason, n in problem.left_out.items():
        found.append(f"{n} pending pods {reason} are not planned for.")
    found += [Guess(f"Not admitted: {refusal}") for refusal in facts.planned.refused[:3]]
    if facts.n_unpriced:
        found.append(Guess(f"{facts.n_unpriced} offers without a price are left out."))
    if request.survive:
        what = request.survive
        found.append(f"A failed {what} is gone with its nodes, and pods without a controller with it.")
    if request.spread == "literal":
        found.append("Spread constraints count existing nodes (--spread intent assumes an empty one in every zone).")
    found.append("Autoscalers, webhooks and operators are not simulated. Prices are those of the catalogue.")
    if not has_solver():
        found.append("Without scipy (pip install '.[plan]' in a clone) the bound is the aggregate one, a weaker one.")
    return [*found, *facts.given.guesses, *facts.planned.world.guesses]
