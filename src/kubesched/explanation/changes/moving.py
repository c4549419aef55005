"""Move the pods in the way: those that hold the port, the claim or the place on a node that lacks nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kubesched.explanation.changes.change import Change, ChangeKind, DeletePods, Proposal, Reluctance
from kubesched.explanation.changes.freeing import is_weighty
from kubesched.explanation.changes.situation import Situation
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity
from kubesched.explanation.findings.ports import TakenPorts
from kubesched.explanation.findings.volume_use import VolumesInUse
from kubesched.explanation.layout import all_of
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions

ROWS_CONSIDERED = 200
MOST_PODS = 3
"""More pods than that are not in the way, they live there."""


def move_pods_in_the_way(situation: Situation) -> list[Change]:
    found = []
    for plugin in (NodePorts.name, VolumeRestrictions.name, InterPodAffinity.name):
        if plugin in situation.failures.rejecting():
            rows = situation.failures.only({plugin})[:ROWS_CONSIDERED].tolist()
            proposals = sorted(_proposals(situation, plugin, rows), key=lambda proposal: proposal.acceptance)
            change = situation.what_if.first_that_helps(proposals)
            found.extend([] if change is None else [change])
    return found


def _proposals(situation: Situation, plugin: str, rows: Iterable[int]) -> Iterator[Proposal]:
    source = _source(situation, plugin)
    told: set[tuple[PodKey, ...]] = set()
    for row in rows:
        keys = dict.fromkeys(fact.fields["pod"] for fact in source.of(row) if "pod" in fact.fields)
        pods = [pod for key in keys if (pod := situation.cluster.placed.get(key)) is not None]
        if pods and len(pods) == len(keys) <= MOST_PODS and tuple(keys) not in told:
            told.add(tuple(keys))
            yield _proposal(situation, row, pods)


def _source(situation: Situation, plugin: str) -> TakenPorts | VolumesInUse | UnmetPodAffinity:
    if plugin == NodePorts.name:
        return TakenPorts(situation.cluster, situation.pod, situation.nominated_pods)
    if plugin == VolumeRestrictions.name:
        return VolumesInUse(situation.cluster, situation.pod)
    return UnmetPodAffinity(situation.cluster, situation.pod, situation.nominated_pods)


def _proposal(situation: Situation, row: int, pods: Sequence[PodInfo]) -> Proposal:
    keys = [pod.key for pod in pods]
    by_node: dict[str, list[PodKey]] = {}
    for pod in pods:
        by_node.setdefault(pod.spec.node_name, []).append(pod.key)
    weighty = any(is_weighty(pod, situation.pod) for pod in pods)
    return Proposal(
        kind=ChangeKind.FREE,
        description=f"move {all_of(keys)} away from {all_of(sorted(by_node))}",
        node=situation.name(row),
        actions=tuple(DeletePods(node, tuple(on_node)) for node, on_node in by_node.items()),
        details={"pods": keys},
        n_edits=len(keys),
        reluctance=Reluctance.HARM if weighty else Reluctance.OTHERS,
        cost_to_others="it has to run elsewhere" if len(keys) == 1 else "they have to run elsewhere",
    )
