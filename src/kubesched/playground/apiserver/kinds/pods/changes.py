"""What may change in a pod that exists, and what is wrong with other changes.

Images, a shorter deadline, further tolerations and fewer gates may change; while a pod is gated its node selector and
node affinity may become narrower. Everything else is refused with the difference, as ``internal_form.py`` prints it.

Through the subresource resize, cpu and memory of containers change and nothing else; through ephemeralcontainers such
containers are only added. ``defaults.py`` calls what is taken over before validation, ``rules.py`` the other half as
validation.
"""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Sequence
from typing import Any

from kubesched.k8s.model.requests import qos_class
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_subdomain_errors
from kubesched.playground.apiserver.kinds.internal_form import spec_difference
from kubesched.playground.apiserver.kinds.pods.placement import toleration_errors
from kubesched.playground.apiserver.kinds.pods.spec import pod_spec_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_MOST_SECONDS = 2**31 - 1
_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def change_errors(pod: Object, old: Object) -> list[InvalidField]:
    spec, before = pod["spec"], old["spec"]
    found: list[InvalidField] = []
    for sort in ("containers", "initContainers"):
        if len(spec.get(sort) or []) != len(before.get(sort) or []):
            return [*found, errors.forbidden(f"spec.{sort}", "pod updates may not add or remove containers")]
        found += _image_errors(spec.get(sort) or [], f"spec.{sort}")
    deadline, may_go_on = _deadline_errors(spec, before)
    found += deadline
    if not may_go_on:
        return found
    found += _added_toleration_errors(spec.get("tolerations", []), before.get("tolerations", []))
    found += _gate_errors(spec.get("schedulingGates", []), before.get("schedulingGates", []))
    if spec == before:
        return found
    rest, gated = _without_allowed_changes(spec, before)
    found += gated
    if rest != before:
        text = f"pod updates may not change fields other than {_UPDATABLE}\n{spec_difference(before, rest)}"
        found.append(errors.forbidden("spec", text))
    return found


def _image_errors(containers: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, container in enumerate(containers):
        image, at = container.get("image", ""), f"{errors.index(path, position)}.image"
        if not image:
            found.append(errors.required(at))
        if image.strip() != image:
            found.append(errors.invalid(at, image, "must not have leading or trailing whitespace"))
    return found


def _deadline_errors(spec: Object, before: Object) -> tuple[list[InvalidField], bool]:
    path = "spec.activeDeadlineSeconds"
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        if old is None:
            return [], True
        return [errors.invalid(path, None, "must not update from a positive integer to nil value")], True
    if not 0 <= new <= _MOST_SECONDS:
        return [errors.invalid(path, new, f"must be between 0 and {_MOST_SECONDS}, inclusive")], False
    if old is not None and old < new:
        return [errors.invalid(path, new, "must be less than or equal to previous value")], False
    return [], True


def _added_toleration_errors(new: Sequence[Object], old: Sequence[Object]) -> list[InvalidField]:
    def apart_from_seconds(toleration: Object) -> Object:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    kept = [apart_from_seconds(toleration) for toleration in new]
    if any(apart_from_seconds(toleration) not in kept for toleration in old):
        why = "existing toleration can not be modified except its tolerationSeconds"
        return [errors.forbidden("spec.tolerations", why)]
    return toleration_errors(new, "spec.tolerations")


def _gate_errors(new: Sequence[Object], old: Sequence[Object]) -> list[InvalidField]:
    known = {gate["name"] for gate in old}
    return [
        errors.forbidden(
            f"{errors.index('spec.schedulingGates', position)}.name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for position, gate in enumerate(new)
        if gate["name"] not in known
    ]


def _without_allowed_changes(spec: Object, before: Object) -> tuple[Object, list[InvalidField]]:
    """The new spec with every allowed change taken back, and what is wrong with changes while gated."""
    rest = copy.deepcopy(spec)
    for sort in ("containers", "initContainers"):
        for container, old_container in zip(rest.get(sort) or [], before.get(sort) or [], strict=True):
            _put_back(container, old_container, "image")
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _put_back(rest, before, name)
    if before.get("terminationGracePeriodSeconds", 0) < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        _put_back(rest, before, "terminationGracePeriodSeconds")
    if not before.get("schedulingGates"):
        return rest, []
    found: list[InvalidField] = []
    if rest.get("nodeSelector", {}) != before.get("nodeSelector", {}):
        found += _selector_errors(rest.get("nodeSelector", {}), before.get("nodeSelector", {}))
        _put_back(rest, before, "nodeSelector")
    new_affinity = rest.get("affinity", {}).get("nodeAffinity")
    old_affinity = before.get("affinity", {}).get("nodeAffinity")
    if new_affinity != old_affinity:
        found += _node_affinity_errors(new_affinity, old_affinity)
        _put_node_affinity_back(rest, before)
    return rest, found


def _put_back(rest: Object, before: Object, name: str) -> None:
    rest.pop(name, None)
    if name in before:
        rest[name] = before[name]


def _put_node_affinity_back(rest: Object, before: Object) -> None:
    affinity = dict(rest.get("affinity", {}))
    _put_back(affinity, before.get("affinity", {}), "nodeAffinity")
    rest.pop("affinity", None)
    if affinity or "affinity" in before:
        rest["affinity"] = affinity


def _selector_errors(new: dict[str, str], old: dict[str, str]) -> list[InvalidField]:
    if all(new.get(label) == value for label, value in old.items()):
        return []
    why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [errors.invalid("spec.nodeSelector", new or None, why)]


def _node_affinity_errors(new: Object | None, old: Object | None) -> list[InvalidField]:
    old_terms: list[Any] = (old or {}).get(_REQUIRED, {}).get("nodeSelectorTerms") or []
    new_terms: list[Any] = (new or {}).get(_REQUIRED, {}).get("nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if not old_terms:
        return []
    if len(old_terms) != len(new_terms):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [errors.invalid(path, [_shown(term) for term in new_terms] or None, why)]
    return [
        errors.invalid(errors.index(path, n), _shown(term), "only additions are allowed (no mutations or deletions)")
        for n, (term, old_term) in enumerate(zip(new_terms, old_terms, strict=True))
        if not _only_adds(term, old_term)
    ]


def _only_adds(new: Object, old: Object) -> bool:
    if not old and new:
        return False
    for sort in ("matchExpressions", "matchFields"):
        kept = old.get(sort, [])
        if new.get(sort, [])[: len(kept)] != kept:
            return False
    return True


def _shown(term: Object) -> Object:
    return {
        sort: [
            {"Key": one.get("key", ""), "Operator": one.get("operator", ""), "Values": one.get("values")}
            for one in term.get(name, [])
        ]
        or None
        for sort, name in (("MatchExpressions", "matchExpressions"), ("MatchFields", "matchFields"))
    }


def status_errors(pod: Object, old: Object) -> list[InvalidField]:
    """What is wrong with a change of the status alone."""
    status, before = pod.get("status", {}), old.get("status", {})
    found: list[InvalidField] = []
    name = status.get("nominatedNodeName", "")
    if name and name != before.get("nominatedNodeName", ""):
        found += errors.all_invalid("status.nominatedNodeName", name, dns_subdomain_errors(name))
        if old["spec"].get("nodeName"):
            why = "may not be set on pods that are already bound to a node"
            found.append(errors.forbidden("status.nominatedNodeName", why))
    if status.get("qosClass", "") != before.get("qosClass", ""):
        found.append(errors.immutable("status.qosClass", status.get("qosClass", "")))
    found += _claim_status_errors(status.get("resourceClaimStatuses", []), pod["spec"].get("resourceClaims", []))
    return found + _address_errors(status.get("podIPs", []), before.get("podIPs", []))


def _claim_status_errors(statuses: Sequence[Object], claims: Sequence[Object]) -> list[InvalidField]:
    known, seen = {claim.get("name") for claim in claims}, set[str]()
    found: list[InvalidField] = []
    for position, one in enumerate(statuses):
        at, name = errors.index("status.resourceClaimStatuses", position), one.get("name", "")
        if name not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            found.append(errors.invalid(f"{at}.name", name, why))
        if name in seen:
            found.append(errors.duplicate(f"{at}.name", name))
        seen.add(name)
        claim = one.get("resourceClaimName")
        if claim is not None:
            found += errors.all_invalid(f"{at}.resourceClaimName", claim, dns_subdomain_errors(claim))
    return found


def _address_errors(addresses: Sequence[Object], before: Sequence[Object]) -> list[InvalidField]:
    path = "status.podIPs"
    found: list[InvalidField] = []
    versions: list[int] = []
    wrong: list[str] = []
    for position, one in enumerate(addresses):
        ip = one.get("ip", "")
        try:
            versions.append(ipaddress.ip_address(ip).version)
        except ValueError:
            wrong.append(f"invalid IP[{position}]: {ip}")
            if one not in before:
                why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
                found.append(errors.invalid(errors.index(path, position), ip, why))
    if len(addresses) < 2:
        return found
    if wrong:
        found.append(errors.internal(path, f"failed to check for dual stack with error:{wrong[0]}"))
    if wrong or len(addresses) > 2 or len(set(versions)) < 2:
        shown = [{"IP": one.get("ip", "")} for one in addresses]
        found.append(errors.invalid(path, shown, "may specify no more than one IP for each IP family"))
    return found


_SORTS = ("containers", "initContainers")
_RESIZABLE = ("cpu", "memory")
_ONLY_THESE = "only cpu and memory resources are mutable"
_KEPT_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")


def keep_all_but_ephemeral(pod: Object, old: Object) -> None:
    added = pod["spec"].get("ephemeralContainers")
    pod["spec"] = dict(old["spec"])
    if added is not None:
        pod["spec"]["ephemeralContainers"] = added
    _keep_metadata(pod, old)


def keep_all_but_resources(pod: Object, old: Object) -> None:
    """Containers that were added, renamed or moved stay as they are: validation refuses them."""
    spec, before = pod["spec"], old["spec"]
    if any(len(spec.get(sort) or []) != len(before.get(sort) or []) for sort in _SORTS):
        return
    kept = dict(before)
    for sort in _SORTS:
        if before.get(sort):
            kept[sort] = _resized(spec[sort], before[sort])
    kept.pop("resources", None)
    if spec.get("resources"):
        kept["resources"] = spec["resources"]
    pod["spec"] = kept
    _keep_metadata(pod, old)


def _resized(new: list[Object], old: list[Object]) -> list[Object]:
    if [one["name"] for one in new] != [one["name"] for one in old]:
        return new
    merged = []
    for container, before in zip(new, old, strict=True):
        changed = {name: container[name] for name in ("resources", "resizePolicy") if name in container}
        merged.append({name: part for name, part in before.items() if name != "resizePolicy"} | changed)
    return merged


def _keep_metadata(pod: Object, old: Object) -> None:
    for name in _KEPT_METADATA:
        pod["metadata"].pop(name, None)
        if name in old["metadata"]:
            pod["metadata"][name] = old["metadata"][name]


def ephemeral_errors(pod: Object, old: Object) -> list[InvalidField]:
    path = "spec.ephemeralContainers"
    found = pod_spec_errors(pod["spec"], pod["metadata"].get("name", ""), "spec", is_pod=True)
    present = {one["name"]: one for one in (pod["spec"].get("ephemeralContainers") or [])}
    for before in old["spec"].get("ephemeralContainers") or []:
        name = before["name"]
        if name not in present:
            found.append(errors.forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif present[name] != before:
            shown = spec_difference({"ephemeralContainers": [before]}, {"ephemeralContainers": [present[name]]})
            found.append(errors.forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n{shown}'))
    return found


def resize_errors(pod: Object, old: Object) -> list[InvalidField]:
    spec, before = pod["spec"], old["spec"]
    found = pod_spec_errors(spec, pod["metadata"].get("name", ""), "spec", is_pod=True)
    status = old.get("status", {})
    if qos_class(pod) != status.get("qosClass", ""):
        why = "Pod QOS Class may not change as a result of resizing"
        found.append(errors.invalid("spec", status.get("qosClass", ""), why))
    running = [one for one in (status.get("containerStatuses") or []) if "running" in one.get("state", {})]
    if running and "resources" not in running[0]:
        found.append(errors.forbidden("spec", "Pod running on node without support for resize"))
    moved = [one for sort in _SORTS for one in _order_errors(spec.get(sort) or [], before.get(sort) or [], sort)]
    if moved:
        return found + moved
    for sort in reversed(_SORTS):
        for n, (new, was) in enumerate(zip(spec.get(sort) or [], before.get(sort) or [], strict=True)):
            found += _removal_errors(new, was, f"{errors.index(f'spec.{sort}', n)}.resources")
    if not found and _without_amounts(spec) != _without_amounts(before):
        found.append(errors.forbidden("spec", _ONLY_THESE))
    return found


def _order_errors(new: list[Object], old: list[Object], sort: str) -> list[InvalidField]:
    if len(new) != len(old):
        return [errors.forbidden(f"spec.{sort}", f"{sort} may not be added or removed on resize")]
    return [
        errors.forbidden(f"{errors.index(f'spec.{sort}', n)}.name", f"{sort} may not be renamed or reordered on resize")
        for n, (one, before) in enumerate(zip(new, old, strict=True))
        if one["name"] != before["name"]
    ]


def _removal_errors(new: Object, old: Object, path: str) -> list[InvalidField]:
    after, before = new.get("resources", {}), old.get("resources", {})
    return [
        errors.forbidden(f"{path}.{sort}", f"resource {sort} cannot be removed")
        for sort in ("requests", "limits")
        if set(before.get(sort, {})) - set(after.get(sort, {}))
    ]


def _without_amounts(spec: Object) -> Object:
    """The spec without what a resize may change."""
    rest = {name: part for name, part in spec.items() if name != "resources"}
    for sort in _SORTS:
        rest[sort] = [{**one, "resources": _other_amounts(one.get("resources", {}))} for one in spec.get(sort) or []]
    return rest


def _other_amounts(resources: Object) -> Object:
    kept = dict(resources)
    for sort in ("requests", "limits"):
        kept[sort] = {name: amount for name, amount in resources.get(sort, {}).items() if name not in _RESIZABLE}
    return kept
