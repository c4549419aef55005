"""Replica sets and stateful sets. The default spread constraints take their selectors from them.

Next: `workloads` for the controllers that scheduling itself never looks at.
"""

from __future__ import annotations

from kubesched.k8s.model.core import PodTemplateSpec
from kubesched.k8s.model.meta import KubeObject, KubeStruct, LabelSelector
from kubesched.k8s.model.numbers import Int32
from kubesched.k8s.model.volumes import PersistentVolumeClaimTemplate


class ReplicaSetSpec(KubeStruct, frozen=True):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    min_ready_seconds: Int32 = 0


class ReplicaSet(KubeObject, frozen=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetOrdinals(KubeStruct, frozen=True):
    start: Int32 = 0


class StatefulSetRollingUpdate(KubeStruct, frozen=True):
    partition: Int32 = 0
    max_unavailable: int | str | None = None


class StatefulSetClaimRetention(KubeStruct, frozen=True):
    """What becomes of claims when their pod, or the whole set, goes: `Retain` or `Delete`."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class StatefulSetUpdateStrategy(KubeStruct, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: StatefulSetRollingUpdate | None = None


class StatefulSetSpec(KubeStruct, frozen=True):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    volume_claim_templates: tuple[PersistentVolumeClaimTemplate, ...] | None = None
    pod_management_policy: str = "OrderedReady"
    ordinals: StatefulSetOrdinals | None = None
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: StatefulSetClaimRetention | None = None
    update_strategy: StatefulSetUpdateStrategy | None = None


class StatefulSetStatus(KubeStruct, frozen=True):
    current_revision: str = ""


class StatefulSet(KubeObject, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()
