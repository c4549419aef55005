"""What the API server adds to new pods: account, limit ranges, priority, default tolerations, runtime class.

Refusals are raised as 403, in the admission plugins' words.

What limit ranges fill in and refuse is in ``kubesched.k8s.model.limits``; ``quota_kinds.py`` has the rules of
limit ranges themselves.

The service account is filled in, looked up, and its token mounted into every container only where the server is told to
(``ServerSettings.mounts_tokens``): without controllers no namespace has the account ``default``, and every pod would be
refused.
"""

from __future__ import annotations

from typing import Any

from kubesched.k8s.model.limits import apply_defaults, first_claim_violation, first_violation
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds.pods.placement import merge_tolerations
from kubesched.playground.apiserver.served_resource import Object, WriteContext

_LIMIT_RANGES = "limitranges"


def validate_claim(claim: Object, old: Object | None, ctx: WriteContext) -> None:
    """Refuses a volume claim that asks for too much or too little, or comes to."""
    if ctx.subresource or (old is not None and old["metadata"].get("deletionTimestamp")):
        return
    ranges = ctx.lookup.list(_LIMIT_RANGES, claim["metadata"].get("namespace", ""))
    if violation := first_claim_violation(claim, ranges):
        name = claim["metadata"].get("name", "")
        message = f'persistentvolumeclaims "{name}" is forbidden: {violation}'
        raise StatusError(403, "Forbidden", message, {"name": name, "kind": "persistentvolumeclaims"})


DEFAULT_ACCOUNT = "default"
_ACCOUNTS = "serviceaccounts"
_MIRROR = "kubernetes.io/config.mirror"
_ENFORCED = "kubernetes.io/enforce-mountable-secrets"
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_VOLUME = "kube-api-access-"
_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607
"""An hour and a little: kubelets of today renew sooner, and the odd number tells such tokens from others."""


def admit(pod: Object, ctx: WriteContext) -> str:
    """Gives the pod its account and its token; returns why it cannot be had, "" if it can."""
    spec, metadata = pod["spec"], pod["metadata"]
    if _MIRROR in metadata.get("annotations", {}):
        return "a mirror pod may not reference service accounts" if spec.get("serviceAccountName") else ""
    name = spec.get("serviceAccountName") or DEFAULT_ACCOUNT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = metadata.get("namespace", "")
    account = ctx.lookup.get(_ACCOUNTS, namespace, name)
    if account is None:
        return f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
    wished = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
    if wished is not False:
        _mount(spec, ctx)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": one.get("name", "")} for one in account["imagePullSecrets"]]
    if account["metadata"].get("annotations", {}).get(_ENFORCED) in _TRUE:
        return _foreign_secret(spec, account)
    return ""


def _mount(spec: Object, ctx: WriteContext) -> None:
    """Containers that have something else in its place keep that."""
    given = [volume["name"] for volume in spec.get("volumes") or () if volume["name"].startswith(_VOLUME)]
    name = given[0] if given else _VOLUME + ctx.new_suffix()
    is_needed = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if all(mount.get("mountPath") != _PATH for mount in container.get("volumeMounts") or ()):
            mount = {"name": name, "readOnly": True, "mountPath": _PATH}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
            is_needed = True
    if is_needed and not given:
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": _token_source()}]


def _token_source() -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": authority},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 0o644,
    }


def _foreign_secret(spec: Object, account: Object) -> str:
    """An account may insist that its pods use no secrets but its own."""
    own = {one.get("name") for one in account.get("secrets") or ()}
    not_referenced = f"is not allowed because service account {account['metadata']['name']} does not reference that"
    for volume in spec.get("volumes") or ():
        name = volume.get("secret", {}).get("secretName")
        if name is not None and name not in own:
            return f'volume with secret.secretName="{name}" {not_referenced} secret'
    for sort, word in (("initContainers", "init container"), ("containers", "container")):
        for container in spec.get(sort) or ():
            for how, name in _secrets_of(container):
                if name not in own:
                    where = f"{word} {container['name']} with {how}"
                    return f'{where} referencing secret.secretName="{name}" {not_referenced} secret'
    pull = {one.get("name") for one in account.get("imagePullSecrets") or ()}
    for position, one in enumerate(spec.get("imagePullSecrets") or ()):
        if one.get("name") not in pull:
            return f'imagePullSecrets[{position}].name="{one.get("name")}" {not_referenced} imagePullSecret'
    return ""


def _secrets_of(container: Object) -> list[tuple[str, Any]]:
    found = []
    for variable in container.get("env") or ():
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        if reference is not None:
            found.append((f"envVar {variable['name']}", reference.get("name")))
    return found + [
        ("envFrom", source["secretRef"].get("name"))
        for source in container.get("envFrom") or ()
        if "secretRef" in source
    ]


_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
_TOLERATION_SECONDS = 300
_UNHEALTHY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_new(pod: Object, ctx: WriteContext) -> None:
    ranges = list(ctx.lookup.list(_LIMIT_RANGES, pod["metadata"].get("namespace", "")))
    apply_defaults(pod, ranges)
    if ctx.mounts_tokens and (why := admit(pod, ctx)):
        raise _refused(pod, why)
    _set_priority(pod, ctx)
    add_default_tolerations(pod["spec"])
    _apply_runtime_class(pod, ctx)


def validate_new(pod: Object, ctx: WriteContext) -> None:
    """What is refused only after the pod is known to be valid."""
    spec = pod["spec"]
    if "overhead" in spec:
        runtime = ctx.lookup.get(_RUNTIME_CLASSES, "", spec.get("runtimeClassName", "")) or {}
        if "podFixed" not in runtime.get("overhead", {}):
            raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    ranges = list(ctx.lookup.list(_LIMIT_RANGES, pod["metadata"].get("namespace", "")))
    if violation := first_violation(pod, ranges):
        raise _refused(pod, violation)


def admit_changed(pod: Object, old: Object) -> None:
    """Priority cannot change; what the client left out is put back."""
    for name in ("priority", "preemptionPolicy"):
        if name not in pod["spec"] and name in old["spec"]:
            pod["spec"][name] = old["spec"][name]
    add_default_tolerations(pod["spec"])


def add_default_tolerations(spec: Object) -> None:
    """Five minutes on a node that is not ready or not reachable, unless the pod says something about that itself."""
    given = list(spec.get("tolerations", []))
    for taint in _UNHEALTHY_TAINTS:
        if any(_covers(toleration, taint) for toleration in given):
            continue
        toleration: Object = {"key": taint, "operator": "Exists", "effect": "NoExecute"}
        toleration["tolerationSeconds"] = _TOLERATION_SECONDS
        spec.setdefault("tolerations", []).append(toleration)


def _covers(toleration: Object, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


def priority_class_of(spec: Object, ctx: WriteContext) -> Object | None:
    """The class that it names, or else the default one, whose name is filled in. Raises LookupError."""
    name = spec.get("priorityClassName", "")
    if name:
        chosen = ctx.lookup.get(_PRIORITY_CLASSES, "", name)
        if chosen is None:
            raise LookupError(f"no PriorityClass with name {name} was found")
        return chosen
    defaults = [one for one in ctx.lookup.list(_PRIORITY_CLASSES) if one.get("globalDefault")]
    chosen = min(defaults, key=lambda one: int(one["value"]), default=None)
    if chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    return chosen


def _set_priority(pod: Object, ctx: WriteContext) -> None:
    spec = pod["spec"]
    try:
        chosen = priority_class_of(spec, ctx)
    except LookupError as error:
        raise _refused(pod, str(error)) from None
    priority = chosen["value"] if chosen is not None else 0
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    computed = (
        "must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name"
    )
    if spec.get("priority", priority) != priority:
        raise _refused(pod, f"the integer value of priority ({spec['priority']}) {computed.format(priority)}")
    if spec.get("preemptionPolicy", policy) != policy:
        given = spec["preemptionPolicy"]
        raise _refused(pod, f"the string value of PreemptionPolicy ({given}) {computed.format(policy)}")
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy


def _apply_runtime_class(pod: Object, ctx: WriteContext) -> None:
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    runtime = ctx.lookup.get(_RUNTIME_CLASSES, "", name) if name else None
    if name and runtime is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    overhead = (runtime or {}).get("overhead", {}).get("podFixed")
    if overhead is not None:
        if spec.get("overhead", overhead) != overhead:
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    if runtime is not None and "scheduling" in runtime:
        _follow_runtime_scheduling(pod, runtime["scheduling"])


def _follow_runtime_scheduling(pod: Object, scheduling: Object) -> None:
    spec = pod["spec"]
    selector = dict(spec.get("nodeSelector", {}))
    for name, value in sorted(scheduling.get("nodeSelector", {}).items()):
        if selector.get(name, value) != value:
            where = f"runtimeClass.scheduling.nodeSelector[{name}] = {value}"
            raise _refused(pod, f"conflict: {where}; pod.spec.nodeSelector[{name}] = {selector[name]}")
        selector[name] = value
    if selector:
        spec["nodeSelector"] = selector
    merged = merge_tolerations(spec.get("tolerations", []), scheduling.get("tolerations", []))
    if merged:
        spec["tolerations"] = merged


def _refused(pod: Object, why: str) -> StatusError:
    name = pod["metadata"].get("name", "")
    return StatusError(403, "Forbidden", f'pods "{name}" is forbidden: {why}', {"name": name, "kind": "pods"})
