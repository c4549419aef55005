"""What `kubesched optimal` found: bounds beside packings, free room that is no use, pods by priority; and it as text.

Next: `optimal`, which measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kubesched.explanation.layout import Style, counted, readable, table, wrapped
from kubesched.planning.catalogue import NANOS, price_text
from kubesched.planning.moving import MovePlan
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance, rows_of
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge, gauge

_MOVES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class FreeResource:
    """One resource over all nodes."""

    resource: str
    allocatable: int
    requested: int
    fragmented_percent: float
    """Of what is free: the share that a pod of the mix, drawn at random, could not use on its node."""
    unusable_percent: float
    """Of what is free: the share on nodes where no pod of the mix fits at all."""
    stranded: int
    """Free beyond the ratio in which the pods ask for cpu and memory."""
    imbalance_percent: float
    """The standard deviation of the nodes' utilisation."""


@dataclass(frozen=True, slots=True)
class PriorityTier:
    priority: int
    pods: int
    """Of this priority or more."""
    placed: int
    most: int | None
    """No placement on these nodes holds more, if higher ones come first; None without a solver."""


@dataclass(frozen=True, slots=True)
class OptimalityReport(AnsweredReport):
    command: ClassVar[str] = "kubesched optimal"

    n_nodes: int
    least_nodes: int
    """No placement does with fewer of these nodes."""
    packed_nodes: int | None
    """A packing was found on so many of them."""
    currency: str
    cost: int | None
    """Of an hour, by the catalogue, in 10⁻⁹ of the currency; None if a node's price is not known."""
    least_cost: int | None
    """On machines of the catalogue, nothing does it for less."""
    packed_cost: int | None
    resources: tuple[FreeResource, ...]
    tiers: tuple[PriorityTier, ...]
    assumptions: tuple[str, ...]
    moves: MovePlan | None = None
    """How to place more pods by moving others; None if that was not found, or there is nothing to place."""
    pending_by_run: tuple[int, ...] = ()
    """With several seeds or orders: how many pods the scheduler leaves without a node in each run."""
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

    @property
    def headline(self) -> str:
        if not self.n_nodes:
            return "There are no nodes."
        nodes = counted(self.n_nodes, "node")
        if self.least_nodes == self.n_nodes:
            text = f"No node can go: no placement does with fewer than {nodes}."
        elif self.packed_nodes is None or self.packed_nodes >= self.n_nodes:
            text = f"At least {self.least_nodes} of the {nodes} are needed."
        elif self.packed_nodes == self.least_nodes:
            text = f"The pods fit on {self.packed_nodes} of the {nodes}, and on no fewer."
        else:
            text = f"The pods fit on {self.packed_nodes} of the {nodes}; at least {self.least_nodes} are needed."
        if self.least_cost is not None and self.cost:
            share = 100 * (self.cost - self.least_cost) / self.cost
            text += (
                f" {price_text(self.cost)} {self.currency} an hour; at best {price_text(self.least_cost)} "
                f"({share:.0f} % less)."
            )
        if self.moves is not None and self._n_more > 0:
            text += f" {counted(self._n_more, 'more pod')} {'fits' if self._n_more == 1 else 'fit'} after "
            text += f"{counted(self.moves.n_moved, 'move')}."
        return text

    @property
    def _n_more(self) -> int:
        """Pods that moves would place."""
        return self.moves.placed[-1][1] - self.tiers[-1].placed if self.moves is not None else 0

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        nodes = {"now": self.n_nodes, "at_least": self.least_nodes, "packed": self.packed_nodes}
        costs = {"now": self.cost, "at_least": self.least_cost, "packed": self.packed_cost}
        tier = self.tiers[-1] if self.tiers else None
        of_resources = [
            (
                f"kubesched_optimal_{name}_percent",
                text,
                tuple(({"resource": r.resource}, getattr(r, f"{name}_percent")) for r in self.resources),
            )
            for name, text in (
                ("fragmented", "Of what is free, the share that a pod of the mix could not use."),
                ("unusable", "Of what is free, the share on nodes where no pod fits."),
                ("imbalance", "The standard deviation of the nodes' utilisation."),
            )
        ]
        return (
            Gauge("kubesched_optimal_nodes", "Nodes, and how few would do.", _known(nodes, 1)),
            Gauge("kubesched_optimal_cost", "What an hour costs, and how little would do.", _known(costs, NANOS)),
            *(Gauge(*one) for one in of_resources),
            gauge("kubesched_optimal_pods", "Pods there are.", None if tier is None else tier.pods),
            gauge("kubesched_optimal_placed_pods", "Pods with a node.", None if tier is None else tier.placed),
            gauge("kubesched_optimal_placeable_pods", "Pods that could have one.", None if tier is None else tier.most),
        )

    @property
    def tables(self) -> dict[str, ColumnTable]:
        return {
            "resources": ColumnTable(
                {
                    "resource": ColumnKind.UTF8,
                    "allocatable": ColumnKind.INT64,
                    "requested": ColumnKind.INT64,
                    "fragmented_percent": ColumnKind.FLOAT64,
                    "unusable_percent": ColumnKind.FLOAT64,
                    "stranded": ColumnKind.INT64,
                    "imbalance_percent": ColumnKind.FLOAT64,
                },
                [
                    [
                        one.resource,
                        one.allocatable,
                        one.requested,
                        one.fragmented_percent,
                        one.unusable_percent,
                        one.stranded,
                        one.imbalance_percent,
                    ]
                    for one in self.resources
                ],
            ),
            "priorities": ColumnTable(
                {
                    "priority": ColumnKind.INT64,
                    "pods": ColumnKind.INT64,
                    "placed": ColumnKind.INT64,
                    "most": ColumnKind.INT64,
                },
                [[one.priority, one.pods, one.placed, one.most] for one in self.tiers],
            ),
            "moves": ColumnTable(
                {
                    "step": ColumnKind.INT64,
                    "pod": ColumnKind.UTF8,
                    "priority": ColumnKind.INT64,
                    "from_node": ColumnKind.UTF8,
                    "to_node": ColumnKind.UTF8,
                    "kind": ColumnKind.UTF8,
                },
                [
                    [number, one.pod, one.priority, one.source or None, one.target or None, one.kind]
                    for number, one in enumerate(self.moves.steps if self.moves else (), 1)
                ],
            ),
        }

    def to_dict(self) -> dict[str, Any]:
        def money(nanos: int | None) -> str | None:
            return None if nanos is None else price_text(nanos)

        return {
            **self._about(),
            "nodes": {"now": self.n_nodes, "atLeast": self.least_nodes, "packed": self.packed_nodes},
            "cost": {
                "currency": self.currency,
                "now": money(self.cost),
                "atLeast": money(self.least_cost),
                "packed": money(self.packed_cost),
            },
            **({"pendingByRun": list(self.pending_by_run)} if self.pending_by_run else {}),
            **{name: rows_of(one) for name, one in self.tables.items()},
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        return self.render(Style())

    def render(self, style: Style) -> str:
        resources = [
            [
                one.resource,
                readable(one.resource, one.allocatable),
                f"{100 * one.requested // max(1, one.allocatable)} %",
                f"{one.fragmented_percent:.0f} %",
                f"{one.unusable_percent:.0f} %",
                readable(one.resource, one.stranded),
                f"{one.imbalance_percent:.0f} %",
            ]
            for one in self.resources
        ]
        header = ["RESOURCE", "ALLOCATABLE", "REQUESTED", "FRAGMENTED", "UNUSABLE", "STRANDED", "IMBALANCE"]
        tiers = [
            [str(one.priority), str(one.pods), str(one.placed), "-" if one.most is None else str(one.most)]
            for one in self.tiers
        ]
        sections = [
            wrapped(self.headline, indent=0, hanging=0, width=style.width),
            table(header, resources, indent=2) if resources else [],
            [
                "Pods by priority, the highest first",
                *table(["PRIORITY", "PODS SO FAR", "PLACED", "AT MOST"], tiers, indent=2, n_left=0),
            ]
            if len(tiers) > 1 or any(one.placed < one.pods for one in self.tiers)
            else [],
            self._moves(style),
            ["Assumptions", *(f"  {text}" for text in self.assumptions)],
        ]
        return "\n\n".join("\n".join(lines) for lines in sections if lines)

    def _moves(self, style: Style) -> list[str]:
        if self.moves is None or not self.moves.steps:
            return []
        rows = [
            [str(number), one.pod, one.source or "(waits)", f"{one.target or '(waits)'}{' and on' * one.is_detour}"]
            for number, one in enumerate(self.moves.steps, 1)
        ]
        shown = rows[: style.most(_MOVES_SHOWN)]
        more = len(rows) - len(shown)
        higher = [f"{n} of priority {priority} or more" for priority, n in self.moves.placed[:-1]]
        return [
            *wrapped(
                f"With {counted(self.moves.n_moved, 'move')}{', the fewest possible,' * self.moves.is_fewest} "
                f"{self.moves.placed[-1][1]} pods have a node ({self._n_more:+})"
                f"{', ' + ', '.join(higher) if higher else ''}:",
                indent=0,
                hanging=2,
                width=style.width,
            ),
            *table(["STEP", "POD", "FROM", "TO"], shown, indent=2, n_left=4),
            *([f"  and {counted(more, 'step')} more (-o wide)"] if more else []),
        ]


def _known(numbers: Mapping[str, int | None], unit: int) -> tuple[tuple[dict[str, str], float], ...]:
    return tuple(({"kind": kind}, number / unit) for kind, number in numbers.items() if number is not None)
