"""A decision as plain data: in the form of the test vectors, and with everything that is known about it.

`full_report` is what `-o json`, `-o yaml` and `/explain` give; docs/reference/explanation.md describes it key by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PostFilterResult
from kubesched.framework.status import Status
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.filter import FilterOutcome
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.preemption import Candidate, Preemption
from kubesched.scheduler.engine.score import ScoreOutcome

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation

Record = dict[str, Any]


def gated_record(gate: Status) -> Record:
    """The record of a pod that is held back before any decision."""
    return _empty() | {"gated": status_record(gate)}


def decision_record(decision: Decision, node_names: list[str]) -> Record:
    """`node_names` are all nodes of the cluster, in the order in which they are listed."""
    record = _empty()
    prefilter = decision.prefilter
    if prefilter is not None and not prefilter.status.is_success:
        record["prefilter"] = status_record(prefilter.status)
    elif prefilter is not None and prefilter.node_names is not None:
        record["prefilterNodes"] = sorted(prefilter.node_names)
    if decision.filtered is not None:
        record["nodes"] = _nodes(decision, node_names)
    record["best"] = sorted(decision.best)
    if decision.nominated:
        record["nominated"] = decision.node_name
    if not decision.node_name:
        record["message"] = for_event(decision.message)
    if decision.error:
        record["error"] = True
    if decision.post_filter is not None:
        record["preemption"] = preemption_record(decision.preemption, decision.post_filter)
    return record


def status_record(status: Status) -> Record:
    return {"plugin": status.plugin, "code": status.code.value, "reasons": sorted(status.reasons)}


def preemption_record(preemption: Preemption | None, post_filter: PostFilterResult) -> Record:
    if preemption is None:
        return {"node": "", "message": post_filter.status.message}
    record: Record = {"node": preemption.node_name, "victims": _keys(preemption.victims)}
    terminating = _keys(tuple(victim for victim in preemption.victims if victim.pod.is_terminating))
    if terminating:
        record["terminating"] = terminating
    if len(preemption.equally_good) > 1:
        record["acceptable"] = [
            {"node": candidate.node_name, "victims": _keys(candidate.victims)} for candidate in preemption.equally_good
        ]
    record["candidates"] = {
        candidate.node_name: _candidate(candidate)
        for candidate in sorted(preemption.candidates, key=lambda candidate: candidate.node_name)
    }
    return record


def _empty() -> Record:
    return {
        "gated": None,
        "prefilter": None,
        "prefilterNodes": None,
        "nodes": {},
        "message": None,
        "best": [],
        "preemption": None,
    }


def _nodes(decision: Decision, node_names: list[str]) -> Record:
    assert decision.filtered is not None
    records = _rejected(decision.filtered)
    if decision.scored is not None:
        records.update(scored_records(decision.scored))
    if len(records) < len(node_names):
        left_out = {"fit": False, **status_record(decision.diagnosis_of_absent())}
        for name in node_names:
            records.setdefault(name, left_out)
    return {name: records[name] for name in node_names}


def _rejected(filtered: FilterOutcome) -> Record:
    names = filtered.nodes.names
    return {
        names[position]: {"fit": False, **status_record(filtered.status(position))}
        for position in np.flatnonzero(~filtered.fits).tolist()
    }


def scored_records(scored: ScoreOutcome) -> Record:
    totals = scored.total.tolist()
    if not scored.by_plugin:
        return {name: {"fit": True, "total": total} for name, total in zip(scored.nodes.names, totals, strict=True)}
    columns = [
        (scores.plugin, scores.raw.tolist(), scores.weighted.tolist(), scores.weight) for scores in scored.by_plugin
    ]
    records: Record = {}
    for position, name in enumerate(scored.nodes.names):
        node: Record = {"fit": True, "scores": {plugin: weighted[position] for plugin, _, weighted, _ in columns}}
        raw = {p: raw[position] for p, raw, weighted, w in columns if raw[position] * w != weighted[position]}
        if raw:
            node["raw"] = raw
        node["total"] = totals[position]
        records[name] = node
    return records


def _candidate(candidate: Candidate) -> Record:
    record: Record = {"victims": [victim.key for victim in candidate.victims]}
    if candidate.n_budget_violations:
        record["pdbViolations"] = candidate.n_budget_violations
    return record


def _keys(pods: tuple[PodInfo, ...]) -> list[str]:
    return sorted(pod.key for pod in pods)


def _once_open(explanation: Explanation) -> dict[str, Any]:
    """What would become of a gated pod without its gates."""
    without = explanation.without_gates
    if without is None:
        return {}
    return {"withoutGates": {"fits": without.fits, "cause": without.cause.to_dict(), "explanation": without.to_dict()}}


def full_report(explanation: Explanation) -> dict[str, Any]:
    failing: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    judged = explanation.judged
    if judged.failures is not None and judged.numbers is not None:
        for row, name in enumerate(explanation.cluster.table.names):
            statuses = judged.failures.statuses(row)
            if statuses:
                failing[name] = [status_record(status) for status in statuses]
                numbers[name] = [finding.to_dict() for finding in judged.numbers.of(row)]
    return {
        "pod": explanation.pod.key,
        "scheduler": explanation.scheduler.profile.scheduler_name,
        "node": explanation.placed_on or None,
        "headline": explanation.headline,
        "cause": explanation.cause.to_dict(),
        **_once_open(explanation),
        "groups": [group.to_dict() for group in explanation.groups],
        "changes": [change.to_dict() for change in explanation.changes],
        "explanation": explanation.to_dict(),
        "failing": failing,
        "numbers": numbers,
    }
