"""What is wrong with a service, in the order of the real server: its ports, addresses, families and policies."""

from __future__ import annotations

import ipaddress
from typing import Any

from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import (
    address_errors,
    dns_label_errors,
    dns_subdomain_errors,
    port_number_errors,
)
from kubesched.playground.apiserver.kinds.metadata import label_errors
from kubesched.playground.apiserver.kinds.pods.containers import port_or_name_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_AFFINITIES = ("ClientIP", "None")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY_S = 86400
_MOST_ADDRESSES = 2
_ONLY_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_RANGES_KEY = "service.beta.kubernetes.io/load-balancer-source-ranges"


def service_errors(service: Object, old: Object | None) -> list[InvalidField]:
    spec = service["spec"]
    # addresses are looked at alone, before they are handed out
    if spec["type"] != "ExternalName" and (wrong := _cluster_address_errors(spec)):
        return wrong
    found = [] if old is None else _change_errors(spec, old["spec"])
    found += _type_errors(spec)
    names: set[str] = set()
    ports = spec.get("ports") or []
    for position, port in enumerate(ports):
        found += _port_errors(port, errors.index("spec.ports", position), len(ports) > 1, names)
    found += label_errors(spec.get("selector", {}), "spec.selector")
    found += _affinity_errors(spec)
    for position, address in enumerate(spec.get("externalIPs") or []):
        found += endpoint_address_errors(address, errors.index("spec.externalIPs", position))
    if spec["type"] not in _TYPES:
        found.append(errors.unsupported("spec.type", spec["type"], _TYPES))
    found += _node_port_errors(spec, ports) + _repeated_ports(ports)
    found += _source_range_errors(service)
    is_balancer = spec["type"] == "LoadBalancer"
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_balancer:
        found.append(errors.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCERS))
    return found + _balancer_class_errors(spec) + _traffic_errors(spec)


def is_reachable_from_outside(spec: Object) -> bool:
    return spec["type"] in ("NodePort", "LoadBalancer") or bool(spec.get("externalIPs") and spec["type"] == "ClusterIP")


def needs_health_port(spec: Object) -> bool:
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _is_headless(spec: Object) -> bool:
    return (spec.get("clusterIPs") or [])[:1] == ["None"]


def _type_errors(spec: Object) -> list[InvalidField]:
    sort, is_headless = spec["type"], _is_headless(spec)
    found: list[InvalidField] = []
    if not spec.get("ports") and not is_headless and sort != "ExternalName":
        found.append(errors.required("spec.ports"))
    if sort in ("LoadBalancer", "NodePort") and is_headless:
        found.append(errors.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {sort} services"))
    if sort == "ExternalName":
        unwanted = [name for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(name)]
        found += [errors.forbidden(f"spec.{name}", "may not be set for ExternalName services") for name in unwanted]
        name = spec.get("externalName", "").removesuffix(".")
        problems = dns_subdomain_errors(name)
        found += (
            errors.all_invalid("spec.externalName", name, problems) if name else [errors.required("spec.externalName")]
        )
    return found


def _port_errors(port: Object, path: str, needs_name: bool, names: set[str]) -> list[InvalidField]:
    found: list[InvalidField] = []
    name = port.get("name", "")
    if needs_name and not name:
        found.append(errors.required(f"{path}.name"))
    elif name:
        found += errors.all_invalid(f"{path}.name", name, dns_label_errors(name))
        if name in names:
            found.append(errors.duplicate(f"{path}.name", name))
        names.add(name)
    found += errors.all_invalid(f"{path}.port", port.get("port", 0), port_number_errors(port.get("port", 0)))
    if port.get("protocol") not in PROTOCOLS:
        found.append(errors.unsupported(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS))
    found += port_or_name_errors(port["targetPort"], f"{path}.targetPort")
    protocol = port.get("appProtocol")
    problems = label_key_errors(protocol) if protocol is not None else ()
    return found + errors.all_invalid(f"{path}.appProtocol", protocol, problems)


def _affinity_errors(spec: Object) -> list[InvalidField]:
    affinity = spec["sessionAffinity"]
    if affinity not in _AFFINITIES:
        return [errors.unsupported("spec.sessionAffinity", affinity, _AFFINITIES)]
    if affinity == "None":
        return []
    timeout_s = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
    if 0 < timeout_s <= _LONGEST_AFFINITY_S:
        return []
    why = f"must be greater than 0 and less than {_LONGEST_AFFINITY_S}"
    return [errors.invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", timeout_s, why)]


def _cluster_address_errors(spec: Object) -> list[InvalidField]:
    path, address, addresses = "spec.clusterIPs", spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    families = spec.get("ipFamilies") or []
    found: list[InvalidField] = []
    if address and not addresses:
        found.append(errors.required(path))
    elif address and addresses[0] != address:
        found.append(errors.invalid(path, addresses, "first value must match `clusterIP`"))
    elif addresses and not address:
        found.append(errors.invalid(path, addresses, "must be empty when `clusterIP` is not specified"))
    found += _family_errors(families)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        found.append(errors.unsupported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    wrong: list[InvalidField] = []
    for position, one in enumerate(addresses):
        if position == 0 and one == "None":
            if len(addresses) > 1:
                wrong.append(errors.invalid(path, addresses, "'None' must be the first and only value"))
            continue
        wrong += address_errors(one, errors.index(path, position))
    found += wrong
    if len(addresses) > _MOST_ADDRESSES:
        found.append(errors.invalid(path, addresses, f"may only hold up to {_MOST_ADDRESSES} values"))
    return found if wrong else found + _stack_errors(addresses, families)


def _family_errors(families: list[str]) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, family in enumerate(families):
        at = errors.index("spec.ipFamilies", position)
        if family not in _FAMILIES:
            found.append(errors.unsupported(at, family, _FAMILIES))
        if family in families[:position]:
            found.append(errors.duplicate(at, family))
    return found


def _stack_errors(addresses: list[str], families: list[str]) -> list[InvalidField]:
    found: list[InvalidField] = []
    if len(addresses) > 1 and len({":" in one for one in addresses}) == 1:
        why = "may specify no more than one IP for each IP family"
        found.append(errors.invalid("spec.clusterIPs", addresses, why))
    for position, (address, family) in enumerate(zip(addresses, families, strict=False)):
        own = "IPv6" if ":" in address else "IPv4"
        if address != "None" and family in _FAMILIES and family != own:
            why = f"expected an {family} value as indicated by `ipFamilies[{position}]`"
            found.append(errors.invalid(errors.index("spec.clusterIPs", position), address, why))
    return found


def endpoint_address_errors(text: str, path: str) -> list[InvalidField]:
    """An address at which something can be reached from elsewhere."""
    if found := address_errors(text, path):
        return found
    address = ipaddress.ip_address(text)
    if address.is_unspecified:
        return [errors.invalid(path, text, f"may not be unspecified ({text})")]
    if address.is_loopback:
        return [errors.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")]
    if address.is_link_local:
        return [errors.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")]
    if text.startswith(("224.0.0.", "ff02:")):
        return [errors.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")]
    return []


def _node_port_errors(spec: Object, ports: list[Any]) -> list[InvalidField]:
    found: list[InvalidField] = []
    if spec["type"] == "ClusterIP":
        found += [
            errors.forbidden(f"spec.ports[{position}].nodePort", "may not be used when `type` is 'ClusterIP'")
            for position, port in enumerate(ports)
            if port.get("nodePort")
        ]
    seen: set[tuple[Any, Any]] = set()
    for position, port in enumerate(ports):
        key = (port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and key in seen:
            found.append(errors.duplicate(f"spec.ports[{position}].nodePort", port["nodePort"]))
        seen.add(key)
    return found


def _repeated_ports(ports: list[Any]) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[tuple[Any, Any]] = set()
    for position, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            found.append(errors.duplicate(errors.index("spec.ports", position), shown))
        seen.add(key)
    return found


def _source_range_errors(service: Object) -> list[InvalidField]:
    spec, path = service["spec"], "spec.LoadBalancerSourceRanges"
    ranges = [(errors.index(path, at), text) for at, text in enumerate(spec.get("loadBalancerSourceRanges") or [])]
    if not ranges:
        text = service["metadata"].get("annotations", {}).get(_RANGES_KEY)
        if text is None:
            return []
        path = errors.key("metadata.annotations", _RANGES_KEY)
        ranges = [(path, part) for part in text.split(",")] if text.strip() else []
    found = [] if spec["type"] == "LoadBalancer" else [errors.forbidden(path, _ONLY_BALANCERS)]
    for at, part in ranges:
        found += _network_errors(part.strip(), at)
    return found


def _network_errors(text: str, path: str) -> list[InvalidField]:
    try:
        ipaddress.ip_network(text if "/" in text else "", strict=False)
    except ValueError:
        return [errors.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    return []


def _balancer_class_errors(spec: Object) -> list[InvalidField]:
    name = spec.get("loadBalancerClass")
    if name is None:
        return []
    if spec["type"] != "LoadBalancer":
        return [errors.forbidden("spec.loadBalancerClass", _ONLY_BALANCERS)]
    return errors.all_invalid("spec.loadBalancerClass", name, label_key_errors(name))


def _traffic_errors(spec: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    policy = spec.get("externalTrafficPolicy")
    if not is_reachable_from_outside(spec):
        if policy:
            why = "may only be set for externally-accessible services"
            found.append(errors.invalid("spec.externalTrafficPolicy", policy, why))
    elif policy not in ("Cluster", "Local"):
        found.append(errors.unsupported("spec.externalTrafficPolicy", policy, ("Cluster", "Local")))
    health = spec.get("healthCheckNodePort", 0)
    if health and not needs_health_port(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        found.append(errors.invalid("spec.healthCheckNodePort", health, why))
    elif health:
        found += errors.all_invalid("spec.healthCheckNodePort", health, port_number_errors(health))
    inner, distribution = spec.get("internalTrafficPolicy"), spec.get("trafficDistribution")
    if inner is not None and inner not in ("Cluster", "Local"):
        found.append(errors.unsupported("spec.internalTrafficPolicy", inner, ("Cluster", "Local")))
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        found.append(errors.unsupported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return found


def _change_errors(spec: Object, old: Object) -> list[InvalidField]:
    """What cannot change: the first address, the class of a load balancer, the port of its health check."""
    found: list[InvalidField] = []
    if "ExternalName" not in (spec["type"], old.get("type")) and not (_is_headless(spec) and _is_headless(old)):
        before, after = old.get("clusterIPs") or [], spec.get("clusterIPs") or []
        if before and not after:
            found.append(errors.invalid("spec.clusterIPs[0]", after, "primary clusterIP can not be unset"))
        n_compared = len(before) if len(before) == len(after) else 1
        found += [
            errors.invalid(errors.index("spec.clusterIPs", position), after, "may not change once set")
            for position, (one, other) in enumerate(zip(before[:n_compared], after, strict=False))
            if one != other
        ]
    if spec["type"] == old.get("type") == "LoadBalancer":
        if spec.get("loadBalancerClass") != old.get("loadBalancerClass"):
            shown = spec.get("loadBalancerClass")
            found.append(errors.invalid("spec.loadBalancerClass", shown, "may not change once set"))
        found += _balancer_class_errors(spec)
        same_port = spec.get("healthCheckNodePort") == old.get("healthCheckNodePort")
        if needs_health_port(spec) and needs_health_port(old) and not same_port:
            found.append(errors.forbidden("spec.healthCheckNodePort", "field is immutable"))
    return found
