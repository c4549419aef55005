"""Selectors of devices, which are CEL expressions, and configuration for drivers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kubesched.k8s import cel
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.devices.lists import list_errors
from kubesched.playground.apiserver.kinds.name_syntax import driver_name_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_MOST_SELECTORS = 32
MOST_CONFIGS = 32
_LONGEST_EXPRESSION = 10 * 1024
_MOST_PARAMETER_BYTES = 10 * 1024


def selector_errors(selectors: Sequence[Object], path: str) -> list[InvalidField]:
    return list_errors(selectors, _MOST_SELECTORS, _one_selector_errors, path)


def _one_selector_errors(selector: Object, path: str) -> list[InvalidField]:
    if "cel" not in selector:
        return [errors.required(f"{path}.cel")]
    expression, at = selector["cel"].get("expression", ""), f"{path}.cel.expression"
    if len(expression.encode()) > _LONGEST_EXPRESSION:
        return [errors.too_long(at, _LONGEST_EXPRESSION)]
    try:
        cel.compile(expression)
    except cel.CelCompileError as error:
        return [errors.invalid(at, expression, str(error))]
    return []


def configuration_errors(config: Object, path: str, is_stored: bool = False) -> list[InvalidField]:
    """``is_stored``: it was accepted before there was a limit."""
    opaque = config.get("opaque")
    if opaque is None:
        return [errors.required(f"{path}.opaque")]
    found = driver_name_errors(opaque.get("driver", ""), f"{path}.opaque.driver")
    most = -1 if is_stored else _MOST_PARAMETER_BYTES
    return found + raw_object_errors(opaque.get("parameters"), f"{path}.opaque.parameters", most)


def raw_object_errors(value: Any, path: str, most_bytes: int) -> list[InvalidField]:
    """JSON of somebody else's: any object."""
    if value is None:
        return [errors.required(path)]
    if 0 <= most_bytes < len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()):
        return [errors.too_long(path, most_bytes)]
    if not isinstance(value, dict):
        return [errors.invalid(path, "<value omitted>", "must be a valid JSON object")]
    return []
