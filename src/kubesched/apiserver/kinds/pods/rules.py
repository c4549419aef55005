"""The pod's rules put together: what ``registry.py`` serves as v1 Pod."""

from __future__ import annotations

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds import metadata
from kubesched.apiserver.kinds.kind import InvalidField, Object, WriteContext, metadata_fields
from kubesched.apiserver.kinds.name_syntax import dns_subdomain_mistakes
from kubesched.apiserver.kinds.pods import strategy, warnings
from kubesched.apiserver.kinds.pods.changes import change_errors, status_errors
from kubesched.apiserver.kinds.pods.columns import COLUMNS
from kubesched.apiserver.kinds.pods.containers import image_space_errors
from kubesched.apiserver.kinds.pods.defaults import set_pod_defaults
from kubesched.apiserver.kinds.pods.spec import pod_spec_errors
from kubesched.apiserver.kinds.serving import KindRules


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
    if old is not None and pod["spec"] == old["spec"] and pod.get("status") != old.get("status"):
        return status_errors(pod, old)
    found = pod_spec_errors(pod["spec"], pod["metadata"].get("name", ""), "spec", is_pod=True)
    found += _token_errors(pod["spec"])
    for sort in ("containers", "initContainers"):
        found += image_space_errors(pod["spec"].get(sort) or [], f"spec.{sort}")
    return found + (_creation_errors(pod["spec"]) if old is None else change_errors(pod, old))


def _prepare_create(pod: Object, ctx: WriteContext) -> None:
    strategy.prepare_create(pod, ctx)
    found = warnings.for_new_pod(pod)
    # warnings are for what is accepted; looking twice costs only those who are warned
    if found and not metadata.validate_new(pod["metadata"], True, dns_subdomain_mistakes) + _validate(pod, None):
        ctx.warnings += found


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
    set_defaults=_set_defaults,
    prepare_create=_prepare_create,
    prepare_update=strategy.prepare_update,
    validate=_validate,
    columns=COLUMNS,
    selectable_fields=_selectable,
)
