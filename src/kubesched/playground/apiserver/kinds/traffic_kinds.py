"""Ingresses, their classes and network policies: defaults, validation, tables; and validation of endpoint slices."""

from __future__ import annotations

from kubesched.k8s.model.label_syntax import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import address_errors, dns_label_errors, dns_subdomain_errors
from kubesched.playground.apiserver.kinds.service_checks import PROTOCOLS, endpoint_address_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig, print_selector
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn

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
