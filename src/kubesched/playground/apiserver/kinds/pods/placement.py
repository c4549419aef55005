"""What is wrong with the scheduling fields of a pod spec: tolerations, affinity, topology spread, gates, group.

Taints of nodes are here, too, and how two lists of tolerations become one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model.selectors import label_key_errors, label_value_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors
from kubesched.playground.apiserver.kinds.metadata import label_selector_errors, node_selector_errors, node_term_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ALL_OPERATORS = ("Equal", "Exists", "Lt", "Gt")


def toleration_errors(tolerations: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, toleration in enumerate(tolerations):
        found += _one_toleration(toleration, errors.index(path, position))
    return found


def _one_toleration(toleration: Object, path: str) -> list[InvalidField]:
    key = toleration.get("key", "")
    operator = toleration.get("operator", "")
    effect = toleration.get("effect", "")
    found: list[InvalidField] = []
    if key:
        found += errors.all_invalid(f"{path}.key", key, label_key_errors(key))
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(errors.invalid(f"{path}.operator", operator, why))
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(errors.invalid(f"{path}.effect", effect, why))
    found += _operator_errors(operator, toleration.get("value", ""), path)
    if effect and effect not in EFFECTS:
        found.append(errors.unsupported(f"{path}.effect", effect, EFFECTS))
    return found


def _operator_errors(operator: str, value: str, path: str) -> list[InvalidField]:
    at = f"{path}.operator"
    if operator in ("Equal", ""):
        problems = label_value_errors(value)
        return [errors.invalid(at, value, ";".join(problems))] if problems else []
    if operator == "Exists":
        return [errors.invalid(at, value, "value must be empty when `operator` is 'Exists'")] if value else []
    return [errors.unsupported(at, operator, _ALL_OPERATORS if operator in ("Lt", "Gt") else _ALL_OPERATORS[:2])]


def taint_errors(taints: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        at = errors.index(path, position)
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        found += errors.all_invalid(f"{at}.key", key, label_key_errors(key))
        if problems := label_value_errors(value):
            found.append(errors.invalid(f"{at}.value", value, ";".join(problems)))
        if not effect:
            found.append(errors.required(f"{at}.effect"))
        elif effect not in EFFECTS:
            found.append(errors.unsupported(f"{at}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            repeated = errors.duplicate(at, shown)
            why = f"{repeated.message}: taints must be unique by key and effect pair"
            found.append(InvalidField(repeated.reason, at, why))
        seen.add((key, effect))
    return found


def merge_tolerations(first: Sequence[Object], second: Sequence[Object]) -> list[Object]:
    """Both lists, without what another toleration already covers."""
    everything = [*first, *second]
    merged: list[Object] = []
    for position, one in enumerate(everything):
        if any(_is_superset(other, one) for other in merged):
            continue
        if any(other != one and _is_superset(other, one) for other in everything[position + 1 :]):
            continue
        merged.append(one)
    return merged


def _lasts_as_long(wide: Object, narrow: Object) -> bool:
    if "tolerationSeconds" not in wide:
        return True
    return "tolerationSeconds" in narrow and bool(wide["tolerationSeconds"] >= narrow["tolerationSeconds"])


def _is_superset(wide: Object, narrow: Object) -> bool:
    if wide == narrow:
        return True
    if wide.get("key", "") != narrow.get("key", "") and not (
        wide.get("key", "") == "" and wide.get("operator") == "Exists"
    ):
        return False
    if wide.get("effect", "") not in ("", narrow.get("effect", "")):
        return False
    if wide.get("effect") == "NoExecute" and not _lasts_as_long(wide, narrow):
        return False
    if wide.get("operator", "") in ("Equal", ""):
        return narrow.get("operator", "") in ("Equal", "") and wide.get("value", "") == narrow.get("value", "")
    return wide.get("operator") == "Exists"


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def affinity_errors(affinity: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if "nodeAffinity" in affinity:
        found += _node_affinity_errors(affinity["nodeAffinity"], f"{path}.nodeAffinity")
    for sort in ("podAffinity", "podAntiAffinity"):
        if sort in affinity:
            found += _pod_affinity_errors(affinity[sort], f"{path}.{sort}")
    return found


def _node_affinity_errors(affinity: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if _REQUIRED in affinity:
        found += node_selector_errors(affinity[_REQUIRED], f"{path}.{_REQUIRED}")
    for position, term in enumerate(affinity.get(_PREFERRED, [])):
        at = errors.index(f"{path}.{_PREFERRED}", position)
        found += _weight_errors(term, at)
        found += node_term_errors(term.get("preference", {}), f"{at}.preference", check_values=False)
    return found


def _pod_affinity_errors(affinity: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, term in enumerate(affinity.get(_REQUIRED, [])):
        found += _pod_term_errors(term, errors.index(f"{path}.{_REQUIRED}", position))
    for position, weighted in enumerate(affinity.get(_PREFERRED, [])):
        at = errors.index(f"{path}.{_PREFERRED}", position)
        found += _weight_errors(weighted, at)
        found += _pod_term_errors(weighted.get("podAffinityTerm", {}), f"{at}.podAffinityTerm")
    return found


def _weight_errors(weighted: Object, path: str) -> list[InvalidField]:
    weight = weighted.get("weight", 0)
    return [] if 1 <= weight <= 100 else [errors.invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_term_errors(term: Object, path: str) -> list[InvalidField]:
    found = label_selector_errors(term.get("labelSelector"), f"{path}.labelSelector")
    found += label_selector_errors(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces", []):
        found += errors.all_invalid(f"{path}.namespace", name, dns_label_errors(name))
    found += _label_key_errors(term, path)
    key = term.get("topologyKey", "")
    if not key:
        found.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    return found + errors.all_invalid(f"{path}.topologyKey", key, label_key_errors(key))


def _label_key_errors(term: Object, path: str) -> list[InvalidField]:
    """matchLabelKeys and mismatchLabelKeys; by now the selector already contains what came from them."""
    matched, mismatched = term.get("matchLabelKeys", []), term.get("mismatchLabelKeys", [])
    selector = term.get("labelSelector")
    found: list[InvalidField] = []
    for sort, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        at = f"{path}.{sort}"
        if keys and selector is None:
            found.append(errors.forbidden(at, "must not be specified when labelSelector is not set"))
            continue
        for position, key in enumerate(keys):
            found += errors.all_invalid(errors.index(at, position), key, label_key_errors(key))
    if selector is not None:
        selected = set(selector.get("matchLabels", {}))
        for expression in selector.get("matchExpressions", []):
            key = expression.get("key", "")
            if key in matched and key in selected:
                at = errors.index(path, matched.index(key))
                found.append(errors.invalid(at, key, "exists in both matchLabelKeys and labelSelector"))
            selected.add(key)
    for position, key in enumerate(matched):
        if key in mismatched:
            at = errors.index(f"{path}.matchLabelKeys", position)
            found.append(errors.invalid(at, key, "exists in both matchLabelKeys and mismatchLabelKeys"))
    return found


def spread_errors(constraints: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, constraint in enumerate(constraints):
        at = errors.index(path, position)
        found += _one_spread(constraint, constraints[position + 1 :], at)
        found += _label_key_errors(constraint, at)
        found += label_selector_errors(constraint.get("labelSelector"), f"{at}.labelSelector")
    return found


def _one_spread(constraint: Object, later: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if constraint.get("maxSkew", 0) <= 0:
        found.append(errors.invalid(f"{path}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"))
    key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
    if not key:
        found.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    if action not in _ACTIONS:
        found.append(errors.unsupported(f"{path}.whenUnsatisfiable", action, _ACTIONS))
    if any((other.get("topologyKey"), other.get("whenUnsatisfiable")) == (key, action) for other in later):
        found.append(errors.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            found.append(errors.invalid(f"{path}.minDomains", domains, "must be greater than zero"))
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            found.append(errors.invalid(f"{path}.minDomains", domains, why))
    return found + [
        errors.unsupported(f"{path}.{name}", constraint[name], _POLICIES)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy")
        if constraint.get(name, "Honor") not in _POLICIES
    ]


def gate_errors(gates: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        at, name = errors.index(path, position), gate.get("name", "")
        found += errors.all_invalid(at, name, label_key_errors(name))
        if name in seen:
            found.append(errors.duplicate(at, name))
        seen.add(name)
    return found
