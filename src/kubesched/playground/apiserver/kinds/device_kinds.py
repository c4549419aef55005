"""The kinds of resource.k8s.io as served: rules, tables, fields that they can be selected by.

Read ``device_claims.py`` and ``device_slices.py`` for what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.playground.apiserver.kinds import device_claims, device_parts, device_slices
from kubesched.playground.apiserver.kinds.serving import KindRules
from kubesched.playground.apiserver.kinds.table_columns import AGE, NAME, PLAIN, described, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext

_GROUP = "io.k8s.api.resource.v1."


def _set_claim_defaults(claim: Object) -> None:
    device_claims.set_request_defaults(claim["spec"])
    for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results") or []:
        device_parts.set_toleration_defaults(result.get("tolerations") or [])


def _claim_in_context(claim: Object, old: Object | None, ctx: WriteContext) -> list[InvalidField]:
    if ctx.subresource == "status" and old is not None:
        return device_claims.admin_status_errors(claim, old, ctx)
    namespace = claim["metadata"].get("namespace", "")
    return device_claims.admin_access_errors(claim["spec"], namespace, ctx) if old is None else []


def _template_in_context(template: Object, old: Object | None, ctx: WriteContext) -> list[InvalidField]:
    namespace, spec = template["metadata"].get("namespace", ""), template["spec"].get("spec", {})
    return device_claims.admin_access_errors(spec, namespace, ctx) if old is None else []


def _update_claim(claim: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource == "status":
        device_claims.drop_states_of_released_devices(claim, old)


def _claim_state(claim: Object) -> str:
    status = claim.get("status", {})
    is_deleted = bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if "allocation" not in status:
        states += [] if is_deleted else ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return ",".join(states)


def _slice_fields(piece: Object) -> Mapping[str, str]:
    spec = piece["spec"]
    return {
        "metadata.name": piece["metadata"].get("name", ""),
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.driver": spec.get("driver", ""),
    }


RESOURCE_CLAIM = KindRules(
    metadata_again="both",
    set_defaults=_set_claim_defaults,
    prepare_update=_update_claim,
    validate=device_claims.claim_errors,
    validate_through={"status": device_claims.status_errors},
    validate_in_context=_claim_in_context,
    columns=(
        NAME,
        TableColumn(
            "State", _claim_state, description="A summary of the current state (allocated, pending, reserved, etc.)."
        ),
        AGE,
    ),
)
RESOURCE_CLAIM_TEMPLATE = KindRules(
    metadata_again="both",
    set_defaults=lambda obj: device_claims.set_request_defaults(obj["spec"].get("spec", {})),
    validate=device_claims.template_errors,
    validate_in_context=_template_in_context,
    columns=PLAIN,
)
RESOURCE_SLICE = KindRules(
    set_times=device_slices.set_taint_times,
    prepare_create=lambda piece, _: device_slices.drop_disabled(piece),
    prepare_update=lambda piece, *_: device_slices.drop_disabled(piece),
    validate=device_slices.slice_errors,
    validate_admission=device_slices.warn_of_driver,
    selectable_fields=_slice_fields,
    columns=(
        NAME,
        described("Node", dig("spec.nodeName"), _GROUP + "ResourceSliceSpec", "nodeName"),
        described("Driver", dig("spec.driver"), _GROUP + "ResourceSliceSpec", "driver"),
        described("Pool", dig("spec.pool.name"), _GROUP + "ResourcePool", "name"),
        AGE,
    ),
)
DEVICE_CLASS = KindRules(metadata_again="both", validate=device_claims.class_errors, columns=PLAIN)
DEVICE_TAINT_RULE = KindRules(
    set_times=device_parts.set_rule_times,
    prepare_update=device_parts.update_rule,
    validate=device_parts.rule_errors,
    validate_through={"status": device_parts.rule_status_errors},
    columns=PLAIN,
)
