"""What made older schedulers refuse a Policy: weights, arguments, shapes; in their words."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.config.older.generations import Generation
from kubesched.config.older.policy import Policy, PriorityPolicy, RatioArgument
from kubesched.config.older.refusal import refuse_policy

_MAX_INT64 = 2**63 - 1
_HIGHEST_UTILIZATION = 100
_HIGHEST_SHAPE_SCORE = 10
_HIGHEST_AFFINITY_WEIGHT = 100


def check_policy(policy: Policy, generation: Generation) -> None:
    """Raises `RefusedConfigurationError`."""
    problems = list(_priority_problems(policy, generation))
    problems.extend(_extender_problems(policy, generation))
    weight = policy.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= _HIGHEST_AFFINITY_WEIGHT:
        if generation.registers_functions:
            problems.append(f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100")
        else:
            field = "hardPodAffinitySymmetricWeight"
            problems.append(f"{field}: Invalid value: {weight}: not in valid range [0-100]")
    if problems:
        raise refuse_policy(problems)


def _extender_problems(policy: Policy, generation: Generation) -> Iterator[str]:
    """In the form of field errors from 1.18 on."""
    has_fields = not generation.registers_functions
    n_binders = 0
    for index, extender in enumerate(policy.extenders):
        n_binders += bool(extender.bind_verb)
        if extender.prioritize_verb and extender.weight <= 0:
            if has_fields:
                detail = "must have a positive weight applied to it"
                yield f"extenders[{index}].weight: Invalid value: {extender.weight}: {detail}"
            else:
                yield f"Priority for extender {extender.url_prefix} should have a positive weight applied to it"
    if n_binders > 1:
        if has_fields:
            found = f'"found {n_binders} extenders implementing bind"'
            yield f"extenders: Invalid value: {found}: only one extender can implement bind"
        else:
            yield f"Only one extender can implement bind, found {n_binders}"


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
    if argument.requested_to_capacity_ratio_arguments is not None:
        kind = "RequestedToCapacityRatio"
        if kind in seen:
            yield f'Priority "{priority.name}" redeclares custom priority "{kind}", from:"{seen[kind].name}"'
            return
    else:
        kind = "LabelPreference" if argument.label_preference is not None else "ServiceAntiAffinity"
        if kind in seen and seen[kind].weight != priority.weight:
            yield f'{kind}  priority "{priority.name}" has a different weight with "{seen[kind].name}"'
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
