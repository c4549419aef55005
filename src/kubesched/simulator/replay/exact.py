"""Exact replay: a scheduling loop is given its journal again, step by step, and must ask for the same effects.

Between any two steps the loop can be looked at: which pods wait and where, why a pod goes nowhere. `Moments` are the
attempts of a scheduler, with the cluster, the queue and the reasons as they were then. Between two moments only what
changed is kept, so that a page can go from one to any other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from kubesched.explanation.answer import Explanation
from kubesched.explanation.explain import explain_pending
from kubesched.explanation.html import explanation_tables
from kubesched.explanation.layout import counted
from kubesched.framework.effects import BindPod, Effect, EvictPod
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.kubernetes_yaml import load_document
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import generation_of
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.cluster.view import NodeRow
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


MOST_MOMENTS = 5_000
"""On a page."""
MOST_EXPLAINED = 1_000
"""Attempts that find no node, and as many that find one: an explanation is larger than the moment."""
_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class NodeThen:
    cpu_milli: int
    cpu_used_milli: int
    memory_bytes: int
    memory_used_bytes: int
    is_cordoned: bool

    def to_list(self) -> list[int]:
        amounts = [self.cpu_milli, self.cpu_used_milli, self.memory_bytes, self.memory_used_bytes]
        return [*amounts, int(self.is_cordoned)]


@dataclass(slots=True)
class Moment:
    """Just before what was decided took effect."""

    attempt: Attempt
    nodes: dict[str, NodeThen | None]
    """Those that changed since the moment before; None if one is gone."""
    pods: dict[str, str | None]
    """The same: the node of each; empty if it waits, None if it is gone."""
    queue: list[tuple[str, int, list[str]]]
    """Sub-queue, how many pods, and the names of the first ones."""
    headline: str
    """Why it finds no node, in a line; empty if it finds one, or is not explained."""
    why: str
    """More, as HTML; empty if it is not explained."""

    def to_dict(self, started_s: float) -> dict[str, Any]:
        attempt = self.attempt
        record: dict[str, Any] = {
            "t": round(attempt.at_s - started_s, 3),
            "pod": attempt.pod,
            "node": attempt.node,
            "fits": attempt.n_feasible,
            "text": attempt.message,
            "nodes": {name: None if one is None else one.to_list() for name, one in self.nodes.items()},
            "pods": self.pods,
            "queue": self.queue,
            "head": self.headline,
            "why": self.why,
        }
        return {name: value for name, value in record.items() if value not in ("", {})}


@dataclass(slots=True)
class Moments:
    replay: ExactReplay
    found: list[Moment] = field(default_factory=list)
    is_whole: bool = True
    """Whether the journal ends where these do."""
    _pods: set[PodKey] = field(default_factory=set)
    _nodes: set[str] = field(default_factory=set)
    """What may have changed since the last moment."""
    _seen: list[Moment] = field(default_factory=list)
    _n_explained: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})

    @classmethod
    def of(cls, replay: ExactReplay, attempts: Iterator[Attempt], most: int = MOST_MOMENTS) -> Moments:
        """From where the replay stands, which gave these attempts."""
        made = cls(replay)
        cluster = replay.loop.cluster
        made._nodes.update(cluster.table.names[: cluster.table.n])
        made._pods.update(cluster.placed)
        made._pods.update(cluster.pending)
        replay.hears_fact, replay.hears_decision = made._note_fact, made._note_decision
        for attempt in islice(attempts, most):
            moment = made._seen.pop(0)
            moment.attempt = attempt
            made.found.append(moment)
        made.is_whole = len(made.found) < most
        return made

    def _note_fact(self, item: KubeObject) -> None:
        if isinstance(item, Pod):
            self._note_pod(item.pod_key)
        elif isinstance(item, Node):
            self._nodes.add(item.name)

    def _note_pod(self, key: PodKey) -> None:
        """And the node that it may leave."""
        self._pods.add(key)
        known = self.replay.loop.cluster.find_pod(key)
        if known is not None and known.spec.node_name:
            self._nodes.add(known.spec.node_name)

    def _note_decision(self, decision: Decision) -> None:
        pods: dict[str, str | None] = {}
        for key in sorted(self._pods):
            known = self.replay.loop.cluster.find_pod(key)
            pods[key] = None if known is None else known.spec.node_name
            self._nodes.add(pods[key] or "")
        nodes = {name: self._node(name) for name in sorted(self._nodes) if name}
        queue = [(name, len(names), names[:_NAMES_SHOWN]) for name, names in self.replay.queue()]
        attempt = Attempt(0, 0.0, decision.pod.key, decision.node_name, "", 0)  # told in full once it is over
        self._seen.append(Moment(attempt, nodes, pods, queue, *self._why(decision)))
        self._pods, self._nodes = {decision.pod.key}, {decision.node_name}

    def _node(self, name: str) -> NodeThen | None:
        cluster = self.replay.loop.cluster
        row = cluster.table.rows.get(name)
        if row is None:
            return None
        then = NodeRow(cluster.table, row)
        return NodeThen(
            then.allocatable(CPU),
            then.requested(CPU),
            then.allocatable(MEMORY),
            then.requested(MEMORY),
            then.node.spec.unschedulable,
        )

    def _why(self, decision: Decision) -> tuple[str, str]:
        has_node = bool(decision.node_name)
        if self._n_explained[has_node] >= MOST_EXPLAINED:
            return "", ""
        self._n_explained[has_node] += 1
        with self.replay.explained(decision.pod) as found:
            return "" if has_node else found.headline, "".join(explanation_tables(found))
