"""A cluster as a question supposes it: autoscaled workloads at their least or most, and something left out.

Next: `expansion`, which makes the pods that follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace as changed

from msgspec.structs import replace

from kubesched.explanation.layout import counted
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.apps import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, PodDisruptionBudget, ReplicationController
from kubesched.k8s.model.limits import HorizontalPodAutoscaler
from kubesched.k8s.model.manifests import ManifestError, Manifests
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.workloads.pod_states import belongs_to_its_node, is_daemon
from kubesched.simulator.guesses import Guess

REPLICAS = ("current", "min", "max")
IGNORED = ("pending", "daemons", "static", "budgets")

_Scaled = Deployment | ReplicaSet | ReplicationController | StatefulSet


class PremiseError(KubeschedError, ValueError):
    """A cluster cannot be supposed to be like this."""


def supposing(found: Manifests, replicas: str = "current", ignore: Sequence[str] = ()) -> tuple[Manifests, list[str]]:
    """The cluster as it is supposed to be, and what a report is to say of that.

    `replicas` is `min` or `max` for the least or most that the HorizontalPodAutoscalers allow. `ignore` leaves out
    `pending` pods (no workload has more than it has on nodes), `daemons`, `static` pods, or disruption `budgets`.
    """
    for given, known, what in ((replicas, REPLICAS, "replicas"), *((one, IGNORED, "ignore") for one in ignore)):
        if given not in known:
            raise PremiseError(f'{what} "{given}" is none of {", ".join(known)}')
    objects, told = list(found.objects), list[str]()
    if replicas != "current":
        objects, told = _autoscaled(found, replicas)
    for what in dict.fromkeys(ignore):
        objects = _LEAVE_OUT[what](objects)
        told.append(f"{_NAMES[what]} left out.")
    if not told:
        return found, []
    sources = {id(after): found.source_of(before) for before, after in _pairs(found.objects, objects)}
    return changed(found, objects=objects, sources={**found.sources, **sources}), told


def _pairs(before: Sequence[KubeObject], after: Sequence[KubeObject]) -> list[tuple[KubeObject, KubeObject]]:
    """Each object that there still is, with what it was."""
    known = {(type(item), item.key): item for item in before}
    return [(known[type(item), item.key], item) for item in after]


# -- autoscaled workloads ----------------------------------------------------------------------------------------------


def _autoscaled(found: Manifests, which: str) -> tuple[list[KubeObject], list[str]]:
    wanted: dict[tuple[str, str, str], int] = {}
    for scaler in (item for item in found.objects if isinstance(item, HorizontalPodAutoscaler)):
        least = 1 if scaler.spec.min_replicas is None else scaler.spec.min_replicas
        if scaler.spec.max_replicas < max(1, least):
            problem = f"spec.maxReplicas: {scaler.spec.max_replicas} is less than minReplicas, which is {least}"
            raise ManifestError(found.source_of(scaler), f"HorizontalPodAutoscaler {scaler.key}", problem)
        target = scaler.spec.scale_target_ref
        wanted[target.kind, scaler.namespace, target.name] = least if which == "min" else scaler.spec.max_replicas
    met = Counter[str]()
    objects: list[KubeObject] = []
    for item in found.objects:
        if isinstance(item, HorizontalPodAutoscaler):
            continue
        n = wanted.get((type(item).__name__, item.namespace, item.name))
        if n is not None and isinstance(item, _Scaled):
            if item.spec.replicas == 0:  # autoscaling is off then
                met["off"] += 1
            else:
                met["on"] += 1
                item = replace(item, spec=replace(item.spec, replicas=n))
        objects.append(item)
    n_missing = len(wanted) - met.total()
    bound = "least" if which == "min" else "most"
    has = "has its" if met["on"] == 1 else "have their"
    told = [f"{counted(met['on'], 'autoscaled workload')} {has} {bound} replicas."]
    if met["off"]:
        told.append(f"{met['off']} autoscaled workloads have no replicas, and keep none.")
    if n_missing > 0:
        told.append(Guess(f"{n_missing} autoscalers are of workloads that are not given, or of other kinds."))
    return objects, told


# -- what is left out --------------------------------------------------------------------------------------------------


def without_pending(objects: Sequence[KubeObject]) -> list[KubeObject]:
    """Workloads want what they have on nodes, so that no controller recreates the others."""
    there = [
        item
        for item in objects
        if not isinstance(item, Pod) or item.spec.node_name or item.is_terminal or item.is_terminating
    ]
    n_placed = Counter[tuple[str, str, str]]()
    for item in there:
        owner = controller_of(item.metadata)
        if isinstance(item, Pod) and owner is not None and not item.is_terminal and not item.is_terminating:
            n_placed[owner.kind, item.namespace, owner.name] += 1
    for item in there:
        owner = controller_of(item.metadata)
        if isinstance(item, ReplicaSet) and owner is not None:
            n_placed[owner.kind, item.namespace, owner.name] += n_placed["ReplicaSet", item.namespace, item.name]
    return [_shrunk(item, n_placed[type(item).__name__, item.namespace, item.name]) for item in there]


def _shrunk(item: KubeObject, n_placed: int) -> KubeObject:
    if isinstance(item, _Scaled):
        n_wanted = 1 if item.spec.replicas is None else item.spec.replicas
        return item if n_wanted <= n_placed else replace(item, spec=replace(item.spec, replicas=n_placed))
    if isinstance(item, Job) and not item.spec.suspend:
        most = 1 if item.spec.parallelism is None else item.spec.parallelism
        return item if most <= n_placed else replace(item, spec=replace(item.spec, parallelism=n_placed))
    return item


def _without_daemons(objects: Sequence[KubeObject]) -> list[KubeObject]:
    return [
        item for item in objects if not isinstance(item, DaemonSet) and not (isinstance(item, Pod) and is_daemon(item))
    ]


def _without_static(objects: Sequence[KubeObject]) -> list[KubeObject]:
    return [item for item in objects if not isinstance(item, Pod) or is_daemon(item) or not belongs_to_its_node(item)]


def _without_budgets(objects: Sequence[KubeObject]) -> list[KubeObject]:
    return [item for item in objects if not isinstance(item, PodDisruptionBudget)]


_LEAVE_OUT: dict[str, Callable[[Sequence[KubeObject]], list[KubeObject]]] = {
    "pending": without_pending,
    "daemons": _without_daemons,
    "static": _without_static,
    "budgets": _without_budgets,
}
_NAMES = {
    "pending": "Pending pods are",
    "daemons": "DaemonSets and their pods are",
    "static": "Static pods are",
    "budgets": "PodDisruptionBudgets are",
}
