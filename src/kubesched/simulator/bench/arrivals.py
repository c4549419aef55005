"""Pods that arrive at random times, and how long each waits until its binding is sent, if work takes as long as it took
the processor here.

The loop is driven as `kubesched run` drives it: what has come from the API server is passed to it, one thing after the
other, then it decides until nothing is left or a slice is over, then its writes leave together. Of these it hears a
little later, between whatever else comes. Time is virtual, and what is charged is processor time of the loop alone: how
busy the machine is hardly counts.

Next: `steps`, which makes the pods.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.engine.loop import SLICE_S
from kubesched.simulator.bench.world import BenchWorld

Arrivals = Iterable[tuple[float, Sequence[Pod]]]
"""When they come, and which pods come then."""

ANSWER_S = 0.001
"""After so long a write is answered, and shows."""

_Result = TypeVar("_Result")
_Told = tuple[float, Callable[[], None]]


def at_random(batches: Iterable[Sequence[Pod]], per_second: int, seed: str) -> Arrivals:
    """One batch after the other, independent of each other, so many in a second."""
    chance, at_s = Random(seed), 0.0
    for pods in batches:
        at_s += chance.expovariate(per_second)
        yield at_s, pods


def run_arrivals(
    world: BenchWorld,
    catch_up: Callable[[], None],
    arrivals: Arrivals,
    measured: Collection[PodKey],
    clock_ns: Callable[[], int],
) -> dict[PodKey, int]:
    """Nanoseconds from the arrival of each measured pod until its binding was sent, by this clock. `catch_up` does what
    is due besides, free of charge."""
    arrived_s: dict[PodKey, float] = {}
    waited_ns: dict[PodKey, int] = {}
    coming: deque[_Told] = deque()
    for at_s, pods in sorted(arrivals, key=lambda arrival: arrival[0]):
        for pod in pods:
            coming.append((at_s, partial(world.put, pod)))
            if pod.pod_key in measured:
                arrived_s[pod.pod_key] = at_s
    answers: deque[_Told] = deque()
    start_s, now_s, note_bound = world.now_s, 0.0, world.bound

    def note(pod: Pod) -> None:
        note_bound(pod)
        if pod.pod_key in arrived_s:
            waited_ns[pod.pod_key] = round((now_s - arrived_s.pop(pod.pod_key)) * 1e9)

    world.bound = note
    has_more = False
    while coming or answers or has_more:
        if not has_more:
            now_s = max(now_s, min(told[0][0] for told in (coming, answers) if told))
        world.now_s = start_s + now_s
        catch_up()
        while (told := _next_by(now_s, coming, answers)) is not None:
            now_s += _charged(clock_ns, told)[0]
            world.now_s = start_s + now_s
        until_s, has_more = now_s + SLICE_S, True
        while has_more and now_s < until_s:
            took_s, has_more = _charged(clock_ns, partial(world.loop.schedule_one, start_s + now_s))
            now_s += took_s
            if world.loop.should_send_first():
                break
        answers.extend((now_s + ANSWER_S, told) for told in world.settle_apart())
    world.bound = note_bound
    return waited_ns


def _next_by(now_s: float, coming: deque[_Told], answers: deque[_Told]) -> Callable[[], None] | None:
    """What the loop is to be told next; None if nothing has come."""
    first = min((told for told in (coming, answers) if told), key=lambda told: told[0][0], default=None)
    return first.popleft()[1] if first is not None and first[0][0] <= now_s else None


def _charged(clock_ns: Callable[[], int], do: Callable[[], _Result]) -> tuple[float, _Result]:
    """How many seconds it took, and what came of it."""
    began_ns = clock_ns()
    result = do()
    return (clock_ns() - began_ns) / 1e9, result
