"""The service account of a new pod: filled in, looked up, and its token mounted into every container.

Only where the server is told to (``ServerSettings.mounts_tokens``): without controllers no namespace has the account
``default``, and every pod would be refused.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.served_resource import Object, WriteContext

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
