"""Services, endpoints and endpoint slices. Cluster addresses and node ports are handed out; nothing routes to them."""

from __future__ import annotations

import ipaddress
from itertools import islice
from typing import Any

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.kind import InvalidField, Object, WriteContext, metadata_fields
from kubesched.apiserver.kinds.metadata import label_errors
from kubesched.apiserver.kinds.name_syntax import address_errors, dns_label_mistakes, port_number_mistakes
from kubesched.apiserver.kinds.pods.probes import port_or_name_errors
from kubesched.apiserver.kinds.serving import KindRules
from kubesched.apiserver.kinds.table_columns import AGE, NAME, described, dig, print_labels
from kubesched.apiserver.kinds.traffic_checks import endpoint_slice_errors
from kubesched.model.label_syntax import label_key_mistakes

_SPEC = "io.k8s.api.core.v1.ServiceSpec"
_SLICE = "io.k8s.api.discovery.v1.EndpointSlice"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_NETWORK = ipaddress.ip_network("10.0.0.0/12")
FIRST_ADDRESS = str(_NETWORK[1])
"""That of the service which stands for the API server."""
_FIRST_FREE = 10
_NODE_PORTS = range(30000, 32768)


def _is_reachable_from_outside(spec: Object) -> bool:
    return spec["type"] in ("NodePort", "LoadBalancer") or bool(spec.get("externalIPs") and spec["type"] == "ClusterIP")


def _set_service_defaults(service: Object) -> None:
    spec = service["spec"]
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif not spec.get("sessionAffinityConfig", {}).get("clientIP", {}).get("timeoutSeconds"):
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports") or []:
        if port.get("targetPort") in (0, "", None):
            port["targetPort"] = port.get("port", 0)
    if _is_reachable_from_outside(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for entry in service["status"].get("loadBalancer", {}).get("ingress", []):
            if entry.get("ip"):
                entry.setdefault("ipMode", "VIP")


def _prepare(service: Object, old: Object | None, ctx: WriteContext) -> None:
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    if old is not None and not spec.get("clusterIP"):
        spec["clusterIP"] = old["spec"].get("clusterIP", "")
    others = [
        one for one in ctx.lookup.list("services") if one["metadata"].get("uid") != service["metadata"].get("uid")
    ]
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_address({one["spec"].get("clusterIP") for one in others})
    if old is None or (spec.get("clusterIPs") or [])[:1] != [spec["clusterIP"]]:
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec["clusterIP"] == "None" and not spec.get("selector") and "ipFamilyPolicy" not in spec:
        # whoever makes endpoints for it may make them of both sorts
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
        spec["ipFamilyPolicy"] = "RequireDualStack"
    spec.setdefault("ipFamilies", ["IPv6" if ":" in spec["clusterIP"] else "IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _keep_node_ports(spec, old["spec"] if old is not None else {})
        _open_node_ports(spec, others)
    _open_health_port(spec, others)


def _free_address(taken: set[Any]) -> str:
    hosts = map(str, islice(_NETWORK.hosts(), _FIRST_FREE, None))
    return next(host for host in hosts if host not in taken)


def _keep_node_ports(spec: Object, before: Object) -> None:
    """A port that says nothing keeps the node port that it has."""
    known = {(port.get("port"), port.get("protocol")): port.get("nodePort") for port in before.get("ports", [])}
    for port in spec.get("ports") or []:
        kept = known.get((port.get("port"), port.get("protocol")))
        if kept and not port.get("nodePort"):
            port["nodePort"] = kept


def _open_node_ports(spec: Object, others: list[Object]) -> None:
    taken = {port.get("nodePort") for one in others for port in one["spec"].get("ports", [])}
    taken |= {port.get("nodePort") for port in (spec.get("ports") or [])}
    free = (number for number in _NODE_PORTS if number not in taken)
    for port in spec.get("ports") or []:
        if not port.get("nodePort"):
            port["nodePort"] = next(free, 0)


def _open_health_port(spec: Object, others: list[Object]) -> None:
    """Load balancers ask a port of its own whether a node has pods of a service that stays on its node."""
    if spec["type"] != "LoadBalancer" or spec.get("externalTrafficPolicy") != "Local":
        spec.pop("healthCheckNodePort", None)
        return
    if not spec.get("healthCheckNodePort"):
        services = [one["spec"] for one in others] + [spec]
        taken = {port.get("nodePort") for one in services for port in one.get("ports") or []}
        taken |= {one.get("healthCheckNodePort") for one in services}
        spec["healthCheckNodePort"] = next((number for number in _NODE_PORTS if number not in taken), 0)


def _validate_status(service: Object, _: Object) -> list[InvalidField]:
    if service["spec"].get("type") == "LoadBalancer" or not dig("status.loadBalancer.ingress", None)(service):
        return []
    why = "may only be used when `spec.type` is 'LoadBalancer'"
    return [errors.forbidden("status.loadBalancer.ingress", why)]


def _validate_service(service: Object, old: Object | None) -> list[InvalidField]:
    spec = service["spec"]
    ports = spec.get("ports") or []
    found: list[InvalidField] = []
    is_headless = spec.get("clusterIP") == "None"
    if spec["type"] not in _TYPES:
        found.append(errors.unsupported("spec.type", spec["type"], _TYPES))
    if not ports and not is_headless and spec["type"] != "ExternalName":
        found.append(errors.required("spec.ports"))
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        found.append(errors.required("spec.externalName"))
    names: set[str] = set()
    for position, port in enumerate(ports):
        found += _port_errors(port, errors.index("spec.ports", position), len(ports) > 1, names)
    found += label_errors(spec.get("selector", {}), "spec.selector")
    if spec["sessionAffinity"] not in ("ClientIP", "None"):
        found.append(errors.unsupported("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None")))
    found += _address_and_traffic_errors(spec)
    if old is not None and spec["type"] != "ExternalName" and old["spec"].get("type") != "ExternalName":
        before, after = old["spec"].get("clusterIPs", []), (spec.get("clusterIPs") or [])
        if before and after[:1] != before[:1]:
            found.append(errors.invalid(errors.index("spec.clusterIPs", 0), after, "may not change once set"))
    return found


def _address_and_traffic_errors(spec: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, address in enumerate(spec.get("clusterIPs") or []):
        if address != "None":
            found += address_errors(address, errors.index("spec.clusterIPs", position))
    for position, address in enumerate(spec.get("externalIPs") or []):
        found += address_errors(address, errors.index("spec.externalIPs", position))
    for name in ("externalTrafficPolicy", "internalTrafficPolicy"):
        policy = spec.get(name)
        if policy is not None and policy not in ("Cluster", "Local"):
            found.append(errors.unsupported(f"spec.{name}", policy, ("Cluster", "Local")))
    return found


def _port_errors(port: Object, path: str, needs_name: bool, names: set[str]) -> list[InvalidField]:
    found: list[InvalidField] = []
    name = port.get("name", "")
    if needs_name and not name:
        found.append(errors.required(f"{path}.name"))
    elif name:
        found += errors.all_invalid(f"{path}.name", name, dns_label_mistakes(name))
        if name in names:
            found.append(errors.duplicate(f"{path}.name", name))
        names.add(name)
    found += errors.all_invalid(f"{path}.port", port.get("port", 0), port_number_mistakes(port.get("port", 0)))
    if port.get("protocol") not in _PROTOCOLS:
        found.append(errors.unsupported(f"{path}.protocol", port.get("protocol", ""), _PROTOCOLS))
    found += port_or_name_errors(port["targetPort"], f"{path}.targetPort")
    protocol = port.get("appProtocol")
    mistakes = label_key_mistakes(protocol) if protocol is not None else ()
    return found + errors.all_invalid(f"{path}.appProtocol", protocol, mistakes)


def _set_endpoints_defaults(obj: Object) -> None:
    for subset in obj.get("subsets", []):
        for port in subset.get("ports", []):
            port.setdefault("protocol", "TCP")


def _set_slice_defaults(obj: Object) -> None:
    for port in obj.get("ports") or []:
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _selectable_service(service: Object) -> dict[str, str]:
    spec = service["spec"]
    return {**metadata_fields(service), "spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


def _external(service: Object) -> str:
    spec = service["spec"]
    addresses = list(spec.get("externalIPs") or [])
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        entries = dig("status.loadBalancer.ingress", [])(service)
        addresses = [entry.get("ip") or entry.get("hostname", "") for entry in entries] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or "<none>"


def _ports(service: Object) -> str:
    def show(port: Object) -> str:
        opened = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port['port']}{opened}/{port.get('protocol', '')}"

    return ",".join(show(port) for port in service["spec"].get("ports", [])) or "<none>"


def _first(items: list[str], most: int = 3) -> str:
    if not items:
        return "<none>"
    return ",".join(items[:most]) + (f" + {len(items) - most} more..." if len(items) > most else "")


def _endpoints(obj: Object) -> str:
    found = []
    for subset in obj.get("subsets", []):
        ports = [f":{port['port']}" for port in subset.get("ports", [])] or [""]
        found += [f"{address['ip']}{port}" for port in ports for address in subset.get("addresses", [])]
    return _first(found)


def _slice_addresses(obj: Object) -> str:
    return _first([address for one in obj.get("endpoints") or [] for address in one.get("addresses") or []])


def _slice_ports(obj: Object) -> str:
    ports = [str(port.get("port", "*")) for port in obj.get("ports") or []]
    return _first(ports) if ports else "<unset>"


def _warn(service: Object, _: Object | None, ctx: WriteContext) -> None:
    spec = service["spec"]
    external = spec.get("externalIPs")
    if spec.get("clusterIP") == "None":
        if external:
            ctx.warnings.append("spec.externalIPs is ignored for headless services")
        if spec["sessionAffinity"] != "None":
            ctx.warnings.append("spec.SessionAffinity is ignored for headless services")
    elif external and spec["type"] != "ExternalName":
        ctx.warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec["type"] != "ExternalName" and spec.get("externalName"):
        ctx.warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')


SERVICE = KindRules(
    approve=_warn,
    metadata_again="both",
    set_defaults=_set_service_defaults,
    prepare_create=lambda obj, ctx: _prepare(obj, None, ctx),
    prepare_update=_prepare,
    validate=_validate_service,
    validate_through={"status": _validate_status},
    name_rule=dns_label_mistakes,
    selectable_fields=_selectable_service,
    columns=(
        NAME,
        described("Type", dig("spec.type"), _SPEC, "type"),
        described("Cluster-IP", dig("spec.clusterIP", "<none>"), _SPEC, "clusterIP"),
        described("External-IP", _external, _SPEC, "externalIPs"),
        described("Port(s)", _ports, _SPEC, "ports"),
        AGE,
        described("Selector", lambda s: print_labels(s["spec"].get("selector")), _SPEC, "selector", priority=1),
    ),
)
ENDPOINTS = KindRules(
    set_defaults=_set_endpoints_defaults,
    columns=(NAME, described("Endpoints", _endpoints, "io.k8s.api.core.v1.Endpoints", "subsets"), AGE),
)
ENDPOINT_SLICE = KindRules(
    validate=endpoint_slice_errors,
    set_defaults=_set_slice_defaults,
    columns=(
        NAME,
        described("AddressType", dig("addressType"), _SLICE, "addressType"),
        described("Ports", _slice_ports, _SLICE, "ports"),
        described("Endpoints", _slice_addresses, _SLICE, "endpoints"),
        AGE,
    ),
)
