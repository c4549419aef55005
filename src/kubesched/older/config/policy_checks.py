"""What made older schedulers refuse a Policy: weights, arguments, shapes; in their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kubesched.k8s.model.requests import is_extended
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.older.config.emulated import Refusals, RefusedConfigurationError
from kubesched.older.config.generations import Generation
from kubesched.older.config.names import EQUAL_PRIORITY
from kubesched.older.config.policy import (
    Policy,
    PredicateArgument,
    PredicatePolicy,
    PriorityArgument,
    PriorityPolicy,
    RatioArgument,
)

_MAX_INT64 = 2**63 - 1
_HIGHEST_UTILIZATION = 100
_HIGHEST_SHAPE_SCORE = 10
_HIGHEST_AFFINITY_WEIGHT = 100
_ALGORITHM_NAME = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$"


def check_policy(policy: Policy, generation: Generation) -> None:
    """What was checked before anything was made of it. Raises `RefusedConfigurationError`."""
    problems = list(_priority_problems(policy, generation))
    problems.extend(_extender_problems(policy, generation))
    weight = policy.hard_pod_affinity_symmetric_weight
    if not generation.registers_functions and not 0 <= weight <= _HIGHEST_AFFINITY_WEIGHT:
        field = "hardPodAffinitySymmetricWeight"
        problems.append(f"{field}: Invalid value: {weight}: not in valid range [0-100]")
    if problems:
        raise Refusals(generation).scheduler(problems)


def check_registration(
    policy: Policy, generation: Generation, predicates: frozenset[str], priorities: frozenset[str]
) -> None:
    """What ended the scheduler on the spot: names that mean nothing, and arguments that mean nothing or too much.
    `predicates` and `priorities` are those that need no argument. Raises `RefusedConfigurationError`."""
    for predicate in policy.predicates or ():
        _check_one("predicate", predicate, predicates, generation)
    for priority in policy.priorities or ():
        if priority.name == EQUAL_PRIORITY and not generation.has_predicates:
            continue
        _check_one("priority", priority, priorities, generation)
        ratio = None if priority.argument is None else priority.argument.requested_to_capacity_ratio_arguments
        problem = None if ratio is None or not generation.registers_functions else shape_problem(ratio, generation)
        if problem is not None:
            raise RefusedConfigurationError(f"invalid RequestedToCapacityRatioPriority arguments: {problem}")


def _check_one(
    what: str, entry: PredicatePolicy | PriorityPolicy, known: frozenset[str], generation: Generation
) -> None:
    argument, title = entry.argument, what.capitalize()
    if argument is not None and (n_given := _n_arguments(argument)) != 1:
        text = f"Exactly 1 {what} argument is required, numArgs: {n_given}, {title}: {entry.name}"
        raise RefusedConfigurationError(text)
    if argument is None and entry.name not in known:
        name = entry.name if generation.registers_functions else f'"{entry.name}"'
        raise RefusedConfigurationError(f"Invalid configuration: {title} type not found for {name}")
    makes_function = argument is not None or what == "priority"
    if generation.has_predicates and makes_function and not re.match(_ALGORITHM_NAME, entry.name):
        text = f'Algorithm name {entry.name} does not match the name validation regexp "{_ALGORITHM_NAME}".'
        raise RefusedConfigurationError(text)


def _n_arguments(argument: PredicateArgument | PriorityArgument) -> int:
    return sum(getattr(argument, field.name) is not None for field in msgspec.structs.fields(argument))


def check_sum_of_weights(weights: Iterable[int], generation: Generation) -> None:
    """Where priorities were functions. Raises `RefusedConfigurationError`."""
    if generation.registers_functions and sum(weights) * generation.highest_score > _MAX_INT64:
        raise Refusals(generation).scheduler([generation.overflow])


def label_conflict(args: Mapping[str, Any]) -> str | None:
    """NodeLabel cannot both want and not want a label."""
    pairs = (("presentLabels", "absentLabels"), ("presentLabelsPreference", "absentLabelsPreference"))
    for present, absent in pairs:
        wanted, unwanted = args.get(present) or [], args.get(absent) or []
        both = next((label for label in unwanted if label in wanted), None)
        if both is not None:
            lists = f"the present([{' '.join(wanted)}]) and absent([{' '.join(unwanted)}]) label list"
            return f'detecting at least one label (e.g., "{both}") that exist in both {lists}'
    return None


def _extender_problems(policy: Policy, generation: Generation) -> Iterator[str]:
    """In the form of field errors from 1.18 on."""
    has_fields = not generation.registers_functions
    n_binders = 0
    managed: set[str] = set()
    for index, extender in enumerate(policy.extenders):
        n_binders += bool(extender.bind_verb)
        if extender.prioritize_verb and extender.weight <= 0:
            if has_fields:
                detail = "must have a positive weight applied to it"
                yield f"extenders[{index}].weight: Invalid value: {extender.weight}: {detail}"
            else:
                yield f"Priority for extender {extender.url_prefix} should have a positive weight applied to it"
        for position, resource in enumerate(extender.managed_resources):
            name = resource.name
            path = f'extenders[{index}].managedResources[{position}].name: Invalid value: "{name}": '
            for problem in _resource_name_problems(name):
                yield f"{path}{problem}" if has_fields else problem
            if name in managed:
                repeated = "duplicate extender managed resource name"
                yield f"{path}{repeated}" if has_fields else f"Duplicate extender managed resource name {name}"
            managed.add(name)
    if n_binders > 1:
        if has_fields:
            found = f'"found {n_binders} extenders implementing bind"'
            yield f"extenders: Invalid value: {found}: only one extender can implement bind"
        else:
            yield f"Only one extender can implement bind, found {n_binders}"


def _resource_name_problems(name: str) -> list[str]:
    found = list(label_key_errors(name))
    return found if found or is_extended(name) else [f"{name} is an invalid extended resource name"]


def ratio_problem(ratio: RatioArgument, generation: Generation) -> str | None:
    """Why the plugin behind a function of utilization did not start."""
    problem = shape_problem(ratio, generation)
    if problem is None and generation.ratio_needs_resources:
        light = next((resource for resource in ratio.resources if resource.weight < 1), None)
        if light is not None:
            problem = f"resource {light.name} weight {light.weight} must not be less than 1"
    return problem


def _priority_problems(policy: Policy, generation: Generation) -> Iterator[str]:
    largest = _MAX_INT64 // _HIGHEST_SHAPE_SCORE
    seen: dict[str, PriorityPolicy] = {}
    for priority in policy.priorities or ():
        if not 0 < priority.weight < largest:
            yield f"Priority {priority.name} should have a positive weight applied to it or it has overflown"
        if generation.has_predicates or priority.argument is None:
            continue
        yield from _custom_problems(priority, seen)


def _custom_problems(priority: PriorityPolicy, seen: dict[str, PriorityPolicy]) -> Iterator[str]:
    argument = priority.argument
    assert argument is not None
    if argument.label_preference is not None or argument.service_anti_affinity is not None:
        kind = "LabelPreference" if argument.label_preference is not None else "ServiceAntiAffinity"
        if kind in seen and seen[kind].weight != priority.weight:
            yield f'{kind}  priority "{priority.name}" has a different weight with "{seen[kind].name}"'
            return
    elif argument.requested_to_capacity_ratio_arguments is not None:
        kind = "RequestedToCapacityRatio"
        if kind in seen:
            yield f'Priority "{priority.name}" redeclares custom priority "{kind}", from:"{seen[kind].name}"'
            return
    else:
        yield f"No priority arguments set for priority {priority.name}"
        return
    seen[kind] = priority


def shape_problem(ratio: RatioArgument, generation: Generation) -> str | None:
    """What is wrong with a function of utilization. Between 1.17 and 1.18 scores were stretched before the check."""
    shape = ratio.shape
    if not shape:
        return "at least one point must be specified"
    for index in range(1, len(shape)):
        before, here = shape[index - 1].utilization, shape[index].utilization
        if before >= here:
            compared = f"Utilization[{index - 1}]=={before} >= Utilization[{index}]=={here}"
            return f"utilization values must be sorted. {compared}"
    stretch = 1 if generation.ratio_needs_resources else generation.highest_score // _HIGHEST_SHAPE_SCORE
    for index, point in enumerate(shape):
        for name, value, most in (
            ("Utilization", point.utilization, _HIGHEST_UTILIZATION),
            ("Score", point.score * stretch, _HIGHEST_SHAPE_SCORE * stretch),
        ):
            if value < 0:
                return f"{name.lower()} values must not be less than 0. {name}[{index}]=={value}"
            if value > most:
                return f"{_too_great(name, generation)} {most}. {name}[{index}]=={value}"
    return None


def _too_great(name: str, generation: Generation) -> str:
    if name == "Utilization" or generation.ratio_needs_resources:
        return f"{name.lower()} values must not be greater than"
    return "score valuses not be greater than" if generation.registers_functions else "score values not be greater than"
