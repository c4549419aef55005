"""The report of a run: tables for dataframes, records for machines, text for people.

Next: `report_tables`, which gathers it; `report_text`, which prints it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.simulator.column_table import ColumnTable
from kubesched.simulator.history import NO_QUEUE_SAMPLES, QueueSampler, RunHistory
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.plots import ReportPlots
from kubesched.simulator.report_tables import (
    event_table,
    node_table,
    not_created_table,
    pod_table,
    preemption_table,
    utilisation_table,
)
from kubesched.simulator.report_text import pending_messages
from kubesched.simulator.virtual.cluster import VirtualCluster


@dataclass(repr=False)
class SimulationReport:
    """What became of a run. `pods`, `nodes`, `utilisation`, `events`, `preemptions` and, over time, `usage`, `timeline`
    and `queue` are tables that dataframe libraries read; `plot` draws; `str()` is the report as text."""

    options: SimulationOptions
    ended_s: float
    """When the last thing happened, in seconds since the start."""
    is_cut_short: bool
    """There was more to come, but the time was over, or there were too many pods."""
    is_full: bool
    """There were too many pods."""
    pods: ColumnTable
    nodes: ColumnTable
    utilisation: ColumnTable
    events: ColumnTable
    preemptions: ColumnTable
    not_created: ColumnTable
    """Pods of very large workloads that wait like the others of theirs, and were never made: how many of which."""
    blocked_drains: dict[str, list[str]]
    """Nodes that could not be drained, and the pods that disruption budgets keep there."""
    history: RunHistory = field(compare=False)
    """The records of the run."""
    queue: ColumnTable
    """Lengths of the scheduling queues over time, if the run was told to note them (`queue_lengths=True`)."""

    @classmethod
    def of(
        cls, cluster: VirtualCluster, options: SimulationOptions, queues: QueueSampler | None = None
    ) -> SimulationReport:
        blocked = cluster.drains.blocked()
        messages = pending_messages(cluster)
        ended_s = round(cluster.ended_at_s - cluster.clock.start_s, 6)
        records, nodes = tuple(cluster.ledger.pods.values()), tuple(cluster.meter.nodes)
        return cls(
            options=options,
            ended_s=ended_s,
            is_cut_short=cluster.is_cut_short,
            is_full=cluster.is_full,
            pods=pod_table(cluster, messages),
            nodes=node_table(cluster),
            utilisation=utilisation_table(cluster),
            events=event_table(cluster),
            preemptions=preemption_table(cluster),
            not_created=not_created_table(cluster, messages),
            blocked_drains={node: [pod.pod_key for pod in pods] for node, pods in blocked.items()},
            history=RunHistory(records, nodes, cluster.clock.start_s, ended_s),
            queue=NO_QUEUE_SAMPLES if queues is None else queues.table(),
        )

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The run in numbers. Pods that were not created count as pending."""
        states = Counter(str(state) for state in self.pods["state"])
        n_not_created = sum(int(n or 0) for n in self.not_created["pods"])
        if n_not_created:
            states[POD_PENDING] += n_not_created
        return {
            "seed": self.options.seed,
            "tie_break": self.options.tie_break,
            "start": print_instant(self.options.start_s),
            "ended_s": self.ended_s,
            "cut_short": self.is_cut_short,
            "nodes": sum(1 for state in self.nodes["state"] if state != "Gone"),
            "pods": len(self.pods) + n_not_created,
            "not_created": n_not_created,
            "states": dict(sorted(states.items())),
            "preemptions": len(self.preemptions),
        }

    @property
    def pending(self) -> list[dict[str, Any]]:
        """Pods that wait for a node, with the reason; without those that were not created."""
        wanted = ("namespace", "name", "workload", "message", "attempts", "created_s")
        return [{key: row[key] for key in wanted} for row in self.pods.to_rows() if row["message"] is not None]

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
            "events": self.events.to_rows(),
        }

    def __str__(self) -> str:
        from kubesched.simulator.report_text import render_report

        return render_report(self)

    def __repr__(self) -> str:
        from kubesched.simulator.report_text import headline

        return f"<SimulationReport: {' '.join(headline(self))}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        from kubesched.simulator.report_html import report_html

        return report_html(self)
