"""Nodes: allocatable from capacity, taints, what may not change, and their table.

The status sent at creation is kept, as the real server keeps it. No taint is added to new nodes.
"""

from __future__ import annotations

import ipaddress

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.amounts import amount_errors, round_up_to_milli
from kubesched.playground.apiserver.kinds.pods.placement import taint_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig, name_of
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn

_ROLE_PREFIX = "node-role.kubernetes.io/"
_INFO = "io.k8s.api.core.v1.NodeSystemInfo"
_STATUS = "io.k8s.api.core.v1.NodeStatus"
_NO_CIDR_CHANGE = 'node updates may not change podCIDR except from "" to valid'
_NO_ID_CHANGE = 'node updates may not change providerID except from "" to valid'


def _set_defaults(node: Object) -> None:
    spec, status = node["spec"], node["status"]
    first = spec.get("podCIDR")
    if first and (not spec.get("podCIDRs") or spec["podCIDRs"][0] != first):
        spec["podCIDRs"] = [first]
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    for sort in ("capacity", "allocatable"):
        round_up_to_milli(status.get(sort, {}))
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])


def _validate(node: Object, old: Object | None) -> list[InvalidField]:
    spec = node["spec"]
    found = taint_errors(spec.get("taints", []), "metadata.taints")
    found += _amount_errors(node)
    found += _cidr_errors(spec.get("podCIDRs", []))
    return found if old is None else found + _change_errors(node, old)


def _amount_errors(node: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    for sort in ("capacity", "allocatable"):
        for name, amount in sorted(node.get("status", {}).get(sort, {}).items()):
            found += amount_errors(name, amount, f"status.{sort}.{name}")
    return found


def _cidr_errors(cidrs: list[str]) -> list[InvalidField]:
    path = "spec.podCIDRs"
    found: list[InvalidField] = []
    versions = []
    for position, cidr in enumerate(cidrs):
        try:
            versions.append(ipaddress.ip_network(cidr, strict=False).version)
        except ValueError:
            why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            found.append(errors.invalid(errors.index(path, position), cidr, why))
    if not found and (len(cidrs) > 2 or len(set(versions)) != len(versions)):
        found.append(errors.invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
    return found


def _change_errors(node: Object, old: Object) -> list[InvalidField]:
    found = _amount_errors(node)
    seen: list[Object] = []
    for position, address in enumerate(node.get("status", {}).get("addresses", [])):
        if address in seen:
            shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            found.append(errors.duplicate(errors.index("status.addresses", position), shown))
        seen.append(address)
    before, after = old["spec"].get("podCIDRs", []), node["spec"].get("podCIDRs", [])
    if before and len(before) != len(after):
        found.append(errors.forbidden("spec.podCIDRs", _NO_CIDR_CHANGE))
    else:
        pairs = zip(before, after, strict=False)
        found += [errors.forbidden("spec.podCIDRs", _NO_CIDR_CHANGE) for one, other in pairs if one != other]
    provider = old["spec"].get("providerID", "")
    if provider and node["spec"].get("providerID", "") != provider:
        found.append(errors.forbidden("spec.providerID", _NO_ID_CHANGE))
    return found + taint_errors(node["spec"].get("taints", []), "metadata.taints")


def _selectable(node: Object) -> dict[str, str]:
    unschedulable = "true" if node["spec"].get("unschedulable") else "false"
    return {"metadata.name": name_of(node), "spec.unschedulable": unschedulable}


def _status(node: Object) -> str:
    ready = [one for one in node.get("status", {}).get("conditions", []) if one["type"] == "Ready"]
    word = ("Ready" if ready[-1]["status"] == "True" else "NotReady") if ready else "Unknown"
    return f"{word},SchedulingDisabled" if node["spec"].get("unschedulable") else word


def _roles(node: Object) -> str:
    labels = node["metadata"].get("labels", {})
    roles = {label.removeprefix(_ROLE_PREFIX) for label in labels if label.startswith(_ROLE_PREFIX)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(node: Object, sort: str) -> str:
    for address in node.get("status", {}).get("addresses", []):
        if address["type"] == sort:
            return str(address["address"])
    return "<none>"


def _info(name: str) -> str:
    return f"status.nodeInfo.{name}"


def _kernel(node: Object) -> str:
    version = dig(_info("kernelVersion"))(node) or "<unknown>"
    architecture = dig(_info("architecture"))(node)
    return f"{version} ({architecture})" if architecture else str(version)


def _known(name: str) -> TableColumn:
    label = {"osImage": "OS-Image", "containerRuntimeVersion": "Container-Runtime"}[name]
    return described(label, lambda node: dig(_info(name))(node) or "<unknown>", _INFO, name, priority=1)


NODE = KindRules(
    metadata_again="both",
    set_defaults=_set_defaults,
    validate=_validate,
    validate_through={"status": _change_errors},
    keeps_status=True,
    selectable_fields=_selectable,
    columns=(
        NAME,
        TableColumn("Status", _status, description="The status of the node"),
        TableColumn("Roles", _roles, description="The roles of the node"),
        AGE,
        described("Version", dig(_info("kubeletVersion")), _INFO, "kubeletVersion"),
        described("Internal-IP", lambda node: _address(node, "InternalIP"), _STATUS, "addresses", priority=1),
        described("External-IP", lambda node: _address(node, "ExternalIP"), _STATUS, "addresses", priority=1),
        _known("osImage"),
        described("Kernel-Version", _kernel, _INFO, "kernelVersion", priority=1),
        _known("containerRuntimeVersion"),
    ),
)
