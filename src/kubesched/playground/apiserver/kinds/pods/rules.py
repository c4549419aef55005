"""The pod's rules put together: what ``registry.py`` serves as v1 Pod."""

from __future__ import annotations

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.pods import admission, strategy, warnings
from kubesched.playground.apiserver.kinds.pods.changes import change_errors, status_errors
from kubesched.playground.apiserver.kinds.pods.columns import COLUMNS
from kubesched.playground.apiserver.kinds.pods.containers import image_space_errors
from kubesched.playground.apiserver.kinds.pods.defaults import set_pod_defaults
from kubesched.playground.apiserver.kinds.pods.partial_changes import ephemeral_errors, resize_errors
from kubesched.playground.apiserver.kinds.pods.spec import pod_spec_errors
from kubesched.playground.apiserver.kinds.serving import KindRules
from kubesched.playground.apiserver.served_resource import InvalidField, Object, WriteContext, metadata_fields


def _set_defaults(pod: Object) -> None:
    set_pod_defaults(pod)
    _agree_on_addresses(pod["status"])


def _agree_on_addresses(status: Object) -> None:
    """The single address is the first of the list; where they differ the single one counts."""
    first, addresses = status.get("podIP"), status.get("podIPs")
    if first and (not addresses or addresses[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif addresses:
        status["podIP"] = addresses[0].get("ip", "")


def _validate(pod: Object, old: Object | None) -> list[InvalidField]:
    found = pod_spec_errors(pod["spec"], pod["metadata"].get("name", ""), "spec", is_pod=True)
    found += _token_errors(pod["spec"])
    for sort in ("containers", "initContainers"):
        found += image_space_errors(pod["spec"].get(sort) or [], f"spec.{sort}")
    return found + (_creation_errors(pod["spec"]) if old is None else change_errors(pod, old))


def _validate_admission(pod: Object, old: Object | None, ctx: WriteContext) -> None:
    if old is None:
        admission.validate_new(pod, ctx)
        ctx.warnings += warnings.for_new_pod(pod)


def _token_errors(spec: Object) -> list[InvalidField]:
    if spec.get("serviceAccountName"):
        return []
    return [
        errors.forbidden(
            f"{errors.index(f'spec.volumes[{n}].projected.sources', place)}.serviceAccountToken",
            "must not be specified when serviceAccountName is not set",
        )
        for n, volume in enumerate(spec.get("volumes", []))
        for place, source in enumerate(volume.get("projected", {}).get("sources") or [])
        if "serviceAccountToken" in source
    ]


def _creation_errors(spec: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    if spec.get("ephemeralContainers"):
        found.append(errors.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        found.append(errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found


def _selectable(pod: Object) -> dict[str, str]:
    spec, status = pod["spec"], pod.get("status", {})
    addresses = status.get("podIPs", [])
    return {
        **metadata_fields(pod),
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": addresses[0].get("ip", "") if addresses else "",
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


POD = KindRules(
    metadata_again="both",
    set_defaults=_set_defaults,
    prepare_create=strategy.prepare_create,
    validate_admission=_validate_admission,
    prepare_update=strategy.prepare_update,
    validate=_validate,
    validate_through={"status": status_errors, "resize": resize_errors, "ephemeralcontainers": ephemeral_errors},
    columns=COLUMNS,
    selectable_fields=_selectable,
)
