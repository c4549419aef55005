"""What is wrong with a pod spec, in a pod or in a template: the parts in the API server's order.

``pod_spec_errors`` is the whole; the parts live in ``containers.py``, ``volumes.py`` and
``placement.py``. Security contexts, DNS options and operating systems are taken as they come.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model import quantity
from kubesched.k8s.model.requests import container_totals
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.kinds import amounts
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import (
    address_errors,
    dns_label_errors,
    dns_subdomain_errors,
    underscored_subdomain_errors,
)
from kubesched.playground.apiserver.kinds.metadata import label_errors
from kubesched.playground.apiserver.kinds.pods import containers, placement
from kubesched.playground.apiserver.kinds.pods.containers import pod_security_errors
from kubesched.playground.apiserver.kinds.pods.placement import toleration_errors
from kubesched.playground.apiserver.kinds.pods.volumes import volume_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_SYSTEMS = ("linux", "windows")
_MOST_SERVERS = 3
_MOST_SEARCHES = 32
_MOST_SECONDS = 2**31 - 1


def pod_spec_errors(spec: Object, pod_name: str, path: str, is_pod: bool) -> list[InvalidField]:
    volumes, found = volume_errors((spec.get("volumes") or []), pod_name, f"{path}.volumes")
    claims = spec.get("resourceClaims") or []
    found += _claim_errors(claims, f"{path}.resourceClaims")
    claim_names = frozenset(claim.get("name", "") for claim in claims)
    parts = containers.PodParts(volumes, claim_names, spec.get("restartPolicy", ""))
    regular, init = spec.get("containers") or [], (spec.get("initContainers") or [])
    found += containers.container_list_errors(regular, f"{path}.containers", parts)
    found += containers.init_container_errors(init, regular, f"{path}.initContainers", parts)
    ephemeral = spec.get("ephemeralContainers") or []
    found += containers.ephemeral_errors(ephemeral, [*regular, *init], f"{path}.ephemeralContainers", parts)
    if "resources" in spec:
        found += _pod_resource_errors(spec, f"{path}.resources")
    if spec.get("hostNetwork"):
        found += _host_network_errors(regular, f"{path}.containers", is_pod)
    found += _policy_errors(spec, path)
    found += label_errors(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    found += pod_security_errors(spec, f"{path}.securityContext")
    found += placement.affinity_errors(spec.get("affinity", {}), f"{path}.affinity")
    found += _dns_errors(spec, path)
    for position, gate in enumerate(spec.get("readinessGates") or []):
        at, condition = errors.index(f"{path}.readinessGates", position), gate.get("conditionType", "")
        found += errors.all_invalid(f"{at}.conditionType", condition, label_key_errors(condition))
    found += placement.gate_errors((spec.get("schedulingGates") or []), f"{path}.schedulingGates")
    found += placement.spread_errors((spec.get("topologySpreadConstraints") or []), f"{path}.topologySpreadConstraints")
    return found + _name_and_rest_errors(spec, path)


def _name_and_rest_errors(spec: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            found += errors.all_invalid(f"{path}.{name}", spec[name], dns_subdomain_errors(spec[name]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MOST_SECONDS:
        why = f"must be between 1 and {_MOST_SECONDS}, inclusive"
        found.append(errors.invalid(f"{path}.activeDeadlineSeconds", deadline, why))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            found += errors.all_invalid(f"{path}.{name}", spec[name], dns_label_errors(spec[name]))
    found += toleration_errors((spec.get("tolerations") or []), f"{path}.tolerations")
    found += _alias_errors((spec.get("hostAliases") or []), f"{path}.hostAliases")
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name):
            found += errors.all_invalid(f"{path}.{name}", spec[name], dns_subdomain_errors(spec[name]))
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        found.append(errors.unsupported(f"{path}.preemptionPolicy", policy, _PREEMPTION_POLICIES))
    rule = amounts.container_resource_name_errors
    found += amounts.requirement_errors({"limits": spec.get("overhead", {})}, rule, f"{path}.overhead", frozenset())
    if "os" in spec:
        found += _system_errors(spec["os"].get("name", ""), f"{path}.os")
    group = spec.get("schedulingGroup")
    if group is not None:
        found += _scheduling_group_errors(group, f"{path}.schedulingGroup")
    return found


def _policy_errors(spec: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for name, allowed in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        if spec[name] not in allowed:
            found.append(errors.unsupported(f"{path}.{name}", spec[name], allowed))
    return found


def _dns_errors(spec: Object, path: str) -> list[InvalidField]:
    if spec["dnsPolicy"] != "None":
        return _dns_config_errors(spec.get("dnsConfig", {}), f"{path}.dnsConfig")
    if "dnsConfig" not in spec:
        return [errors.required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")]
    if not spec["dnsConfig"].get("nameservers"):
        why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [errors.required(f"{path}.dnsConfig.nameservers", why)]
    return _dns_config_errors(spec["dnsConfig"], f"{path}.dnsConfig")


def _dns_config_errors(config: Object, path: str) -> list[InvalidField]:
    servers, searches = (config.get("nameservers") or []), (config.get("searches") or [])
    found: list[InvalidField] = []
    if len(servers) > _MOST_SERVERS:
        why = f"must not have more than {_MOST_SERVERS} nameservers"
        found.append(errors.invalid(f"{path}.nameservers", servers, why))
    for position, server in enumerate(servers):
        found += address_errors(server, errors.index(f"{path}.nameservers", position))
    if len(searches) > _MOST_SEARCHES:
        found.append(
            errors.invalid(f"{path}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths")
        )
    for position, search in enumerate(searches):
        if search != ".":
            bare = search.removesuffix(".")
            problems = underscored_subdomain_errors(bare)
            found += errors.all_invalid(errors.index(f"{path}.searches", position), bare, problems)
    return found + [
        errors.required(errors.index(f"{path}.options", position), "must not be empty")
        for position, option in enumerate(config.get("options") or [])
        if not option.get("name")
    ]


def _alias_errors(aliases: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, alias in enumerate(aliases):
        at = errors.index(path, position)
        found += address_errors(alias.get("ip", ""), f"{at}.ip")
        for place, name in enumerate(alias.get("hostnames") or []):
            found += errors.all_invalid(errors.index(f"{at}.hostnames", place), name, dns_subdomain_errors(name))
    return found


def _system_errors(name: str, path: str) -> list[InvalidField]:
    if not name:
        return [errors.required(f"{path}.name")]
    return [] if name in _SYSTEMS else [errors.unsupported(path, name, _SYSTEMS)]


def _claim_errors(claims: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        at = errors.index(path, position)
        name = claim.get("name", "")
        by_name, by_template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if not name:
            found.append(errors.required(f"{at}.name"))
        elif name in seen:
            found.append(errors.duplicate(f"{at}.name", name))
        else:
            found += errors.all_invalid(f"{at}.name", name, dns_label_errors(name))
        seen.add(name)
        shown = {"Name": name, "ResourceClaimName": by_name, "ResourceClaimTemplateName": by_template}
        if by_name is not None and by_template is not None:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            found.append(errors.invalid(at, shown, why))
        if by_name is None and by_template is None:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(errors.invalid(at, shown, why))
        for sort, value in (("resourceClaimName", by_name), ("resourceClaimTemplateName", by_template)):
            if value is not None:
                found += errors.all_invalid(f"{at}.{sort}", value, dns_subdomain_errors(value))
    return found


def _pod_resource_errors(spec: Object, path: str) -> list[InvalidField]:
    resources = spec["resources"]
    found: list[InvalidField] = []
    if "claims" in resources:
        found.append(errors.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    found += amounts.requirement_errors(resources, amounts.pod_resource_name_errors, path, frozenset())
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    for name, total in sorted(container_totals(spec, "requests").items()):
        if name in requests and total > quantity.parse(requests[name]):
            why = f"must be greater than or equal to aggregate container requests of {total}"
            found.append(errors.invalid(errors.key(f"{path}.requests", name), requests[name], why))
    for position, container in enumerate(spec.get("containers") or []):
        for name, limit in sorted(container.get("resources", {}).get("limits", {}).items()):
            if name in limits and quantity.parse(limit) > quantity.parse(limits[name]):
                at = f"{errors.key(errors.index(f'{path}.containers', position), name)}.limits"
                found.append(errors.invalid(at, limit, f"must be less than or equal to pod limits of {limits[name]}"))
    return found


def _host_network_errors(regular: Sequence[Object], path: str, is_pod: bool) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, container in enumerate(regular):
        for place, port in enumerate(container.get("ports", [])):
            open_port = port.get("hostPort", 0)
            if (is_pod or open_port) and open_port != port.get("containerPort", 0):
                at = errors.index(f"{errors.index(path, position)}.ports", place)
                why = "must match `containerPort` when `hostNetwork` is true"
                found.append(errors.invalid(f"{at}.hostPort", open_port, why))
    return found


def _scheduling_group_errors(group: Object, path: str) -> list[InvalidField]:
    name = group.get("podGroupName")
    if name is None:
        return [errors.invalid(f"{path}.podGroupName", None, "must specify one of: `podGroupName`")]
    return errors.all_invalid(f"{path}.podGroupName", name, dns_subdomain_errors(name))
