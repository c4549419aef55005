"""What directs traffic: services with their endpoints, ingresses and network policies.

Defaults, validation, tables. Services get cluster addresses and node ports; nothing routes to them.

Next: `service_checks` for what is wrong with a service.
"""

from __future__ import annotations

import ipaddress
from itertools import islice
from typing import Any

from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.errors import unclassified
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import address_errors, dns_label_errors, dns_subdomain_errors
from kubesched.playground.apiserver.kinds.service_checks import (
    PROTOCOLS,
    endpoint_address_errors,
    is_reachable_from_outside,
    needs_health_port,
    service_errors,
)
from kubesched.playground.apiserver.kinds.serving import (
    AGE,
    NAME,
    KindRules,
    described,
    dig,
    print_labels,
    print_selector,
)
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext
from kubesched.playground.apiserver.storage.store import metadata_fields

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_MOST_POLICY_TYPES = 2
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


def ingress_class_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    controller = spec.get("controller", "")
    found: list[InvalidField] = []
    if old is not None and controller != old["spec"].get("controller", ""):
        found.append(errors.immutable("spec.controller", controller))
    if not controller:
        found.append(errors.required("spec.controller"))
    elif "/" not in controller or label_key_errors(controller):
        why = 'must be a domain-prefixed path (such as "acme.io/foo")'
        found.append(errors.invalid("spec.controller", controller, why))
    parameters = spec.get("parameters")
    if parameters is None:
        return found
    return found + [errors.required(f"spec.parameters.{name}") for name in ("kind", "name") if not parameters.get(name)]


def ingress_errors(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found: list[InvalidField] = []
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        found.append(errors.invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    for position, rule in enumerate(spec.get("rules") or []):
        at = errors.index("spec.rules", position)
        host = rule.get("host", "")
        if host and not host.startswith("*."):
            found += errors.all_invalid(f"{at}.host", host, dns_subdomain_errors(host))
        paths = (rule.get("http") or {}).get("paths") if rule.get("http") is not None else None
        if rule.get("http") is not None and not paths:
            found.append(errors.required(f"{at}.http.paths"))
        for place, path in enumerate(paths or []):
            found += _path_errors(path, errors.index(f"{at}.http.paths", place))
    return found


def _path_errors(path: Object, at: str) -> list[InvalidField]:
    sort, text = path.get("pathType"), path.get("path", "")
    found: list[InvalidField] = []
    if sort is None:
        found.append(errors.required(f"{at}.pathType", "pathType must be specified"))
    elif sort not in _PATH_TYPES:
        found.append(errors.unsupported(f"{at}.pathType", sort, _PATH_TYPES))
    elif (text or sort != "ImplementationSpecific") and not text.startswith("/"):
        found.append(errors.invalid(f"{at}.path", text, "must be an absolute path"))
    backend = path.get("backend") or {}
    if backend.get("service") is None and backend.get("resource") is None:
        found.append(errors.invalid(f"{at}.backend", "", "resource or service backend is required"))
    return found


def network_policy_errors(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found: list[InvalidField] = []
    for sort, peers in (("ingress", "from"), ("egress", "to")):
        for position, rule in enumerate(spec.get(sort) or []):
            for place, peer in enumerate(rule.get(peers) or []):
                at = errors.index(f"{errors.index(f'spec.{sort}', position)}.{peers}", place)
                if all(peer.get(name) is None for name in ("podSelector", "namespaceSelector", "ipBlock")):
                    found.append(errors.required(at, "must specify a peer"))
    types = spec.get("policyTypes") or []
    if len(types) > _MOST_POLICY_TYPES:
        return [*found, errors.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    allowed = ("Ingress", "Egress")
    for position, one in enumerate(types):
        if one not in allowed:
            found.append(errors.unsupported(errors.index("spec.policyTypes", position), one, allowed))
    return found


def endpoint_slice_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    found: list[InvalidField] = []
    sort = obj.get("addressType", "")
    if not sort:
        found.append(errors.required("addressType"))
    elif sort not in _ADDRESS_TYPES:
        found.append(errors.unsupported("addressType", sort, _ADDRESS_TYPES))
    names: set[str] = set()
    for position, port in enumerate(obj.get("ports") or []):
        found += _slice_port_errors(port, errors.index("ports", position), names)
    if old is None or old.get("endpoints") != obj.get("endpoints"):
        for position, endpoint in enumerate(obj.get("endpoints") or []):
            found += _endpoint_errors(endpoint, errors.index("endpoints", position), sort)
    if old is not None and sort != old.get("addressType"):
        found.append(errors.immutable("addressType", sort))
    return found


def _slice_port_errors(port: Object, path: str, names: set[str]) -> list[InvalidField]:
    name, protocol = port.get("name") or "", port.get("protocol", "")
    found = errors.all_invalid(f"{path}.name", name, dns_label_errors(name)) if name else []
    if name in names:
        found.append(errors.duplicate(f"{path}.name", name))
    names.add(name)
    if protocol not in PROTOCOLS:
        found.append(errors.unsupported(f"{path}.protocol", protocol, PROTOCOLS))
    application = port.get("appProtocol")
    problems = label_key_errors(application) if application is not None else ()
    return found + errors.all_invalid(f"{path}.appProtocol", application, problems)


def _endpoint_errors(endpoint: Object, path: str, sort: str) -> list[InvalidField]:
    addresses, at = endpoint.get("addresses") or [], f"{path}.addresses"
    found: list[InvalidField] = []
    if not addresses:
        found.append(errors.required(at, "must contain at least 1 address"))
    for position, address in enumerate(addresses if sort in ("IPv4", "IPv6") else ()):
        wrong = address_errors(address, errors.index(at, position))
        if not wrong and (":" in address) != (sort == "IPv6"):
            found.append(errors.invalid(at, address, f"must be an {sort} address"))
        found += wrong or endpoint_address_errors(address, errors.index(at, position))
    for name, errors_of in (("nodeName", dns_subdomain_errors), ("hostname", dns_label_errors)):
        value = endpoint.get(name)
        if value is not None:
            found += errors.all_invalid(f"{path}.{name}", value, errors_of(value))
    return found


_CLASS_TEXT = "The name of the IngressClass resource that should be used for additional configuration"


def _set_policy_defaults(obj: Object) -> None:
    spec = obj["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for sort in ("ingress", "egress"):
        for rule in spec.get(sort, []):
            for port in rule.get("ports", []):
                port.setdefault("protocol", "TCP")


def _parameters(obj: Object) -> str:
    reference = dig("spec.parameters", None)(obj)
    if reference is None:
        return "<none>"
    group = f".{reference['apiGroup']}" if reference.get("apiGroup") else ""
    return f"{reference.get('kind', '')}{group}/{reference.get('name', '')}"


def _set_ingress_class_defaults(obj: Object) -> None:
    parameters = obj["spec"].get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def _hosts(obj: Object) -> str:
    hosts = [rule["host"] for rule in obj["spec"].get("rules", []) if rule.get("host")]
    return ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "") if hosts else "*"


def _addresses(obj: Object) -> str:
    entries = dig("status.loadBalancer.ingress", [])(obj)
    return ",".join(entry.get("ip") or entry.get("hostname", "") for entry in entries)


NETWORK_POLICY = KindRules(
    validate=network_policy_errors,
    set_defaults=_set_policy_defaults,
    columns=(
        NAME,
        described(
            "Pod-Selector",
            lambda obj: print_selector(obj["spec"].get("podSelector")),
            "io.k8s.api.networking.v1.NetworkPolicySpec",
            "podSelector",
        ),
        AGE,
    ),
)


INGRESS_CLASS = KindRules(
    validate=ingress_class_errors,
    set_defaults=_set_ingress_class_defaults,
    columns=(
        NAME,
        TableColumn(
            "Controller",
            dig("spec.controller"),
            description="Controller that is responsible for handling this class",
        ),
        TableColumn("Parameters", _parameters, description="A reference to a resource with additional parameters"),
        AGE,
    ),
)


INGRESS = KindRules(
    validate=ingress_errors,
    columns=(
        NAME,
        TableColumn("Class", dig("spec.ingressClassName", "<none>"), description=_CLASS_TEXT),
        TableColumn(
            "Hosts", _hosts, description="Hosts that incoming requests are matched against before the ingress rule"
        ),
        TableColumn(
            "Address", _addresses, description="Address is a list containing ingress points for the load-balancer"
        ),
        TableColumn(
            "Ports",
            lambda obj: "80, 443" if obj["spec"].get("tls") else "80",
            description="Ports of TLS configurations that open",
        ),
        AGE,
    ),
)


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
