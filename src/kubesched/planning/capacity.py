"""`kubesched capacity`: how many more copies of a pod the scheduler would place, on which nodes, and what stops it.

What is pending is placed first. Then copies come one after another until one finds no node; none of them preempts.
With `by`, each group of nodes is asked by itself, with all other nodes cordoned: they still count as topology domains.

Next: `kubesched.simulator.trial`, where the copies are placed and taken back.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from typing import Any

from msgspec.structs import replace

from kubesched.explanation.layout import counted, table
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import Document, LoadedCluster
from kubesched.k8s.model.core import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.quantity import QuantityError, parse
from kubesched.planning.app_copies import Application
from kubesched.planning.copy_admission import CopyAdmission, CopyEntry
from kubesched.planning.node_groups import grouped
from kubesched.planning.workload_copies import Replica, find_workload, replicas_of, scaled_workloads, title_of
from kubesched.simulator.library import world as load_world
from kubesched.simulator.trial import LoadedWorld, Manifest, copies_of

MOST_COPIES = 100_000
ALL_NODES = "all"
_NODES_SHOWN = 10


class CapacityError(KubeschedError, ValueError):
    """What is asked for is no pod that could be counted."""


@dataclass(frozen=True, slots=True)
class FittingCopies:
    """How many copies of one pod fit on one group of nodes."""

    pod: str
    group: str
    """`all`, or for example `zone=a`."""
    fits: int
    per_node: dict[str, int]
    limit: str
    """Why there are no more: `unschedulable`, `quota` if the API server refused the next one, or `max` if no more were
    asked for."""
    message: str
    """What kube-scheduler or the API server would say to the next one."""
    plugins: tuple[str, ...]
    failed_pod: str = ""
    """Of the application's next copy, the pod that finds no node; copies of a pod are all alike."""

    def to_dict(self) -> dict[str, Any]:
        stopped_by = {"message": self.message, "plugins": list(self.plugins)} if self.message else None
        if stopped_by is not None and self.failed_pod:
            stopped_by["pod"] = self.failed_pod
        return {
            "pod": self.pod,
            "nodes": self.group,
            "fits": self.fits,
            "limit": self.limit,
            "perNode": [{"node": name, "fits": n} for name, n in self.per_node.items()],
            "stoppedBy": stopped_by,
        }


@dataclass(frozen=True, slots=True)
class CapacityReport:
    answers: tuple[FittingCopies, ...]
    """One for each pod and group of nodes."""
    assumptions: tuple[str, ...]
    is_of_every: bool = False
    """Each workload was asked; the one with the least room comes first."""

    @property
    def fits(self) -> int:
        """How many copies of the first pod fit on all nodes."""
        return self.answers[0].fits

    def to_dict(self) -> dict[str, Any]:
        return {"capacity": [one.to_dict() for one in self.answers], "assumptions": list(self.assumptions)}

    def to_prometheus(self) -> str:
        """The text format of metrics."""
        lines = ["# HELP kubesched_capacity_fits Copies of the pod that fit.", "# TYPE kubesched_capacity_fits gauge"]
        for one in self.answers:
            by, _, value = one.group.partition("=")
            lines.append(f'kubesched_capacity_fits{{pod="{one.pod}",by="{by}",value="{value}"}} {one.fits}')
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.text()

    def text(self, *, wide: bool = False) -> str:
        lines = [_sentence(self.answers[0])]
        if self.is_of_every:
            n_asked = len({one.pod for one in self.answers})
            lines = [f"{counted(n_asked, 'workload')}; least room: {lines[0]}"]
        if len(self.answers) == 1:
            shown = list(self.answers[0].per_node.items())
            rows = [[name, str(n)] for name, n in (shown if wide else shown[:_NODES_SHOWN])]
            lines += table(["NODE", "FITS"], rows, indent=2, n_left=1) if rows else []
            hidden = len(shown) - len(rows)
            lines += [f"  and {counted(hidden, 'node')} more"] if hidden else []
        else:
            rows = [[one.pod, one.group, str(one.fits)] for one in self.answers]
            heads = ["WORKLOAD" if self.is_of_every else "POD", "NODES", "FITS"]
            lines += table(heads, rows, indent=2, n_left=2)
            if self.is_of_every or wide:
                lines += ["What stops the next one:", *(f"  {line}" for line in _stops(self.answers))]
            lines.append("Each number stands by itself: they do not add up.")
        return "\n".join([*lines, "Assumptions:", *(f"  {one}" for one in self.assumptions)])


def capacity(
    world: LoadedWorld | LoadedCluster | str | PathLike[str] | Mapping[str, Any] | Iterable[Any],
    pod: Manifest | None = None,
    *,
    shapes: Sequence[str] = (),
    workloads: Sequence[str] = (),
    every: bool = False,
    app: Sequence[LoadedCluster | str | PathLike[str] | Mapping[str, Any]] = (),
    by: Sequence[str] = (),
    quota: bool = True,
    most: int = MOST_COPIES,
    config: Document = None,
    seed: int = 0,
    tie_break: str = "random",
    plugins: Iterable[type] = (),
) -> CapacityReport:
    """How many more copies of a pod fit, on which nodes, and what stops the next one.

    `world` is what `kubesched.world` gave, or what it takes. The `pod` is a manifest, a path, or `namespace/name` of a
    pod that is there; `shapes` are amounts such as `500m/1Gi` or `cpu=1,nvidia.com/gpu=1`; `workloads` are workloads of
    the cluster, such as `deployment/shop/web`, of which replicas are added, and `every` means each that can be scaled.
    `app` is an application in files, of which whole copies are added, each in namespaces of its own.
    With `by` (`zone`, `pool`, or a label) each group of nodes is asked by itself, too. At most `most` copies are tried.
    Quotas and limit ranges of their namespace hold for the copies, unless `quota` is False.
    """
    if not isinstance(world, LoadedWorld):
        world = load_world(world, config=config, seed=seed, tie_break=tie_break, plugins=plugins)
    asked = _asked(world, pod, shapes, [find_workload(world, name) for name in workloads])
    if every:
        asked += [_Asked.of_workload(world, item) for item in scaled_workloads(world)]
    application = Application.read(world, app) if app else None
    if not asked and application is None:
        raise CapacityError(
            "there is no workload with replicas" if every else "a pod, a shape, a workload or an app is needed"
        )
    groups = _groups(world, by)
    with world.trial() as trial:
        settled = trial.settle()
        answers = [_fill(world, one, name, closed, most, quota) for one in asked for name, closed in groups]
        if application is not None:
            answers += [_copy_app(world, application, name, closed, most) for name, closed in groups]
    unasked = (
        "Webhooks and autoscalers are not asked."
        if quota
        else "Quotas, limit ranges, webhooks and autoscalers are not asked."
    )
    assumptions = [
        f"{counted(len(settled.placed), 'pending pod')} placed before the copies, {len(settled.pending)} stay pending.",
        f"Copies preempt nobody. {unasked}",
    ]
    if every:
        room = {one.pod: one.fits for one in answers if one.group == ALL_NODES}
        answers.sort(key=lambda one: (room[one.pod], one.pod))
    return CapacityReport(tuple(answers), tuple(assumptions), every)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be copied."""

    title: str
    namespace: str
    replicas: Callable[[], Iterator[Replica]]

    @classmethod
    def of_pod(cls, world: LoadedWorld, pod: Manifest) -> _Asked:
        with world.trial() as trial:
            admitted = trial.read_pod(pod)
        return cls(admitted.name, admitted.namespace, lambda: map(Replica, copies_of(admitted, sys.maxsize)))

    @classmethod
    def of_workload(cls, world: LoadedWorld, workload: KubeObject) -> _Asked:
        return cls(title_of(workload), workload.namespace, lambda: replicas_of(world, workload))


def _asked(
    world: LoadedWorld, pod: Manifest | None, shapes: Sequence[str], workloads: Sequence[KubeObject]
) -> list[_Asked]:
    pods = [] if pod is None else [_given_pod(world, pod)]
    pods += [pod_of_shape(shape) for shape in shapes]
    return [
        *(_Asked.of_pod(world, one) for one in pods),
        *(_Asked.of_workload(world, one) for one in workloads),
    ]


def pod_of_shape(shape: str) -> Pod:
    """A plain pod that requests this much: `500m/1Gi`, or `cpu=500m,memory=1Gi`. Raises CapacityError."""
    if "=" in shape:
        requests = {name: amount for name, _, amount in (part.partition("=") for part in shape.split(","))}
    else:
        requests = dict(zip(("cpu", "memory"), shape.split("/"), strict=False))
    for name, amount in requests.items():
        try:
            is_amount = bool(name) and parse(amount).nanos >= 0
        except QuantityError:
            is_amount = False
        if not is_amount or (shape.count("/") > 1 and "=" not in shape):
            raise CapacityError(f'shape "{shape}" is not of the form 500m/1Gi or cpu=500m,memory=1Gi')
    container = Container(name="copy", resources=ResourceRequirements(requests={**requests}))
    return Pod(
        ObjectMeta(shape.replace("/", "-").replace("=", "-").replace(",", "-"), "default"),
        PodSpec(containers=(container,)),
    )


def _given_pod(world: LoadedWorld, given: Manifest) -> Manifest:
    """A pod that is there stands for its like: without its node, its owners and what became of it."""
    key = given if isinstance(given, str) and given.count("/") == 1 and "\n" not in given else None
    info = None if key is None else world.cluster.find_pod(_key(world, key))
    if info is None:
        return given
    metadata = ObjectMeta(f"{info.name}-copy", info.namespace, labels=info.labels)
    return replace(info.pod, metadata=metadata, spec=replace(info.spec, node_name=""), status=PodStatus())


def _key(world: LoadedWorld, name: str) -> Any:
    return next((key for key in (*world.cluster.placed, *world.cluster.pending) if key == name), name)


def _groups(world: LoadedWorld, by: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Groups of nodes by name, each with the nodes that are closed for it."""
    nodes = world.cluster.table.nodes
    groups: list[tuple[str, list[str]]] = [(ALL_NODES, [])]
    for label in by:
        for value, members in grouped(nodes, label).items():
            inside = {node.name for node in members}
            groups.append((f"{label}={value}", [name for name in world.nodes if name not in inside]))
    return groups


def _fill(
    world: LoadedWorld, asked: _Asked, group: str, closed: Sequence[str], most: int, has_quota: bool
) -> FittingCopies:
    with world.trial() as trial:
        for name in closed:
            trial.cordon(name)
        entry = CopyEntry(trial, CopyAdmission(world, asked.namespace) if has_quota else None)
        nodes, failed = trial.place_each(entry.let_in(islice(asked.replicas(), most)))
    limit, message = "max", ""
    plugins: tuple[str, ...] = ()
    if failed is not None:
        limit, message, plugins = "unschedulable", failed.message, failed.plugins
    elif entry.refusal:
        limit, message = "quota", entry.refusal
    per_node = dict(sorted(Counter(nodes).items(), key=lambda one: (-one[1], one[0])))
    return FittingCopies(asked.title, group, len(nodes), per_node, limit, message, plugins)


def _copy_app(
    world: LoadedWorld, application: Application, group: str, closed: Sequence[str], most: int
) -> FittingCopies:
    title = f"app of {counted(len(application.pods), 'pod')}"
    per_node: Counter[str] = Counter()
    with world.trial() as trial:
        for name in closed:
            trial.cordon(name)
        for number in range(1, most + 1):
            nodes, failed = application.place_copy(world, number)
            if failed is not None:
                found = dict(sorted(per_node.items(), key=lambda one: (-one[1], one[0])))
                message, plugins = failed.message, failed.plugins
                return FittingCopies(title, group, number - 1, found, "unschedulable", message, plugins, failed.pod)
            per_node.update(nodes)
    found = dict(sorted(per_node.items(), key=lambda one: (-one[1], one[0])))
    return FittingCopies(title, group, most, found, "max", "", ())


def _sentence(one: FittingCopies) -> str:
    if one.limit == "max":
        return f"{one.pod}: at least {one.fits} more fit, as many as were asked for."
    if one.failed_pod:
        return f"{one.pod}: {one.fits} more whole copies fit; in the next one, {one.failed_pod}: {one.message}"
    return f"{one.pod}: {one.fits} more fit; the next one: {one.message}"


def _stops(answers: Sequence[FittingCopies]) -> list[str]:
    """Each message once, with those that it stops."""
    stopped: dict[str, list[str]] = {}
    for one in answers:
        if one.message:
            where = "" if one.group == ALL_NODES else f" on {one.group}"
            stopped.setdefault(one.message, []).append(f"{one.pod}{where}")
    return [f"{', '.join(names)}: {message}" for message, names in stopped.items()]
