"""What a sweep found: each run in numbers, and how far the runs of a configuration differ.

The headline says for each configuration whether every pod found a node, in how many of its runs, and how many did not
in the others. Below are the medians, with the least and the most where runs differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import median
from typing import Any

from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.layout import Style, Tone, counted, table
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.report_text import readable_span

_INT, _FLOAT, _TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8
_RUN_COLUMNS = {
    "configuration": _TEXT,
    "seed": _INT,
    "pods": _INT,
    "pending": _INT,
    "preemptions": _INT,
    "ended_s": _FLOAT,
    "nodes_used": _INT,
    "cpu_share": _FLOAT,
    "memory_share": _FLOAT,
    "fingerprint": _TEXT,
}


@dataclass(frozen=True, slots=True)
class RunOutcome:
    configuration: str
    seed: int
    pods: int
    pending: int
    """Pods without a node at the end."""
    preemptions: int
    ended_s: float
    nodes_used: int
    """Nodes that ever held a pod other than a daemon's."""
    cpu_share: float | None
    """Of what the nodes have, over the run, or at its end if no time passed."""
    memory_share: float | None
    fingerprint: str
    """The same for two runs that put every pod on the same node at the same time."""


class SweepReport:
    """What came of a sweep. `runs` is a table with a row for each; `str()` is the report as text."""

    assumptions: tuple[str, ...] = ()

    def __init__(self, outcomes: Sequence[RunOutcome], tie_break: str) -> None:
        self.outcomes = tuple(outcomes)
        self.tie_break = tie_break

    @cached_property
    def runs(self) -> ColumnTable:
        return ColumnTable(_RUN_COLUMNS, [tuple(asdict(outcome).values()) for outcome in self.outcomes])

    @property
    def tables(self) -> Mapping[str, ColumnTable]:
        return {"runs": self.runs}

    @property
    def places_all(self) -> bool:
        """Whether every pod found a node in every run."""
        return not any(outcome.pending for outcome in self.outcomes)

    @cached_property
    def by_configuration(self) -> dict[str, list[RunOutcome]]:
        found: dict[str, list[RunOutcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.configuration, []).append(outcome)
        return found

    @property
    def headline(self) -> str:
        groups = self.by_configuration
        placing = {name: _placing(runs) for name, runs in groups.items()}
        told = "; ".join(f"with {name}, {text}" if len(groups) > 1 else text for name, text in placing.items())
        n_seeds = len(next(iter(groups.values())))
        how_many = f"{counted(len(groups), 'configuration')} with {counted(n_seeds, 'seed')}"
        return f"{how_many}: {told}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "headline": self.headline,
            "configurations": {
                name: {"runs": len(runs), "different": len({run.fingerprint for run in runs}), **_medians(runs)}
                for name, runs in self.by_configuration.items()
            },
            "runs": self.runs.to_rows(),
        }

    def render(self, style: Style) -> str:
        first = style.painted(Tone.GOOD if self.places_all else Tone.BAD, self.headline)
        lines = [first, "", *table(_HEADER, self._rows(), indent=0)]
        if style.wide:
            header, *rows = _run_rows(self.outcomes)
            lines += ["", *table(header, rows, indent=0)]
        if self.tie_break == "name":
            lines += ["", "Ties are decided by name, so that seeds only change the names of pods."]
        return "\n".join(lines)

    def _rows(self) -> list[list[str]]:
        return [_row(name, runs) for name, runs in self.by_configuration.items()]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SweepReport):
            return NotImplemented
        return (self.outcomes, self.tie_break) == (other.outcomes, other.tie_break)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<SweepReport: {self.headline}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        kind = "head good" if self.places_all else "head bad"
        return block(paragraph(self.headline, kind), html_table(_HEADER, self._rows()))


_HEADER = ["CONFIGURATION", "RUNS", "DIFFERENT", "PENDING", "PREEMPTIONS", "ENDED", "NODES USED", "CPU", "MEMORY"]
_Number = int | float | None


def _row(name: str, runs: Sequence[RunOutcome]) -> list[str]:
    return [
        name,
        str(len(runs)),
        str(len({run.fingerprint for run in runs})),
        _spread([run.pending for run in runs], _whole),
        _spread([run.preemptions for run in runs], _whole),
        _spread([run.ended_s for run in runs], readable_span),
        _spread([run.nodes_used for run in runs], _whole),
        _spread([run.cpu_share for run in runs], _percent),
        _spread([run.memory_share for run in runs], _percent),
    ]


def _spread(values: Sequence[_Number], told: Callable[[float], str]) -> str:
    """The median; and the least and the most, where these differ."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    least, middle, most = told(min(known)), told(median(known)), told(max(known))
    return middle if least == most else f"{middle} ({least} to {most})"


def _medians(runs: Sequence[RunOutcome]) -> dict[str, Any]:
    names = ("pending", "preemptions", "ended_s", "nodes_used", "cpu_share", "memory_share")
    return {name: _least_median_most([getattr(run, name) for run in runs]) for name in names}


def _least_median_most(values: Sequence[_Number]) -> dict[str, _Number]:
    known = [value for value in values if value is not None]
    if not known:
        return {"least": None, "median": None, "most": None}
    return {"least": min(known), "median": median(known), "most": max(known)}


def _placing(runs: Sequence[RunOutcome]) -> str:
    pending = [run.pending for run in runs if run.pending]
    n_good = len(runs) - len(pending)
    if not pending:
        return f"every pod finds a node in all {len(runs)} runs" if len(runs) > 1 else "every pod finds a node"
    least, most = min(pending), max(pending)
    how_many = counted(least, "pod") if least == most else f"{least} to {counted(most, 'pod')}"
    if not n_good:
        return f"{how_many} pending in " + (f"all {len(runs)} runs" if len(runs) > 1 else "the run")
    return f"every pod finds a node in {n_good} of {len(runs)} runs, {how_many} pending in the others"


def _run_rows(outcomes: Sequence[RunOutcome]) -> list[list[str]]:
    header = ["CONFIGURATION", "SEED", "PENDING", "PREEMPTIONS", "ENDED", "NODES USED", "CPU", "MEMORY", "FINGERPRINT"]
    return [
        header,
        *(
            [
                run.configuration,
                str(run.seed),
                str(run.pending),
                str(run.preemptions),
                readable_span(run.ended_s),
                str(run.nodes_used),
                _spread([run.cpu_share], _percent),
                _spread([run.memory_share], _percent),
                run.fingerprint,
            ]
            for run in outcomes
        ),
    ]


def _whole(value: float) -> str:
    return f"{value:g}"


def _percent(value: float) -> str:
    return f"{value * 100:.0f}%"
