"""Capacities of devices: how much of a shared device a claim can ask for."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.devices.lists import set_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_MOST_OPTIONS = 10
_TWO_POLICIES = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def capacity_errors(capacity: Object, path: str, is_shared: bool) -> list[InvalidField]:
    policy, at = capacity.get("requestPolicy"), f"{path}.requestPolicy"
    if policy is None:
        return []
    if not is_shared:
        return [errors.forbidden(at, "allowMultipleAllocations must be true")]
    options, limits, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    whole = capacity.get("value", "0")
    if options and limits is not None:
        return [errors.forbidden(at, _TWO_POLICIES)]
    if options:
        if default is None:
            return [errors.required(f"{at}.default", "required when validValues is defined")]
        return _option_errors(default, whole, options, f"{at}.validValues")
    if limits is not None:
        if default is None:
            return [errors.required(f"{at}.default", "required when validRange is defined")]
        return _range_errors(default, whole, limits, f"{at}.validRange")
    return []


def _option_errors(default: str, whole: str, options: Sequence[str], path: str) -> list[InvalidField]:
    amounts = [quantity.parse(option) for option in options]
    unsorted = "values must be sorted in ascending order"
    found = [
        errors.invalid(errors.index(path, position + 1), options[position + 1], unsorted)
        for position in range(len(amounts) - 1)
        if amounts[position] > amounts[position + 1]
    ]

    def fits(option: str, at: str) -> list[InvalidField]:
        if quantity.parse(option) <= quantity.parse(whole):
            return []
        return [errors.invalid(at, option, f"option is larger than capacity value: {whole}")]

    found += set_errors(options, _MOST_OPTIONS, fits, path, lambda option: str(quantity.parse(option).value))
    is_looked_at = len(options) <= _MOST_OPTIONS
    if not is_looked_at or quantity.parse(default) not in amounts:
        why = "default value is not valid according to the requestPolicy"
        found.append(errors.invalid(path, default, why))
    return found


def _range_errors(default: str, whole: str, limits: Object, path: str) -> list[InvalidField]:
    least, most, step = limits.get("min"), limits.get("max"), limits.get("step")
    if least is None:
        return [errors.required(f"{path}.min", "required when validRange is defined")]
    found: list[InvalidField] = []
    if _is_above(least, whole):
        found.append(errors.invalid(f"{path}.min", least, f"min is larger than capacity value: {whole}"))
    if _is_above(least, default):
        found.append(errors.invalid(f"{path}.min", default, f"default is less than min: {least}"))
    if most is not None:
        at = f"{path}.max"
        if _is_above(least, most):
            found.append(errors.invalid(at, least, f"min is larger than max: {most}"))
        if _is_above(most, whole):
            found.append(errors.invalid(at, most, f"max is larger than capacity value: {whole}"))
        if _is_above(default, most):
            found.append(errors.invalid(at, default, f"default is more than max: {most}"))
    if step is not None:
        at, first = f"{path}.step", str(quantity.parse(least) + quantity.parse(step))
        if _is_above(first, whole):
            found.append(errors.invalid(at, step, f"one step {first} is larger than capacity value: {whole}"))
        found += _step_errors(default, least, step, at) + (_step_errors(most, least, step, at) if most else [])
    return found


def _is_above(one: str, other: str) -> bool:
    return quantity.parse(one) > quantity.parse(other)


def _step_errors(amount: str, least: str, step: str, path: str) -> list[InvalidField]:
    n_step = quantity.parse(step).value
    n_above = quantity.parse(amount).value - quantity.parse(least).value
    if n_step and n_above % n_step == 0:
        return []
    return [errors.invalid(path, amount, f"value is not a multiple of a given step ({step}) from ({least})")]
