"""Namespaces: their label with their own name, the finalizer they begin with, their phase."""

from __future__ import annotations

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.name_syntax import dns_label_errors
from kubesched.playground.apiserver.kinds.serving import KindRules
from kubesched.playground.apiserver.kinds.table_columns import AGE, NAME, dig
from kubesched.playground.apiserver.served_resource import (
    InvalidField,
    Object,
    TableColumn,
    WriteContext,
    metadata_fields,
)

_NAME_LABEL = "kubernetes.io/metadata.name"


def _set_defaults(namespace: Object) -> None:
    name = namespace["metadata"].get("name")
    if name:
        labels = namespace["metadata"].setdefault("labels", {})
        labels[_NAME_LABEL] = name
    namespace["status"].setdefault("phase", "Active")


def _prepare_create(namespace: Object, _: WriteContext) -> None:
    namespace["status"] = {"phase": "Active"}
    finalizers = namespace["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    name = namespace["metadata"].get("name", "")
    namespace["metadata"].setdefault("labels", {})[_NAME_LABEL] = name


def _prepare_update(namespace: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource != "finalize":
        namespace["spec"] = old["spec"]


def _validate_status(namespace: Object, _: Object) -> list[InvalidField]:
    is_going = bool(namespace["metadata"].get("deletionTimestamp"))
    phase, wanted = namespace["status"].get("phase", ""), "Terminating" if is_going else "Active"
    if phase == wanted:
        return []
    why = f"may only be '{wanted}' if `deletionTimestamp` is {'not ' if is_going else ''}empty"
    return [errors.invalid("status.Phase", phase, why)]


def _selectable(namespace: Object) -> dict[str, str]:
    phase = namespace.get("status", {}).get("phase", "")
    return {
        "metadata.name": metadata_fields(namespace)["metadata.name"],
        "status.phase": phase,
        "name": namespace["metadata"]["name"],
    }


NAMESPACE = KindRules(
    set_defaults=_set_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_through={"status": _validate_status},
    name_rule=dns_label_errors,
    columns=(NAME, TableColumn("Status", dig("status.phase"), description="The status of the namespace"), AGE),
    selectable_fields=_selectable,
)
