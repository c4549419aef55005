"""One run of a workload: the loop in virtual time, what is measured, and what the workload's operations share.

Decision follows decision, and on to the next event when there is nothing to decide. A decision takes `DECISION_S` of
virtual time, whatever it takes in reality, so that a run is the same everywhere and every time: as much churn, as many
backoffs that end, between one pod and the next.

Beside the other operations of a workload go activities: churn, and pods that are deleted one after another. An activity
says when it wants to act next, and acts when the driver calls it. It never waits.

What is measured is real time over the windows of a workload and per decision, pods, attempts, memory. A window's time
is that of engine and loop, and of the world's answers; it stands still while the benchmark makes the objects that it is
going to show them.

Next: `runner`, which goes through the operations; `steps`, which carries them out; `arrivals`, for the one that charges
what work costs.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Protocol

import numpy as np

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Namespace, Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, PodKey
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import ConfigError, default, load
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.engine.score import Seeded
from kubesched.scheduler.plugin_loading import Assembly, assemble
from kubesched.simulator.bench.object_factory import ObjectFactory
from kubesched.simulator.bench.operations import Operation, WorkloadError
from kubesched.simulator.bench.templates import Template, load_template
from kubesched.simulator.bench.workload_file import BenchWorkload
from kubesched.simulator.bench.world import BenchWorld

Make = Callable[[], KubeObject]
Put = Callable[[KubeObject], None]
Delete = Callable[[KubeObject], None]


class Activity(Protocol):
    next_at_s: float
    """`inf` once it is over."""

    def act(self) -> None:
        """Does what is due at `next_at_s`, and sets when it is next."""
        ...


class CreatingChurn:
    """One object of each kind every interval, up to a number of rounds."""

    def __init__(self, makes: Sequence[Make], put: Put, *, now_s: float, interval_s: float, n_rounds: int) -> None:
        self._makes = makes
        self._put = put
        self._interval_s = interval_s
        self._left = n_rounds or inf
        self.next_at_s = now_s + interval_s

    def act(self) -> None:
        for make in self._makes:
            self._put(make())
        self._left -= 1
        self.next_at_s = self.next_at_s + self._interval_s if self._left > 0 else inf


class RecreatingChurn:
    """By turns creates and deletes objects of each kind: as many as `number` stand at most."""

    def __init__(
        self, makes: Sequence[Make], put: Put, delete: Delete, *, now_s: float, interval_s: float, number: int
    ) -> None:
        self._put = put
        self._delete = delete
        self._interval_s = interval_s
        self._turn = 0
        self._slots: list[list[KubeObject | None]] = [[None] * max(number, 1) for _ in makes]
        self._makes = makes
        self.next_at_s = now_s + interval_s

    def act(self) -> None:
        for make, slots in zip(self._makes, self._slots, strict=True):
            slot = self._turn % len(slots)
            standing = slots[slot]
            if standing is None:
                slots[slot] = made = make()
                self._put(made)
            else:
                self._delete(standing)
                slots[slot] = None
        self._turn += 1
        self.next_at_s += self._interval_s


class PacedDeletion:
    """Deletes pods one after another."""

    def __init__(self, pods: Sequence[Pod], delete: Delete, *, now_s: float, interval_s: float) -> None:
        self._pods = list(reversed(pods))
        self._delete = delete
        self._interval_s = interval_s
        self.next_at_s = now_s + interval_s if pods else inf

    def act(self) -> None:
        self._delete(self._pods.pop())
        self.next_at_s = self.next_at_s + self._interval_s if self._pods else inf


class PacedUpdates:
    """Shows changed objects one after another."""

    def __init__(self, count: int, update: Callable[[int], None], *, now_s: float, interval_s: float) -> None:
        self._count = count
        self._done = 0
        self._update = update
        self._interval_s = interval_s
        self.next_at_s = now_s + interval_s if count else inf

    def act(self) -> None:
        self._update(self._done)
        self._done += 1
        self.next_at_s = self.next_at_s + self._interval_s if self._done < self._count else inf


DECISION_S = 0.004
"""About what kube-scheduler takes on 5,000 nodes: a workload's timed operations then meet as many pods as there."""

_TELL_EVERY = 256

Progress = Callable[[int], None]
"""Hears from time to time how many pods are bound."""


class Driver:
    def __init__(self, world: BenchWorld, measurement: Measurement, progress: Progress | None = None) -> None:
        self._world = world
        self._measurement = measurement
        self._progress = progress
        self._activities: list[Activity] = []
        self._tick_at_s = 1.0
        self._next_s = 1.0
        self._n_decisions = 0

    def start(self, activity: Activity) -> None:
        self._activities.append(activity)
        self._plan()

    def run_until(self, is_done: Callable[[], bool], for_s: float) -> bool:
        """Decides until it is done; False if for so long no pod was bound, or if nothing more can happen."""
        world, measurement = self._world, self._measurement
        schedule_one = world.loop.schedule_one
        until_s, n_bound = world.now_s + for_s, world.n_bound
        world.settle()
        while not is_done():
            self.catch_up()
            began_ns = perf_counter_ns()
            found = schedule_one(world.now_s)
            took_ns = perf_counter_ns() - began_ns
            if found:
                if measurement.is_open:
                    measurement.took_ns.append(took_ns)
                world.settle()
                world.now_s += DECISION_S
                self._count()
                if world.now_s <= until_s:
                    continue
            elif self._go_on(until_s):
                continue
            if world.n_bound == n_bound:
                return is_done()
            until_s, n_bound = world.now_s + for_s, world.n_bound
        return True

    def run_for(self, for_s: float) -> None:
        """Lets this much time pass."""
        until_s = self._world.now_s + for_s
        self.run_until(lambda: self._world.now_s >= until_s, for_s)
        self._world.now_s = max(self._world.now_s, until_s)

    def run_through(self, activity: Activity) -> None:
        """Lets time pass until the activity is over."""
        self.start(activity)
        self.run_until(lambda: activity.next_at_s == math.inf, math.inf)

    def catch_up(self) -> None:
        """Does what is due by now."""
        if self._world.now_s >= self._next_s or self._world.now_s >= self._world.due_s:
            self._catch_up()

    def _go_on(self, until_s: float) -> bool:
        """To the next moment at which something happens; False if there is none before the end."""
        world = self._world
        deadline_s = world.loop.next_deadline_s()
        if deadline_s is None:
            deadline_s = math.inf
        at_s = min(deadline_s, world.due_s, *(activity.next_at_s for activity in self._activities), math.inf)
        if at_s > until_s or at_s == math.inf:
            world.now_s = max(world.now_s, until_s) if until_s < math.inf else world.now_s
            return False
        world.now_s = max(world.now_s, at_s)
        self._tick_at_s = world.now_s
        self._catch_up()
        return True

    def _catch_up(self) -> None:
        world = self._world
        now_s = world.now_s
        if now_s >= self._tick_at_s:
            world.loop.tick(now_s)
            self._tick_at_s = math.floor(now_s) + 1.0
        world.carry_out_delayed()
        for activity in self._activities:
            while activity.next_at_s <= now_s:
                activity.act()
        world.settle()
        self._plan()

    def _plan(self) -> None:
        self._activities = [activity for activity in self._activities if activity.next_at_s < math.inf]
        self._next_s = min([self._tick_at_s, *(activity.next_at_s for activity in self._activities)])

    def _count(self) -> None:
        self._n_decisions += 1
        if self._progress is not None and self._n_decisions % _TELL_EVERY == 0:
            self._progress(self._world.n_bound)


@dataclass(frozen=True, slots=True)
class PodFilter:
    """Which pods count in a window."""

    namespaces: frozenset[str]
    labels: Mapping[str, str]

    def matches(self, pod: Pod) -> bool:
        return pod.metadata.namespace in self.namespaces and (not self.labels or has_labels(pod, self.labels))


def has_labels(pod: Pod, wanted: Mapping[str, str]) -> bool:
    labels = pod.labels
    return all(labels.get(key) == value for key, value in wanted.items())


class Measurement:
    """Sums over all windows of a run."""

    def __init__(self) -> None:
        self.n_pods = 0
        self.n_scheduled = 0
        self.took_ns = array("Q")
        """Of every decision in a window."""
        self._window: PodFilter | None = None
        self._elapsed_ns = 0
        self._started_ns = 0

    @property
    def is_open(self) -> bool:
        return self._window is not None

    def open(self, pods: PodFilter) -> None:
        self._window = pods
        self._started_ns = perf_counter_ns()

    def close(self) -> None:
        if self._window is not None:
            self._elapsed_ns += perf_counter_ns() - self._started_ns
            self._window = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """For what a benchmark does on its own account."""
        if self._window is None:
            yield
            return
        began_ns = perf_counter_ns()
        try:
            yield
        finally:
            self._started_ns += perf_counter_ns() - began_ns

    def pod_created(self, pod: Pod) -> None:
        if self._window is not None and self._window.matches(pod):
            self.n_pods += 1

    def pod_bound(self, pod: Pod) -> None:
        if self._window is not None and self._window.matches(pod):
            self.n_scheduled += 1

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def n_attempts(self) -> int:
        return len(self.took_ns)

    @property
    def elapsed_s(self) -> float:
        return self._elapsed_ns / 1e9

    @property
    def pods_per_s(self) -> float:
        return self.n_scheduled / self.elapsed_s if self._elapsed_ns else 0.0

    def percentile_us(self, percent: float) -> float:
        if not self.took_ns:
            return 0.0
        return float(np.percentile(np.frombuffer(self.took_ns, dtype=np.uint64), percent)) / 1e3


_STATM = Path("/proc/self/statm")


def peak_mb() -> float:
    """The most since the process began, in MB of 10⁶ bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def current_mb() -> float:
    """What it holds now; 0 where the system does not tell."""
    try:
        import resource

        pages = int(_STATM.read_text().split()[1])
    except (ImportError, OSError):
        return 0.0
    return pages * resource.getpagesize() / 1e6


PATIENCE_S = 600.0
"""So long, in virtual time, pods are waited for when none gets a node."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How workloads are run."""

    seed: int = 0
    keeps_classes: bool = True
    plugin_files: tuple[str, ...] = ()
    """Python files with plugins to run beside the others."""
    clock_ns: Callable[[], int] = thread_time_ns
    """Where pods arrive at random times, what the loop's steps take. By the processor's time no two runs are alike."""


class NotPlacedError(KubeschedError):
    """Pods that should have been placed were not."""


class BenchRun:
    def __init__(self, workload: BenchWorkload, settings: BenchSettings, progress: Progress | None = None) -> None:
        self.workload = workload
        self.clock_ns = settings.clock_ns
        self.factory = ObjectFactory()
        self.measurement = Measurement()
        assembled = _assembled(workload, settings.plugin_files)
        loop = build_loop(
            assembled.config,
            Seeded(settings.seed),
            registry=assembled.registry,
            keeps_classes=settings.keeps_classes,
            source=workload.scheduler_config_path,
        )
        self.world = BenchWorld(loop, self.factory, eviction_delay_s=workload.eviction_delay_s)
        self.world.bound = self.measurement.pod_bound
        self.driver = Driver(self.world, self.measurement, progress)
        self.n_nodes = 0
        self.not_awaited: set[PodKey] = set()
        """Pods that no operation has waited for yet."""
        self.waited_ns: dict[PodKey, int] = {}
        """Of pods that arrived one by one, how long each waited."""
        self._templates: dict[str, Template] = {}
        self._namespaces: set[str] = set()

    def where(self, number: int, operation: Operation) -> str:
        return f"operation {number} ({operation.opcode})"

    def template(self, path: str) -> Template:
        found = self._templates.get(path)
        if found is None:
            found = self._templates[path] = load_template(self.workload.path(path))
        return found

    # -- objects -------------------------------------------------------------------------------------------------------

    def add(self, items: Iterable[KubeObject]) -> list[PodKey]:
        """Shows objects to the loop, which are made before the time is taken; the keys of the pods among them."""
        with self.measurement.paused():
            made = list(items)
        keys = []
        for item in made:
            self.world.put(item)
            if isinstance(item, Pod):
                keys.append(item.pod_key)
                self.measurement.pod_created(item)
        return keys

    def ensure_namespace(self, name: str) -> None:
        if name and name not in self._namespaces:
            uid, version = self.factory.next_uid(), self.factory.next_version()
            self.add_namespace(Namespace(ObjectMeta(name=name, uid=uid, resource_version=version)))

    def add_namespace(self, namespace: KubeObject) -> None:
        self._namespaces.add(namespace.name)
        self.world.put(namespace)

    # -- waiting -------------------------------------------------------------------------------------------------------

    def wait_until_bound(self, keys: Iterable[PodKey], where: str) -> None:
        world = self.world
        world.unbound = {key for key in keys if not self._is_bound_or_gone(key)}
        n_awaited = len(world.unbound)
        if not self.driver.run_until(lambda: not world.unbound, PATIENCE_S):
            raise NotPlacedError(f"{where}: {self._missing(world.unbound, n_awaited)}")

    def wait_until_attempted(self, keys: Iterable[PodKey], where: str) -> None:
        world = self.world
        world.unattempted = {key for key in keys if not self._is_attempted(key)}
        n_awaited = len(world.unattempted)
        if not self.driver.run_until(lambda: not world.unattempted, PATIENCE_S):
            raise NotPlacedError(f"{where}: {len(world.unattempted)} of {n_awaited} pods were not even tried")

    def _is_bound_or_gone(self, key: PodKey) -> bool:
        pod = self.world.pods.get(key)
        return pod is None or bool(pod.spec.node_name)

    def _is_attempted(self, key: PodKey) -> bool:
        """A pod behind a gate is not tried, and says so from the beginning."""
        pod = self.world.pods.get(key)
        if pod is None or pod.spec.node_name or pod.spec.scheduling_gates or pod.is_terminating:
            return True
        return any(condition.type == "PodScheduled" for condition in pod.status.conditions or ())

    def _missing(self, keys: set[PodKey], n_awaited: int) -> str:
        first = min(keys)
        conditions = self.world.pods[first].status.conditions or ()
        reason = next((c.message for c in conditions if c.type == "PodScheduled"), "never tried")
        return f"{len(keys)} of {n_awaited} pods were not placed; {first}: {reason}"


def _assembled(workload: BenchWorkload, plugin_files: tuple[str, ...]) -> Assembly:
    path = workload.path(workload.scheduler_config_path) if workload.scheduler_config_path else None
    try:
        config = default() if path is None else load(path.read_bytes(), str(path))
        return assemble(with_gates(config, workload.gates), "" if path is None else str(path), files=plugin_files)
    except OSError as problem:
        raise WorkloadError(str(path), "", problem.strerror or str(problem)) from None
    except ConfigError as problem:
        raise WorkloadError("", "", str(problem)) from None
