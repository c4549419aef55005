"""What is wrong with the spec of a volume claim: of claims themselves, and of templates for them in pods."""

from __future__ import annotations

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.label_selectors import label_selector_errors
from kubesched.playground.apiserver.kinds.name_syntax import dns_label_errors, dns_subdomain_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_DEFAULT_GROUP = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"


def claim_spec_errors(
    spec: Object, path: str, any_group: bool = False, any_label_value: bool = False
) -> list[InvalidField]:
    """``any_group`` and ``any_label_value``: data sources and selectors were accepted once and are not looked at."""
    modes = spec.get("accessModes") or []
    found = [] if modes else [errors.required(f"{path}.accessModes", "at least 1 access mode is required")]
    found += label_selector_errors(spec.get("selector"), f"{path}.selector", check_values=not any_label_value)
    found += mode_errors(modes, f"{path}.accessModes")
    amount = spec.get("resources", {}).get("requests", {}).get("storage")
    at = errors.key(f"{path}.resources", "storage")
    found += [errors.required(at)] if amount is None else positive_amount_errors(amount, at)
    found += class_name_errors(spec.get("storageClassName"), f"{path}.storageClassName")
    if spec.get("volumeMode", "Filesystem") not in VOLUME_MODES:
        found.append(errors.unsupported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES))
    found += _data_source_errors(spec, path, any_group)
    return found + class_name_errors(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName")


def positive_amount_errors(amount: str, path: str) -> list[InvalidField]:
    is_positive = quantity.parse(amount).nanos > 0
    return [] if is_positive else [errors.invalid(path, amount, "must be greater than zero")]


def class_name_errors(name: str | None, path: str) -> list[InvalidField]:
    return errors.all_invalid(path, name, dns_subdomain_errors(name)) if name else []


def mode_errors(modes: list[str], path: str) -> list[InvalidField]:
    found = [errors.unsupported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = [mode for mode in modes if mode in ACCESS_MODES]
    if "ReadWriteOncePod" in known and any(mode != "ReadWriteOncePod" for mode in known):
        found.append(errors.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def _data_source_errors(spec: Object, path: str, any_group: bool) -> list[InvalidField]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    found: list[InvalidField] = []
    for name, one in (("dataSource", source), ("dataSourceRef", reference)):
        if one is not None:
            found += _one_source_errors(one, f"{path}.{name}", any_group)
    if reference is None or source is None:
        return found
    if reference.get("namespace"):
        found.append(errors.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        # the real server means to show the path of dataSource here, and shows that it is an object without fields
        found.append(errors.invalid(path, {}, "must match dataSourceRef"))
    return found


def _one_source_errors(source: Object, path: str, any_group: bool) -> list[InvalidField]:
    found = [errors.required(f"{path}.{name}") for name in ("name", "kind") if not source.get(name)]
    group, kind, namespace = source.get("apiGroup") or "", source.get("kind", ""), source.get("namespace")
    if not group and kind != "PersistentVolumeClaim":
        found.append(errors.invalid(path, kind, _DEFAULT_GROUP))
    if group and not any_group:
        found += errors.all_invalid(f"{path}.apiGroup", group, dns_subdomain_errors(group))
    if namespace:
        found += errors.all_invalid(f"{path}.namespace", namespace, dns_label_errors(namespace))
    return found
