"""Many pods at once, grouped by what stands in their way: of a workload, of a namespace, or all that a node could take.

Pods with the same signature have the same answer, so that a thousand replicas cost no more than one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kubesched.explanation.answer import COMPLETE_SEARCH, Explanation
from kubesched.explanation.cause import Cause
from kubesched.explanation.explain import build_cluster, explain_pending
from kubesched.explanation.findings.finding import CauseKind
from kubesched.explanation.findings.taints import taint_text
from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.layout import Style, Tone, all_of, counted, listed, readable, table
from kubesched.explanation.placement import NodeAnswer, UnknownNodeError, node_called
from kubesched.explanation.pod_groups import WaitingGroups
from kubesched.framework.handle import Registry
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import Manifests
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.model.scheduling import group_key_of
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.score import ByName

GROUPS_SHOWN = 6
NAMES_SHOWN = 2
HTML_NAMES = 4
_GAP = "  "

__all__ = [
    "GroupedPods",
    "NodeOverview",
    "OwnedPods",
    "PodsOverview",
    "UnknownNodeError",
    "explain_node",
    "explain_pods",
]


@dataclass(frozen=True, slots=True)
class GroupedPods:
    """Pods that the same stands in the way of."""

    cause: Cause
    pods: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What stands in the way, as it is said of so many."""
        return told_of(len(self.pods), self.cause)

    def to_dict(self) -> dict[str, Any]:
        return {"count": len(self.pods), "pods": list(self.pods), "cause": self.cause.to_dict()}


def told_of(n_pods: int, cause: Cause) -> str:
    own, alone = "its ", "; by itself it fits"
    if n_pods == 1 or not cause.text.startswith(own):
        return cause.sentence
    return f"their {cause.sentence.removeprefix(own)}".replace(alone, "; each by itself fits")


@dataclass(frozen=True, slots=True, repr=False)
class PodsOverview:
    """What is with some pods. `subject` says whose: `Deployment shop/web`, `Namespace shop`."""

    subject: str
    n_placed: int
    groups: tuple[GroupedPods, ...]
    """The pods that wait, the largest group first; those that fit last."""
    n_wanted: int | None = None
    """How many pods there should be, where somebody says so."""
    missing: Cause | None = None
    """Why pods that should be there do not exist."""
    notes: tuple[str, ...] = field(default=())

    @property
    def n_waiting(self) -> int:
        return sum(len(group.pods) for group in self.groups)

    @property
    def n_missing(self) -> int:
        return max(0, (self.n_wanted or 0) - self.n_placed - self.n_waiting)

    @property
    def headline(self) -> str:
        stuck = [group for group in self.groups if group.cause.kind is not CauseKind.FITS]
        n_all = self.n_wanted if self.n_wanted is not None else self.n_placed + self.n_waiting
        if self.missing is not None and self.n_wanted is None and not self.n_placed and not self.groups:
            return f"{self.subject} has no pods: {self.missing.sentence}"
        if self.n_missing and self.missing is not None:
            state = f"{self.n_missing} of {counted(n_all, 'pod')} do not exist: {self.missing.sentence}"
            return f"{self.subject}: {state}"
        if not self.groups:
            if self.n_wanted == 0 and not self.n_placed:
                return f"{self.subject} wants no pods now."
            if self.n_missing:
                return f"{self.subject}: {self.n_missing} of {counted(n_all, 'pod')} do not exist yet."
            return f"{self.subject}: no pod is pending; {counted(self.n_placed, 'pod')} {_has(self.n_placed)} a node."
        n_stuck = sum(len(group.pods) for group in stuck)
        if not stuck:
            fits = self.groups[0].cause.text
            return f"{self.subject}: {self.n_waiting} of {counted(n_all, 'pod')} wait, and the first of them {fits}."
        main = stuck[0]
        state = f"{self.subject}: {n_stuck} of {counted(n_all, 'pod')} {_is(n_stuck)} pending"
        if len(stuck) == 1:
            return f"{state}: {main.sentence}"
        if len(main.pods) == 1:
            return f"{state}, each for a reason of its own. {main.pods[0]}: {main.cause.sentence}"
        return f"{state}, for {len(stuck)} reasons, most often ({len(main.pods)} pods): {main.sentence}"

    @property
    def is_refusal(self) -> bool:
        """Only an older scheduler's explanation of one pod can be one."""
        return False

    @property
    def is_unschedulable(self) -> bool:
        """Whether a pod fits nowhere, or cannot even be created."""
        return self.missing is not None or any(group.cause.kind is not CauseKind.FITS for group in self.groups)

    def render(self, style: Style | None = None) -> str:
        chosen = style or Style()
        lines = [self._first_line(chosen)]
        if self.groups:
            rows = [(len(group.pods), group.pods, group.cause) for group in self.groups]
            lines.extend(["", chosen.heading("Pending pods, by what stands in their way")])
            lines.extend(_cause_table(rows, chosen))
        lines.extend(f"\nNote: {note}" for note in self.notes)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return f"<PodsOverview: {self.headline}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        rows = [(len(group.pods), listed(group.pods, HTML_NAMES), group.sentence) for group in self.groups]
        return block(
            paragraph(self.headline, "head bad" if self.is_unschedulable else "head good"),
            html_table(["pods", "which", "what stands in their way"], rows),
            *(paragraph(note, "dim") for note in self.notes),
        )

    def _first_line(self, style: Style) -> str:
        main = next((group for group in self.groups if group.cause.kind is not CauseKind.FITS), None)
        is_missing = self.n_missing or not (self.n_placed or self.groups)
        if is_missing and self.missing is not None:
            return style.first_line(self.headline, Tone.BAD, self.missing.sentence, self.missing.nodes)
        if main is None:
            return style.painted(Tone.STRONG if self.n_missing else Tone.GOOD, self.headline)
        return style.first_line(self.headline, Tone.BAD, main.sentence, main.cause.nodes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "headline": self.headline,
            "wanted": self.n_wanted,
            "placed": self.n_placed,
            "pending": self.n_waiting,
            "missing": None if self.missing is None else {"count": self.n_missing, "cause": self.missing.to_dict()},
            "groups": [group.to_dict() for group in self.groups],
            "notes": list(self.notes),
        }


def explain_pods(
    found: Manifests,
    is_wanted: Callable[[Pod], bool],
    subject: str,
    config: KubeSchedulerConfiguration,
    source: str = "",
    registry: Registry | None = None,
    *,
    n_wanted: int | None = None,
    missing: Cause | None = None,
    notes: Sequence[str] = (),
) -> PodsOverview:
    """The pods that are wanted, each judged on the cluster as it is. Those that are being deleted wait for nothing."""
    judge = Judge(found, config, source, registry)
    cluster = judge.cluster
    n_placed = sum(is_wanted(info.pod) for info in cluster.placed.values())
    waiting = [
        info for _, info in sorted(cluster.pending.items()) if is_wanted(info.pod) and not info.pod.is_terminating
    ]
    return PodsOverview(subject, n_placed, group_by_cause(judge, waiting), n_wanted, missing, tuple(notes))


class Judge:
    """Explains pods of one cluster, those with the same signature once; of a group, all its pods."""

    def __init__(
        self, found: Manifests, config: KubeSchedulerConfiguration, source: str = "", registry: Registry | None = None
    ) -> None:
        self.cluster = build_cluster(found)
        self._config = config
        self._groups = WaitingGroups(partial(build_cluster, found), config, source, registry)
        self._schedulers = build_schedulers(
            self.cluster, config, ByName(), registry=registry, percentage=COMPLETE_SEARCH, source=source
        )
        self._known: dict[tuple[object, ...], Explanation] = {}

    def explain(self, info: PodInfo) -> Explanation:
        status = info.pod.status
        key = (id(info.signature), group_key_of(info.pod), status.nominated_node_name, status.resource_claim_statuses)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = explain_pending(self.cluster, self._scheduler(info), info, self._config)
            found.waiting_group = self._groups.of(info.pod)
        return found

    def _scheduler(self, info: PodInfo) -> ProfileScheduler:
        """The profile the pod asks for; the first one stands in for a scheduler that is not configured here."""
        return self._schedulers.get(info.spec.scheduler_name) or next(iter(self._schedulers.values()))


def group_by_cause(judge: Judge, pods: Iterable[PodInfo]) -> tuple[GroupedPods, ...]:
    found: dict[tuple[CauseKind, str], tuple[Cause, list[str]]] = {}
    for info in pods:
        cause = judge.explain(info).cause
        found.setdefault((cause.kind, cause.text), (cause, []))[1].append(info.key)
    groups = [GroupedPods(cause, tuple(keys)) for cause, keys in found.values()]
    return tuple(
        sorted(groups, key=lambda group: (group.cause.kind is CauseKind.FITS, -len(group.pods), group.pods[0]))
    )


# -- whose pods --------------------------------------------------------------------------------------------------------


class OwnedPods:
    """The pods of each workload, through whatever stands between the two."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._children: dict[tuple[str, str], list[tuple[str, KubeObject]]] = {}
        for item in objects:
            for owner in item.metadata.owner_references or ():
                parent = (owner.kind, f"{item.metadata.namespace}/{owner.name}")
                self._children.setdefault(parent, []).append((type(item).__name__, item))
        self._replica_sets: dict[str, list[tuple[str, str]]] = {}
        """By the key of their deployment, as their names say: of some, only their pods speak."""
        for kind, key in self._children:
            if kind == "ReplicaSet":
                self._replica_sets.setdefault(key.rpartition("-")[0], []).append((kind, key))

    def keys(self, kind: str, key: str) -> set[str]:
        """Of the pods that belong to this workload."""
        found: set[str] = set()
        unseen = [(kind, key), *(self._replica_sets.get(key, ()) if kind == "Deployment" else ())]
        seen = set(unseen)
        while unseen:
            for child_kind, child in self._children.get(unseen.pop(), ()):
                if isinstance(child, Pod):
                    found.add(child.key)
                elif (child_kind, child.key) not in seen:
                    seen.add((child_kind, child.key))
                    unseen.append((child_kind, child.key))
        return found


# -- what a node could take --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class NodeOverview:
    """Who could not come to a node and why, and what it has left."""

    node: str
    state: tuple[str, ...]
    """What keeps pods away from it: cordoned, taints, not ready."""
    n_pods: int
    used: tuple[tuple[str, int, int], ...]
    """(resource, used, allocatable)"""
    could: tuple[str, ...]
    """Pending pods that fit there."""
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    """(why not, pending pods), the largest group first."""

    @property
    def headline(self) -> str:
        n_not = sum(len(pods) for _, pods in self.groups)
        n_all = n_not + len(self.could)
        state = f" It is {all_of(self.state)}." if self.state else ""
        free = all_of([f"{readable(name, total - used)} {name}" for name, used, total in self.used[:2]])
        runs = "runs" if self.n_pods == 1 else "run"
        has = f"{counted(self.n_pods, 'pod')} {runs} there, {free} {_are_free(self.used)}"
        if not n_all:
            return f"Node {self.node}: no pod is pending; {has}.{state}"
        if not self.groups:
            return f"Node {self.node} could take each of the {counted(n_all, 'pending pod')}; {has}.{state}"
        why, pods = self.groups[0]
        main = f"{len(pods)} cannot come: {why}"
        return f"Node {self.node} could take {len(self.could)} of {counted(n_all, 'pending pod')}; {main}.{state}"

    @property
    def is_refusal(self) -> bool:
        """Only an older scheduler's explanation of one pod can be one."""
        return False

    @property
    def is_unschedulable(self) -> bool:
        """Whether a pending pod cannot come here."""
        return bool(self.groups)

    def render(self, style: Style | None = None) -> str:
        chosen = style or Style()
        lines = [chosen.first_line(self.headline, Tone.BAD if self.groups else Tone.GOOD), ""]
        cells = [
            [name, readable(name, used), readable(name, total), readable(name, total - used)]
            for name, used, total in self.used
        ]
        lines.extend(table(["RESOURCE", "USED", "ALLOCATABLE", "FREE"], cells, indent=2))
        if self.groups:
            lines.extend(["", chosen.heading("Pending pods that it could not take")])
            lines.extend(_text_table([(len(pods), pods, why) for why, pods in self.groups], chosen))
        if self.could:
            shown = style_names(self.could, chosen)
            lines.extend(["", f"{chosen.heading(f'Pending pods that would fit here ({len(self.could)}):')} {shown}"])
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return f"<NodeOverview: {self.headline}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        amounts = [
            (name, readable(name, used), readable(name, total), readable(name, total - used))
            for name, used, total in self.used
        ]
        rows = [(len(pods), listed(pods, HTML_NAMES), why) for why, pods in self.groups]
        could = f"{counted(len(self.could), 'pending pod')} would fit here: {listed(self.could, HTML_NAMES)}"
        return block(
            paragraph(self.headline, "head bad" if self.groups else "head good"),
            html_table(["resource", "used", "allocatable", "free"], amounts),
            html_table(["pods", "that it could not take", "why"], rows),
            paragraph(could if self.could else "", "dim"),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "headline": self.headline,
            "state": list(self.state),
            "pods": self.n_pods,
            "resources": {name: {"used": used, "allocatable": total} for name, used, total in self.used},
            "couldTake": list(self.could),
            "groups": [{"count": len(pods), "why": why, "pods": list(pods)} for why, pods in self.groups],
        }


def explain_node(
    found: Manifests, node: str, config: KubeSchedulerConfiguration, source: str = "", registry: Registry | None = None
) -> NodeOverview:
    """Raises UnknownNodeError."""
    judge = Judge(found, config, source, registry)
    cluster = judge.cluster
    node = node_called(node, cluster.table.names)
    row = cluster.table.rows[node]
    could: list[str] = []
    groups: dict[str, list[str]] = {}
    for key, info in sorted(cluster.pending.items()):
        if info.pod.is_terminating:
            continue
        explanation = judge.explain(info)
        why = _why_not_here(explanation, node)
        (could if why is None else groups.setdefault(why, [])).append(key)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return NodeOverview(
        node,
        tuple(_state(cluster, row)),
        len(cluster.table.pods.on(row)),
        tuple(_used(cluster, row)),
        tuple(could),
        tuple((why, tuple(pods)) for why, pods in ordered),
    )


def _why_not_here(explanation: Explanation, node: str) -> str | None:
    """None if the pod could come."""
    if (
        explanation.cause.kind is CauseKind.POD_GROUP
        or explanation.is_stand_in
        or explanation.gate is not None
        or explanation.failures is None
    ):
        return explanation.cause.text
    group = NodeAnswer(explanation, node).group
    return None if group is None else group.summary()


def _state(cluster: Cluster, row: int) -> Iterator[str]:
    node = cluster.table.nodes[row]
    if node.spec.unschedulable:
        yield "cordoned"
    taints = [taint_text(taint) for taint in node.spec.taints or () if taint.effect != "PreferNoSchedule"]
    if taints:
        yield f"tainted ({', '.join(taints)})"
    ready = next((c for c in node.status.conditions or () if c.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        yield "not ready"


def _used(cluster: Cluster, row: int) -> Iterator[tuple[str, int, int]]:
    view = cluster.nodes.at(row)
    others = sorted(name for name in cluster.table.allocatable if name not in (CPU, MEMORY, PODS))
    for name in (CPU, MEMORY, *others):
        total, used = view.allocatable(name), view.requested(name)
        if total or used:
            yield name, used, total
    yield PODS, int(cluster.table.pod_counts.data[row]), int(cluster.table.allowed_pods.data[row])


# -- tables ------------------------------------------------------------------------------------------------------------


def _cause_table(rows: Sequence[tuple[int, Sequence[str], Cause]], style: Style) -> list[str]:
    return _text_table([(n, pods, told_of(n, cause)) for n, pods, cause in rows], style)


def _text_table(rows: Sequence[tuple[int, Sequence[str], str]], style: Style) -> list[str]:
    shown = rows[: style.most(GROUPS_SHOWN)]
    names = [style_names(pods, style) for _, pods, _ in shown]
    first = max(len("COUNT"), *(len(str(n)) for n, _, _ in shown))
    second = min(max(len("PODS"), *map(len, names)), style.width // 2)
    indent = 2 + first + len(_GAP) + second + len(_GAP)
    width = max(style.width - indent, 36)
    lines = [f"  {'COUNT':>{first}}{_GAP}{'PODS':{second}}{_GAP}WHY"]
    for (n, _, why), cell in zip(shown, names, strict=True):
        left = textwrap.wrap(cell, second, break_on_hyphens=False, break_long_words=False) or [""]
        told = textwrap.wrap(why, width, break_on_hyphens=False, break_long_words=False) or [""]
        for number in range(max(len(left), len(told))):
            count = str(n) if number == 0 else ""
            name = left[number] if number < len(left) else ""
            text = told[number] if number < len(told) else ""
            lines.append(f"  {count:>{first}}{_GAP}{name:{second}}{_GAP}{text}".rstrip())
    rest = rows[len(shown) :]
    if rest:
        n_more = sum(n for n, _, _ in rest)
        lines.append(f"  and {counted(n_more, 'more pod')} for {counted(len(rest), 'other reason')} (-o wide)")
    return lines


def style_names(names: Sequence[str], style: Style) -> str:
    return listed(names, None if style.wide else NAMES_SHOWN)


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def _has(n: int) -> str:
    return "has" if n == 1 else "have"


def _are_free(used: Sequence[tuple[str, int, int]]) -> str:
    return "is free" if len(used) == 1 else "are free"
