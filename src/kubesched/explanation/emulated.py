"""Explanations by the scheduler of an older version: the same questions, answered as of then.

`to_dict()` has the form of the older test vectors (tests/vectors/older/FORMAT.md): only what such a scheduler knew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubesched.explanation.answer import COMPLETE_SEARCH, Explanation
from kubesched.explanation.record import Record, preemption_record, scored_records, status_record
from kubesched.framework.pod_info import PodInfo
from kubesched.older.config import Emulation, Generation, emulate
from kubesched.older.config.algorithm_source import RefusedConfigurationError
from kubesched.older.engine.build import build_older_schedulers
from kubesched.older.engine.scheduler import OlderScheduler, RejectionsByNode
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.score import ByName


@dataclass
class EmulatedExplanation(Explanation):
    """Why a pod would have gone where it went then."""

    @property
    def generation(self) -> Generation:
        assert isinstance(self.scheduler, OlderScheduler)
        return self.scheduler.generation

    @property
    def highest_score(self) -> int:
        return self.generation.highest_score

    @property
    def preamble(self) -> str:
        return f"As kube-scheduler v{self.generation.version} decides."

    @property
    def error_cause(self) -> str:
        """Errors were nothing out of the ordinary then: a claim that is missing made one, and no plugin broke."""
        assert self.decision is not None
        is_early = self.decision.filtered is None
        return f"the search ended in an error{' before any node was looked at' if is_early else ''}"

    def to_dict(self) -> dict[str, Any]:
        if self.refusal:
            return {"configError": self.refusal, **_nothing()}
        assert self.decision is not None
        return _decision_record(self.decision, self.generation)


def explain_as_of_then(
    cluster: Cluster, pod: PodInfo, emulation: Emulation, placed_on: str = ""
) -> EmulatedExplanation:
    scheduler = _scheduler_for(cluster, pod, emulation)
    decision = scheduler.decide(pod, complete=True)
    return EmulatedExplanation(cluster, scheduler, pod, decision=decision, config=emulation.config, placed_on=placed_on)


def explain_refusal(
    cluster: Cluster, pod: PodInfo, generation: Generation, refused: RefusedConfigurationError
) -> EmulatedExplanation:
    """For a configuration that the scheduler refused: nothing was decided."""
    scheduler = _scheduler_for(cluster, pod, emulate(generation))
    return EmulatedExplanation(cluster, scheduler, pod, refusal=refused.text)


def _scheduler_for(cluster: Cluster, pod: PodInfo, emulation: Emulation) -> OlderScheduler:
    schedulers = build_older_schedulers(cluster, emulation, ByName(), percentage=COMPLETE_SEARCH)
    return schedulers.get(pod.spec.scheduler_name) or next(iter(schedulers.values()))


def _nothing() -> Record:
    return {"prefilter": None, "nodes": {}, "message": None, "best": [], "preemption": None}


def _decision_record(decision: Decision, generation: Generation) -> Record:
    record = _nothing()
    prefilter = decision.prefilter
    if prefilter is not None and not prefilter.status.is_success:
        record["prefilter"] = status_record(prefilter.status)
    if decision.filtered is not None:
        record["nodes"] = dict(_nodes(decision))
    record["best"] = sorted(decision.best)
    if not decision.node_name:
        is_cut = generation.message_limit is not None
        record["message"] = for_event(decision.message) if is_cut else decision.message
    if decision.error:
        record["error"] = True
    if decision.post_filter is not None:
        record["preemption"] = preemption_record(decision.preemption, decision.post_filter)
    return record


def _nodes(decision: Decision) -> Iterator[tuple[str, Record]]:
    filtered = decision.filtered
    assert filtered is not None
    scored = {} if decision.scored is None else scored_records(decision.scored)
    rejections = decision.cycle.get(RejectionsByNode).found
    names = filtered.nodes.names
    for position in np.arange(len(names)).tolist():
        name = names[position]
        if filtered.fits[position]:
            yield name, scored.get(name, {"fit": True})
            continue
        record = {"fit": False, **status_record(filtered.status(position))}
        if len(rejections[position]) > 1:
            record["plugins"] = [status_record(status) for status in rejections[position]]
        yield name, record
