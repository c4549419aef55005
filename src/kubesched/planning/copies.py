"""Copies of a pod, or of a whole application, come one after another until one finds no node, or is refused.

Without preemption the next one is simply the next decision. With it, a copy that finds no node may preempt others; it
counts if all of them find another node, or if they may be lost. Limit ranges and quotas of their namespace refuse
copies as an API server would.

Copy k of an application lives in namespaces of its own, `<namespace>-copy-k`. Selectors of copies stay apart; host
ports and whatever belongs to the cluster are shared. A copy counts as a whole: at the first pod that finds no node, all
of it is taken back. Pods of the application's DaemonSets come once, with the first copy.

Next: `kubesched.simulator.trial`, where the copies are placed and taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from os import PathLike
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.explanation.layout import counted, listed
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import LoadedCluster
from kubesched.k8s.model.core import Affinity, Namespace, Node, Pod
from kubesched.k8s.model.limits import LimitRange, ResourceQuota
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, PodKey
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.admission import (
    AdmissionError,
    QuotaAccount,
    refuse_claim_out_of_range,
    within_limit_ranges,
)
from kubesched.k8s.workloads.pod_states import is_daemon
from kubesched.planning.headroom import is_headroom
from kubesched.planning.resting_workloads import PodOwners, Replica
from kubesched.simulator import loading
from kubesched.simulator.expansion import expand
from kubesched.simulator.library import load
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.settling import PendingPod
from kubesched.simulator.trial import LoadedWorld, WorldTrial

_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class CopyRules:
    """Under which copies are counted."""

    most: int
    has_quota: bool = True
    may_preempt: bool = False
    may_lose: bool = False
    """Whoever is preempted need not find another node."""
    most_anew: int = 0
    """Where more copies fit, it is not tried what a change of the pod would bring: all would be placed again."""
    may_lack_places: bool = False
    """It need not be said on which nodes they are, where finding out takes placing them one by one."""


@dataclass(slots=True)
class PlacedCopies:
    nodes: list[str]
    limit: str = "max"
    message: str = ""
    plugins: tuple[str, ...] = ()
    failed: Pod | None = None
    """The one that found no node; it is not there any more."""
    victims: Counter[str] = field(default_factory=Counter)


class CopyEntry:
    """Replicas on their way in, each with its claims, until the API server refuses one."""

    def __init__(self, trial: WorldTrial, admission: CopyAdmission | None) -> None:
        self._trial = trial
        self._admission = admission
        self.refusal = ""
        self.last: Pod | None = None
        """The one that came in last."""

    def let_in(self, replicas: Iterable[Replica]) -> Iterator[Pod]:
        for replica in replicas:
            try:
                admitted = replica if self._admission is None else self._admission.let_in(replica)
            except AdmissionError as error:
                self.refusal = str(error)
                return
            for claim in admitted.claims:
                self._trial.put_object(claim)
            self.last = admitted.pod
            yield admitted.pod


def place_copies(trial: WorldTrial, replicas: Iterator[Replica], namespace: str, rules: CopyRules) -> PlacedCopies:
    """They stay in the trial. What is left of `replicas` comes after those that were tried."""
    entry = CopyEntry(trial, CopyAdmission(trial.world, namespace) if rules.has_quota else None)
    coming = entry.let_in(islice(replicas, rules.most))
    nodes, failed = trial.place_each(coming)
    found = PlacedCopies(nodes)
    if failed is not None and rules.may_preempt and entry.last is not None:
        failed = _place_by_preempting(trial, chain([entry.last], coming), rules.may_lose, found)
    if failed is not None:
        found.limit, found.message, found.plugins, found.failed = (
            found.limit if found.limit != "max" else "unschedulable",
            failed.message,
            failed.plugins,
            entry.last,
        )
    elif entry.refusal:
        found.limit, found.message = "quota", entry.refusal
    return found


def _place_by_preempting(
    trial: WorldTrial, pods: Iterable[Pod], may_lose: bool, found: PlacedCopies
) -> PendingPod | None:
    """Gives the first that cannot be placed so."""
    owners = PodOwners(trial.world.workloads)
    for pod in pods:
        with trial.trial() as inner:
            key = inner.add_admitted(pod)
            settled = inner.settle()
            failed = next((one for one in settled.pending if one.pod == key), None)
            if failed is not None:
                return failed
            lost = [one for one in settled.preempted if _has_no_node(inner, one)]
            if lost and not may_lose:
                found.limit = "victims"
                told = f"{counted(len(lost), 'pod')} would have to leave and find no other node: "
                return PendingPod(key, told + listed(lost, _NAMES_SHOWN))
            found.nodes.append(settled.placed[key])
            found.victims.update(_workload_of(inner, owners, one) for one in settled.preempted if not is_headroom(one))
            inner.commit()
    return None


def _has_no_node(trial: WorldTrial, key: PodKey) -> bool:
    info = trial.world.cluster.find_pod(key)
    return info is None or not info.spec.node_name


def _workload_of(trial: WorldTrial, owners: PodOwners, key: PodKey) -> str:
    """`Deployment shop/web`; one that nobody makes again is gone, and stands for itself."""
    info = trial.world.cluster.find_pod(key)
    if info is None:
        return f"Pod {key}"
    kind, _, name = owners.workload_of(info.pod).partition(" ")
    return f"{kind} {info.namespace}/{name}"


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


class CopyAdmission:
    """The quotas of a namespace, with what its pods and claims take of them now; and its limit ranges."""

    def __init__(self, world: LoadedWorld, namespace: str) -> None:
        bounds = [one for one in world.bounds if one.namespace == namespace]
        self._ranges = [one for one in bounds if isinstance(one, LimitRange)]
        quotas = sorted((one for one in bounds if isinstance(one, ResourceQuota)), key=lambda one: one.name)
        self._accounts = [QuotaAccount(one) for one in quotas]
        if self._accounts:
            cluster = world.cluster
            pods = [info.pod for info in (*cluster.placed.values(), *cluster.pending.values())]
            for item in (*pods, *cluster.objects.persistent_volume_claims.values()):
                if item.namespace == namespace and not (
                    isinstance(item, Pod) and (item.is_terminal or is_headroom(item.pod_key))
                ):
                    self._charge(item)

    @property
    def has_quotas(self) -> bool:
        return bool(self._accounts)

    def let_in(self, replica: Replica) -> Replica:
        """The replica with the defaults of the limit ranges; the quotas are charged for it. Raises AdmissionError, and
        then nothing is charged."""
        admitted = Replica(within_limit_ranges(replica.pod, self._ranges), replica.claims)
        for claim in admitted.claims:
            refuse_claim_out_of_range(claim, self._ranges)
        charged: list[KubeObject] = []
        try:
            for item in (*admitted.claims, admitted.pod):
                for account in self._accounts:
                    account.refuse(item)
                self._charge(item)
                charged.append(item)
        except BaseException:
            for item in charged:
                self._give_back(item)
            raise
        return admitted

    def _charge(self, item: KubeObject) -> None:
        for account in self._accounts:
            account.charge(_told_apart(item))

    def _give_back(self, item: KubeObject) -> None:
        for account in self._accounts:
            account.give_back(_told_apart(item))


def _told_apart(item: KubeObject) -> KubeObject:
    """Quotas count an object once by its uid, which new ones lack."""
    kind = "claim" if isinstance(item, PersistentVolumeClaim) else "pod"
    return replace(item, metadata=replace(item.metadata, uid=f"{kind} {item.key}"))
