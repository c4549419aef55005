"""A pod and one node: why it is where it is, what would win today, and why not the node that somebody asks for.

Scores are those that were recorded when the pod was bound, if its scheduler kept them, else those of now; it is said
which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kubesched.explanation.cause import Cause
from kubesched.explanation.changes import Change
from kubesched.explanation.findings.finding import CauseKind
from kubesched.explanation.groups import RejectedNodes, group_nodes
from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.layout import Style, Tone, counted, listed, wrapped
from kubesched.framework.status import Code
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.pod_states import POD_RUNNING

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.scheduler.engine.preemption import Candidate
    from kubesched.scheduler.engine.score import ScoreOutcome

VICTIMS_SHOWN = 4


class UnknownNodeError(KubeschedError, ValueError):
    """A node was asked for that is not there."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a node that fits did among the others."""

    node: str
    total: int
    place: int
    """1 is best; equally good nodes share a place."""
    n_fitting: int
    next_best: str
    """The best of the other nodes; empty if there is none."""
    next_total: int
    difference: str
    """Which plugin told the two apart most, in words."""

    @property
    def is_best(self) -> bool:
        return self.place == 1

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "total": self.total,
            "place": self.place,
            "fitting": self.n_fitting,
            "next": self.next_best or None,
            "nextTotal": self.next_total if self.next_best else None,
        }


def standing_of(scored: ScoreOutcome, node: str) -> Standing | None:
    """None for a node that was not scored."""
    names = list(scored.nodes.names)
    if node not in names:
        return None
    at = names.index(node)
    order = sorted((position for position in range(len(names)) if position != at), key=lambda p: _rank(scored, p))
    next_best = order[0] if order else None
    total = int(scored.total[at])
    return Standing(
        node=node,
        total=total,
        place=1 + int(np.count_nonzero(scored.total > total)),
        n_fitting=len(names),
        next_best="" if next_best is None else names[next_best],
        next_total=0 if next_best is None else int(scored.total[next_best]),
        difference="" if next_best is None else _difference(scored, at, next_best),
    )


def _rank(scored: ScoreOutcome, position: int) -> tuple[int, str]:
    return -int(scored.total[position]), scored.nodes.names[position]


def _difference(scored: ScoreOutcome, one: int, other: int) -> str:
    gaps = [(abs(int(s.weighted[one]) - int(s.weighted[other])), s) for s in scored.by_plugin]
    if not gaps:
        return ""
    gap, scores = max(gaps, key=lambda pair: pair[0])
    return f"{scores.plugin} {int(scores.weighted[one])} against {int(scores.weighted[other])}" if gap else ""


# -- a pod that has its node -------------------------------------------------------------------------------------------


def cause_of_place(explanation: Explanation, groups: Sequence[RejectedNodes]) -> Cause:
    """Why a bound pod is where it is, and what would win today."""
    node, decision = explanation.placed_on, explanation.decision
    assert decision is not None
    then = _then(node, explanation.recorded)
    if explanation.is_stand_in:
        wanted, used = explanation.pod.spec.scheduler_name, explanation.scheduler.profile.scheduler_name
        then = f'is on {node}; its scheduler "{wanted}" is not configured here, so this is as "{used}" sees it'
    fields: dict[str, Any] = {"node": node, "scores": "now" if explanation.recorded is None else "recorded"}
    if node not in explanation.cluster.table.rows:
        text = f"is assigned to {node}, but there is no such node"
        return Cause(CauseKind.BOUND, text, _without_its_node(explanation, node), fields=fields)
    standing = None if decision.scored is None else standing_of(decision.scored, node)
    if standing is None:
        group = next((group for group in groups if node in group.names), None)
        why = group.summary() if group is not None else ", ".join(decision.message.split("\n"))
        text = f"{then}; today it would not be let in there: {why}"
        remedy = f"It would go to {_best(decision.best)} instead." if decision.best else ""
        return Cause(CauseKind.BOUND, text, remedy, (node,), fields=fields)
    fields |= {"standing": standing.to_dict(), "wouldWin": list(decision.best)}
    gap = f": {standing.difference}" if standing.difference else ""
    if standing.is_best:
        text = f"{then}; it would go there again today, with {standing.total} points"
        text += f" before {standing.next_best} with {standing.next_total}{gap}" if standing.next_best else ""
    else:
        text = (
            f"{then}; today {standing.next_best} would win with {standing.next_total} points against {standing.total}"
            f"{gap.replace(': ', ': here ')}"
        )
    return Cause(CauseKind.BOUND, text, nodes=(node,), fields=fields)


def _without_its_node(explanation: Explanation, node: str) -> str:
    near = get_close_matches(node, explanation.cluster.table.names, 1, 0.8)
    pod = explanation.pod.pod
    if pod.status.phase == POD_RUNNING:
        return "It is lost with its node: Kubernetes deletes such pods, and their controllers create others."
    meant = f"Did you mean {near[0]}? " if near else ""
    return f"{meant}No kubelet will start it: delete it, and correct or drop spec.nodeName if a manifest sets it."


def _then(node: str, recorded: Mapping[str, Any] | None) -> str:
    if recorded is None:
        return f"is on {node} (how nodes scored then was not recorded)"
    scores = recorded.get("scores") or []
    won = next((score for score in scores if score["node"] == node), None)
    at = f" at {print_instant(float(recorded['at']))}" if "at" in recorded else ""
    if won is None:
        return f"is on {node}, chosen{at} as the only node that fitted"
    others = [score for score in scores if score["node"] != node]
    next_best = f", before {others[0]['node']} with {others[0]['total']}" if others else ""
    return f"is on {node}, chosen{at} with {won['total']} points{next_best}"


def _best(best: tuple[str, ...]) -> str:
    return best[0] if len(best) == 1 else f"one of {listed(best, 3)}"


# -- why not this node -------------------------------------------------------------------------------------------------


@dataclass(repr=False)
class NodeAnswer:
    """One pod and one node that somebody asks for."""

    explanation: Explanation
    node: str

    @cached_property
    def group(self) -> RejectedNodes | None:
        """The reasons against the node; None if nothing does."""
        explanation = self.explanation
        if explanation.failures is None or explanation.numbers is None:
            return None
        row = explanation.cluster.table.rows[self.node]
        if not explanation.failures.statuses(row):
            return None
        names = explanation.cluster.table.names
        return group_nodes(explanation.failures, explanation.numbers, names, [row])[0]

    @cached_property
    def standing(self) -> Standing | None:
        decision = self.explanation.decision
        return None if decision is None or decision.scored is None else standing_of(decision.scored, self.node)

    @cached_property
    def change(self) -> Change | None:
        """The least that would have to change for the pod to fit on this node, tried out."""
        return None if self.group is None else self.explanation.change_for_node(self.node)

    @property
    def headline(self) -> str:
        subject = f"Pod {self.explanation.pod.key}"
        if self.group is not None:
            return f"{subject} cannot go to {self.node}: {self.group.summary()}."
        standing = self.standing
        if standing is None:
            return self.explanation.headline
        if standing.is_best:
            next_best = f", before {standing.next_best} with {standing.next_total}" if standing.next_best else ""
            return f"{subject} fits on {self.node}, and no node is better: {standing.total} points{next_best}."
        gap = f": {standing.difference}" if standing.difference else ""
        return (
            f"{subject} fits on {self.node}, but {counted(standing.place - 1, 'node')} of {standing.n_fitting} "
            f"{'is' if standing.place == 2 else 'are'} better: it has {standing.total} points, "
            f"{standing.next_best} has {standing.next_total}{gap}."
        )

    @property
    def is_refusal(self) -> bool:
        """Only an older scheduler's explanation of one pod can be one."""
        return False

    @property
    def is_unschedulable(self) -> bool:
        """Whether the pod cannot go to this node."""
        return self.group is not None or not self.explanation.fits

    def render(self, style: Style | None = None) -> str:
        chosen = style or Style()
        tone = Tone.BAD if self.is_unschedulable else Tone.GOOD
        first = chosen.first_line(self.headline, tone, names=self.explanation.cause.nodes)
        lines = [first, *self._reasons(chosen), *self._scores(), *self._help(chosen)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return f"<NodeAnswer: {self.headline}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        findings = () if self.group is None else self.group.findings
        rows = [(finding.plugin, finding.text) for finding in findings]
        change = "" if self.change is None else f"It would fit there, tried out: {self.change.description}"
        return block(
            paragraph(self.headline, "head bad" if self.is_unschedulable else "head good"),
            html_table(["plugin", "reasons"], rows),
            paragraph(change, "dim"),
        )

    def _reasons(self, style: Style) -> list[str]:
        if self.group is None:
            return []
        lines = ["", style.heading("Why not")]
        for status in self.group.statuses:
            helped = "" if status.code is Code.UNSCHEDULABLE else " (evictions do not help)"
            reasons = ", ".join(status.reasons) or "rejected without a reason"
            lines.append(f"  {status.plugin or 'PreFilter'}: {reasons}{helped}")
            for finding in self.group.findings:
                if finding.plugin == status.plugin:
                    lines.extend(wrapped(finding.text, indent=4, hanging=2, width=style.width))
        return lines

    def _scores(self) -> list[str]:
        decision = self.explanation.decision
        if self.standing is None or decision is None or decision.scored is None:
            return []
        scored, names = decision.scored, list(decision.scored.nodes.names)
        columns = [self.node, *([self.standing.next_best] if self.standing.next_best else [])]
        at = [names.index(name) for name in columns]
        width = max(len(scores.plugin) for scores in scored.by_plugin) if scored.by_plugin else 0
        lines = ["", f"  {'':{width}}  {'  '.join(columns)}"]
        for scores in scored.by_plugin:
            cells = [f"{int(scores.weighted[p]):>{len(name)}}" for p, name in zip(at, columns, strict=True)]
            lines.append(f"  {scores.plugin:{width}}  {'  '.join(cells)}")
        totals = [f"{int(scored.total[p]):>{len(name)}}" for p, name in zip(at, columns, strict=True)]
        return [*lines, f"  {'total':{width}}  {'  '.join(totals)}"]

    def _help(self, style: Style) -> list[str]:
        lines: list[str] = []
        if self.change is not None:
            told = f"It would fit there, tried out: {self.change.description}; {self.change.cost}"
            lines.extend(["", *wrapped(told, indent=0, hanging=2, width=style.width)])
        elif self.group is not None:
            lines.extend(["", "No small change that would make it fit there was found"])
        candidate = self._candidate()
        if candidate is not None:
            victims = [f"{pod.key} (priority {pod.priority})" for pod in candidate.victims]
            lines.append(f"Preemption could evict {listed(victims, style.most(VICTIMS_SHOWN))} there")
        return lines

    def _candidate(self) -> Candidate | None:
        decision = self.explanation.decision
        preemption = None if decision is None else decision.preemption
        if preemption is None:
            return None
        return next((found for found in preemption.candidates if found.node_name == self.node), None)

    def to_dict(self) -> dict[str, Any]:
        candidate = self._candidate()
        return {
            "pod": self.explanation.pod.key,
            "node": self.node,
            "headline": self.headline,
            "fits": self.group is None,
            "group": None if self.group is None else self.group.to_dict(),
            "standing": None if self.standing is None else self.standing.to_dict(),
            "change": None if self.change is None else self.change.to_dict(),
            "victims": None if candidate is None else [pod.key for pod in candidate.victims],
        }


def why_not_node(explanation: Explanation, node: str) -> NodeAnswer:
    """Raises UnknownNodeError."""
    return NodeAnswer(explanation, node_called(node, explanation.cluster.table.names))


def node_called(node: str, names: Sequence[str]) -> str:
    """The node of this name; the one whose name begins with it up to the first dot, if only one does.

    Raises UnknownNodeError.
    """
    if node in names:
        return node
    shorter = [name for name in names if name.partition(".")[0] == node]
    if len(shorter) != 1:
        raise unknown_node(node, names)
    return shorter[0]


def unknown_node(node: str, names: Sequence[str]) -> UnknownNodeError:
    shorter = [name for name in names if name.partition(".")[0] == node]
    near = shorter or get_close_matches(node, names, 1, 0.7)
    hint = f"; there is {near[0]}" if near else ""
    return UnknownNodeError(f"node {node} is not among the {counted(len(names), 'node')}{hint}")
