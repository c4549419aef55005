"""Jobs: pods that run to their end, as many at a time as allowed, until enough have succeeded; and cron jobs.

A finished pod is counted once: its finalizer is taken off together with the count. After failures, the next pod waits a
while, longer each time; after too many, or when a policy says so, the job fails. How a job ends is said twice: first
that it will (`SuccessCriteriaMet`, `FailureTarget`), and when its last pod is gone, that it has (`Complete`, `Failed`).

A job may have a group of its own: the Workload and the PodGroup that the feature gate WorkloadWithJob makes for it,
with names and contents of kube-controller-manager. In v1.36 that is a job which needs all its pods at once: indexed,
with as many completions as pods that run side by side. Its group is a gang of that size. In v1.37 it is every job that
belongs to nobody else, and its group is no gang: `is_next` says which of them is meant. A job that names a group in its
template has it from elsewhere.

A cron job makes a job whenever its time comes.

Next: `cron_schedule` for when that is, `job_pods` for how the pods look, what has ended and what that means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from kubesched.k8s.model.apps import CronJob, Job, JobCondition, JobStatus
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.cron_schedule import CronSchedule
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference, controller_of
from kubesched.k8s.model.scheduling import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupTemplate,
    PodGroupTemplateReference,
    TypedLocalReference,
    Workload,
    WorkloadPodGroupTemplateReference,
    WorkloadReference,
    WorkloadSpec,
)
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.k8s.workloads.actions import UNPACED, Bursts, NameSource, Plan, safe_hash
from kubesched.k8s.workloads.job_pods import (
    IGNORE,
    INDEXED,
    JOB_FINALIZER,
    JobCount,
    JobFailures,
    completion_index,
    count,
    index_failures,
    make_job_pod,
    met_success_rule,
    n_restarts,
    replaces_only_failed,
    verdict_of,
)
from kubesched.k8s.workloads.pod_states import is_active
from kubesched.k8s.workloads.replicas import least_valuable
from kubesched.k8s.workloads.templates import owner_reference

SCHEDULED_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def sync_cron_job(owner: CronJob, jobs: Sequence[Job], since_s: float, now_s: float) -> Plan:
    """`jobs` are those of the cron job; `since_s` is when the cron job itself came. Raises CronError."""
    plan = Plan()
    if owner.spec.suspend:
        return plan
    schedule = CronSchedule.parse(owner.spec.schedule, owner.spec.time_zone or "UTC")
    last = owner.status.last_schedule_time
    from_s = since_s if last is None else max(since_s, parse_instant(last))
    deadline_s = owner.spec.starting_deadline_seconds
    if deadline_s is not None:  # what is later than that is missed
        from_s = max(from_s, now_s - deadline_s)
    due_s = schedule.last_between(from_s, now_s)
    if due_s is not None:
        running = [job for job in jobs if not job.is_finished]
        if not running or owner.spec.concurrency_policy != "Forbid":
            if owner.spec.concurrency_policy == "Replace":
                for job in running:
                    plan.delete(job)
            plan.create(_job(owner, due_s))
            plan.update(replace(owner, status=replace(owner.status, last_schedule_time=print_instant(due_s))))
    next_s = schedule.next_after(now_s)
    if next_s is not None:
        plan.look_again(next_s)
    return plan


def _job(owner: CronJob, due_s: float) -> Job:
    template = owner.spec.job_template
    metadata = template.metadata
    return Job(
        metadata=ObjectMeta(
            name=f"{owner.name}-{int(due_s) // 60}",
            namespace=owner.namespace,
            labels=metadata.labels,
            annotations={**(metadata.annotations or {}), SCHEDULED_ANNOTATION: print_instant(due_s)},
            owner_references=(owner_reference(owner),),
        ),
        spec=template.spec,
    )


DEFAULT_BACKOFF_LIMIT = 6
_HIGHEST_LIMIT = 2**31 - 1
OWN_MANAGER = "kubernetes.io/job-controller"
_ENDINGS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}


def sync_job(
    job: Job,
    pods: Sequence[Pod],
    names: NameSource,
    failures: JobFailures,
    now_s: float,
    bursts: Bursts = UNPACED,
) -> Plan:
    """`pods` are those of the job, counted or not."""
    plan = Plan()
    if job.spec.managed_by not in (None, OWN_MANAGER):
        return plan
    if job.is_finished:
        _let_go(plan, [pod for pod in pods if JOB_FINALIZER in (pod.metadata.finalizers or ())])
        failures.forget(job.metadata.uid)
        _expire(plan, job, now_s)
        return plan
    counted = count(job, pods, failures, now_s)
    _let_go(plan, counted.ended)
    look = _Look(job, pods, counted, now_s)
    target = look.target()
    if target is not None:
        status = look.ended(target)
        for pod in look.active:
            plan.delete(pod)
    elif job.spec.suspend:
        status = look.suspended()
        for pod in look.active:
            plan.delete(pod)
    else:
        status = look.going_on()
        _adjust(plan, look, names, failures, bursts)
        if job.spec.active_deadline_seconds is not None and status.start_time is not None:
            plan.look_again(parse_instant(status.start_time) + job.spec.active_deadline_seconds)
    if status != job.status:
        plan.update(replace(job, status=status))
    return plan


def n_completions(job: Job) -> int | None:
    """How many pods must succeed; None if the pods find out among themselves."""
    if job.spec.completions is None and job.spec.parallelism is None:
        return 1
    return job.spec.completions


def with_job_condition(
    status: JobStatus, kind: str, is_true: bool, reason: str, message: str, now_s: float
) -> JobStatus:
    """The time of the last transition stays where the status does."""
    known = status.conditions or ()
    before = next((one for one in known if one.type == kind), None)
    value = "True" if is_true else "False"
    moment = before.last_transition_time if before and before.status == value else print_instant(now_s)
    made = JobCondition(kind, value, reason, message, moment)
    others = tuple(made if one is before else one for one in known)
    return replace(status, conditions=others if before else (*others, made))


@dataclass(slots=True)
class _Look:
    """A job as it is now, with all that has ended counted."""

    job: Job
    pods: Sequence[Pod]
    counted: JobCount
    now_s: float

    @property
    def active(self) -> list[Pod]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def n_terminating(self) -> int:
        return sum(1 for pod in self.pods if pod.is_terminating and not pod.is_terminal)

    def target(self) -> JobCondition | None:
        """How the job will end, if that is sure: what was said before, then failures, then success."""
        for kind in _ENDINGS:
            said = self.job.true_condition(kind)
            if said is not None:
                return said
        return self._failure() or self._success()

    def _failure(self) -> JobCondition | None:
        spec, status = self.job.spec, self.counted.status
        if self.counted.failing:
            return JobCondition("FailureTarget", "True", "PodFailurePolicy", self.counted.failing)
        if status.failed > self._backoff_limit or self._has_restarted_too_often():
            message = "Job has reached the specified backoff limit"
            return JobCondition("FailureTarget", "True", "BackoffLimitExceeded", message)
        deadline = spec.active_deadline_seconds
        is_running = not spec.suspend and status.start_time is not None
        if deadline is not None and is_running and self.now_s >= parse_instant(status.start_time or "") + deadline:
            message = "Job was active longer than specified deadline"
            return JobCondition("FailureTarget", "True", "DeadlineExceeded", message)
        n_lost = len(self.counted.failed_indexes)
        if spec.max_failed_indexes is not None and n_lost > spec.max_failed_indexes:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return JobCondition("FailureTarget", "True", "MaxFailedIndexesExceeded", message)
        if n_lost and n_lost + len(self.counted.completed) >= (spec.completions or 0):
            return JobCondition("FailureTarget", "True", "FailedIndexes", "Job has failed indexes")
        return None

    def _success(self) -> JobCondition | None:
        rule = met_success_rule(self.job, self.counted.completed)
        if rule is not None:
            return JobCondition("SuccessCriteriaMet", "True", "SuccessPolicy", f"Matched rules at index {rule}")
        completions, n_succeeded = n_completions(self.job), self.counted.status.succeeded
        is_enough = n_succeeded > 0 and not self.active if completions is None else n_succeeded >= completions
        if not is_enough:
            return None
        message = "Reached expected number of succeeded pods"
        return JobCondition("SuccessCriteriaMet", "True", "CompletionsReached", message)

    @property
    def _backoff_limit(self) -> int:
        spec = self.job.spec
        if spec.backoff_limit is not None:
            return spec.backoff_limit
        return DEFAULT_BACKOFF_LIMIT if spec.backoff_limit_per_index is None else _HIGHEST_LIMIT

    def _has_restarted_too_often(self) -> bool:
        """Containers that are started again on their node count, too."""
        template = self.job.spec.template
        if template is None or template.spec.restart_policy != "OnFailure":
            return False
        n = sum(n_restarts(pod) for pod in self.active)
        return n > 0 if self._backoff_limit == 0 else n >= self._backoff_limit

    def ended(self, target: JobCondition) -> JobStatus:
        """That it will, and that it has as soon as no pod is left."""
        status = self.counted.status
        if status.start_time is None and not self.job.spec.suspend:
            status = replace(status, start_time=print_instant(self.now_s))
        status = with_job_condition(status, target.type, True, target.reason, target.message, self.now_s)
        if self.active or self.n_terminating:
            return status
        ending = _ENDINGS[target.type]
        if ending == "Complete":
            status = replace(status, completion_time=print_instant(self.now_s))
        return with_job_condition(status, ending, True, target.reason, target.message, self.now_s)

    def suspended(self) -> JobStatus:
        if self.job.true_condition("Suspended") is not None:
            return self.counted.status
        status = replace(self.counted.status, start_time=None)
        return with_job_condition(status, "Suspended", True, "JobSuspended", "Job suspended", self.now_s)

    def going_on(self) -> JobStatus:
        status = self.counted.status
        if self.job.true_condition("Suspended") is not None:
            status = with_job_condition(status, "Suspended", False, "JobResumed", "Job resumed", self.now_s)
            return replace(status, start_time=print_instant(self.now_s))
        return status if status.start_time is not None else replace(status, start_time=print_instant(self.now_s))


def _adjust(plan: Plan, look: _Look, names: NameSource, failures: JobFailures, bursts: Bursts) -> None:
    """More pods, or fewer, so that as many run as may. What is too much goes before anything is added."""
    job, active = look.job, look.active
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    completions, n_succeeded = n_completions(job), look.counted.status.succeeded
    if completions is not None:
        n_wanted = max(0, min(parallelism, completions - n_succeeded))
    else:
        n_wanted = len(active) if n_succeeded else parallelism
    surplus = _surplus(job, active, n_wanted)
    for pod in surplus:
        plan.delete(pod)
    n_missing = n_wanted - len(active) - (look.n_terminating if replaces_only_failed(job) else 0)
    if n_missing <= 0 or surplus:
        return
    per_index = job.spec.backoff_limit_per_index is not None
    ready_at_s = 0.0 if per_index else failures.ready_at_s(job.metadata.uid)
    if ready_at_s > look.now_s:
        plan.look_again(ready_at_s)
        return
    if job.spec.completion_mode != INDEXED or completions is None:
        for _ in range(bursts.cut(plan, n_missing, active)):
            plan.create(make_job_pod(job, None, names))
        return
    ready = _ready_indexes(plan, look, completions, failures if per_index else None)
    for index in list(islice(ready, bursts.cut(plan, n_missing, active))):
        plan.create(make_job_pod(job, index, names, _index_failures(look, index, failures) if per_index else 0))


def _surplus(job: Job, active: Sequence[Pod], n_wanted: int) -> list[Pod]:
    """Pods whose number is taken or out of range, and those that are worth least."""
    odd: list[Pod] = []
    if job.spec.completion_mode == INDEXED:
        seen: set[int] = set()
        for pod in sorted(active, key=lambda one: one.metadata.creation_timestamp or ""):
            index = completion_index(pod)
            if index is None or index >= (job.spec.completions or 0) or index in seen:
                odd.append(pod)
            else:
                seen.add(index)
    rest = [pod for pod in active if pod not in odd]
    return odd + least_valuable(rest, len(rest) - n_wanted)


def _ready_indexes(plan: Plan, look: _Look, completions: int, waits: JobFailures | None) -> Iterator[int]:
    """The lowest indexes that no pod has or had, without those that must wait."""
    taken = look.counted.completed | look.counted.failed_indexes
    holders = [pod for pod in look.pods if is_active(pod) or _still_holds(look.job, pod)]
    taken |= {index for pod in holders if (index := completion_index(pod)) is not None}
    for index in range(completions):
        if index in taken:
            continue
        ready_at_s = 0.0 if waits is None else waits.ready_at_s(look.job.metadata.uid, index)
        if ready_at_s > look.now_s:
            plan.look_again(ready_at_s)
        else:
            yield index


def _still_holds(job: Job, pod: Pod) -> bool:
    return replaces_only_failed(job) and pod.is_terminating and not pod.is_terminal


def _index_failures(look: _Look, index: int, failures: JobFailures) -> int:
    """By what is remembered, and by the pods that are still there."""
    failed = [pod for pod in look.pods if pod.status.phase == "Failed" and completion_index(pod) == index]
    seen = max((index_failures(pod) + (verdict_of(look.job, pod).action != IGNORE) for pod in failed), default=0)
    return max(failures.n_failed(look.job.metadata.uid, index), seen)


def _let_go(plan: Plan, pods: Sequence[Pod]) -> None:
    for pod in pods:
        kept = tuple(name for name in pod.metadata.finalizers or () if name != JOB_FINALIZER)
        plan.update(replace(pod, metadata=replace(pod.metadata, finalizers=kept or None)))


def _expire(plan: Plan, job: Job, now_s: float) -> None:
    """A finished job goes when its time is over."""
    lasts_s = job.spec.ttl_seconds_after_finished
    end = job.true_condition("Complete") or job.true_condition("Failed")
    if lasts_s is None or end is None or end.last_transition_time is None:
        return
    due_s = parse_instant(end.last_transition_time) + lasts_s
    if due_s <= now_s:
        plan.delete(job)
    else:
        plan.look_again(due_s)


_JOB_GROUP = "batch"
_LONGEST_NAME = 253


def needs_group(job: Job, is_next: bool = False) -> bool:
    spec = job.spec
    if spec.template is not None and spec.template.spec.scheduling_group is not None:
        return False
    if is_next:
        return controller_of(job.metadata) is None
    size = spec.parallelism or 0
    return spec.completion_mode == "Indexed" and size > 1 and spec.completions == size


def is_new(job: Job, pods: Sequence[Pod]) -> bool:
    """It never started: the pods of one that did may stand outside of any group."""
    status = job.status
    was_suspended = any(one.type == "Suspended" for one in status.conditions or ())
    return not (pods or status.start_time or status.succeeded or status.failed or was_suspended)


def workload_for(job: Job, is_next: bool = False) -> Workload:
    suffix = safe_hash(f"(types.UID){job.metadata.uid}".encode())
    name = f"{job.name[: _LONGEST_NAME - len(suffix) - 1]}-{suffix}"
    if is_next:
        class_name = job.spec.template.spec.priority_class_name if job.spec.template is not None else ""
        policy = PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
    else:
        class_name = ""
        policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=job.spec.parallelism or 0))
    return Workload(
        metadata=ObjectMeta(name=name, namespace=job.namespace, owner_references=(owner_reference(job),)),
        spec=WorkloadSpec(
            controller_ref=TypedLocalReference(_JOB_GROUP, "Job", job.name),
            pod_group_templates=(PodGroupTemplate(f"{job.name}-pgt-0", policy, priority_class_name=class_name),),
        ),
    )


def is_workload_of(workload: Workload, job: Job) -> bool:
    return workload.spec.controller_ref == TypedLocalReference(_JOB_GROUP, "Job", job.name)


def pod_group_for(job: Job, workload: Workload, api_version: str, is_next: bool = False) -> PodGroup:
    """From the workload's only template, as that is now."""
    (template,) = workload.spec.pod_group_templates or ()
    also = OwnerReference("Workload", workload.name, workload.metadata.uid, api_version)
    owners = (owner_reference(job), also)
    name = _group_name(workload.name, template.name)
    metadata = ObjectMeta(name=name, namespace=job.namespace, owner_references=owners)
    if is_next:
        spec = PodGroupSpec(
            scheduling_policy=template.scheduling_policy,
            scheduling_constraints=template.scheduling_constraints,
            resource_claims=template.resource_claims,
            disruption_mode=template.disruption_mode,
            priority_class_name=template.priority_class_name,
            workload_ref=WorkloadReference(workload.name, template.name),
        )
        return PodGroup(metadata=metadata, spec=spec)
    reference = WorkloadPodGroupTemplateReference(workload.name, template.name)
    spec = PodGroupSpec(
        scheduling_policy=template.scheduling_policy, pod_group_template_ref=PodGroupTemplateReference(reference)
    )
    return PodGroup(metadata=metadata, spec=spec)


def is_group_of(group: PodGroup, workload: Workload) -> bool:
    older = group.spec.pod_group_template_ref
    reference = group.spec.workload_ref or (older.workload if older is not None else None)
    return reference is not None and reference.workload_name == workload.name


def _group_name(workload: str, template: str) -> str:
    """Where both together are too long, the one that takes more than half is cut."""
    suffix = safe_hash((workload + template).encode())
    room = _LONGEST_NAME - len(suffix) - 2
    if len(workload) + len(template) > room:
        of_template = min(len(template), max(room // 2, room - len(workload)))
        workload, template = workload[: room - of_template], template[:of_template]
    return f"{workload}-{template}-{suffix}"
