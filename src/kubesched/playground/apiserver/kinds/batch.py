"""Jobs and cron jobs: defaults, the selector that a job makes for itself, validation, tables."""

from __future__ import annotations

import copy
import zoneinfo
from dataclasses import replace

from kubesched.k8s.model.cron_schedule import schedule_problem
from kubesched.k8s.model.times import parse_instant
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds import workloads as checks
from kubesched.playground.apiserver.kinds.internal_form import internal_spec
from kubesched.playground.apiserver.kinds.pods.defaults import set_template_defaults
from kubesched.playground.apiserver.kinds.serving import (
    AGE,
    NAME,
    KindRules,
    described,
    dig,
    human,
    print_selector,
    since,
    template_columns,
)
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext
from kubesched.playground.apiserver.storage.store import metadata_fields

_BATCH = "io.k8s.api.batch.v1."
_POD_GROUPS = "podgroups.scheduling.k8s.io"
_MOST = 2**31 - 1
_LONGEST_CRON_NAME = 52  # its jobs add eleven characters of their own
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_LATER_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _set_job_defaults(job: Object) -> None:
    spec = job["spec"]
    set_template_defaults(spec["template"])
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _MOST if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _create_job(job: Object, _: WriteContext) -> None:
    spec = job["spec"]
    if spec["manualSelector"]:
        return
    shares_labels = job["metadata"].get("labels") == spec["template"]["metadata"].get("labels")
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for name in _NAME_LABELS:
        labels.setdefault(name, job["metadata"].get("name", ""))
    for name in _UID_LABELS:
        labels.setdefault(name, job["metadata"].get("uid", ""))
    spec.setdefault("selector", {}).setdefault("matchLabels", {}).setdefault(
        _UID_LABELS[1], job["metadata"].get("uid", "")
    )
    if shares_labels or not job["metadata"].get("labels"):
        job["metadata"]["labels"] = copy.copy(labels)  # labels that came from the template are the template's own


def _validate_job(job: Object, old: Object | None) -> list[InvalidField]:
    found = job_spec_errors(job["spec"], "spec") + _selector_errors(job["spec"])
    if old is None:
        return found
    found += _completions_errors(job["spec"], old["spec"])
    for name in ("selector", "template", "completionMode", "podFailurePolicy"):
        new_value, old_value = job["spec"].get(name), old["spec"].get(name)
        may_change = name == "template" and old["spec"].get("suspend")
        if new_value != old_value and not may_change:
            shown = _shown_template(new_value) if name == "template" else new_value
            found.append(errors.immutable(f"spec.{name}", shown))
    return found


def _completions_errors(spec: Object, before: Object) -> list[InvalidField]:
    """An indexed job may be made larger or smaller, with its parallelism."""
    wanted = spec.get("completions")
    if wanted == before.get("completions"):
        return []
    if spec["completionMode"] != "Indexed":
        return [errors.immutable("spec.completions", wanted)]
    if wanted is None or wanted == spec["parallelism"]:
        return []
    return [errors.invalid("spec.completions", wanted, "can only be modified in tandem with spec.parallelism")]


def _admit_job(job: Object, old: Object | None, ctx: WriteContext) -> None:
    """A gang is as large as it was when its group was made."""
    if old is None or ctx.subresource or job["spec"]["parallelism"] == old["spec"]["parallelism"]:
        return
    namespace = old["metadata"]["namespace"]
    named = (old["spec"]["template"]["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if named is not None:
        found = ctx.lookup.get(_POD_GROUPS, namespace, named)
        groups = [] if found is None else [found]
    else:
        groups = [one for one in ctx.lookup.list(_POD_GROUPS, namespace) if _is_controlled_by(one, old)]
    for group in groups:
        if "gang" in group["spec"]["schedulingPolicy"]:
            name = old["metadata"]["name"]
            why = f'a Job referencing gang-scheduled PodGroup "{group["metadata"]["name"]}"'
            message = f'jobs.batch "{name}" is forbidden: cannot change parallelism for {why}'
            raise StatusError(403, "Forbidden", message, {"name": name, "group": "batch", "kind": "jobs"})


def _is_controlled_by(obj: Object, owner: Object) -> bool:
    references = obj["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one["uid"] == owner["metadata"]["uid"] for one in references)


def _shown_template(template: Object) -> Object:
    return {**template.get("metadata", {}), "Spec": internal_spec(template["spec"])}


def _selector_errors(spec: Object) -> list[InvalidField]:
    """A job is given its selector when it is made; who replaces it has to send the same."""
    found = [errors.required("spec.selector")] if spec.get("selector") is None else []
    return found + checks.selector_match_errors(spec.get("selector"), spec["template"], "spec.template")


def job_spec_errors(spec: Object, path: str) -> list[InvalidField]:
    names = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    found = checks.count_errors(spec, names, path)
    if spec.get("completionMode") == "Indexed" and "completions" not in spec:
        why = "when completion mode is Indexed"
        found.append(errors.required(f"{path}.completions", why))
    template = spec["template"]
    at = f"{path}.template"
    said = template["spec"]["restartPolicy"]
    if said == "Always":
        rest = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
        found += _template_errors(rest, at)
        return [*found, errors.required(f"{at}.spec.restartPolicy", 'valid values: "OnFailure", "Never"')]
    return found + _template_errors(template, at)


def _template_errors(template: Object, path: str) -> list[InvalidField]:
    return checks.template_errors(template, path, restart=("OnFailure", "Never"), must_match=False)


def _set_cron_job_defaults(job: Object) -> None:
    spec = job["spec"]
    set_template_defaults(spec["jobTemplate"]["spec"]["template"])
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def _is_time_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return False
    return name not in ("", "Local")


def _validate_cron_job(job: Object, _: Object | None) -> list[InvalidField]:
    spec = job["spec"]
    found: list[InvalidField] = []
    name = job["metadata"].get("name", "")
    if len(name) > _LONGEST_CRON_NAME:
        found.append(errors.invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_NAME} characters"))
    if not spec.get("schedule"):
        found.append(errors.required("spec.schedule"))
    elif error := schedule_problem(spec["schedule"]):
        found.append(errors.invalid("spec.schedule", spec["schedule"], error))
    zone = spec.get("timeZone")
    if zone is not None and not _is_time_zone(zone):
        found.append(errors.invalid("spec.timeZone", zone, f"unknown time zone {zone}"))
    if spec["concurrencyPolicy"] not in ("Allow", "Forbid", "Replace"):
        allowed = ("Allow", "Forbid", "Replace")
        found.append(errors.unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], allowed))
    names = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    found += checks.count_errors(spec, names, "spec")
    return found + job_spec_errors(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")


def _job_status(job: Object) -> str:
    conditions = {one["type"] for one in job.get("status", {}).get("conditions", []) if one["status"] == "True"}
    for state in ("Complete", "Failed"):
        if state in conditions:
            return state
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((state for state in _LATER_STATES if state in conditions), "Running")


def _completions(job: Object) -> str:
    n_succeeded = dig("status.succeeded", 0)(job)
    spec = job["spec"]
    if "completions" in spec:
        return f"{n_succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{n_succeeded}/1 of {parallelism}" if parallelism > 1 else f"{n_succeeded}/1"


def _duration(job: Object) -> str:
    started, ended = dig("status.startTime")(job), dig("status.completionTime")(job)
    if not started:
        return ""
    return human(parse_instant(ended) - parse_instant(started)) if ended else since(started)


def _selectable(job: Object) -> dict[str, str]:
    return {**metadata_fields(job), "status.successful": str(dig("status.succeeded", 0)(job))}


def _selector_column(where: str) -> TableColumn:
    read = dig(where, None)
    return described("Selector", lambda job: print_selector(read(job)), _BATCH + "JobSpec", "selector", priority=1)


def _last_schedule(job: Object) -> str:
    last = dig("status.lastScheduleTime")(job)
    return since(last) if last else "<none>"


JOB = KindRules(
    metadata_again="both",
    set_defaults=_set_job_defaults,
    prepare_create=_create_job,
    validate=_validate_job,
    validate_admission=_admit_job,
    selectable_fields=_selectable,
    columns=(
        NAME,
        TableColumn("Status", _job_status, description="Status of the job."),
        described("Completions", _completions, _BATCH + "JobStatus", "succeeded"),
        TableColumn("Duration", _duration, description="Time required to complete the job."),
        AGE,
        *template_columns("spec.template"),
        _selector_column("spec.selector"),
    ),
)
NEXT_JOB = replace(JOB, validate_admission=KindRules.validate_admission)
"""In v1.37 the pods that run side by side may become more or fewer, also those of a gang."""
CRON_JOB = KindRules(
    set_defaults=_set_cron_job_defaults,
    validate=_validate_cron_job,
    columns=(
        NAME,
        described("Schedule", dig("spec.schedule"), _BATCH + "CronJobSpec", "schedule"),
        described("Timezone", dig("spec.timeZone", "<none>"), _BATCH + "CronJobSpec", "timeZone"),
        described(
            "Suspend",
            lambda job: "True" if job["spec"].get("suspend") else "False",
            _BATCH + "CronJobSpec",
            "suspend",
            type="boolean",
        ),
        described(
            "Active", lambda job: len(dig("status.active", [])(job)), _BATCH + "CronJobStatus", "active", type="integer"
        ),
        described("Last Schedule", _last_schedule, _BATCH + "CronJobStatus", "lastScheduleTime"),
        AGE,
        *template_columns("spec.jobTemplate.spec.template"),
        _selector_column("spec.jobTemplate.spec.selector"),
    ),
)
