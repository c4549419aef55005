"""What is wrong with conditions in a status (metav1.Condition), in the API server's words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubesched.k8s.model.label_syntax import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_EXAMPLES = "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB'"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' "
    f"(e.g. {_REASON_EXAMPLES}, regex used for validation is '{_REASON}')"
)
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024


def condition_errors(conditions: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        at, sort = errors.index(path, position), condition.get("type", "")
        if sort in seen:
            found.append(errors.duplicate(f"{at}.type", sort))
        seen.add(sort)
        found += _one_condition_errors(condition, at)
    return found


def _one_condition_errors(condition: Object, path: str) -> list[InvalidField]:
    sort, status = condition.get("type", ""), condition.get("status", "")
    found = errors.all_invalid(f"{path}.type", sort, label_key_errors(sort))
    if status not in _STATUSES:
        found.append(errors.unsupported(f"{path}.status", status, _STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        why = "must be greater than or equal to zero"
        found.append(errors.invalid(f"{path}.observedGeneration", generation, why))
    if condition.get("lastTransitionTime") is None:
        found.append(errors.required(f"{path}.lastTransitionTime"))
    reason = condition.get("reason", "")
    if not reason:
        found.append(errors.required(f"{path}.reason"))
    else:
        if not re.fullmatch(_REASON, reason):
            found.append(errors.invalid(f"{path}.reason", reason, _REASON_TEXT))
        if len(reason.encode()) > _LONGEST_REASON:
            found.append(errors.too_long(f"{path}.reason", _LONGEST_REASON))
    if len(condition.get("message", "").encode()) > _LONGEST_MESSAGE:
        found.append(errors.too_long(f"{path}.message", _LONGEST_MESSAGE))
    return found
