"""What is wrong with the spec of a volume claim: of claims themselves, and of templates for them in pods."""

from __future__ import annotations

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.amounts import amount_errors
from kubesched.apiserver.kinds.kind import InvalidField, Object
from kubesched.apiserver.kinds.label_selectors import label_selector_errors
from kubesched.model import quantity

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def claim_spec_errors(spec: Object, path: str) -> list[InvalidField]:
    found = mode_errors(spec.get("accessModes") or [], f"{path}.accessModes", "at least 1 access mode is required")
    found += label_selector_errors(spec.get("selector"), f"{path}.selector")
    amount = spec.get("resources", {}).get("requests", {}).get("storage")
    at = errors.key(f"{path}.resources", "storage")
    if amount is None:
        found.append(errors.required(at))
    else:
        found += amount_errors("storage", amount, at)
        if quantity.parse(amount).nanos <= 0:
            found.append(errors.invalid(at, amount, "must be greater than zero"))
    if spec.get("volumeMode", "Filesystem") not in VOLUME_MODES:
        found.append(errors.unsupported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES))
    return found


def mode_errors(modes: list[str], path: str, why_required: str = "") -> list[InvalidField]:
    if not modes:
        return [errors.required(path, why_required)]
    found = [errors.unsupported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        found.append(errors.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found
