"""What is wrong with a PersistentVolume: its spec, and changes of what stays as it was created."""

from __future__ import annotations

from typing import Any

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.amounts import amount_errors
from kubesched.apiserver.kinds.claim_specs import VOLUME_MODES, mode_errors
from kubesched.apiserver.kinds.kind import InvalidField, Object
from kubesched.apiserver.kinds.label_selectors import node_selector_errors
from kubesched.apiserver.kinds.name_syntax import dns_subdomain_mistakes

_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_PLAIN_FIELDS = frozenset(
    (
        *("capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName"),
        *("mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName"),
    )
)
_AFFINITY_FIXED = "field is immutable, except for updating from beta label to GA"


def volume_errors(volume: Object, old: Object | None) -> list[InvalidField]:
    found = _spec_errors(volume["spec"])
    # an update validates the whole volume twice: once for itself, once beside the old one
    return found if old is None else found + found + _change_errors(volume["spec"], old["spec"])


def _spec_errors(spec: Object) -> list[InvalidField]:
    found = mode_errors(spec.get("accessModes") or [], "spec.accessModes")
    capacity = spec.get("capacity")
    if not capacity:
        found.append(errors.required("spec.capacity"))
    if not capacity or "storage" not in capacity or len(capacity) > 1:
        found.append(errors.unsupported("spec.capacity", capacity or None, ("storage",)))
    for name, amount in sorted((capacity or {}).items()):
        found += amount_errors(name, amount, errors.key("spec.capacity", name))
    if spec["persistentVolumeReclaimPolicy"] not in _RECLAIM_POLICIES:
        at = "spec.persistentVolumeReclaimPolicy"
        found.append(errors.unsupported(at, spec["persistentVolumeReclaimPolicy"], _RECLAIM_POLICIES))
    found += _affinity_errors(spec.get("nodeAffinity"))
    return found + _source_errors(spec) + _rest_errors(spec)


def _affinity_errors(affinity: Object | None) -> list[InvalidField]:
    if affinity is None:
        return []
    if "required" not in affinity:
        return [errors.required("spec.nodeAffinity.required", "must specify required node constraints")]
    return node_selector_errors(affinity["required"], "spec.nodeAffinity.required")


def sources_of(spec: Object) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _PLAIN_FIELDS}


def _source_errors(spec: Object) -> list[InvalidField]:
    sources = list(sources_of(spec))
    if not sources:
        return [errors.required("spec", "must specify a volume type")]
    found: list[InvalidField] = []
    if sources[0] == "csi":
        driver = spec["csi"].get("driver", "")
        if driver:
            found += errors.all_invalid("spec.csi.driver", driver, dns_subdomain_mistakes(driver.lower()))
        else:
            found.append(errors.required("spec.csi.driver"))
        if not spec["csi"].get("volumeHandle"):
            found.append(errors.required("spec.csi.volumeHandle"))
    return found + [errors.forbidden(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:]]


def _rest_errors(spec: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    name = spec.get("storageClassName", "")
    if name:
        found += errors.all_invalid("spec.storageClassName", name, dns_subdomain_mistakes(name))
    if spec["volumeMode"] not in VOLUME_MODES:
        found.append(errors.unsupported("spec.volumeMode", spec["volumeMode"], VOLUME_MODES))
    return found


def _change_errors(spec: Object, before: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    if sources_of(spec) != sources_of(before):
        why = "spec.persistentvolumesource is immutable after creation"
        found.append(errors.forbidden("spec.persistentvolumesource", why))
    if spec["volumeMode"] != before.get("volumeMode"):
        found.append(errors.immutable("volumeMode", spec["volumeMode"]))
    if "nodeAffinity" in before and spec.get("nodeAffinity") != before["nodeAffinity"]:
        found.append(errors.invalid("nodeAffinity", _shown_affinity(spec.get("nodeAffinity")), _AFFINITY_FIXED))
    return found


def _shown_affinity(affinity: Object | None) -> Object | None:
    if affinity is None:
        return None
    terms = (affinity.get("required") or {}).get("nodeSelectorTerms") or []

    def shown(part: list[Object] | None) -> list[Object] | None:
        return [
            {"Key": one.get("key", ""), "Operator": one.get("operator", ""), "Values": one.get("values")}
            for one in part or []
        ] or None

    listed = [
        {"MatchExpressions": shown(term.get("matchExpressions")), "MatchFields": shown(term.get("matchFields"))}
        for term in terms
    ]
    return {"Required": {"NodeSelectorTerms": listed or None} if "required" in affinity else None}
