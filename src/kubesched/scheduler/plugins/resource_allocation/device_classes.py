"""Which devices a class picks, by the expressions in its selectors. Answers are kept until slice or class change.

Next: `devices` counts what is picked.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.k8s import cel
from kubesched.k8s.model import quantity
from kubesched.k8s.model.resource import Device, DeviceAttribute, DeviceClass, ResourceSlice

Answers = tuple[bool | None, ...]
"""For each device of a slice, whether the class picks it; None where an expression is broken or has no answer."""

_ROOM_FOR_OLD_ANSWERS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class KnownAnswers:
    device_class: DeviceClass
    published: ResourceSlice
    answers: Answers


class ClassMembership:
    """Asks every device once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], KnownAnswers] = {}

    def answers(self, device_class: DeviceClass, published: ResourceSlice) -> Answers:
        key = (device_class.name, published.name)
        known = self._known.get(key)
        if known is None or known.device_class is not device_class or known.published is not published:
            driver, devices = published.spec.driver, published.spec.devices or ()
            answers = tuple(_is_picked(device_class, driver, device) for device in devices)
            known = self._known[key] = KnownAnswers(device_class, published, answers)
        return known.answers

    def forget_old(self, n_slices: int) -> None:
        """Drops what is kept when most of it must be about slices that are gone."""
        if len(self._known) > 2 * n_slices + _ROOM_FOR_OLD_ANSWERS:
            self._known.clear()


def _is_picked(device_class: DeviceClass, driver: str, device: Device) -> bool | None:
    expressions = [s.cel.expression for s in device_class.spec.selectors or () if s.cel is not None]
    if not expressions:
        return True
    try:
        view = _view(driver, device)
        return all(cel.compile(expression).evaluate(view) for expression in expressions)
    except (cel.CelError, quantity.QuantityError):
        return None


def _view(driver: str, device: Device) -> cel.DeviceView:
    attributes = {name: _attribute(name, value) for name, value in (device.attributes or {}).items()}
    capacity = {name: quantity.parse(amount.value) for name, amount in (device.capacity or {}).items()}
    return cel.DeviceView.of(driver, attributes, capacity)


def _attribute(name: str, attribute: DeviceAttribute) -> cel.AttributeValue:
    if attribute.version is not None:
        return cel.VersionText(attribute.version)
    for value in (attribute.int_value, attribute.bool_value, attribute.string):
        if value is not None:
            return value
    raise cel.CelEvaluationError(f"attribute {name}: unsupported attribute value")
