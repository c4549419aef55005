"""What makes pods: replica sets and stateful sets, deployments, daemon sets, jobs and cron jobs.

The default spread constraints take their selectors from replica sets and stateful sets. At the others scheduling never
looks, so `manifests.read` takes them only when it is asked to, by `kinds=KINDS_WITH_WORKLOADS`.

Next: `kubesched.k8s.workloads`, which makes the pods.
"""

from __future__ import annotations

from kubesched.k8s.model.core import PodTemplateSpec
from kubesched.k8s.model.meta import Int32, Int64, KubeObject, KubeStruct, LabelSelector, ObjectMeta
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


# -- apps --------------------------------------------------------------------------------------------------------------


class RollingUpdateDeployment(KubeStruct, frozen=True):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategy(KubeStruct, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(KubeStruct, frozen=True):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    strategy: DeploymentStrategy | None = None
    min_ready_seconds: Int32 = 0
    paused: bool = False


class DeploymentStatus(KubeStruct, frozen=True):
    collision_count: Int32 | None = None


class Deployment(KubeObject, frozen=True):
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class RollingUpdateDaemonSet(KubeStruct, frozen=True):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class DaemonSetUpdateStrategy(KubeStruct, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(KubeStruct, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    update_strategy: DaemonSetUpdateStrategy | None = None
    min_ready_seconds: Int32 = 0


class DaemonSet(KubeObject, frozen=True):
    spec: DaemonSetSpec = DaemonSetSpec()


# -- batch -------------------------------------------------------------------------------------------------------------


class PodFailureOnExitCodes(KubeStruct, frozen=True):
    operator: str = "In"
    values: tuple[int, ...] | None = None
    container_name: str | None = None


class PodFailureOnCondition(KubeStruct, frozen=True):
    type: str = ""
    status: str = "True"


class PodFailureRule(KubeStruct, frozen=True):
    action: str = ""
    on_exit_codes: PodFailureOnExitCodes | None = None
    on_pod_conditions: tuple[PodFailureOnCondition, ...] | None = None


class PodFailurePolicy(KubeStruct, frozen=True):
    rules: tuple[PodFailureRule, ...] | None = None


class SuccessRule(KubeStruct, frozen=True):
    succeeded_indexes: str | None = None
    succeeded_count: Int64 | None = None


class SuccessPolicy(KubeStruct, frozen=True):
    rules: tuple[SuccessRule, ...] | None = None


class JobSpec(KubeStruct, frozen=True):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int64 | None = None
    max_failed_indexes: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    success_policy: SuccessPolicy | None = None
    ttl_seconds_after_finished: Int64 | None = None
    managed_by: str | None = None
    suspend: bool = False
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None


class JobCondition(KubeStruct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class UncountedTerminatedPods(KubeStruct, frozen=True):
    """Uids of pods that have ended, and are not in the counts yet."""

    succeeded: tuple[str, ...] | None = None
    failed: tuple[str, ...] | None = None


class JobStatus(KubeStruct, frozen=True):
    succeeded: Int32 = 0
    failed: Int32 = 0
    completed_indexes: str = ""
    failed_indexes: str | None = None
    start_time: str | None = None
    completion_time: str | None = None
    conditions: tuple[JobCondition, ...] | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(KubeObject, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def is_finished(self) -> bool:
        return self.true_condition("Complete") is not None or self.true_condition("Failed") is not None

    def true_condition(self, kind: str) -> JobCondition | None:
        known = self.status.conditions or ()
        return next((one for one in known if one.type == kind and one.status == "True"), None)


class JobTemplateSpec(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(KubeStruct, frozen=True):
    schedule: str = ""
    time_zone: str | None = None
    concurrency_policy: str = "Allow"
    starting_deadline_seconds: Int64 | None = None
    suspend: bool = False
    job_template: JobTemplateSpec = JobTemplateSpec()


class CronJobStatus(KubeStruct, frozen=True):
    last_schedule_time: str | None = None


class CronJob(KubeObject, frozen=True):
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


WORKLOAD_KINDS: dict[tuple[str, str], type[KubeObject]] = {
    ("apps", "Deployment"): Deployment,
    ("apps", "DaemonSet"): DaemonSet,
    ("batch", "Job"): Job,
    ("batch", "CronJob"): CronJob,
}
"""By API group and kind, as `manifests.KINDS` has the others."""
