"""Services, endpoints and endpoint slices. Cluster addresses and node ports are handed out; nothing routes to them."""

from __future__ import annotations

import ipaddress
from itertools import islice
from typing import Any

from kubesched.playground.apiserver.errors import unclassified
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors
from kubesched.playground.apiserver.kinds.service_checks import (
    is_reachable_from_outside,
    needs_health_port,
    service_errors,
)
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig, print_labels
from kubesched.playground.apiserver.kinds.traffic_kinds import endpoint_slice_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object, WriteContext
from kubesched.playground.apiserver.storage.store import metadata_fields

_SPEC = "io.k8s.api.core.v1.ServiceSpec"
_SLICE = "io.k8s.api.discovery.v1.EndpointSlice"
_NETWORK = ipaddress.ip_network("10.0.0.0/12")
FIRST_ADDRESS = str(_NETWORK[1])
"""That of the service which stands for the API server."""
_FIRST_FREE = 10
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
_NODE_PORTS = range(30000, 32768)


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
    if is_reachable_from_outside(spec):
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
    if ctx.subresource == "status":
        return
    if old is not None:
        _drop_what_the_type_ends(service, old["spec"])
        _follow_address(spec, old["spec"])
    if spec["type"] == "ExternalName":
        return
    others = [
        one for one in ctx.lookup.list("services") if one["metadata"].get("uid") != service["metadata"].get("uid")
    ]
    if not spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIP"] = _free_address({one["spec"].get("clusterIP") for one in others})
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if not spec.get("clusterIP") and old is None:
        spec["clusterIP"] = spec["clusterIPs"][0]
    address = spec.get("clusterIP", "")
    if address == "None" and not spec.get("selector") and "ipFamilyPolicy" not in spec:
        # whoever makes endpoints for it may make them of both sorts
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
        spec["ipFamilyPolicy"] = "RequireDualStack"
    spec.setdefault("ipFamilies", ["IPv6" if ":" in address else "IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in _WITH_NODE_PORTS:
        _keep_node_ports(spec, old["spec"] if old is not None else {})
        _open_node_ports(spec, others)
        if old is not None:
            _refuse_repeated_node_ports(spec)
    _open_health_port(spec, others)


def _drop_what_the_type_ends(service: Object, old: Object) -> None:
    """What only the old type of the service needed goes, unless the request changes it as well."""
    spec = service["spec"]

    def drop(*names: str) -> None:
        if all(spec.get(name) == old.get(name) for name in names):
            for name in names:
                spec.pop(name, None)

    if old["type"] != "ExternalName" and spec["type"] == "ExternalName":
        drop("clusterIP", "clusterIPs")
        drop("ipFamilies")
        drop("ipFamilyPolicy")
    if old["type"] in _WITH_NODE_PORTS and spec["type"] not in _WITH_NODE_PORTS:
        ports, before = ([port.get("nodePort") for port in one.get("ports") or []] for one in (spec, old))
        for port in spec.get("ports") or [] if set(ports) - {None} <= set(before) else []:
            port.pop("nodePort", None)
    if needs_health_port(old) and not needs_health_port(spec):
        drop("healthCheckNodePort")
    if old["type"] == "LoadBalancer" and spec["type"] != "LoadBalancer":
        drop("allocateLoadBalancerNodePorts")
        drop("loadBalancerClass")
    if is_reachable_from_outside(old) and not is_reachable_from_outside(spec):
        drop("externalTrafficPolicy")
    if spec["type"] != "LoadBalancer":
        service["status"]["loadBalancer"] = {}


def _follow_address(spec: Object, old: Object) -> None:
    """The one address and the list of them say the same; who changes the one means the other, too."""
    keeps = "ExternalName" not in (spec["type"], old.get("type"))
    if keeps:
        spec["clusterIP"] = spec.get("clusterIP") or old.get("clusterIP", "")
        spec["clusterIPs"] = spec.get("clusterIPs") or list(old.get("clusterIPs") or [])
    address = spec.get("clusterIP", "")
    if address and address != old.get("clusterIP") and spec.get("clusterIPs") == old.get("clusterIPs"):
        spec["clusterIPs"] = [address]
    if keeps:
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if name in old and not spec.get(name):
                spec[name] = old[name]


def _free_address(taken: set[Any]) -> str:
    hosts = map(str, islice(_NETWORK.hosts(), _FIRST_FREE, None))
    return next(host for host in hosts if host not in taken)


def _keep_node_ports(spec: Object, before: Object) -> None:
    """A port that says nothing keeps the node port that its name had, unless another one asks for that."""
    known = {port.get("name"): port.get("nodePort") for port in before.get("ports", [])}
    asked = {port.get("nodePort") for port in spec.get("ports") or []}
    for port in spec.get("ports") or []:
        kept = known.get(port.get("name"))
        if kept and kept not in asked and not port.get("nodePort"):
            port["nodePort"] = kept


def _open_node_ports(spec: Object, others: list[Object]) -> None:
    taken = {port.get("nodePort") for one in others for port in one["spec"].get("ports", [])}
    taken |= {port.get("nodePort") for port in (spec.get("ports") or [])}
    free = (number for number in _NODE_PORTS if number not in taken)
    for port in spec.get("ports") or []:
        if not port.get("nodePort"):
            port["nodePort"] = next(free, 0)


def _refuse_repeated_node_ports(spec: Object) -> None:
    """Of a service that is changed only the first error is reported, while its ports are handed out."""
    seen: set[tuple[str, int]] = set()
    for port in spec.get("ports") or []:
        key = (port.get("protocol", ""), port["nodePort"])
        if key in seen:
            raise unclassified(f"duplicate nodePort: {{{key[0]} {key[1]}}}")
        seen.add(key)


def _open_health_port(spec: Object, others: list[Object]) -> None:
    """Load balancers ask a port of its own whether a node has pods of a service that stays on its node."""
    if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        services = [one["spec"] for one in others] + [spec]
        taken = {port.get("nodePort") for one in services for port in one.get("ports") or []}
        taken |= {one.get("healthCheckNodePort") for one in services}
        spec["healthCheckNodePort"] = next((number for number in _NODE_PORTS if number not in taken), 0)


def _validate_status(service: Object, _: Object) -> list[InvalidField]:
    if service["spec"].get("type") == "LoadBalancer" or not dig("status.loadBalancer.ingress", None)(service):
        return []
    why = "may only be used when `spec.type` is 'LoadBalancer'"
    return [errors.forbidden("status.loadBalancer.ingress", why)]


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
    validate_admission=_warn,
    metadata_again="both",
    set_defaults=_set_service_defaults,
    prepare_create=lambda obj, ctx: _prepare(obj, None, ctx),
    prepare_update=_prepare,
    validate=service_errors,
    validate_through={"status": _validate_status},
    name_rule=dns_label_errors,
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
