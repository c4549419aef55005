"""Deployments, daemon sets, jobs and cron jobs: what makes pods, as far as the making goes.

Scheduling never looks at these kinds, so `manifests.read` takes them only when it is asked to, by
`kinds=KINDS_WITH_WORKLOADS`.

Next: `kubesched.expansion`, which makes the pods.
"""

from __future__ import annotations

from kubesched.model.core import PodTemplateSpec
from kubesched.model.meta import KubeObject, KubeStruct, LabelSelector, ObjectMeta

# -- apps --------------------------------------------------------------------------------------------------------------


class RollingUpdateDeployment(KubeStruct, frozen=True):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategy(KubeStruct, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(KubeStruct, frozen=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    strategy: DeploymentStrategy | None = None
    paused: bool = False


class Deployment(KubeObject, frozen=True):
    spec: DeploymentSpec = DeploymentSpec()


class RollingUpdateDaemonSet(KubeStruct, frozen=True):
    max_unavailable: int | str | None = None


class DaemonSetUpdateStrategy(KubeStruct, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(KubeStruct, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    update_strategy: DaemonSetUpdateStrategy | None = None


class DaemonSet(KubeObject, frozen=True):
    spec: DaemonSetSpec = DaemonSetSpec()


# -- batch -------------------------------------------------------------------------------------------------------------


class JobSpec(KubeStruct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    suspend: bool = False
    template: PodTemplateSpec | None = None


class JobCondition(KubeStruct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class JobStatus(KubeStruct, frozen=True):
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    start_time: str | None = None
    conditions: tuple[JobCondition, ...] | None = None


class Job(KubeObject, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def is_finished(self) -> bool:
        conditions = self.status.conditions or ()
        return any(known.type in ("Complete", "Failed") and known.status == "True" for known in conditions)


class JobTemplateSpec(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(KubeStruct, frozen=True):
    schedule: str = ""
    time_zone: str | None = None
    concurrency_policy: str = "Allow"
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
