"""Extended resources that stand for devices: which device class is behind the name of a resource.

A class is asked for by the name it declares (`extendedResourceName`), or by its own name behind a fixed prefix. Where
two classes declare the same name, the newer one has it, so that one can take over from the other; of two equally old
ones the first in the order of their names.

Next: `resource`, for device classes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.k8s.model.resource import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass
from kubesched.k8s.model.times import parse_instant


def device_class_of(resource: str, classes: Mapping[str, DeviceClass]) -> DeviceClass | None:
    """The class whose devices the resource stands for. `classes` by their names."""
    if not classes:
        return None
    if resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX):
        return classes.get(resource.removeprefix(DEVICE_CLASS_RESOURCE_PREFIX))
    claimants = [found for found in classes.values() if found.spec.extended_resource_name == resource]
    return min(claimants, key=_rank, default=None)


def _rank(found: DeviceClass) -> tuple[float, str]:
    created = found.metadata.creation_timestamp
    return (-parse_instant(created) if created else float("inf"), found.name)
