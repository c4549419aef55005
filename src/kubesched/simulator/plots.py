"""Pictures of a run, by matplotlib (the extra `plot`): `report.plot.utilisation()`, `.timeline()`, `.heatmap()`.

Each draws on the `ax` that it is given, or on a new one, and returns it: several runs can share a
picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubesched.k8s.model.requests import CPU, MEMORY

if TYPE_CHECKING:
    from kubesched.simulator.report import SimulationReport

_UNITS = ((172_800, 86_400, "days"), (7_200, 3_600, "hours"), (180, 60, "minutes"), (0, 1, "seconds"))
_INSTANTS = 240
_NAMED_NODES = 40


class ReportPlots:
    """The pictures of a report."""

    def __init__(self, report: SimulationReport) -> None:
        self._report = report

    def __repr__(self) -> str:
        return "<plots of a report: utilisation(), timeline(), heatmap()>"

    def utilisation(self, resources: Sequence[str] = (CPU, MEMORY), *, ax: Any = None, label: str = "") -> Any:
        """What share of each resource was requested over time, on all nodes together. `label` names the run, where
        several share a picture."""
        axes = _axes(ax)
        size, unit = self._unit()
        for resource in resources:
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
