"""The functions of a selector, one module per family, and all that an expression may refer to.

The standard ones are those of the CEL specification and of cel-go's extensions, the others are those of Kubernetes.
Here they are put together with the variable `device`, its fields and the names of types. This is the environment in
which kube-scheduler runs stored selectors: it has all libraries, whatever feature gates say. Only the type of
attributes depends on a gate: with list attributes they are dyn and may be iterated; includes(), which only device
selectors have, treats a single attribute as a list of one.

Next: `program` compiles expressions in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.k8s.cel import kinds
from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.kinds import CelFunction, CelType, function, merge, overload
from kubesched.k8s.cel.library import addresses, lists, quantities, standard, strings, times, urls
from kubesched.k8s.cel.operations import is_same

_MAX_VALUES_PER_DEVICE = 48


def includes(attribute: object, sought: object) -> bool:
    """Whether an attribute is the value sought, or a list that has it."""
    if type(attribute) is not list:
        return is_same(attribute, sought)
    for index, element in enumerate(attribute):
        if index >= _MAX_VALUES_PER_DEVICE:
            message = f"'includes' function cannot be applied to lists longer than {_MAX_VALUES_PER_DEVICE} values"
            raise CelEvaluationError(message)
        if is_same(element, sought):
            return True
    return False


DEVICE_FUNCTIONS: tuple[CelFunction, ...] = (
    function("includes", overload("dra_includes_dyn_dyn", "dyn.(dyn) -> bool", includes)),
)


DEVICE_VARIABLE = "device"

VARIABLES: Mapping[str, CelType] = {DEVICE_VARIABLE: kinds.DEVICE}

TYPE_NAMES: Mapping[str, CelType] = {
    named.name: named
    for named in (
        kinds.BOOL, kinds.BYTES, kinds.CIDR, kinds.DEVICE, kinds.DOUBLE, kinds.DURATION, kinds.INT, kinds.IP,
        kinds.list_of(kinds.DYN), kinds.map_of(kinds.DYN, kinds.DYN), kinds.NULL, kinds.optional_of(kinds.DYN),
        kinds.STRING, kinds.TIMESTAMP, kinds.TYPE, kinds.UINT,
    )
}  # fmt: skip

FUNCTIONS: Mapping[str, CelFunction] = merge(
    (
        standard.OPERATOR_FUNCTIONS,
        standard.CONVERSION_FUNCTIONS,
        times.FUNCTIONS,
        urls.FUNCTIONS,
        strings.REGEX_FUNCTIONS,
        lists.KUBERNETES_FUNCTIONS,
        standard.OPTIONAL_FUNCTIONS,
        quantities.FUNCTIONS,
        strings.FUNCTIONS,
        lists.SET_FUNCTIONS,
        addresses.FUNCTIONS,
        urls.FORMAT_FUNCTIONS,
        quantities.VERSION_FUNCTIONS,
        lists.FUNCTIONS,
        DEVICE_FUNCTIONS,
    )
)


class DeviceFields:
    """The fields of `device` and their types; nothing else has any, and no struct can be built."""

    def __init__(self, list_type_attributes: bool) -> None:
        attribute = kinds.DYN if list_type_attributes else kinds.ANY
        self._types = {
            "driver": kinds.STRING,
            "allowMultipleAllocations": kinds.BOOL,
            "attributes": kinds.map_of(kinds.STRING, kinds.map_of(kinds.STRING, attribute)),
            "capacity": kinds.map_of(kinds.STRING, kinds.map_of(kinds.STRING, kinds.QUANTITY)),
        }

    def is_constructible(self, type_name: str) -> bool:
        return False

    def field_type(self, type_name: str, field: str) -> CelType | None:
        if type_name != kinds.DEVICE.name:
            raise KeyError(type_name)
        return self._types.get(field)
