"""All that an expression may refer to: the variable `device`, its fields, the names of types, and every function.

This is the environment in which kube-scheduler runs stored selectors: it has all libraries, whatever feature gates say.
Only the type of attributes depends on a gate: with list attributes they are dyn and may be iterated.

Next: `program` compiles expressions in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.k8s.cel.checking import kinds
from kubesched.k8s.cel.checking.declarations import CelFunction, merge
from kubesched.k8s.cel.checking.kinds import CelType
from kubesched.k8s.cel.library import (
    addresses,
    conversions,
    devices,
    lists,
    named_formats,
    operators,
    optionals,
    quantities,
    regexes,
    semvers,
    sets,
    strings,
    times,
    urls,
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
        operators.FUNCTIONS,
        conversions.FUNCTIONS,
        times.FUNCTIONS,
        urls.FUNCTIONS,
        regexes.FUNCTIONS,
        lists.KUBERNETES_FUNCTIONS,
        optionals.FUNCTIONS,
        quantities.FUNCTIONS,
        strings.FUNCTIONS,
        sets.FUNCTIONS,
        addresses.FUNCTIONS,
        named_formats.FUNCTIONS,
        semvers.FUNCTIONS,
        lists.FUNCTIONS,
        devices.FUNCTIONS,
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
