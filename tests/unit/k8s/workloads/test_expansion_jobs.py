"""Jobs and cron jobs: how many pods, when, and when it is enough."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from harness.workload_manifests import cron_job, objects, workload
from kubesched.k8s.model.apps import CronJob, Job, UncountedTerminatedPods
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.reported_pods import ReportedContainerStatus, ReportedPod, ReportedPodStatus
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.k8s.workloads.actions import CreateObject, DeleteObject, Plan, SeededNames, UpdateObject
from kubesched.k8s.workloads.job_pods import JobFailures, completion_index, index_failures, parse_indexes, print_indexes
from kubesched.k8s.workloads.jobs import sync_cron_job, sync_job
from kubesched.k8s.workloads.pod_states import with_condition

NOW_S = parse_instant("2026-01-01T00:00:00Z")


class JobRun:
    """A job and its pods; plans are carried out at once."""

    def __init__(self, **spec: Any) -> None:
        (job,) = objects(workload("Job", "sum", **spec))
        assert isinstance(job, Job)
        self.job = replace(job, metadata=replace(job.metadata, uid="uid-sum"))
        self.pods: dict[str, Pod] = {}
        self.failures = JobFailures()
        self.names = SeededNames(0)

    def sync(self, at_s: float = 0.0) -> Plan:
        plan = sync_job(self.job, list(self.pods.values()), self.names, self.failures, NOW_S + at_s)
        for action in plan.actions:
            item = action.item
            if isinstance(item, Job):
                self.job = item
            elif isinstance(item, Pod):
                if isinstance(action, DeleteObject) or (not item.metadata.finalizers and item.is_terminal):
                    self.pods.pop(item.name, None)
                else:
                    self.pods[item.name] = replace(item, metadata=replace(item.metadata, uid=item.name))
        return plan

    def end(self, n: int, phase: str = "Succeeded", index: int | None = None) -> None:
        active = [pod for pod in self.pods.values() if not pod.is_terminal]
        if index is not None:
            active = [pod for pod in active if completion_index(pod) == index]
        for pod in active[:n]:
            self.pods[pod.name] = replace(pod, status=replace(pod.status, phase=phase))

    @property
    def n_active(self) -> int:
        return sum(1 for pod in self.pods.values() if not pod.is_terminal)

    @property
    def outcome(self) -> tuple[str, str]:
        announced, condition = self.job.status.conditions or ()
        assert announced.type == {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[condition.type]
        assert (announced.reason, announced.message) == (condition.reason, condition.message)
        return condition.type, condition.reason


def test_a_plain_job_runs_one_pod_to_its_end() -> None:
    run = JobRun()
    run.sync()
    (pod,) = run.pods.values()
    assert pod.labels.items() >= {"job-name": "sum", "batch.kubernetes.io/controller-uid": "uid-sum"}.items()
    assert run.job.status.start_time == print_instant(NOW_S)
    run.end(1)
    run.sync()
    assert run.outcome == ("Complete", "CompletionsReached")
    assert run.sync().actions == []


def test_completed_pods_are_replaced_until_there_are_enough() -> None:
    run = JobRun(completions=5, parallelism=2)
    counts = []
    while not run.job.is_finished:
        run.sync()
        counts.append(run.n_active)
        run.end(2)
    assert counts == [2, 2, 1, 0]
    assert run.job.status.succeeded == 5


def test_without_completions_one_success_is_enough_and_the_others_may_finish() -> None:
    run = JobRun(parallelism=3)
    run.sync()
    run.end(1)
    run.sync()
    assert (run.n_active, run.job.is_finished) == (2, False)
    run.end(2)
    run.sync()
    assert run.outcome[0] == "Complete"


def test_failures_delay_the_next_pod_longer_and_longer() -> None:
    run = JobRun()
    run.sync()
    at_s, waits = 0.0, []
    for _ in range(3):
        run.end(1, "Failed")
        plan = run.sync(at_s)
        assert run.n_active == 0
        assert plan.again_at_s is not None
        waits.append(plan.again_at_s - NOW_S - at_s)
        at_s = plan.again_at_s - NOW_S
        run.sync(at_s)
        assert run.n_active == 1
    assert waits == [10, 20, 40]


def test_after_too_many_failures_the_job_has_failed_and_its_pods_go() -> None:
    run = JobRun(backoffLimit=1, parallelism=3)
    run.sync()
    run.end(2, "Failed")
    plan = run.sync()
    assert [type(action) for action in plan.actions].count(DeleteObject) == 1
    assert not run.job.is_finished
    run.sync()
    assert run.outcome == ("Failed", "BackoffLimitExceeded")


def test_a_pod_that_is_deleted_counts_as_failed_and_is_let_go() -> None:
    run = JobRun()
    run.sync()
    (pod,) = run.pods.values()
    run.pods[pod.name] = replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:30Z"))
    plan = run.sync()
    assert run.job.status.failed == 1
    (released,) = (a.item for a in plan.actions if isinstance(a, UpdateObject) and isinstance(a.item, Pod))
    assert released.metadata.finalizers is None


def test_a_job_that_takes_too_long_has_failed() -> None:
    run = JobRun(activeDeadlineSeconds=60)
    assert run.sync().again_at_s == NOW_S + 60
    run.sync(60)
    run.sync(61)
    assert run.outcome == ("Failed", "DeadlineExceeded")
    assert run.n_active == 0


def test_a_suspended_job_has_no_pods() -> None:
    run = JobRun(parallelism=2)
    run.sync()
    run.job = replace(run.job, spec=replace(run.job.spec, suspend=True))
    run.sync()
    assert run.n_active == 0


def test_pods_of_an_indexed_job_have_numbers_and_a_failed_one_is_replaced_under_its_own() -> None:
    run = JobRun(completions=4, parallelism=2, completionMode="Indexed")
    run.sync()
    assert sorted(map(completion_index, run.pods.values())) == [0, 1]  # type: ignore[type-var]
    assert next(iter(run.pods)).startswith("sum-0-")
    run.end(1)
    run.sync()
    assert sorted(map(completion_index, run.pods.values())) == [1, 2]  # type: ignore[type-var]
    run.end(1, "Failed")
    run.sync(1)
    run.sync(11)
    assert run.n_active == 2
    while not run.job.is_finished:
        run.end(2)
        run.sync(100)
    assert run.job.status.completed_indexes == "0-3"


def test_each_number_may_fail_so_often_and_waits_by_itself() -> None:
    run = JobRun(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1)
    run.sync()
    run.end(1, "Failed", index=1)
    run.end(1, index=0)
    plan = run.sync(1)
    assert (run.n_active, plan.again_at_s) == (1, NOW_S + 11)
    run.sync(11)
    (again,) = (pod for pod in run.pods.values() if completion_index(pod) == 1 and not pod.is_terminal)
    assert index_failures(again) == 1
    run.end(1, "Failed", index=1)
    run.sync(12)
    assert (run.job.status.failed_indexes, run.job.is_finished) == ("1", False)
    run.end(1)
    run.sync(13)
    assert run.outcome == ("Failed", "FailedIndexes")
    assert (run.job.status.completed_indexes, run.job.status.failed) == ("0,2", 2)


def test_too_many_numbers_that_failed_fail_the_job() -> None:
    run = JobRun(completions=4, parallelism=4, completionMode="Indexed", backoffLimitPerIndex=0, maxFailedIndexes=1)
    run.sync()
    run.end(2, "Failed")
    run.sync(1)
    run.sync(2)
    assert run.outcome == ("Failed", "MaxFailedIndexesExceeded")


def _policy(action: str, **rule: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": action, **rule}]}}


ON_CODES = {"onExitCodes": {"operator": "In", "values": [1, 42]}}
ON_DISRUPTION = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def test_a_policy_fails_the_job_at_the_first_such_failure() -> None:
    run = JobRun(parallelism=2, completions=2, **_policy("FailJob", **ON_CODES))
    run.sync()
    run.end(1, "Failed")
    run.sync()
    run.sync()
    assert run.outcome == ("Failed", "PodFailurePolicy")
    message = (run.job.status.conditions or ())[-1].message
    assert re.fullmatch(
        r"Container \w+ for pod default/sum-\w+ failed with exit code 1 matching FailJob rule at index 0", message
    )


@pytest.mark.parametrize(
    ("rule", "n_failed"),
    [
        pytest.param(_policy("Ignore", **ON_CODES), 0, id="ignored by its code"),
        pytest.param(_policy("Count", **ON_CODES), 1, id="counted"),
        pytest.param(_policy("Ignore", onExitCodes={"operator": "NotIn", "values": [1]}), 1, id="another code"),
        pytest.param(_policy("Ignore", **ON_DISRUPTION), 1, id="not disrupted"),
    ],
)
def test_a_policy_says_which_failures_count(rule: dict[str, Any], n_failed: int) -> None:
    run = JobRun(**rule)
    run.sync()
    run.end(1, "Failed")
    run.sync()
    assert run.job.status.failed == n_failed


def test_a_disrupted_pod_is_ignored_if_the_policy_says_so() -> None:
    run = JobRun(backoffLimit=0, **_policy("Ignore", **ON_DISRUPTION))
    run.sync()
    (pod,) = run.pods.values()
    going = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:30Z")
    run.pods[pod.name] = with_condition(replace(pod, metadata=going), PodCondition("DisruptionTarget", "True"))
    run.sync()
    assert run.n_active == 1  # it still holds its place, until it has ended
    run.end(1, "Failed")
    run.sync()
    assert (run.job.status.failed, run.job.is_finished) == (0, False)


def test_a_policy_gives_up_one_number() -> None:
    rule = _policy("FailIndex", **ON_CODES)
    run = JobRun(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=5, **rule)
    run.sync()
    run.end(1, "Failed", index=0)
    run.sync()
    assert run.job.status.failed_indexes == "0"
    run.end(1)
    run.sync()
    assert run.outcome == ("Failed", "FailedIndexes")


@pytest.mark.parametrize(
    ("rules", "n_ended", "matched"),
    [
        pytest.param([{"succeededIndexes": "0-1"}], 2, 0, id="these numbers"),
        pytest.param([{"succeededCount": 2}], 2, 0, id="so many"),
        pytest.param([{"succeededIndexes": "3"}, {"succeededIndexes": "0-3", "succeededCount": 1}], 1, 1, id="one of"),
    ],
)
def test_a_success_policy_ends_the_job_before_all_have_succeeded(
    rules: list[dict[str, Any]], n_ended: int, matched: int
) -> None:
    run = JobRun(completions=4, parallelism=4, completionMode="Indexed", successPolicy={"rules": rules})
    run.sync()
    run.end(n_ended)
    run.sync()
    run.sync()
    assert run.outcome == ("Complete", "SuccessPolicy")
    assert (run.job.status.conditions or ())[0].message == f"Matched rules at index {matched}"
    assert run.n_active == 0


def test_pods_on_their_way_out_hold_their_place_if_the_policy_says_so() -> None:
    for policy, n_made in (("Failed", 0), ("TerminatingOrFailed", 1)):
        run = JobRun(podReplacementPolicy=policy, backoffLimit=9)
        run.sync()
        (pod,) = run.pods.values()
        going = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:30Z")
        run.pods[pod.name] = replace(pod, metadata=going)
        run.sync()
        plan = run.sync(60)
        assert sum(isinstance(action, CreateObject) for action in plan.actions) == n_made


def test_a_job_is_suspended_and_resumed_with_a_new_start() -> None:
    run = JobRun(suspend=True)
    run.sync()
    assert (run.n_active, run.job.status.start_time) == (0, None)
    run.job = replace(run.job, spec=replace(run.job.spec, suspend=False))
    run.sync(5)
    (condition,) = run.job.status.conditions or ()
    assert (condition.type, condition.status, condition.reason) == ("Suspended", "False", "JobResumed")
    assert (run.n_active, run.job.status.start_time) == (1, print_instant(NOW_S + 5))


def test_a_finished_job_goes_when_its_time_is_over() -> None:
    run = JobRun(ttlSecondsAfterFinished=30)
    run.sync()
    run.end(1)
    run.sync()
    assert run.sync(10).again_at_s == NOW_S + 30
    assert [type(action.item) for action in run.sync(30).actions] == [Job]


def test_restarts_on_the_node_count_as_failures() -> None:
    run = JobRun(backoffLimit=2)
    template = run.job.spec.template
    assert template is not None
    on_failure = replace(template, spec=replace(template.spec, restart_policy="OnFailure"))
    run.job = replace(run.job, spec=replace(run.job.spec, template=on_failure))
    run.sync()
    (pod,) = run.pods.values()
    status = ReportedPodStatus("Running", container_statuses=(ReportedContainerStatus(name="c", restart_count=2),))
    run.pods[pod.name] = ReportedPod(metadata=pod.metadata, spec=pod.spec, status=status)
    run.sync()
    run.sync()
    assert run.outcome == ("Failed", "BackoffLimitExceeded")


def test_a_pod_that_was_noted_and_let_go_is_counted_all_the_same() -> None:
    run = JobRun(parallelism=2, completions=3)
    run.sync()
    noted = UncountedTerminatedPods(succeeded=("gone",), failed=None)
    run.job = replace(run.job, status=replace(run.job.status, uncounted_terminated_pods=noted))
    run.sync()
    assert (run.job.status.succeeded, run.job.status.uncounted_terminated_pods) == (1, None)


def test_a_job_of_another_manager_is_left_alone() -> None:
    assert JobRun(managedBy="example.com/mine").sync().actions == []


@pytest.mark.parametrize("text", ["", "3", "0-4", "1,3-5,7", "2,3"])
def test_indexes_are_read_as_they_are_printed(text: str) -> None:
    assert print_indexes(parse_indexes(text)) == text


# -- cron jobs ---------------------------------------------------------------------------------------------------------


def _cron(schedule: str = "*/10 * * * *", **spec: Any) -> CronJob:
    (found,) = objects(cron_job("nightly", schedule, **spec))
    assert isinstance(found, CronJob)
    return replace(found, metadata=replace(found.metadata, uid="uid-nightly"))


def _created(plan: Plan) -> list[str]:
    return [action.item.name for action in plan.actions if isinstance(action, CreateObject)]


def test_a_job_is_made_when_its_time_comes_and_not_before() -> None:
    early = sync_cron_job(_cron(), [], NOW_S, NOW_S)
    assert (_created(early), early.again_at_s) == ([], NOW_S + 600)
    due = sync_cron_job(_cron(), [], NOW_S, NOW_S + 600)
    assert (_created(due), due.again_at_s) == ([f"nightly-{int(NOW_S + 600) // 60}"], NOW_S + 1200)
    (updated,) = (action.item for action in due.actions if isinstance(action, UpdateObject))
    assert isinstance(updated, CronJob)
    assert _created(sync_cron_job(updated, [], NOW_S, NOW_S + 601)) == []


def test_a_suspended_cron_job_makes_nothing() -> None:
    plan = sync_cron_job(_cron(suspend=True), [], NOW_S, NOW_S + 600)
    assert (plan.actions, plan.again_at_s) == ([], None)


@pytest.mark.parametrize(
    ("policy", "n_created", "n_deleted"),
    [
        pytest.param("Allow", 1, 0, id="beside the other"),
        pytest.param("Forbid", 0, 0, id="not while the other runs"),
        pytest.param("Replace", 1, 1, id="in the place of the other"),
    ],
)
def test_a_job_that_still_runs_is_dealt_with_by_policy(policy: str, n_created: int, n_deleted: int) -> None:
    (running,) = objects(workload("Job", "nightly-1"))
    assert isinstance(running, Job)
    plan = sync_cron_job(_cron(concurrencyPolicy=policy), [running], NOW_S, NOW_S + 600)
    kinds = [type(action) for action in plan.actions]
    assert (kinds.count(CreateObject), kinds.count(DeleteObject)) == (n_created, n_deleted)


def test_a_start_that_is_too_late_is_missed() -> None:
    for deadline_s, n_created in ((30, 0), (90, 1)):
        plan = sync_cron_job(_cron(startingDeadlineSeconds=deadline_s), [], NOW_S, NOW_S + 660)
        assert len(_created(plan)) == n_created
