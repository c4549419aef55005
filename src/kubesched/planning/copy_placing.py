"""Copies come one after another until one finds no node, or the API server refuses it.

Without preemption the next one is simply the next decision. With it, a copy that finds no node may preempt others; it
counts if all of them find another node, or if they may be lost.

Next: `kubesched.simulator.trial`, where the copies are placed and taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from kubesched.explanation.layout import counted, listed
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.planning.copy_admission import CopyAdmission
from kubesched.planning.headroom import is_headroom
from kubesched.planning.owners import PodOwners
from kubesched.planning.workload_copies import Replica
from kubesched.simulator.settling import PendingPod
from kubesched.simulator.trial import WorldTrial

_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class CopyRules:
    """Under which copies are counted."""

    most: int
    has_quota: bool = True
    may_preempt: bool = False
    may_lose: bool = False
    """Whoever is preempted need not find another node."""


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
