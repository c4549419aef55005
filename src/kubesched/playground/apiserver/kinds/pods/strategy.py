"""What the API server sets on pods itself.

Status at creation, gates, selectors from matchLabelKeys; what a status write may not touch.
"""

from __future__ import annotations

from kubesched.k8s.model.requests import qos_class
from kubesched.playground.apiserver.kinds.pods import admission
from kubesched.playground.apiserver.kinds.pods.defaults import POD_SPEC
from kubesched.playground.apiserver.kinds.pods.partial_changes import keep_all_but_ephemeral, keep_all_but_resources
from kubesched.playground.apiserver.openapi.decoding import put_in_order
from kubesched.playground.apiserver.served_resource import Object, WriteContext

_GATED = "Scheduling is blocked due to non-empty scheduling gates"


def prepare_create(pod: Object, ctx: WriteContext) -> None:
    admission.admit_new(pod, ctx)
    pod["status"] = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": ctx.now,
            "reason": "SchedulingGated",
            "message": _GATED,
        }
        pod["status"]["conditions"] = [condition]
    pod["status"]["qosClass"] = qos_class(pod)
    _narrow_affinity(pod)
    _narrow_spread(pod)
    put_in_order(pod["spec"], POD_SPEC)


def prepare_update(pod: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource == "status":
        _keep_what_status_may_not_change(pod, old)
    elif ctx.subresource == "ephemeralcontainers":
        keep_all_but_ephemeral(pod, old)
    elif ctx.subresource == "resize":
        keep_all_but_resources(pod, old)
    elif ctx.subresource == "":
        admission.admit_changed(pod, old)


def _keep_what_status_may_not_change(pod: Object, old: Object) -> None:
    meta, before = pod["metadata"], old["metadata"]
    meta.pop("ownerReferences", None)
    if "ownerReferences" in before:
        meta["ownerReferences"] = before["ownerReferences"]
    status, old_status = pod["status"], old.get("status", {})
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and name in old_status:
            status[name] = old_status[name]
    generations: dict[str, list[int]] = {}
    for condition in old_status.get("conditions", []):
        generations.setdefault(condition["type"], []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions", []):
        known = generations.get(condition["type"])
        before_it = known.pop(0) if known else 0
        if before_it and not condition.get("observedGeneration"):
            condition["observedGeneration"] = before_it


def _narrow_affinity(pod: Object) -> None:
    labels = pod["metadata"].get("labels", {})
    for sort in ("podAffinity", "podAntiAffinity"):
        affinity = pod["spec"].get("affinity", {}).get(sort, {})
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
        terms = [weighted["podAffinityTerm"] for weighted in preferred]
        terms += affinity.get("requiredDuringSchedulingIgnoredDuringExecution", [])
        for term in terms:
            _narrow(term, "matchLabelKeys", "In", labels)
            _narrow(term, "mismatchLabelKeys", "NotIn", labels)


def _narrow_spread(pod: Object) -> None:
    labels = pod["metadata"].get("labels", {})
    for constraint in pod["spec"].get("topologySpreadConstraints", []):
        _narrow(constraint, "matchLabelKeys", "In", labels)


def _narrow(term: Object, keys: str, operator: str, labels: dict[str, str]) -> None:
    """The pod's own values of these labels become part of the selector."""
    selector = term.get("labelSelector")
    if selector is None:
        return
    for key in term.get(keys, []):
        if key in labels:
            requirement = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(requirement)
