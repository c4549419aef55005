"""Exact replay: a scheduling loop is told again what its journal says, step by step, and must ask for the same effects.

Between any two steps the loop can be looked at: which pods wait and where, why a pod goes nowhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kubesched.explanation.answer import Explanation
from kubesched.explanation.explain import explain_pending
from kubesched.explanation.layout import counted
from kubesched.framework.effects import BindPod, Effect, EvictPod
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.kubernetes_yaml import load_document
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import generation_of
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.handle import PluginRequest
from kubesched.scheduler.engine.observations import Observation, PodDecided
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.score import Seeded
from kubesched.scheduler.engine.self_check import AnswerLimit
from kubesched.scheduler.plugin_loading import assemble
from kubesched.simulator.recording.engine_journal import (
    ANSWER,
    ATTEMPT,
    EFFECTS,
    PUT,
    REMOVE,
    REQUEST,
    TICK,
    Entry,
    JournalReader,
    answer_of,
    checksum,
    fact_of,
    request_of,
)
from kubesched.simulator.recording.lines import RecordingError


@dataclass(frozen=True, slots=True)
class Attempt:
    """One pod was tried."""

    number: int
    at_s: float
    """Seconds since the epoch."""
    pod: str
    node: str
    """Empty if none fits."""
    message: str
    n_feasible: int

    def __str__(self) -> str:
        where = f"goes to {self.node} ({counted(self.n_feasible, 'feasible node')})" if self.node else self.message
        return f"attempt {self.number}: {self.pod} {where}"


class ExactReplay:
    """Use `attempts` to go on; everything else looks at how it stands."""

    def __init__(self, path: Path, plugin_files: Sequence[str | Path] = ()) -> None:
        """`path` is a directory with a journal, or its only file. Raises RecordingError and ConfigError."""
        self._reader = JournalReader(path)
        header = self.header = self._reader.header
        configured = GivenConfiguration.read(load_document(header.configuration), None, None, header.gates or None)
        generation = generation_of(header.emulate) if header.emulate else None
        emulation = None if generation is None else configured.as_of(generation)
        config = configured.as_of_today().config if emulation is None else emulation.config
        assembled = assemble(config, files=plugin_files)
        self.config = assembled.config
        self._dice = Seeded(header.seed)
        self.loop = build_loop(
            assembled.config,
            self._dice,
            registry=assembled.registry,
            max_unschedulable_s=header.max_unschedulable_s,
            keeps_classes=header.keeps_classes,
            variant=variant_of(emulation),
            answer_limit=AnswerLimit(header.answer_base_s, header.answer_each_s),
        )
        self._thread = threading.get_ident()
        self.loop.requests.carry_out = self._carry_out
        self.loop.listen(self._observe, steps=False, decisions=True)
        self.n_steps = self.n_effects = self.n_bound = self.n_evicted = self.n_attempts = 0
        self.difference = ""
        """Where the effects are not those of the journal; the replay ends there."""
        self.now_s = header.clock_s
        """By the journal's clock."""
        self._decided: list[Decision] = []
        self.hears_fact: Callable[[KubeObject], None] = lambda item: None
        """Told of every object that is new, changed or gone."""
        self.hears_decision: Callable[[Decision], None] = lambda decision: None
        """Told of every decision before it takes effect."""

    # -- going on ------------------------------------------------------------------------------------------------------

    def attempts(self) -> Iterator[Attempt]:
        """Plays on; stops after each pod that was tried, and for good where effects differ."""
        for entry in self._reader:
            self.n_steps += 1
            if entry.op not in (EFFECTS, REQUEST):
                self.now_s = entry.at_s
            self._play(entry)
            while self._decided:
                decision = self._decided.pop(0)
                self.n_attempts += 1
                yield Attempt(
                    self.n_attempts,
                    self.time_of_day_s,
                    decision.pod.key,
                    decision.node_name,
                    "" if decision.node_name else for_event(decision.message),
                    decision.n_feasible,
                )
            if self.difference:
                return

    def run(self) -> None:
        """To the end."""
        for _ in self.attempts():
            pass

    def _play(self, entry: Entry) -> None:
        """As the live shell does it: whatever is raised costs that step alone."""
        loop, at_s = self.loop, entry.at_s
        try:
            match entry.op:
                case op if op in (PUT, REMOVE):
                    item = fact_of(entry)
                    self.hears_fact(item)
                    (loop.put if op == PUT else loop.remove)(item, at_s)
                case op if op == TICK:
                    loop.tick(at_s)
                case op if op == ATTEMPT:
                    loop.schedule_one(at_s)
                case op if op == ANSWER:
                    loop.answer(entry.number, answer_of(entry), at_s)
                case op if op == REQUEST:
                    loop.requests.do(request_of(entry))
                case op if op == EFFECTS:
                    self._compare(entry, loop.take_effects())
                case _:
                    pass
        except RecordingError:
            raise
        except Exception:  # noqa: BLE001  it cost the same step then
            return

    def _carry_out(self, request: PluginRequest) -> bool:
        """What plugins ask for in threads of their own is in the journal."""
        return threading.get_ident() == self._thread and self.loop.requests.do(request)

    def _compare(self, entry: Entry, effects: list[Effect]) -> None:
        self.n_effects += len(effects)
        self.n_bound += sum(isinstance(effect.action, BindPod) for effect in effects)
        self.n_evicted += sum(isinstance(effect.action, EvictPod) for effect in effects)
        if (len(effects), checksum(effects)) != (entry.number, int(entry.body)):
            asked = ", ".join(sorted({type(effect.action).__name__ for effect in effects})) or "none"
            self.difference = (
                f"step {self.n_steps}: the journal has {counted(entry.number, 'effect')}, "
                f"the replay {len(effects)} ({asked}), and they differ"
            )

    def _observe(self, seen: Observation) -> None:
        if isinstance(seen, PodDecided):
            self._decided.append(seen.decision)
            self.hears_decision(seen.decision)

    # -- looking at it -------------------------------------------------------------------------------------------------

    @property
    def time_of_day_s(self) -> float:
        return self.header.started_s + self.now_s - self.header.clock_s

    def why(self, pod: str) -> str:
        """Why the pod goes where it goes, or nowhere, as the cluster is now. Raises KeyError if no such pod waits."""
        cluster = self.loop.cluster
        info = cluster.pending[PodKey(pod)]
        if cluster.is_assumed(info.key):
            raise KeyError(pod)
        if info.spec.scheduler_name not in self.loop.schedulers:
            return f"{pod} is for {info.spec.scheduler_name}, which this configuration does not have."
        with self.explained(info) as found:
            return str(found)

    @contextmanager
    def explained(self, info: PodInfo) -> Iterator[Explanation]:
        """A pod of these schedulers that waits, as the cluster is now. What comes next does not depend on having asked;
        the answer is to be read before going on."""
        scheduler = self.loop.schedulers[info.spec.scheduler_name]
        start, dice = scheduler.next_start, self._dice.state()
        try:
            yield explain_pending(self.loop.cluster, scheduler, info, self.config)
        finally:
            scheduler.next_start = start
            self._dice.restore(dice)

    def queue(self) -> list[tuple[str, list[str]]]:
        """The sub-queues, and the pods in each."""
        contents = self.loop.queue.contents
        return [
            ("active", [queued.info.key for queued in contents.active]),
            ("backoff", [queued.info.key for queued in contents.backoff]),
            ("unschedulable", [queued.info.key for queued in contents.unschedulable]),
        ]

    @property
    def headline(self) -> str:
        if self.difference:
            return f"Differs at {self.difference}."
        done = f"{counted(self.n_attempts, 'attempt')}, {self.n_bound} bound, {self.n_evicted} evicted"
        return f"Reproduced all {counted(self.n_effects, 'effect')} of {counted(self.n_steps, 'step')}: {done}."
