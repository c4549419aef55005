"""What keeps a pod where it is: the rules of `kubectl drain`, Karpenter and Cluster Autoscaler, and disruption budgets.

A reason has a name of the peer's own, by which its users look it up, and is told in our words. Pods that go with their
node (daemons, static pods) keep nobody. Budgets say how many pods may leave at a time: whatever leaves finds another
place and runs there, so what a budget allows is the same again afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.k8s.model.core import Node, Pod, PodStatus
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.times import Duration, DurationError, InstantError, instant_s
from kubesched.k8s.model.volumes import EmptyDirVolumeSource
from kubesched.k8s.workloads.budgets import BudgetSelectors, budget_numbers
from kubesched.k8s.workloads.pod_states import POD_PENDING, POD_RUNNING, belongs_to_its_node, is_daemon, is_ready
from kubesched.k8s.workloads.replicas import DELETION_COST_ANNOTATION
from kubesched.planning.catalogue import POOL
from kubesched.planning.headroom import is_headroom
from kubesched.planning.resting_workloads import PodOwners
from kubesched.simulator.trial import LoadedWorld

if TYPE_CHECKING:
    from kubesched.planning.consolidate.karpenter_pools import PoolBudgets

RULES = ("drain", "karpenter", "cluster-autoscaler")
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_SYSTEM_PODS_WAIT_S = 3600.0
"""So old pods of kube-system leave, too: --blocking-system-pod-distruption-timeout."""
_KNOWN_CONTROLLERS = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job", "DaemonSet")
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
_ALWAYS_ALLOW = "AlwaysAllow"
_MOST_COST = 10.0


@dataclass(frozen=True, slots=True)
class KeepReason:
    """Why a node stays."""

    identifier: str
    """As the peer whose rules are asked names it."""
    text: str
    pod: str = ""
    until_s: float | None = None
    """When it ends by itself, if it does."""

    def __str__(self) -> str:
        return f"{self.pod}: {self.text}" if self.pod else self.text


@dataclass(frozen=True, slots=True)
class DrainFlags:
    """Those of `kubectl drain` that let it do more."""

    force: bool = False
    """Pods of nobody are deleted, and nobody recreates them."""
    delete_emptydir_data: bool = False


class EvictionRules:
    def __init__(
        self,
        name: str,
        budgets: RestingBudgets,
        flags: DrainFlags | None = None,
        now_s: float | None = None,
        owners: PodOwners | None = None,
        has_node_pools: bool = False,
        of_pools: PoolBudgets | None = None,
    ) -> None:
        """`now_s` is when the cluster was seen; without it, every pod counts as new. With `has_node_pools`, Karpenter
        leaves nodes that are of none; `of_pools` is what its NodePools say, if they are known."""
        self._of_pools = of_pools
        self._budgets = budgets
        self._owners = owners
        self._has_node_pools = has_node_pools
        self._now_s = now_s
        self._flags = flags or DrainFlags()
        self._of_pod: Callable[[PodInfo], KeepReason | None] = {
            "drain": self._drain,
            "karpenter": self._karpenter,
            "cluster-autoscaler": self._cluster_autoscaler,
        }[name]
        self._is_autoscaler = name == "cluster-autoscaler"
        self._is_karpenter = name == "karpenter"

    def what_keeps(self, node: Node, pods: Sequence[PodInfo]) -> KeepReason | None:
        """The first reason against draining the node; None if it may be tried."""
        found = self._of_node(node)
        for info in () if found is not None else pods:
            found = self._of_any(info)
            if found is not None:
                return found
        return found or self._of_pool(node, pods)

    def all_that_keeps(self, node: Node, pods: Sequence[PodInfo]) -> list[KeepReason]:
        """Every reason against it, for a report about one node."""
        reasons = [self._of_node(node), *map(self._of_any, pods), self._of_pool(node, pods)]
        return [reason for reason in reasons if reason is not None]

    def _of_any(self, info: PodInfo) -> KeepReason | None:
        if _may_keep(info):
            return self._of_pod(info)
        if not self._is_karpenter or is_headroom(info.key) or info.pod.is_terminating:
            return None
        return self._karpenter(info) if is_daemon(info.pod) else self._do_not_disrupt(info)

    # -- each peer's rules ---------------------------------------------------------------------------------------------

    def _of_node(self, node: Node) -> KeepReason | None:
        if any(label in (node.metadata.labels or {}) for label in CONTROL_PLANE):
            return KeepReason("ControlPlane", "it is of the control plane")
        annotations = node.metadata.annotations or {}
        if self._is_karpenter and self._has_node_pools and POOL not in (node.metadata.labels or {}):
            return KeepReason("node isn't managed by karpenter", f"it has no label {POOL}")
        if self._is_karpenter and node.metadata.deletion_timestamp:
            return KeepReason("node is deleting or marked for deletion", "it is being deleted")
        if self._is_autoscaler and any(taint.key == TO_BE_DELETED for taint in node.spec.taints or ()):
            return KeepReason("CurrentlyBeingDeleted", f"it has the taint {TO_BE_DELETED}")
        if self._is_karpenter and annotations.get(DO_NOT_DISRUPT) == "true":
            return KeepReason(f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation', "the node says so")
        if self._is_autoscaler and annotations.get(SCALE_DOWN_DISABLED) == "true":
            return KeepReason("ScaleDownDisabledAnnotation", f"the node has {SCALE_DOWN_DISABLED}")
        return None

    def _of_pool(self, node: Node, pods: Sequence[PodInfo]) -> KeepReason | None:
        if not self._is_karpenter or self._of_pools is None:
            return None
        is_empty = not sum(eviction_cost(info) for info in pods if has_to_leave(info))
        return self._of_pools.pools.what_keeps(node, is_empty=is_empty) or self._of_pools.what_keeps(
            node, is_empty=is_empty
        )

    def _drain(self, info: PodInfo) -> KeepReason | None:
        if controller_of(info.pod.metadata) is None and not self._flags.force:
            return KeepReason("Unmanaged", "no controller would recreate it (--force deletes it)", info.key)
        if _local_volumes(info, host_paths=False) and not self._flags.delete_emptydir_data:
            return KeepReason("LocalStorage", "it has an emptyDir (--delete-emptydir-data gives it up)", info.key)
        return self._budget(info, "DisruptionBudget", "DisruptionBudgets")

    def _karpenter(self, info: PodInfo) -> KeepReason | None:
        return self._do_not_disrupt(info) or self._budget(
            info, "pdb prevents pod evictions", "eviction does not support multiple PDBs"
        )

    def _do_not_disrupt(self, info: PodInfo) -> KeepReason | None:
        """`true`, or a span since it started; anything else means nothing to Karpenter."""
        asked = (info.pod.metadata.annotations or {}).get(DO_NOT_DISRUPT, "")
        if asked != "true":
            try:
                span = Duration.parse(asked).seconds
            except DurationError:
                return None
            if span <= 0 or (self._age_s(info.pod.status.start_time) or 0.0) >= span:
                return None
        return KeepReason(f'pod has "{DO_NOT_DISRUPT}" annotation', "it asks not to be disrupted", info.key)

    def _age_s(self, since: str | None) -> float | None:
        """None if it is not known."""
        if self._now_s is None or not since:
            return None
        try:
            return self._now_s - instant_s(since)
        except InstantError:
            return None

    def _cluster_autoscaler(self, info: PodInfo) -> KeepReason | None:
        annotations = info.pod.metadata.annotations or {}
        owner = controller_of(info.pod.metadata)
        if owner is not None and self._owners is not None and self._owners.is_gone(info.namespace, owner):
            return _blocked("ControllerNotFound", f"{owner.kind} {owner.name}, which made it, is not there", info)
        if annotations.get(SAFE_TO_EVICT) == "on-completion":
            return KeepReason(
                "BlockedByOnCompletionPod", f"it is to end first ({SAFE_TO_EVICT}: on-completion)", info.key
            )
        if annotations.get(SAFE_TO_EVICT) != "true":
            if owner is None or owner.kind not in _KNOWN_CONTROLLERS:
                return _blocked("NotReplicated", "no controller is known that would recreate it", info)
            if info.namespace == "kube-system" and not self._budgets.covering(info):
                age_s = self._age_s(info.pod.metadata.creation_timestamp)
                if age_s is not None and age_s > _SYSTEM_PODS_WAIT_S:
                    return None
                return _blocked("UnmovableKubeSystemPod", "it is of kube-system, and no budget covers it", info)
            if annotations.get(SAFE_TO_EVICT) == "false":
                return _blocked("NotSafeToEvictAnnotation", f"it has {SAFE_TO_EVICT}: false", info)
            safe = set(annotations.get(SAFE_LOCAL_VOLUMES, "").split(","))
            if any(name not in safe for name in _local_volumes(info, host_paths=True)):
                return _blocked("LocalStorageRequested", "it has an emptyDir or a hostPath", info)
        return self._budget(info, "BlockedByPod/NotEnoughPdb", "BlockedByPod/NotEnoughPdb")

    def _budget(self, info: PodInfo, blocked: str, several: str) -> KeepReason | None:
        keys = self._budgets.guarding(info)
        if len(keys) > 1:
            return KeepReason(several, f"{len(keys)} disruption budgets cover it: {', '.join(keys)}", info.key)
        if keys and self._budgets.allowed[keys[0]] < 1:
            return KeepReason(blocked, f"disruption budget {keys[0]} allows none of its pods to leave", info.key)
        if keys and controller_of(info.pod.metadata) is None:
            return KeepReason(blocked, f"disruption budget {keys[0]} would lack it: nobody recreates it", info.key)
        return None


def has_to_leave(info: PodInfo) -> bool:
    """Who is Terminating leaves by itself, and has been replaced already; a StatefulSet waits until it is gone."""
    owner = controller_of(info.pod.metadata)
    is_leaving = info.pod.is_terminating and (owner is None or owner.kind != "StatefulSet")
    return not (is_leaving or belongs_to_its_node(info.pod) or is_headroom(info.key))


def eviction_cost(info: PodInfo) -> float:
    """Karpenter's: by the pod's deletion cost and priority; no less than nothing."""
    text = (info.pod.metadata.annotations or {}).get(DELETION_COST_ANNOTATION, "0")
    try:
        deletion_cost = float(text)
    except ValueError:
        deletion_cost = 0.0
    cost = 1.0 + deletion_cost / 2**27 + info.priority / 2**25
    return min(_MOST_COST, max(0.0, cost if isfinite(cost) else 1.0))


def _may_keep(info: PodInfo) -> bool:
    """Who is Terminating leaves anyway."""
    return not (belongs_to_its_node(info.pod) or is_headroom(info.key) or info.pod.is_terminating)


def _blocked(reason: str, text: str, info: PodInfo) -> KeepReason:
    return KeepReason(f"BlockedByPod/{reason}", text, info.key)


def _local_volumes(info: PodInfo, *, host_paths: bool) -> list[str]:
    volumes = info.spec.volumes or ()
    if not host_paths:
        return [one.name for one in volumes if one.empty_dir is not None]
    return [one.name for one in volumes if one.host_path is not None or _is_on_disk(one.empty_dir)]


def _is_on_disk(empty_dir: EmptyDirVolumeSource | None) -> bool:
    """One in memory is nothing that Cluster Autoscaler would keep."""
    return empty_dir is not None and empty_dir.medium != "Memory"


def seen_at_s(world: LoadedWorld) -> float | None:
    """The latest time that anything in the cluster tells: a dump does not say when it was taken."""
    pods = [info.pod for info in (*world.cluster.placed.values(), *world.cluster.pending.values())]
    texts = {pod.metadata.creation_timestamp for pod in pods} | {pod.status.start_time for pod in pods}
    texts |= {node.metadata.creation_timestamp for node in world.cluster.table.nodes}
    return max((instant_s(text) for text in texts if text), default=None)


class RestingBudgets:
    def __init__(self, world: LoadedWorld, owners: PodOwners) -> None:
        budgets = world.cluster.objects.pod_disruption_budgets
        self._selectors = BudgetSelectors()
        self._covering: dict[PodSignature, tuple[str, ...]] = {}
        for budget in budgets.values():
            self._selectors.put(budget)
        covered: dict[str, list[Pod]] = {key: [] for key in budgets}
        for info in world.cluster.placed.values():
            for key in self.covering(info):
                covered[key].append(_as_running(info.pod))
        numbers = {key: budget_numbers(budget, covered[key], owners.scale_of) for key, budget in budgets.items()}
        self.allowed = {key: one.n_allowed for key, one in numbers.items()}
        """How many of its pods may leave at a time."""
        self._lets_unready_go = {
            key
            for key, one in numbers.items()
            if budgets[key].spec.unhealthy_pod_eviction_policy == _ALWAYS_ALLOW or 0 < one.n_needed <= one.n_healthy
        }

    def covering(self, info: PodInfo) -> tuple[str, ...]:
        """The budgets that a pod counts for."""
        if is_headroom(info.key):
            return ()
        known = self._covering.get(info.signature)
        if known is None:
            known = self._covering[info.signature] = tuple(self._selectors.covering(info.namespace, info.labels))
        return known

    def guarding(self, info: PodInfo) -> tuple[str, ...]:
        """The budgets that an eviction asks: none for a pod that has not started, or is not ready if its budget lets
        such pods go."""
        keys = self.covering(info)
        pod = info.pod
        if not keys or not pod.status.conditions:
            return keys
        if pod.status.phase == POD_PENDING:
            return ()
        return () if len(keys) == 1 and keys[0] in self._lets_unready_go and not is_ready(pod) else keys

    def waves(self, pods: Sequence[PodInfo]) -> list[list[PodInfo]]:
        """The pods in the order in which they may leave: each wave when the one before it has its place. Pods that may
        not leave at all must have been left out."""
        waves: list[list[PodInfo]] = []
        waiting = list(pods)
        while waiting:
            taken: Counter[str] = Counter()
            wave, later = [], []
            for info in waiting:
                keys = self.guarding(info)
                if all(taken[key] < self.allowed[key] for key in keys):
                    taken.update(keys)
                    wave.append(info)
                else:
                    later.append(info)
            assert wave, "a pod that a budget keeps was to leave"
            waves.append(wave)
            waiting = later
        return waves


def _as_running(pod: Pod) -> Pod:
    """A pod that was just placed will run."""
    is_new = pod.status.phase != POD_RUNNING and not pod.status.conditions
    return replace(pod, status=PodStatus(phase=POD_RUNNING)) if is_new else pod
