"""`kubesched capacity --inflate`: how far all workloads can grow together until something stays pending.

The factor walks up in steps, each tried from the same state with everything grown by it: a larger factor may fit where
a smaller one does not, so nothing between two steps is taken for granted, and the walk ends at the first step that
fails. What grows is the number of replicas, or what each pod requests; then all pods are placed again, as after a
rollout of everything.

Next: `resting_workloads`, which makes replicas; `resizing` for other requests.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from math import ceil
from typing import Any, ClassVar

from msgspec.structs import replace

from kubesched.explanation.layout import Style, Tone, counted, readable, table
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Pod, PodStatus
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.k8s.workloads.pod_states import belongs_to_its_node, is_daemon
from kubesched.planning.copies import CopyAdmission, CopyEntry
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance
from kubesched.planning.resizing import Resizing
from kubesched.planning.resting_workloads import Replica, n_replicas, replicas_of, scaled_workloads, title_of
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge, gauge
from kubesched.simulator.trial import LoadedWorld, WorldTrial

MOST_GROWTH = 1000
"""In percent: beyond ten times as much nobody asks any more."""
REPLICAS, REQUESTS = "replicas", "requests"


class GrowthError(KubeschedError, ValueError):
    """What is asked for cannot grow, or not so."""


@dataclass(frozen=True, slots=True)
class Grown:
    """One thing that grows, before and at the last step that fits."""

    name: str
    """The workload, or the resource."""
    before: int
    after: int


@dataclass(frozen=True, slots=True, repr=False)
class GrowthReport(AnsweredReport):
    command: ClassVar[str] = "kubesched capacity"

    what: str
    """`replicas` or `requests`."""
    percent: Fraction
    """The last step at which everything was placed: 30 for 1.3 times as many replicas."""
    grown: tuple[Grown, ...]
    failed_at: Fraction | None
    """The next step; None if growth was followed no further."""
    failed: str
    """The pod that stays pending then, or the workload whose replica the API server refuses."""
    message: str
    assumptions: tuple[str, ...]
    seed: int = 0
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

    @property
    def n_more(self) -> int:
        """How many replicas that adds."""
        return sum(one.after - one.before for one in self.grown) if self.what == REPLICAS else 0

    @property
    def headline(self) -> str:
        grown = f"+{_said(self.percent)}% {self.what} fit"
        grown += f" ({counted(self.n_more, 'more pod')})" if self.what == REPLICAS else ""
        if self.failed_at is None:
            return f"At least {grown}, as far as growth was followed."
        return f"{grown}; at +{_said(self.failed_at)}%, {self.failed}: {self.message}"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        kinds = {self._column: ColumnKind.UTF8, "now": ColumnKind.INT64, "grown": ColumnKind.INT64}
        return {"growth": ColumnTable(kinds, [(one.name, one.before, one.after) for one in self.grown])}

    @property
    def _column(self) -> str:
        return "workload" if self.what == REPLICAS else "resource"

    def to_dict(self) -> dict[str, Any]:
        stopped_by = None
        if self.failed_at is not None:
            stopped_by = {"percent": float(self.failed_at), "pod": self.failed, "message": self.message}
        return {
            **self._about(),
            "headline": self.headline,
            "growth": {
                "of": self.what,
                "percent": float(self.percent),
                "moreReplicas": self.n_more,
                f"{self._column}s": [
                    {self._column: one.name, "now": one.before, "grown": one.after} for one in self.grown
                ],
                "stoppedBy": stopped_by,
            },
            "seed": self.seed,
            "assumptions": list(self.assumptions),
        }

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        text = "How many percent more of it fit at once."
        return (gauge("kubesched_capacity_growth_percent", text, float(self.percent), of=self.what),)

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<GrowthReport: {self.headline}>"

    def render(self, style: Style) -> str:
        lines = [style.first_line(self.headline, Tone.GOOD if self.percent else Tone.BAD)]
        if self.what == REPLICAS:
            rows = [[one.name, str(one.before), str(one.after)] for one in self.grown]
        else:
            rows = [[one.name, readable(one.name, one.before), readable(one.name, one.after)] for one in self.grown]
        lines += table([self._column.upper(), "NOW", "GROWN"], rows, indent=2, n_left=1)
        return "\n".join([*lines, "Assumptions:", *(f"  {one}" for one in self.assumptions)])


def growth(
    world: LoadedWorld,
    *,
    what: str = REPLICAS,
    step: Fraction = Fraction(1),
    quota: bool = True,
    ignore_pending: bool = False,
    seed: int = 0,
) -> GrowthReport:
    """How many percent more replicas all workloads can have at once, or how many percent more all pods can request, in
    steps of so many percent; shares of a replica count as one. Raises GrowthError."""
    if step <= 0:
        raise GrowthError(f"a step of {_said(step)}% is none")
    with world.trial() as trial:
        left_out = world.pending if ignore_pending else []
        for key in left_out:
            trial.delete_pod(key)
        settled = trial.settle()
        way: _Way = _MoreReplicas(world, quota) if what == REPLICAS else _LargerRequests(world, quota)
        reached, n_steps, failed = Fraction(0), 0, ("", "")
        while reached + step <= MOST_GROWTH and not failed[1]:
            n_steps += 1
            if way.differs(step * n_steps, reached):
                failed = way.tried(step * n_steps)
            if not failed[1]:
                reached = step * n_steps
        grown = way.grown(reached)
    pending = f"{counted(len(settled.placed), 'pending pod')} placed before, {len(settled.pending)} stay pending."
    if ignore_pending:
        pending = f"{counted(len(left_out), 'pending pod')} left out."
    steps = f"In steps of {_said(step)}%, each tried by itself, up to +{MOST_GROWTH}%."
    return GrowthReport(
        what,
        reached,
        grown,
        step * n_steps if failed[1] else None,
        *failed,
        (pending, f"{steps} {way.assumption}", *world.guesses),
        seed,
        Provenance.of_world(world, (what, str(step), quota, ignore_pending), seed=seed),
    )


class _Way:
    """How everything grows."""

    assumption: str

    def differs(self, percent: Fraction, before: Fraction) -> bool:
        """Whether the step changes anything."""
        return True

    @abstractmethod
    def tried(self, percent: Fraction) -> tuple[str, str]:
        """Who stays pending with so much more, and why; nobody, if both are empty."""

    @abstractmethod
    def grown(self, percent: Fraction) -> tuple[Grown, ...]: ...


class _MoreReplicas(_Way):
    assumption = "New replicas preempt nobody."

    def __init__(self, world: LoadedWorld, has_quota: bool) -> None:
        self._world = world
        self._has_quota = has_quota
        self._workloads = [item for item in scaled_workloads(world) if n_replicas(item)]
        if not self._workloads:
            raise GrowthError("there is no workload with replicas")

    def differs(self, percent: Fraction, before: Fraction) -> bool:
        return self._more(percent) != self._more(before)

    def tried(self, percent: Fraction) -> tuple[str, str]:
        world, workloads = self._world, self._workloads
        bounds = {item.namespace: CopyAdmission(world, item.namespace) for item in workloads} if self._has_quota else {}
        with world.trial() as trial:
            for item, n_more in zip(workloads, self._more(percent), strict=True):
                entry = CopyEntry(trial, bounds.get(item.namespace))
                _, failed = trial.place_each(entry.let_in(islice(replicas_of(world, item), n_more)))
                if failed is not None:
                    return failed.pod, failed.message
                if entry.refusal:
                    return title_of(item), entry.refusal
        return "", ""

    def grown(self, percent: Fraction) -> tuple[Grown, ...]:
        numbers = zip(self._workloads, self._more(percent), strict=True)
        return tuple(Grown(title_of(item), n_replicas(item), n_replicas(item) + more) for item, more in numbers)

    def _more(self, percent: Fraction) -> list[int]:
        return [ceil(n_replicas(item) * percent / 100) for item in self._workloads]


class _LargerRequests(_Way):
    assumption = "All pods are placed again with the larger requests, those of daemons first; no pod is preempted."

    def __init__(self, world: LoadedWorld, has_quota: bool) -> None:
        self._world = world
        self._has_quota = has_quota
        infos = list(world.cluster.placed.values())
        self._daemons = [info for info in infos if is_daemon(info.pod)]
        self._others = [info for info in infos if not belongs_to_its_node(info.pod)]
        if not any(info.resources.requests for info in (*self._daemons, *self._others)):
            raise GrowthError("there is no pod that requests anything")

    def tried(self, percent: Fraction) -> tuple[str, str]:
        with self._world.trial() as trial:
            for key in self._world.pending:  # they wait whether anything grows or not
                trial.delete_pod(key)
            for info in (*self._daemons, *self._others):
                trial.delete_pod(info.key)
            bounds: dict[str, CopyAdmission] = {}
            try:
                for infos in (self._daemons, self._others):
                    for pod in _larger(infos, percent):
                        trial.add_admitted(self._let_in(trial, pod, bounds))
                    failed = trial.settle(to_first_failure=True).pending
                    if failed:
                        return failed[0].pod, failed[0].message
            except AdmissionError as error:
                return pod.pod_key, str(error)
        return "", ""

    def grown(self, percent: Fraction) -> tuple[Grown, ...]:
        found = []
        for name in (CPU, MEMORY):
            asked = sum(info.resources.requests.get(name, 0) for info in (*self._daemons, *self._others))
            found.append(Grown(name, asked, ceil(asked * (1 + percent / 100))))
        return tuple(found)

    def _let_in(self, trial: WorldTrial, pod: Pod, bounds: dict[str, CopyAdmission]) -> Pod:
        if not self._has_quota:
            return pod
        if pod.namespace not in bounds:
            bounds[pod.namespace] = CopyAdmission(trial.world, pod.namespace)
        return bounds[pod.namespace].let_in(Replica(pod)).pod


def _larger(infos: Sequence[PodInfo], percent: Fraction) -> Iterator[Pod]:
    factor = float(1 + percent / 100)
    waiting = (replace(one.pod, spec=replace(one.spec, node_name=""), status=PodStatus()) for one in infos)
    for item in map(Resizing({CPU: factor, MEMORY: factor}).resized, waiting):
        assert isinstance(item, Pod)
        yield item


def _said(percent: Fraction) -> str:
    return f"{float(percent):g}"
