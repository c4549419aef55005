"""New tokens for service accounts: for how long, for whom, and what they end with.

A token can be bound to a pod that runs as the account, to a secret or to a node; it ends when that object does. Nothing
is stored. ``service_tokens.py`` signs.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kubesched.playground.apiserver.api import Api
from kubesched.playground.apiserver.errors import StatusError, bad_request, conflict, invalid, not_found
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.kind import Object, ServedResource
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.create import place_in_namespace
from kubesched.playground.apiserver.verbs.request import Target, WriteOptions
from kubesched.playground.apiserver.verbs.service_tokens import API_AUDIENCES, Claims, ServiceTokens

_REQUEST = ServedResource("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", "tokenrequest", True)
_SHORTEST_S, _LONGEST_S, _USUAL_S = 600, 1 << 32, 3600
_WARNED_S, _EXTENDED_S = 3607, 365 * 24 * 3600
"""What kubelets ask for pods: good for a year, as the real server does for pods that do not read their token again."""

_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def request_token(api: Api, tokens: ServiceTokens, target: Target, obj: Object, options: WriteOptions) -> Object:
    """The TokenRequest with its answer; ``target`` names the service account."""
    given = obj.get("metadata") or {}
    place_in_namespace(target, given)
    if given.get("name", target.name) not in ("", target.name):
        wrong = errors.invalid("metadata.name", given["name"], "must match the service account name if specified")
        raise invalid(_REQUEST, target.name, [wrong])
    account = _account(api, target, given)
    spec = dict(obj.get("spec") or {})
    spec["audiences"] = spec.get("audiences") or list(API_AUDIENCES)
    for_s = spec["expirationSeconds"] = _seconds(spec)
    sent: Object = {"metadata": {}, "spec": {**(obj.get("spec") or {}), "expirationSeconds": for_s}}
    record(sent, None, _REQUEST, options.manager, "token", api.now())
    bound = _bound_claims(api, target, spec.get("boundObjectRef"))
    valid_s = for_s
    if "pod" in bound and for_s == _WARNED_S and set(spec["audiences"]) <= set(API_AUDIENCES):
        valid_s = _EXTENDED_S
    token = tokens.issue(account, spec["audiences"], valid_s, bound)
    until = (api.clock() + timedelta(seconds=for_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    shown = {name: account[name] for name in ("name", "namespace", "uid") if name in account}
    return {
        "metadata": {**shown, "creationTimestamp": api.now(), **sent["metadata"]},
        "spec": {
            "audiences": spec["audiences"],
            "expirationSeconds": for_s,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": until},
    }


def _account(api: Api, target: Target, given: Object) -> dict[str, Any]:
    stored = api.store.get("serviceaccounts", writing.key_of(target))
    if stored is None:
        raise not_found(target.resource, target.name)
    account: dict[str, Any] = writing.load(target.resource, stored)["metadata"]
    if given.get("uid") and given["uid"] != account["uid"]:
        why = (
            f"the UID in the token request ({given['uid']}) does not match the UID of the service account "
            f"({account['uid']})"
        )
        message = f'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "{target.name}": {why}'
        details = {"name": target.name, "group": "authentication.k8s.io", "kind": "TokenRequest"}
        raise StatusError(409, "Conflict", message, details)
    return account


def _seconds(spec: Object) -> int:
    asked = spec.get("expirationSeconds")
    for_s: int = _USUAL_S if asked is None else asked
    if for_s < _SHORTEST_S:
        raise _bad_duration(for_s, "may not specify a duration less than 10 minutes")
    if for_s > _LONGEST_S:
        raise _bad_duration(for_s, "may not specify a duration larger than 2^32 seconds")
    return for_s


def _bad_duration(for_s: int, why: str) -> StatusError:
    return invalid(_REQUEST, "", [errors.invalid("spec.expirationSeconds", for_s, why)])


def _bound_claims(api: Api, target: Target, ref: Object | None) -> dict[str, Claims]:
    """What the token says of the object that it ends with; of a pod also its node."""
    if ref is None:
        return {}
    group, _, version = str(ref.get("apiVersion") or "").rpartition("/")
    kind, name = ref.get("kind") or "", ref.get("name") or ""
    if group or kind not in _BINDABLE:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    resource = api.resource_of(_BINDABLE[kind])
    assert resource is not None
    found = api.get(_BINDABLE[kind], target.namespace if resource.namespaced else "", name)
    if found is None:
        raise not_found(resource, name)
    if kind == "Pod" and found["spec"].get("serviceAccountName", "") != target.name:
        why = f'cannot bind token for serviceaccount "{target.name}" to pod running with different serviceaccount name.'
        raise bad_request(why)
    _check_uid(resource, ref, found)
    claims = {kind.lower(): _claim(found)}
    if kind == "Pod" and (node_name := found["spec"].get("nodeName")):
        node = api.get("nodes", "", node_name)
        claims["node"] = {"name": node_name} if node is None else _claim(node)
    return claims


def _check_uid(resource: ServedResource, ref: Object, found: Object) -> None:
    if not ref.get("uid") or ref["uid"] == found["metadata"]["uid"]:
        return
    why = (
        f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. The object might have "
        "been deleted and then recreated"
    )
    refusal = conflict(resource, ref["name"], why)
    message = f'Operation cannot be fulfilled on {resource.kind} "{ref["name"]}": {why}'
    raise StatusError(refusal.code, refusal.reason, message, {"name": ref["name"], "kind": resource.kind})


def _claim(obj: Object) -> Claims:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}
