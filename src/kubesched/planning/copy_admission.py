"""Whether an API server would let copies of a pod in: limit ranges and quotas of its namespace.

Next: `kubesched.k8s.workloads.admission` for the rules.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.limits import LimitRange, ResourceQuota
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.admission import (
    QuotaAccount,
    refuse_claim_out_of_range,
    within_limit_ranges,
)
from kubesched.planning.headroom import is_headroom
from kubesched.planning.workload_copies import Replica
from kubesched.simulator.trial import LoadedWorld


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
