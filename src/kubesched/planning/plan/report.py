"""What a plan says: what to buy, what it costs, how near to the optimum that is, and what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kubesched.explanation.layout import Style
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.catalogue import CATALOGUE_VERSION, HOURS_A_MONTH, NANOS, price_text
from kubesched.planning.html_report import ReportAsPage
from kubesched.planning.plan.reading import Unplaceable
from kubesched.simulator.column_table import Cell, ColumnKind, ColumnTable

PROVEN = "proven"
EXHAUSTED = "exhausted"
WITHIN = "within"

_MACHINE_COLUMNS = {
    **dict.fromkeys(("shape", "zone", "capacity_type", "pool"), ColumnKind.UTF8),
    "count": ColumnKind.INT64,
    "price": ColumnKind.FLOAT64,
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
    certificate: Mapping[str, Any] | None = field(default=None, repr=False)
    new_objects: tuple[KubeObject, ...] = field(default=(), repr=False)
    """The nodes to buy, and what comes with them, as manifests."""

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
        from kubesched.planning.plan.report_text import headline

        return headline(self)

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """`machines` to buy, the new `nodes` with what is asked of each, the pods that stay `pending`, other plans."""
        in_money = self.objective == "cost"
        machines = [(o.shape, o.zone, o.capacity_type, o.pool, o.count, o.price / NANOS) for o in self.mix]
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
            "inputs": self.inputs_hash,
        }

    def __str__(self) -> str:
        return self.render(Style())

    def render(self, style: Style) -> str:
        """Without a newline at its end."""
        from kubesched.planning.plan.report_text import render_plan

        return render_plan(self, style)
