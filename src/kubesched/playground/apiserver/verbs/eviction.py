"""Eviction: a pod is deleted unless a disruption budget forbids it.

Guarantees that a budget's ``disruptionsAllowed`` never goes below zero and that the pod is noted in ``disruptedPods``:
budgets are read and written in one step. Without a controller nobody raises ``disruptionsAllowed``: see ``status`` of
the budget.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from kubesched.playground.apiserver.errors import StatusError, bad_request, not_found
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.storage.store import ObjectKey, Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.delete import DeleteOptions, Deletion, delete, delete_options
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions

BUDGETS = "poddisruptionbudgets.policy"
_MOST_DISRUPTED_PODS = 2000
_RETRY_S = 10
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


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
    options.dry_run = options.dry_run or how.dry_run
    if _is_guarded(pod):
        _ask_budget(api, target, pod, options)
    if not options.dry_run:
        how = _say_why(api, target, pod, stored, how)
    return delete(api, target, options, how)


def _say_why(api: Api, target: Target, pod: Object, stored: Stored, how: DeleteOptions) -> DeleteOptions:
    """Notes on the pod that it goes because somebody evicts it; what is to be deleted is that version of it."""
    _check_preconditions(pod, stored, how)
    why = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": api.now(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    known = next((one for one in conditions if one.get("type") == "DisruptionTarget"), None)
    if known is None:
        conditions.append(why)
    else:
        since = known.get("lastTransitionTime") if known.get("status") == "True" else None
        changed = {**why, "lastTransitionTime": since or why["lastTransitionTime"]}
        if changed == known:
            return how
        conditions[conditions.index(known)] = changed
    now_stored = api.store.put("pods", stored.key, pod, target.resource.selectable_fields, stored.revision)
    return replace(how, version=str(now_stored.revision)) if how.version else how


def _check_preconditions(pod: Object, stored: Stored, how: DeleteOptions) -> None:
    uid, name = pod["metadata"].get("uid", ""), pod["metadata"]["name"]
    why = ""
    if how.uid and how.uid != uid:
        recreated = "The object might have been deleted and then recreated"
        why = f"the UID in the precondition ({how.uid}) does not match the UID in record ({uid}). {recreated}"
    elif how.version and how.version != str(stored.revision):
        what = f"the ResourceVersion in the precondition ({how.version}) does not match the ResourceVersion in record"
        why = f"{what} ({stored.revision}). The object might have been modified"
    if why:
        message = f'Operation cannot be fulfilled on Pod "{name}": {why}'
        raise StatusError(409, "Conflict", message, {"name": name, "kind": "Pod"})


def _is_guarded(pod: Object) -> bool:
    """Budgets count only pods that run, or could."""
    phase = pod.get("status", {}).get("phase")
    return phase not in ("Pending", "Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def _ask_budget(api: Api, target: Target, pod: Object, options: WriteOptions) -> None:
    """Takes one disruption from the pod's budget, or refuses. Pods that do not work anyway may cost nothing."""
    labels = pod["metadata"].get("labels", {})
    budgets = [b for b in api.list(BUDGETS, target.namespace) if _selects(b.get("spec", {}).get("selector"), labels)]
    if not budgets:
        return
    if len(budgets) > 1:
        raise StatusError(500, "", _TWO_BUDGETS)
    budget = budgets[0]
    if not _is_ready(pod) and _lets_unready_go(budget):
        return
    _check_budget(budget)
    if not options.dry_run:
        _spend(api, budget, target)


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _lets_unready_go(budget: Object) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status", {})
    n_needed, n_healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return bool(0 < n_needed <= n_healthy)


def _spend(api: Api, budget: Object, target: Target) -> None:
    resource = api.resource_of(BUDGETS)
    assert resource is not None
    before, now = copy.deepcopy(budget), api.now()
    status = budget["status"]
    status["disruptionsAllowed"] -= 1
    if not status["disruptionsAllowed"]:
        _note_exhausted(status, now)
    status.setdefault("disruptedPods", {})[target.name] = now
    record(budget, before, resource, "kube-apiserver", "status", now)
    key = ObjectKey(target.namespace, budget["metadata"]["name"])
    api.store.put(BUDGETS, key, budget, resource.selectable_fields)


def _note_exhausted(status: Object, now: str) -> None:
    conditions = status.setdefault("conditions", [])
    known = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), None)
    if known is None:
        known = {"type": "DisruptionAllowed"}
        conditions.append(known)
    if known.get("status") != "False":
        known["lastTransitionTime"] = now
    known |= {"status": "False", "reason": "InsufficientPods", "message": ""}
    if status.get("observedGeneration"):
        known["observedGeneration"] = status["observedGeneration"]


def _check_budget(budget: Object) -> None:
    name, status = budget["metadata"]["name"], budget.setdefault("status", {})
    n_allowed = status.setdefault("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _RETRY_S)
    if n_allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED_PODS:
        raise _forbidden(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if not n_allowed:
        raise _refused(_why_not(name, status), 0)


def _why_not(name: str, status: Object) -> str:
    n_healthy, n_needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    conditions = status.get("conditions") or []
    known: Object = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), {})
    message = known.get("message", "") if known.get("status") == "False" else ""
    if message and known.get("reason") == "SyncFailed":
        failed = f"does not allow evicting pods currently because it failed sync: {message}"
        return f"The disruption budget {name} {failed}"
    if n_healthy <= n_needed:
        return f"The disruption budget {name} needs {n_needed} healthy pods and has {n_healthy} currently"
    if message:
        why = f"does not allow evicting pods currently ({known.get('reason', '')}): {message}"
        return f"The disruption budget {name} {why}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _forbidden(name: str, why: str) -> StatusError:
    message = f'poddisruptionbudget.policy "{name}" is forbidden: {why}'
    details = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
    return StatusError(403, "Forbidden", message, details)


def _refused(why: str, retry_s: int) -> StatusError:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_s:
        details["retryAfterSeconds"] = retry_s
    return StatusError(429, "TooManyRequests", _VIOLATED, details)


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
