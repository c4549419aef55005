"""Eviction: a pod is deleted unless a disruption budget forbids it.

Promises that a budget's ``disruptionsAllowed`` never goes below zero and that the pod is noted in ``disruptedPods``:
budgets are read and written in one step. Without a controller nobody raises ``disruptionsAllowed``: see ``status`` of
the budget.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver.api import Api
from kubesched.apiserver.errors import StatusError, bad_request, not_found
from kubesched.apiserver.kinds.kind import Object
from kubesched.apiserver.storage.store import ObjectKey, Stored
from kubesched.apiserver.verbs import writing
from kubesched.apiserver.verbs.delete import Deletion, delete, delete_options
from kubesched.apiserver.verbs.request import Target, WriteOptions

BUDGETS = "poddisruptionbudgets.policy"


def evict(api: Api, target: Target, eviction: Object, options: WriteOptions) -> Deletion:
    """Deletes the pod that ``target`` names, if its budget allows."""
    name = (eviction.get("metadata") or {}).get("name", "")
    if name != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    wish = eviction.get("deleteOptions") or {}
    how = delete_options({}, wish if isinstance(wish, dict) else {})
    stored = api.store.get("pods", writing.key_of(target))
    if stored is None:
        raise not_found(target.resource, target.name)
    pod = writing.load(target.resource, stored)
    if _is_guarded(pod):
        _spend(api, target, pod, options)
    options.dry_run = options.dry_run or how.dry_run
    if not options.dry_run:
        _say_why(api, target, pod, stored)
    return delete(api, target, options, how)


def _say_why(api: Api, target: Target, pod: Object, stored: Stored) -> None:
    """Notes on the pod that it goes because somebody evicts it."""
    why = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": api.now(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    known = [one for one in conditions if one.get("type") == "DisruptionTarget"]
    if known and known[0].get("status") == "True":
        return
    pod["status"]["conditions"] = [one for one in conditions if one not in known] + [why]
    api.store.put("pods", stored.key, pod, target.resource.selectable_fields, stored.revision)


def _is_guarded(pod: Object) -> bool:
    """Budgets count only pods that run, or could."""
    phase = pod.get("status", {}).get("phase")
    return phase not in ("Pending", "Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def _spend(api: Api, target: Target, pod: Object, options: WriteOptions) -> None:
    """Takes one disruption from the pod's budget, or refuses."""
    labels = pod["metadata"].get("labels", {})
    budgets = [b for b in api.list(BUDGETS, target.namespace) if _selects(b.get("spec", {}).get("selector"), labels)]
    if not budgets:
        return
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise StatusError(409, "Conflict", message)
    budget, status = budgets[0], budgets[0].setdefault("status", {})
    _check_budget(budget, status)
    status["disruptionsAllowed"] -= 1
    status.setdefault("disruptedPods", {})[target.name] = api.now()
    if not options.dry_run:
        resource = api.resource_of(BUDGETS)
        assert resource is not None
        key = ObjectKey(target.namespace, budget["metadata"]["name"])
        api.store.put(BUDGETS, key, budget, resource.selectable_fields)


def _check_budget(budget: Object, status: dict[str, Any]) -> None:
    name = budget["metadata"]["name"]
    generation = budget["metadata"].get("generation", 0)
    if status.get("observedGeneration", 0) < generation:
        raise _refused(f"The disruption budget {name} is still being processed by the server.", 10)
    if status.get("disruptionsAllowed", 0) <= 0:
        why = (
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
        raise _refused(why, 0)


def _refused(why: str, retry_s: int) -> StatusError:
    cause = {"reason": "DisruptionBudget", "message": why}
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details: dict[str, Any] = {"causes": [cause]}
    if retry_s:
        details["retryAfterSeconds"] = retry_s
    return StatusError(429, "TooManyRequests", message, details)


def _selects(selector: Any, labels: dict[str, str]) -> bool:
    """A budget's selector on a pod's labels; none selects nothing, an empty one everything."""
    if not isinstance(selector, dict):
        return False
    if any(labels.get(name) != value for name, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression_holds(expression, labels) for expression in selector.get("matchExpressions") or ())


def _expression_holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    key, values = expression.get("key", ""), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
