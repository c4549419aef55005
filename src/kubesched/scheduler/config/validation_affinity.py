"""What is allowed in a node affinity, as far as NodeAffinityArgs.addedAffinity may hold one.

A term that could match no node (it is empty) or could count for nothing (its weight is 0) is not looked at.

Next: `validation_args`, which asks for this.
"""

from __future__ import annotations

import re

from kubesched.k8s.model.core import NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.k8s.model.label_syntax import label_key_errors, label_value_errors
from kubesched.scheduler.config.errors import ErrorList

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")


def validate_node_affinity(affinity: NodeAffinity, path: str, errors: ErrorList) -> None:
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        terms_path = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(required.node_selector_terms):
            _term(term, f"{terms_path}[{index}]", errors)
    preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
    for index, weighted in enumerate(preferred):
        if weighted.weight:
            # Kubernetes leaves `.preference` out of these paths.
            preferred_path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            _term(weighted.preference, preferred_path, errors)


def _term(term: NodeSelectorTerm, path: str, errors: ErrorList) -> None:
    for index, requirement in enumerate(term.match_expressions or ()):
        _label_requirement(requirement, f"{path}.matchExpressions[{index}]", errors)
    for index, requirement in enumerate(term.match_fields or ()):
        _field_requirement(requirement, f"{path}.matchFields[{index}]", errors)


def _label_requirement(requirement: NodeSelectorRequirement, path: str, errors: ErrorList) -> None:
    operator, values = requirement.operator, requirement.values or ()
    if operator not in _LABEL_OPERATORS:
        errors.unsupported(f"{path}.operator", operator, _LABEL_OPERATORS)
        return
    if problems := label_key_errors(requirement.key):
        errors.invalid(f"{path}.key", requirement.key, "; ".join(problems))
    shown = None if requirement.values is None else list(values)
    if operator in ("In", "NotIn") and not values:
        errors.invalid(f"{path}.values", shown, "for 'in', 'notin' operators, values set can't be empty")
    if operator in ("Exists", "DoesNotExist") and values:
        errors.invalid(f"{path}.values", shown, "values set must be empty for exists and does not exist")
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.invalid(f"{path}.values", shown, "for 'Gt', 'Lt' operators, exactly one value is required")
        for index, value in enumerate(values):
            if not _is_int64(value):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.invalid(f"{path}.values[{index}]", value, detail)
    for index, value in enumerate(values):
        if problems := label_value_errors(value):
            errors.invalid(f"{path}.values[{index}][{requirement.key}]", value, "; ".join(problems))


def _field_requirement(requirement: NodeSelectorRequirement, path: str, errors: ErrorList) -> None:
    if requirement.operator not in _FIELD_OPERATORS:
        errors.unsupported(f"{path}.operator", requirement.operator, _FIELD_OPERATORS)
    elif len(requirement.values or ()) != 1:
        shown = None if requirement.values is None else list(requirement.values)
        errors.invalid(f"{path}.values", shown, "must have one element")


def _is_int64(text: str) -> bool:
    return re.fullmatch(r"[-+]?[0-9]+", text, re.ASCII) is not None and -(2**63) <= int(text) < 2**63
