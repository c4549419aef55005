"""What is wrong with the smaller kinds of storage: topologies of classes, drivers of nodes, capacities, attachments."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.kind import InvalidField, Object
from kubesched.apiserver.kinds.label_selectors import label_selector_errors
from kubesched.apiserver.kinds.name_syntax import dns_subdomain_mistakes
from kubesched.model import quantity
from kubesched.model.label_syntax import label_key_mistakes

_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def topology_errors(terms: Sequence[Object], path: str) -> list[InvalidField]:
    """The topologies that a class allows."""
    found: list[InvalidField] = []
    for position, term in enumerate(terms):
        at = f"{errors.index(path, position)}.matchLabelExpressions"
        keys: set[str] = set()
        for place, expression in enumerate(term.get("matchLabelExpressions") or []):
            here, key = errors.index(at, place), expression.get("key", "")
            if not expression.get("values"):
                found.append(errors.required(f"{here}.values"))
            found += errors.all_invalid(f"{here}.key", key, label_key_mistakes(key))
            if key in keys:
                found.append(errors.duplicate(f"{here}.key", key))
            keys.add(key)
    return found


def driver_change_errors(node: Object, old: Object) -> list[InvalidField]:
    """A driver that stays on a node stays as it is, but for how many volumes it can attach."""
    before = {driver.get("name"): driver for driver in old["spec"].get("drivers") or []}
    return [
        errors.immutable("spec.drivers", _shown_driver(driver))
        for driver in node["spec"].get("drivers") or []
        if driver.get("name") in before and not _is_same_driver(driver, before[driver.get("name")])
    ]


def _is_same_driver(one: Object, other: Object) -> bool:
    if "allocatable" in other and "allocatable" not in one:
        return False
    names = ("name", "nodeID", "topologyKeys")
    return [one.get(name) for name in names] == [other.get(name) for name in names]


def _shown_driver(driver: Object) -> Object:
    allocatable = driver.get("allocatable")
    return {
        "Name": driver.get("name", ""),
        "NodeID": driver.get("nodeID", ""),
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None if allocatable is None else {"Count": allocatable.get("count")},
    }


def capacity_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    """A CSIStorageCapacity."""
    found = label_selector_errors(obj.get("nodeTopology"), "nodeTopology")
    name = obj.get("storageClassName", "")
    found += errors.all_invalid("storageClassName", name, dns_subdomain_mistakes(name))
    for sort in ("capacity", "maximumVolumeSize"):
        amount = obj.get(sort)
        if amount is not None and quantity.parse(amount).nanos < 0:
            found.append(errors.invalid(sort, amount, "must be greater than or equal to 0"))
    if old is not None:
        for sort in ("nodeTopology", "storageClassName"):
            if obj.get(sort) != old.get(sort):
                found.append(errors.immutable(sort, obj.get(sort)))
    return found


def attachment_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    """A VolumeAttachment."""
    if old is not None:
        return []
    spec = obj["spec"]
    found: list[InvalidField] = []
    attacher, node, source = spec.get("attacher", ""), spec.get("nodeName", ""), spec.get("source", {})
    if not attacher:
        found.append(errors.required("spec.attacher"))
    else:
        found += errors.all_invalid("spec.attacher", attacher, dns_subdomain_mistakes(attacher.lower()))
    volume = source.get("persistentVolumeName")
    if (volume is None) == ("inlineVolumeSpec" not in source):
        found.append(errors.required("spec.source", _ONE_SOURCE))
    elif volume is not None:
        if volume:
            found += errors.all_invalid("spec.source.persistentVolumeName", volume, dns_subdomain_mistakes(volume))
        else:
            found.append(
                errors.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
            )
    return found + errors.all_invalid("spec.nodeName", node, dns_subdomain_mistakes(node))
