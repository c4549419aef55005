"""The Policy file (v1.2 to v1.22): predicates and priorities by name, with arguments, and extenders.

A list that is left out means the default set, an empty list means none. What the names mean is the business of
`names`; here the file is read, strictly, with all validation errors at once.

Next: `policy_profile`, which makes a profile of it, and `conversion`, which makes today's configuration of it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.k8s.model.times import Duration
from kubesched.scheduler.config.configuration import ExtenderConfiguration
from kubesched.scheduler.config.errors import ConfigError, ErrorList
from kubesched.scheduler.config.load import StrictDecoder, parse
from kubesched.scheduler.config.plugin_args import Int32, Int64

KIND = "Policy"
API_VERSIONS = ("v1", "kubescheduler.config.k8s.io/v1")


class PolicyStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Shared settings of the structs of a Policy."""


class ServiceAffinityArgument(PolicyStruct, frozen=True):
    """Pods of one service share these labels of their nodes."""

    labels: tuple[str, ...] = ()


class LabelsPresenceArgument(PolicyStruct, frozen=True):
    """Nodes must have, or must not have, all of these labels."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(PolicyStruct, frozen=True):
    service_affinity: ServiceAffinityArgument | None = None
    labels_presence: LabelsPresenceArgument | None = None


class PredicatePolicy(PolicyStruct, frozen=True):
    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinityArgument(PolicyStruct, frozen=True):
    """Pods of one service are spread over the values of this label."""

    label: str = ""


class LabelPreferenceArgument(PolicyStruct, frozen=True):
    """Nodes that have, or do not have, this label are better."""

    label: str = ""
    presence: bool = False


class ShapePoint(PolicyStruct, frozen=True):
    utilization: Int32 = 0
    score: Int32 = 0


class RatioResource(PolicyStruct, frozen=True):
    name: str = ""
    weight: Int64 = 0


class RatioArgument(PolicyStruct, frozen=True):
    """What the share of requested resources is worth."""

    shape: tuple[ShapePoint, ...] = ()
    resources: tuple[RatioResource, ...] = ()


class PriorityArgument(PolicyStruct, frozen=True):
    service_anti_affinity: ServiceAntiAffinityArgument | None = None
    label_preference: LabelPreferenceArgument | None = None
    requested_to_capacity_ratio_arguments: RatioArgument | None = None


class PriorityPolicy(PolicyStruct, frozen=True):
    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class Policy(PolicyStruct, frozen=True):
    """None means the default set, empty means none."""

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[ExtenderConfiguration, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


def load_policy(data: bytes | str | dict[str, Any], source: str) -> Policy:
    """A Policy from YAML, JSON or a mapping, fit to be translated. Raises `ConfigError` with every validation error."""
    policy = decode_policy(data, source)
    errors = ErrorList()
    _check_arguments(policy, errors)
    _check_weights(policy, errors)
    if errors:
        raise ConfigError(errors, source)
    return policy


def decode_policy(data: bytes | str | dict[str, Any], source: str) -> Policy:
    """Its fields alone; what a scheduler made of them, its version knows. Raises `ConfigError`."""
    errors = ErrorList()
    value = data if isinstance(data, dict) else parse(data, source, errors)
    if errors or not isinstance(value, dict):
        if not errors:
            errors.add("", "must be a Policy object")
        raise ConfigError(errors, source)
    _check_kind(value, errors)
    fields = {name: item for name, item in value.items() if name not in ("apiVersion", "kind", "metadata")}
    if isinstance(fields.get("extenders"), list):
        fields["extenders"] = [modern_extender(extender) for extender in fields["extenders"]]
    policy = StrictDecoder(errors).struct(Policy, fields, "")
    if errors:
        raise ConfigError(errors, source)
    assert isinstance(policy, Policy)
    return policy


def is_policy(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == KIND


def _check_kind(value: dict[str, Any], errors: ErrorList) -> None:
    """Old schedulers did not insist on either field; what is given must be right."""
    if value.get("kind", KIND) != KIND:
        errors.unsupported("kind", value["kind"], [KIND])
    if value.get("apiVersion", API_VERSIONS[0]) not in API_VERSIONS:
        errors.unsupported("apiVersion", value["apiVersion"], API_VERSIONS)


_EXTENDER_FIELDS = {
    field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(ExtenderConfiguration)
}


def modern_extender(extender: Any) -> Any:
    """Extenders of a Policy have their time in nanoseconds, and their fields in whatever case."""
    if not isinstance(extender, dict):
        return extender
    found = {_EXTENDER_FIELDS.get(str(name).lower(), name): item for name, item in extender.items()}
    timeout = found.get("httpTimeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        found["httpTimeout"] = str(Duration(timeout))
    return found


def _check_arguments(policy: Policy, errors: ErrorList) -> None:
    for index, predicate in enumerate(policy.predicates or ()):
        _check_one(predicate.name, predicate.argument, f"predicates[{index}]", errors)
    for index, priority in enumerate(policy.priorities or ()):
        _check_one(priority.name, priority.argument, f"priorities[{index}]", errors)


def _check_weights(policy: Policy, errors: ErrorList) -> None:
    """No version took a priority without weight."""
    for index, priority in enumerate(policy.priorities or ()):
        if priority.weight <= 0:
            detail = f"Priority {priority.name} should have a positive weight applied to it or it has overflown"
            errors.invalid(f"priorities[{index}].weight", priority.weight, detail)


def _check_one(name: str, argument: msgspec.Struct | None, path: str, errors: ErrorList) -> None:
    if not name:
        errors.required(f"{path}.name")
    if argument is not None:
        given = [f for f in msgspec.structs.fields(argument) if getattr(argument, f.name) is not None]
        if len(given) != 1:
            errors.add(f"{path}.argument", f"exactly 1 argument is required, numArgs: {len(given)}")
