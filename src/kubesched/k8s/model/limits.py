"""What bounds a namespace and sizes a workload: quotas, limit ranges, horizontal pod autoscalers.

Scheduling looks at none of them. They decide which pods there are at all, so a dump of a cluster holds them, and
whoever plans for it reads them.

Next: `quota_usage` for what an object takes of a quota.
"""

from __future__ import annotations

from kubesched.k8s.model.meta import Int32, KubeObject, KubeStruct, ResourceList


class ScopeRequirement(KubeStruct, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class ScopeSelector(KubeStruct, frozen=True):
    match_expressions: tuple[ScopeRequirement, ...] | None = None


class ResourceQuotaSpec(KubeStruct, frozen=True):
    hard: ResourceList | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(KubeStruct, frozen=True):
    hard: ResourceList | None = None
    used: ResourceList | None = None


class ResourceQuota(KubeObject, frozen=True):
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class LimitRangeItem(KubeStruct, frozen=True):
    """For a `Container`, a `Pod` or a `PersistentVolumeClaim`."""

    type: str = ""
    min: ResourceList | None = None
    max: ResourceList | None = None
    default: ResourceList | None = None
    default_request: ResourceList | None = None
    max_limit_request_ratio: ResourceList | None = None


class LimitRangeSpec(KubeStruct, frozen=True):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(KubeObject, frozen=True):
    spec: LimitRangeSpec = LimitRangeSpec()


class ScaleTarget(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(KubeStruct, frozen=True):
    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0


class HorizontalPodAutoscalerStatus(KubeStruct, frozen=True):
    current_replicas: Int32 = 0
    desired_replicas: Int32 = 0


class HorizontalPodAutoscaler(KubeObject, frozen=True):
    """How far a workload may grow and shrink; not by which metrics."""

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()
