"""Copies of a whole application: copy k lives in namespaces of its own, `<namespace>-copy-k`.

Selectors of copies stay apart; host ports and whatever belongs to the cluster are shared. A copy counts as a whole: at
the first pod that finds no node, all of it is taken back. Pods of the application's DaemonSets come once, with the
first copy.

Next: `kubesched.simulator.expansion`, which makes the pods that workloads ask for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import LoadedCluster
from kubesched.k8s.model.core import Affinity, Namespace, Node, Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.workloads.pod_states import is_daemon
from kubesched.simulator import loading
from kubesched.simulator.expansion import expand
from kubesched.simulator.library import load
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.settling import PendingPod
from kubesched.simulator.trial import LoadedWorld

Item = TypeVar("Item", bound=KubeObject)


class ApplicationError(KubeschedError, ValueError):
    """What is given is no application that could be copied."""


@dataclass(frozen=True, slots=True)
class Application:
    """The objects of an application with the pods of its workloads, as an API server has completed them."""

    shared: tuple[KubeObject, ...]
    """Those that belong to no namespace: there is one of each, whatever the number of copies."""
    own: tuple[KubeObject, ...]
    """Those of each copy, but for pods."""
    pods: tuple[Pod, ...]
    """The highest priority first, as the queue gives them."""
    namespaces: Mapping[str, Namespace]

    @classmethod
    def read(
        cls,
        world: LoadedWorld,
        sources: Iterable[LoadedCluster | str | PathLike[str] | Mapping[str, Any]],
    ) -> Application:
        """Raises ApplicationError, and whatever is wrong with the manifests."""
        found = load(*sources).found
        for item in found.objects:
            if isinstance(item, Node):
                where = found.source_of(item)
                raise ApplicationError(f"{where + ': ' if where else ''}Node {item.name}: an application has no nodes")
        given = loading.load(found)
        known = world.cluster.objects
        around = (
            *(world.node(name) for name in world.nodes),
            *known.priority_classes.values(),
            *known.storage_classes.values(),
        )
        written = {(type(item), item.key) for item in given.objects}
        beside = [item for item in around if (type(item), item.key) not in written]
        expanded = expand(SimulationInput((*beside, *given.objects), ()))
        if expanded.refused:
            raise ApplicationError(f"the application is not let in as it is: {expanded.refused[0]}")
        pods = [item for item in expanded.objects if isinstance(item, Pod) and not item.is_terminal]
        if not pods:
            raise ApplicationError("the application has no pods")
        others = [item for item in expanded.objects if not isinstance(item, Pod | Node | Namespace)]
        return cls(
            tuple(item for item in others if not item.namespace and (type(item), item.key) in written),
            tuple(item for item in others if item.namespace),
            tuple(sorted(map(_unplaced, pods), key=lambda pod: -(pod.spec.priority or 0))),
            {item.name: item for item in expanded.objects if isinstance(item, Namespace)},
        )

    def place_copies(self, world: LoadedWorld, first: int, most: int) -> tuple[int, Counter[str], PendingPod | None]:
        """Whole copies from this number on, which stay: how many fit, on which nodes, and the pod that found none."""
        per_node: Counter[str] = Counter()
        for n_placed in range(most):
            nodes, failed = self.place_copy(world, first + n_placed)
            if failed is not None:
                return n_placed, per_node, failed
            per_node.update(nodes)
        return most, per_node, None

    def place_copy(self, world: LoadedWorld, number: int) -> tuple[list[str], PendingPod | None]:
        """The nodes of the copy's pods, which stay there; or the pod that found none, and nothing has changed."""
        names = {name: f"{name}-copy-{number}" for name in self.namespaces}
        with world.trial() as trial:
            for item in self.shared if number == 1 else ():
                trial.put_object(item)
            for name, namespace in self.namespaces.items():
                trial.put_object(Namespace(metadata=ObjectMeta(names[name], labels=_labels(namespace, names[name]))))
            for item in self.own:
                trial.put_object(_moved(item, names))
            pods = [pod for pod in self.pods if number == 1 or not is_daemon(pod)]
            nodes, failed = trial.place_each(_with_terms_moved(_moved(pod, names), names) for pod in pods)
            if failed is None:
                trial.commit()
        return nodes, failed


def _labels(namespace: Namespace, name: str) -> dict[str, str]:
    return {**(namespace.metadata.labels or {}), "kubernetes.io/metadata.name": name}


def _unplaced(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name="")) if pod.spec.node_name else pod


def _moved(item: Item, names: Mapping[str, str]) -> Item:
    metadata = replace(item.metadata, namespace=names.get(item.namespace, item.namespace), uid="")
    return replace(item, metadata=metadata)


def _with_terms_moved(pod: Pod, names: Mapping[str, str]) -> Pod:
    """Affinity to pods of the application's namespaces means those of the same copy."""
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    moved = msgspec.convert(_namespaces_moved(msgspec.to_builtins(affinity), names), Affinity)
    return replace(pod, spec=replace(pod.spec, affinity=moved))


def _namespaces_moved(written: Any, names: Mapping[str, str]) -> Any:
    if isinstance(written, dict):
        return {
            key: [names.get(name, name) for name in value]
            if key == "namespaces" and value
            else _namespaces_moved(value, names)
            for key, value in written.items()
        }
    return [_namespaces_moved(item, names) for item in written] if isinstance(written, list | tuple) else written
