"""What a selector sees of a device: its driver, its attributes and capacities by domain, and whether it may be shared.

Attribute and capacity names without a domain belong to the driver's domain. Build one view per device and evaluate as
many programs on it as there are selectors.

Next: `program` evaluates on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.library import quantities, semvers
from kubesched.k8s.cel.library.semvers import Semver, SemverError
from kubesched.k8s.cel.values.containers import DomainMap
from kubesched.k8s.model.quantity import Quantity


@dataclass(frozen=True, slots=True)
class VersionText:
    """A version attribute, not yet parsed."""

    text: str


Scalar = str | int | bool | VersionText
AttributeValue = Scalar | tuple[Scalar, ...]
"""The value of an attribute; a tuple is a list attribute."""


@dataclass(frozen=True, slots=True)
class DeviceView:
    """A device as the variable `device` of an expression. Use `of` to build one from qualified names."""

    driver: str
    attributes: DomainMap
    capacity: DomainMap
    allow_multiple_allocations: bool
    list_attribute: str = ""
    """The name of an attribute that is a list, if there is one: programs without list attributes refuse the device."""

    @classmethod
    def of(
        cls,
        driver: str,
        attributes: Mapping[str, AttributeValue | None] | None = None,
        capacity: Mapping[str, Quantity] | None = None,
        allow_multiple_allocations: bool | None = None,
    ) -> DeviceView:
        """Raises CelEvaluationError for an attribute without a value, or one that is no version although it says so."""
        values = {name: _attribute(name, value) for name, value in (attributes or {}).items()}
        amounts = {name: quantities.from_quantity(value) for name, value in (capacity or {}).items()}
        list_attribute = next((name for name, value in values.items() if type(value) is list), "")
        return cls(
            driver,
            _by_domain(driver, values),
            _by_domain(driver, amounts),
            bool(allow_multiple_allocations),
            list_attribute,
        )

    def as_map(self) -> dict[str, object]:
        """The device as a value of its own, for an expression that does more than select fields of it."""
        return {
            "driver": self.driver,
            "allowMultipleAllocations": self.allow_multiple_allocations,
            "attributes": self.attributes,
            "capacity": self.capacity,
        }


def split_qualified_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier of an attribute or capacity name."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _by_domain(driver: str, values: Mapping[str, object]) -> DomainMap:
    domains = DomainMap()
    for name, value in values.items():
        domain, identifier = split_qualified_name(name, driver)
        domains.setdefault(domain, {})[identifier] = value
    return domains


def _attribute(name: str, value: AttributeValue | None) -> object:
    if value is None:
        raise CelEvaluationError(f"attribute {name}: unsupported attribute value")
    if isinstance(value, tuple):
        return [_attribute(name, element) for element in value]
    return _version(name, value.text) if isinstance(value, VersionText) else value


def _version(name: str, text: str) -> Semver:
    try:
        return semvers.parse(text)
    except SemverError as error:
        raise CelEvaluationError(f"attribute {name}: parse semantic version: {error}") from None
