"""What a plan says: what to buy, what it costs, how near to the optimum that is, and what was assumed; as text, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

from kubesched.explanation.layout import Style, Tone, counted, listed, readable, table, wrapped
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.catalogue import CATALOGUE_VERSION, HOURS_A_MONTH, NANOS, price_text
from kubesched.planning.html_report import ReportAsPage
from kubesched.planning.plan.reading import Unplaceable
from kubesched.simulator.column_table import Cell, ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge, gauge

PROVEN = "proven"
EXHAUSTED = "exhausted"
WITHIN = "within"

_MACHINE_COLUMNS = {
    **dict.fromkeys(("shape", "zone", "capacity_type", "pool"), ColumnKind.UTF8),
    "count": ColumnKind.INT64,
    "price": ColumnKind.FLOAT64,
    "turn": ColumnKind.INT64,
}
_NODE_COLUMNS = {
    "name": ColumnKind.UTF8,
    "offer": ColumnKind.UTF8,
    "pods": ColumnKind.INT64,
    "cpu_allocatable_milli": ColumnKind.INT64,
    "cpu_requested_milli": ColumnKind.INT64,
    "memory_allocatable_bytes": ColumnKind.INT64,
    "memory_requested_bytes": ColumnKind.INT64,
}
_ALTERNATIVE_COLUMNS = {"price": ColumnKind.FLOAT64, "nodes": ColumnKind.INT64, "machines": ColumnKind.UTF8}


@dataclass(frozen=True, slots=True)
class BoughtNodes:
    """So many nodes of one offer."""

    name: str
    shape: str
    zone: str
    capacity_type: str
    pool: str
    count: int
    price: int
    """Of one, in 10⁻⁹ of the currency an hour; 0 if it is not known."""
    turn: int = 1
    """In which they are filled, if nodes are to be filled in turn: those of each turn have one soft taint more."""


@dataclass(frozen=True, slots=True)
class NewNode:
    name: str
    offer: str
    pods: tuple[PodKey, ...]
    requested: dict[str, int]
    allocatable: dict[str, int]


@dataclass(frozen=True, slots=True)
class Alternative:
    cost: int
    nodes: int
    types: int
    mix: dict[str, int]


@dataclass(frozen=True, slots=True)
class PlanReport(ReportAsPage):
    command: ClassVar[str] = "kubesched plan"

    answer: str
    """`yes`; `no` if no set of machines places every pod; `undecided` if the time was over before one was found."""
    objective: str
    currency: str
    mix: tuple[BoughtNodes, ...]
    nodes: tuple[NewNode, ...]
    cost: int
    """Of an hour, in 10⁻⁹ of the currency; the number of nodes if these were asked for."""
    bound: int
    """No set of machines does it for less."""
    bound_kind: str
    """`aggregate`, `pattern` or `integral`."""
    level: str
    """`proven`: the cost is the bound. `exhausted`: the scheduler refused every cheaper mix. `within` otherwise."""
    ideal_cost: int | None
    """Of the cheapest set of machines that was found to hold all pods if these are packed by hand."""
    single_type: tuple[str, int, int] | None
    """The cheapest plan with one kind of machine: its name, how many, their cost."""
    verified: str
    """`scheduler`, or `packing` if only that was asked for."""
    n_pods: int
    pending: dict[PodKey, str]
    """Without a node even so, and why; for an answer that is not yes."""
    unplaceable: tuple[Unplaceable, ...]
    alternatives: tuple[Alternative, ...]
    dropped: dict[str, str]
    notes: tuple[str, ...]
    """What differs if things are taken otherwise: arrival, spread, limits."""
    assumptions: tuple[str, ...]
    stopped: str
    """`time` or `interrupted` if the search ended before it was through."""
    n_trials: int
    seeds: tuple[int, ...]
    inputs_hash: str
    n_first: int | None = None
    """How many of the nodes are there before the pods, if the others join one by one in the order of `nodes`."""
    orders: int = 1
    """In how many orders of arrival it holds, with each seed."""
    certificate: Mapping[str, Any] | None = field(default=None, repr=False)
    new_objects: tuple[KubeObject, ...] = field(default=(), repr=False)
    """The nodes to buy, and what comes with them, as manifests."""

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        is_yes = self.answer == "yes"
        by = {"objective": self.objective, **({"currency": self.currency} if self.objective == "cost" else {})}
        unit = NANOS if self.objective == "cost" else 1
        answer = None if self.answer == "undecided" else float(is_yes)
        return (
            gauge("kubesched_plan_places_all", "Whether there is a plan that places every pod.", answer),
            gauge("kubesched_plan_new_nodes", "Nodes to buy.", self.n_nodes if is_yes else None),
            gauge(
                "kubesched_plan_cost",
                "What they cost an hour, or their number.",
                self.cost / unit if is_yes else None,
                **by,
            ),
            gauge("kubesched_plan_bound", "No plan is cheaper.", self.bound / unit if is_yes else None, **by),
            gauge("kubesched_plan_unplaced_pods", "Pods without a node even so.", len(self.pending)),
        )

    @property
    def gap(self) -> float:
        """By which share the cost is above the bound, at most."""
        return 0.0 if self.level in (PROVEN, EXHAUSTED) or not self.bound else (self.cost - self.bound) / self.bound

    @property
    def n_nodes(self) -> int:
        return sum(one.count for one in self.mix)

    def money(self, nanos: int) -> str:
        if self.objective == "nodes":
            return f"{nanos} node{'' if nanos == 1 else 's'}"
        return f"{price_text(nanos)} {self.currency}"

    def a_month(self, nanos: int) -> str:
        return f"{nanos * HOURS_A_MONTH / 10**9:,.2f} {self.currency}"

    @property
    def headline(self) -> str:

        return headline(self)

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """`machines` to buy, the new `nodes` with what is asked of each, the pods that stay `pending`, other plans."""
        in_money = self.objective == "cost"
        machines = [(o.shape, o.zone, o.capacity_type, o.pool, o.count, o.price / NANOS, o.turn) for o in self.mix]
        nodes: list[tuple[Cell, ...]] = [
            (
                one.name,
                one.offer,
                len(one.pods),
                *(amounts.get(name, 0) for name in (CPU, MEMORY) for amounts in (one.allocatable, one.requested)),
            )
            for one in self.nodes
        ]
        others = [
            (
                one.cost / NANOS if in_money else None,
                one.nodes,
                ", ".join(f"{n} x {name}" for name, n in one.mix.items()),
            )
            for one in self.alternatives
        ]
        pending = [(str(pod), message) for pod, message in self.pending.items()]
        return {
            "machines": ColumnTable(_MACHINE_COLUMNS, machines),
            "nodes": ColumnTable(_NODE_COLUMNS, nodes),
            "pending": ColumnTable({"pod": ColumnKind.UTF8, "message": ColumnKind.UTF8}, pending),
            "alternatives": ColumnTable(_ALTERNATIVE_COLUMNS, others),
        }

    def to_dict(self) -> dict[str, Any]:
        in_money = self.objective == "cost"
        amount = price_text if in_money else str
        return {
            "apiVersion": CATALOGUE_VERSION,
            "kind": "PlanReport",
            "answer": self.answer,
            "verified": self.verified,
            "objective": self.objective,
            "currency": self.currency,
            "cost": amount(self.cost),
            "costAMonth": price_text(self.cost * HOURS_A_MONTH) if in_money else None,
            "bound": amount(self.bound),
            "boundKind": self.bound_kind,
            "certificate": self.level,
            "gapPercent": round(100 * self.gap, 3),
            "idealCost": None if self.ideal_cost is None else amount(self.ideal_cost),
            "mix": [
                {
                    "shape": one.shape,
                    "zone": one.zone,
                    "capacityType": one.capacity_type,
                    "pool": one.pool,
                    "count": one.count,
                    "price": price_text(one.price),
                    "turn": one.turn,
                }
                for one in self.mix
            ],
            "nodes": [
                {
                    "name": one.name,
                    "offer": one.offer,
                    "pods": list(one.pods),
                    "requested": one.requested,
                    "allocatable": one.allocatable,
                }
                for one in self.nodes
            ],
            "arrival": "together" if self.n_first is None else "rest-later" if self.n_first else "later",
            "nodesBeforePods": self.n_first,
            "pods": self.n_pods,
            "pending": [{"pod": key, "message": text} for key, text in self.pending.items()],
            "unplaceable": [{"pods": list(one.pods), "reasons": one.reasons} for one in self.unplaceable],
            "singleType": None
            if self.single_type is None
            else {"shape": self.single_type[0], "count": self.single_type[1], "cost": amount(self.single_type[2])},
            "alternatives": [
                {"cost": amount(one.cost), "nodes": one.nodes, "types": one.types, "mix": one.mix}
                for one in self.alternatives
            ],
            "neverWorthBuying": self.dropped,
            "notes": list(self.notes),
            "assumptions": list(self.assumptions),
            "stopped": self.stopped or None,
            "trials": self.n_trials,
            "seeds": list(self.seeds),
            "orders": self.orders,
            "inputs": self.inputs_hash,
        }

    def __str__(self) -> str:
        return self.render(Style())

    def render(self, style: Style) -> str:
        """Without a newline at its end."""

        return render_plan(self, style)


_NODES_SHOWN = 12
_PENDING_SHOWN = 8
_RUNS_SHOWN = 24
_REASONS_SHOWN = 4


def render_plan(report: PlanReport, style: Style | None = None) -> str:
    """Without a newline at its end."""
    chosen = style or Style()
    tone = Tone.GOOD if report.answer == "yes" else Tone.BAD
    sections = [
        [*_first(report, chosen, tone), *_nearness(report, chosen)],
        _mix(report),
        _use(report),
        _order(report, chosen),
        _nodes(report, chosen),
        _pending(report, chosen),
        _unplaceable(report, chosen),
        _alternatives(report),
        ["Notes", *(line for note in report.notes for line in wrapped(note, indent=2, hanging=0, width=chosen.width))]
        if report.notes
        else [],
        [
            chosen.heading("Assumptions"),
            *(line for text in report.assumptions for line in wrapped(text, indent=2, hanging=0, width=chosen.width)),
        ],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def headline(report: PlanReport) -> str:
    pods = "1 pod has" if report.n_pods == 1 else f"all {report.n_pods} pods have"
    if report.answer == "yes" and not report.mix:
        return f"Buy nothing: {pods} room on the nodes that are there."
    if report.answer == "yes":
        money = (
            ""
            if report.objective == "nodes"
            else f" for {report.money(report.cost)} an hour ({report.a_month(report.cost)} a month)"
        )
        how = "the scheduler places" if report.verified == "scheduler" else "there is room for"
        what = "1 pod" if report.n_pods == 1 else f"all {report.n_pods} pods"
        return f"Buy {counted(report.n_nodes, 'node')}{money}: {how} {what}{_when(report)}."
    if report.unplaceable:
        n = sum(len(one.pods) for one in report.unplaceable)
        return f"No plan: no machine of the catalogue can hold {counted(n, 'pod')} of {report.n_pods}."
    if report.answer == "undecided":
        n = len(report.pending)
        return f"Undecided: no plan was found in time; {counted(n, 'pod')} of {report.n_pods} left over."
    if report.mix:
        n_placed, verb = report.n_pods - len(report.pending), "takes" if report.n_nodes == 1 else "take"
        told = f"{counted(report.n_nodes, 'node')} {verb} {n_placed} of {counted(report.n_pods, 'pod')}"
        return f"No plan within the limits: {told}."
    return f"No plan: {counted(len(report.pending), 'pod')} of {report.n_pods} found no node whatever was added."


def _when(report: PlanReport) -> str:
    """Under which arrival of the nodes it holds, if they are not all there before the pods."""
    if report.n_first is None or report.n_first >= report.n_nodes:
        return ""
    if not report.n_first:
        return " as the nodes join one by one"
    return f" if {report.n_first} nodes are there first and the others join one by one"


def _first(report: PlanReport, style: Style, tone: Tone) -> list[str]:
    return [style.painted(tone, headline(report))]


def _nearness(report: PlanReport, style: Style) -> list[str]:
    if report.answer != "yes" or not report.mix:
        return []
    if report.level == PROVEN:
        text = f"Proven: no set of machines does it for less than {report.money(report.bound)}."
    elif report.level == EXHAUSTED:
        text = "Optimal for this scheduler: every cheaper mix that could hold the pods was tried, and refused."
    else:
        text = (
            f"At most {100 * report.gap:.1f} % above the optimum: nothing below {report.money(report.bound)} can do it "
            f"({report.bound_kind} bound)."
        )
    if report.stopped:
        why = "the time was over" if report.stopped == "time" else "it was interrupted"
        text += f" The best so far: {why} before the search was through."
    return wrapped(text, indent=0, hanging=0, width=style.width)


def _mix(report: PlanReport) -> list[str]:
    if not report.mix:
        return []
    rows = []
    is_in_turn = any(one.turn > 1 for one in report.mix)
    for one in report.mix:
        turn = str(one.turn) if is_in_turn else "-"
        cost = [price_text(one.price), price_text(one.price * one.count)] if one.price else ["-", "-"]
        where = one.shape, one.zone or "-", one.capacity_type or "-", one.pool or "-"
        rows.append([*where, turn, str(one.count), *cost])
    header = ["MACHINE", "ZONE", "TYPE", "POOL", "TURN", "NODES", "EACH", "COST"]
    shown = [k for k in range(len(header)) if k in (0, 5, 6, 7) or any(row[k] != "-" for row in rows)]
    n_left = sum(k < 4 for k in shown)
    lines = table([header[k] for k in shown], [[row[k] for k in shown] for row in rows], indent=2, n_left=n_left)
    if report.single_type is not None and report.n_nodes:
        name, count, alone = report.single_type
        if alone > report.cost:
            lines.append(f"  With only one kind of machine: {count} x {name} for {report.money(alone)}.")
    if report.ideal_cost is not None and report.ideal_cost < report.cost and report.verified == "scheduler":
        ideal = report.money(report.ideal_cost)
        lines.append(f"  Packed by hand, {ideal} would do: the rest is the scheduler's way of placing.")
    return lines


def _use(report: PlanReport) -> list[str]:
    if not report.nodes:
        return []
    requested: Counter[str] = Counter()
    allocatable: Counter[str] = Counter()
    for node in report.nodes:
        requested.update(node.requested)
        allocatable.update(node.allocatable)
    parts = []
    for name in ("cpu", "memory", *sorted(set(requested) - {"cpu", "memory", "pods"})):
        if allocatable[name]:
            share = 100 * requested[name] // allocatable[name]
            parts.append(f"{name} {readable(name, requested[name])} of {readable(name, allocatable[name])} ({share} %)")
    return [f"Requested on the new nodes: {', '.join(parts)}"] if parts else []


def _order(report: PlanReport, style: Style) -> list[str]:
    """In which order nodes join that are not there from the beginning."""
    if report.n_first is None or len(report.nodes) <= report.n_first:
        return []
    runs = [(name, len(list(group))) for name, group in groupby(one.offer for one in report.nodes[report.n_first :])]
    most = style.most(_RUNS_SHOWN)
    shown = runs if most is None else runs[:most]
    text = ", ".join(f"{count} x {name}" for name, count in shown)
    more = sum(count for _, count in runs[len(shown) :])
    first = Counter(one.offer for one in report.nodes[: report.n_first])
    lines = []
    if report.n_first:
        names = ", ".join(f"{n} x {name}" for name, n in first.items())
        lines.append(f"There before the pods, {report.n_first} of {counted(report.n_nodes, 'node')}: {names}")
    rest = f", and {counted(more, 'node')} more (-o wide)" if more else ""
    lines.append(f"Nodes join in this order: {text}{rest}")
    return [line for one in lines for line in wrapped(one, indent=0, hanging=2, width=style.width)]


def _nodes(report: PlanReport, style: Style) -> list[str]:
    if not report.nodes:
        return []
    most = style.most(_NODES_SHOWN)
    shown = report.nodes if most is None else report.nodes[:most]
    rows = []
    for node in shown:
        used = [
            f"{100 * node.requested.get(name, 0) // node.allocatable[name]} %" if node.allocatable.get(name) else "-"
            for name in ("cpu", "memory")
        ]
        rows.append([node.name, str(len(node.pods)), *used])
    lines = table(["NODE", "PODS", "CPU", "MEMORY"], rows, indent=2)
    hidden = len(report.nodes) - len(shown)
    return [*lines, f"  and {counted(hidden, 'node')} more"] if hidden else lines


def _pending(report: PlanReport, style: Style) -> list[str]:
    if not report.pending or report.answer == "yes":
        return []
    most = style.most(_PENDING_SHOWN)
    shown = list(report.pending.items())
    shown = shown if most is None else shown[:most]
    lines = [line for key, text in shown for line in wrapped(f"{key}: {text}", indent=2, hanging=2, width=style.width)]
    hidden = len(report.pending) - len(shown)
    return ["Without a node", *lines, *([f"  and {counted(hidden, 'pod')} more"] if hidden else [])]


def _unplaceable(report: PlanReport, style: Style) -> list[str]:
    lines: list[str] = []
    for one in report.unplaceable:
        more = f" and {len(one.pods) - 1} more like it" if len(one.pods) > 1 else ""
        lines.append(f"{one.pods[0]}{more} fits on no machine:")
        for reason, names in list(one.reasons.items())[: style.most(_REASONS_SHOWN)]:
            kinds = list(dict.fromkeys(names))
            lines += wrapped(f"{reason}: {listed(kinds, style.most(6))}", indent=2, hanging=2, width=style.width)
    return lines


def _alternatives(report: PlanReport) -> list[str]:
    if not report.alternatives:
        return []
    rows = []
    for one in report.alternatives:
        mix = ", ".join(f"{n} x {name}" for name, n in one.mix.items())
        rows.append([mix, str(one.nodes), str(one.types), report.money(one.cost)])
    return ["Alternatives", *table(["MIX", "NODES", "TYPES", "COST"], rows, indent=2)]
