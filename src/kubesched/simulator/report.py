"""The report of a run: tables for dataframes, records for machines, text for people; pictures, by matplotlib.

Pictures need the extra `plot`: `report.plot.utilisation()`, `.timeline()`, `.heatmap()`. Each draws on the `ax` that it
is given, or on a new one, and returns it: several runs can share a picture.

Next: `report_tables`, which gathers it; `report_text`, which prints it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.simulator.autoscaling import CHANGE_COLUMNS, AutoscalingRecord
from kubesched.simulator.column_table import ColumnTable
from kubesched.simulator.options import OptionError, SimulationOptions, several
from kubesched.simulator.report_tables import (
    GONE,
    NO_QUEUE_SAMPLES,
    QueueSampler,
    RunHistory,
    event_table,
    node_state,
    node_table,
    not_created_table,
    pod_group_rows,
    pod_table,
    preemption_table,
    state_of,
    utilisation_table,
)
from kubesched.simulator.report_text import pending_messages
from kubesched.simulator.virtual.cluster import VirtualCluster


class SimulationReport:
    """What became of a run. `pods`, `nodes`, `utilisation`, `events`, `preemptions` and, over time, `usage`, `timeline`
    and `queue` are tables that dataframe libraries read; `plot` draws; `str()` is the report as text. A table is made
    when it is first asked for."""

    def __init__(
        self,
        cluster: VirtualCluster,
        options: SimulationOptions,
        queues: QueueSampler | None = None,
        autoscaling: AutoscalingRecord | None = None,
    ) -> None:
        """Of a cluster whose run is over."""
        self._cluster = cluster
        self.options = options
        self.ended_s = round(cluster.ended_at_s - cluster.clock.start_s, 6)
        """When the last thing happened, in seconds since the start."""
        self.is_cut_short = cluster.is_cut_short
        """There was more to come, but the time was over, or there were too many pods."""
        self.is_full = cluster.is_full
        """There were too many pods."""
        self.queue = NO_QUEUE_SAMPLES if queues is None else queues.table()
        """Lengths of the scheduling queues over time, if the run was told to note them (`queue_lengths=True`)."""

        self.autoscaling = autoscaling
        """What the autoscaler did, if there was one."""

    @cached_property
    def autoscaler(self) -> ColumnTable:
        """Nodes that the autoscaler launched, drained and removed, and why; empty if there was none."""
        return ColumnTable(CHANGE_COLUMNS, ()) if self.autoscaling is None else self.autoscaling.table()

    @cached_property
    def pods(self) -> ColumnTable:
        return pod_table(self._cluster, self._messages)

    @cached_property
    def nodes(self) -> ColumnTable:
        return node_table(self._cluster)

    @cached_property
    def utilisation(self) -> ColumnTable:
        return utilisation_table(self._cluster)

    @cached_property
    def events(self) -> ColumnTable:
        return event_table(self._cluster)

    @cached_property
    def preemptions(self) -> ColumnTable:
        return preemption_table(self._cluster)

    @cached_property
    def not_created(self) -> ColumnTable:
        """Pods of very large workloads that wait like the others of theirs, and were never made: how many of which."""
        return not_created_table(self._cluster, self._messages)

    @cached_property
    def pod_groups(self) -> list[dict[str, Any]]:
        """Pod groups, how many of their pods have a node, and what their condition says."""
        return pod_group_rows(self._cluster)

    @cached_property
    def blocked_drains(self) -> dict[str, list[str]]:
        """Nodes that could not be drained, and the pods that disruption budgets keep there."""
        return {node: [pod.pod_key for pod in pods] for node, pods in self._cluster.drains.blocked().items()}

    @cached_property
    def history(self) -> RunHistory:
        """The records of the run."""
        records, nodes = tuple(self._cluster.ledger.pods.values()), tuple(self._cluster.meter.nodes)
        return RunHistory(records, nodes, self._cluster.clock.start_s, self.ended_s)

    @cached_property
    def _messages(self) -> dict[str, str]:
        return pending_messages(self._cluster)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The run in numbers. Pods that were not created count as pending."""
        records = self._cluster.ledger.pods.values()
        states = Counter(state_of(self._cluster, record) for record in records)
        n_not_created = sum(int(n or 0) for n in self.not_created["pods"])
        if n_not_created:
            states[POD_PENDING] += n_not_created
        return {
            "seed": self.options.seed,
            "tie_break": self.options.tie_break,
            "start": print_instant(self.options.start_s),
            "ended_s": self.ended_s,
            "cut_short": self.is_cut_short,
            "nodes": sum(1 for usage in self._cluster.meter.nodes if node_state(self._cluster, usage) != GONE),
            "pods": len(records) + n_not_created,
            "not_created": n_not_created,
            "states": dict(sorted(states.items())),
            "preemptions": len(self._cluster.ledger.preemptions),
        }

    @property
    def pending(self) -> list[dict[str, Any]]:
        """Pods that wait for a node, with the reason; without those that were not created."""
        wanted = ("namespace", "name", "workload", "message", "attempts", "created_s")
        rows: list[Any] = [row for row in self.pods.named() if row.message is not None]
        return [{key: getattr(row, key) for key in wanted} for row in rows]

    @cached_property
    def usage(self) -> ColumnTable:
        """What was requested of each resource on all nodes together, of how much, over time."""
        return self.history.usage

    @cached_property
    def timeline(self) -> ColumnTable:
        """How many nodes there were, and how many pods ran and waited for a node, over time."""
        return self.history.timeline

    @property
    def plot(self) -> ReportPlots:
        """Pictures of the run, by matplotlib: `utilisation()`, `timeline()`, `heatmap()`."""
        return ReportPlots(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the series over time."""
        return {
            "summary": self.summary,
            "pods": self.pods.to_rows(),
            "pending": self.pending,
            "not_created": self.not_created.to_rows(),
            "nodes": self.nodes.to_rows(),
            "utilisation": self.utilisation.to_rows(),
            "preemptions": self.preemptions.to_rows(),
            "blocked_drains": self.blocked_drains,
            "pod_groups": self.pod_groups,
            "events": self.events.to_rows(),
            **({} if self.autoscaling is None else {"autoscaling": self.autoscaling.to_dict()}),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimulationReport):
            return NotImplemented
        return (self.options, self.queue, self.to_dict()) == (other.options, other.queue, other.to_dict())

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        from kubesched.simulator.report_text import render_report

        return render_report(self)

    def __repr__(self) -> str:
        from kubesched.simulator.report_text import headline

        return f"<SimulationReport: {' '.join(headline(self))}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        from kubesched.simulator.report_text import report_html

        return report_html(self)


_UNITS = ((172_800, 86_400, "days"), (7_200, 3_600, "hours"), (180, 60, "minutes"), (0, 1, "seconds"))
_INSTANTS = 240
_NAMED_NODES = 40


class ReportPlots:
    """The pictures of a report."""

    def __init__(self, report: SimulationReport) -> None:
        self._report = report

    def __repr__(self) -> str:
        return "<plots of a report: utilisation(), timeline(), heatmap()>"

    def utilisation(self, resources: str | Sequence[str] = (CPU, MEMORY), *, ax: Any = None, label: str = "") -> Any:
        """What share of each resource was requested over time, on all nodes together. `label` names the run, where
        several share a picture."""
        for resource in several("resources", resources):
            self._check(resource)
        axes = _axes(ax)
        size, unit = self._unit()
        for resource in several("resources", resources):
            rows = [row for row in self._report.usage.to_rows() if row["resource"] == resource]
            name = f"{label}: {resource}" if label else resource
            shares = [100 * float(row["share"] or 0) for row in rows]
            axes.step([float(row["at_s"] or 0) / size for row in rows], shares, where="post", label=name)
        _finish(axes, unit, "requested of allocatable, %", "Utilisation")
        axes.set_ylim(bottom=0)
        return axes

    def timeline(self, *, ax: Any = None, label: str = "") -> Any:
        """How many pods ran, and how many waited for a node, over time."""
        axes = _axes(ax)
        size, unit = self._unit()
        table = self._report.timeline
        at = [float(at_s or 0) / size for at_s in table["at_s"]]
        for column in ("running", "pending"):
            axes.step(at, table[column], where="post", label=f"{label}: {column}" if label else column)
        _finish(axes, unit, "pods", "Pods over time")
        axes.set_ylim(bottom=0)
        return axes

    def heatmap(self, resource: str = CPU, *, ax: Any = None) -> Any:
        """What share of a resource was requested on each node over time; empty where a node was not there."""
        self._check(resource)
        axes = _axes(ax)
        size, unit = self._unit()
        at_s, names, shares = self._report.history.node_shares(resource, _INSTANTS)
        extent = (0.0, max(float(at_s[-1]) / size, 1e-9), len(names) - 0.5, -0.5)
        if names:
            image = axes.imshow(
                100 * shares, aspect="auto", extent=extent, vmin=0, vmax=100, cmap="viridis", interpolation="nearest"
            )
            axes.figure.colorbar(image, ax=axes, label=f"{resource} requested, %")
        if len(names) <= _NAMED_NODES:
            axes.set_yticks(range(len(names)), names)
        else:
            axes.set_ylabel(f"{len(names)} nodes")
        axes.set_xlabel(unit)
        axes.set_title(f"{resource} by node")
        return axes

    def _check(self, resource: str) -> None:
        known = list(dict.fromkeys(str(name) for name in self._report.usage["resource"]))
        if known and resource not in known:
            raise OptionError(f'no node has the resource "{resource}": there are {", ".join(known)}')

    def _unit(self) -> tuple[int, str]:
        return next((size, unit) for least, size, unit in _UNITS if self._report.ended_s >= least)


def _axes(given: Any) -> Any:
    if given is not None:
        return given
    try:
        from matplotlib import pyplot
    except ImportError as problem:
        hint = "plots are drawn by matplotlib: pip install '.[plot]' in a clone"
        raise ImportError(hint, name="matplotlib") from problem
    return pyplot.subplots(figsize=(8, 3.5), layout="constrained")[1]


def _finish(axes: Any, unit: str, what: str, title: str) -> None:
    axes.set_xlabel(unit)
    axes.set_ylabel(what)
    axes.set_title(title)
    axes.legend()
