"""Tokens of service accounts: signed JSON web tokens, made on request and checked without any list of them.

Signed with the server's own key (ES256). A token can be bound to a pod that runs as the account, to a secret or to a
node. It ends with its account and with that object: their uids are compared with the stored ones at every use. Nothing
is stored. ``http/identity.py`` asks.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kubesched.playground.apiserver.errors import StatusError, bad_request, conflict, invalid, not_found
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.served_resource import Object, ServedResource
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.authorization import quoted_list
from kubesched.playground.apiserver.verbs.create import place_in_namespace
from kubesched.playground.apiserver.verbs.request import Api, RequestUser, Target, WriteOptions

ISSUER = "https://kubernetes.default.svc"
API_AUDIENCES = (ISSUER,)
_LEEWAY_S = 60.0  # what was deleted longer ago than clocks may differ counts as gone
_KINDS = {"secret": "secrets", "pod": "pods", "node": "nodes"}
_EXTRA = "authentication.kubernetes.io/"

Claims = dict[str, Any]


class InvalidTokenError(Exception):
    """A token that proves nothing; the text says why, if it is one of ours at all."""


class Identified(NamedTuple):
    """Whose token it is, and for which of the audiences asked about it is good."""

    user: RequestUser
    audiences: tuple[str, ...]


class ServiceTokens:
    """Makes and checks tokens."""

    def __init__(self, api: Api, key: ec.EllipticCurvePrivateKey, clock: Callable[[], float] = time.time) -> None:
        self._api = api
        self._key = key
        self._clock = clock
        self._key_id = _encoded(
            hashlib.sha256(key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
        )
        self._checked = lru_cache(maxsize=1024)(self._claims)  # a signature stays right; all else is asked every time

    def issue(
        self, account: Mapping[str, Any], audiences: Sequence[str], for_s: int, bound: Mapping[str, Claims]
    ) -> str:
        """A new token for the account with this metadata, bound to objects by "pod", "secret", "node"."""
        now = int(self._clock())
        namespace, name = account["namespace"], account["name"]
        about = {"namespace": namespace, **bound, "serviceaccount": {"name": name, "uid": account["uid"]}}
        claims = {
            "aud": list(audiences),
            "exp": now + for_s,
            "iat": now,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {key: about[key] for key in sorted(about)},
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        text = _part({"alg": "ES256", "kid": self._key_id}) + "." + _part(claims)
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return text + "." + _encoded(r.to_bytes(32, "big") + s.to_bytes(32, "big"))

    def identify(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> Identified:
        """The account of a valid token. Raises InvalidTokenError."""
        claims = self._checked(token)
        if claims is None:
            raise InvalidTokenError
        meant = claims["aud"]
        common = tuple(audience for audience in audiences if audience in meant)
        if not common:
            listed = f"{quoted_list(meant)} is invalid for the target audiences {quoted_list(audiences)}"
            raise InvalidTokenError(f"token audiences {listed}")
        if claims["exp"] + _LEEWAY_S < self._clock():
            raise InvalidTokenError("service account token has expired")
        if claims["nbf"] - _LEEWAY_S > self._clock():
            raise InvalidTokenError("service account token is not valid yet")
        return Identified(self._user(claims), common)

    def public_keys(self) -> dict[str, Any]:
        """The keys by which others can check tokens, as a JSON web key set."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_encoded(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        key = {"use": "sig", "kty": "EC", "kid": self._key_id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}
        return {"keys": [key]}

    def _user(self, claims: Claims) -> RequestUser:
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        self._check_account(namespace, account)
        extra = {_EXTRA + "credential-id": [f"JTI={claims['jti']}"]}
        for kind in ("secret", "pod", "node"):
            if kind not in about:
                continue
            if kind != "node" or "pod" not in about:  # a pod's node is only told
                self._check_bound(kind, namespace, about[kind], account["name"])
            if kind != "secret":
                extra[f"{_EXTRA}{kind}-name"] = [about[kind]["name"]]
                if about[kind].get("uid"):
                    extra[f"{_EXTRA}{kind}-uid"] = [about[kind]["uid"]]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return RequestUser(claims["sub"], groups, account["uid"], extra)

    def _check_account(self, namespace: str, account: Claims) -> None:
        name = account["name"]
        stored = self._api.get("serviceaccounts", namespace, name)
        if stored is None:
            raise InvalidTokenError(f'serviceaccounts "{name}" not found')
        if stored["metadata"]["uid"] != account["uid"]:
            found = f"service account UID ({stored['metadata']['uid']}) does not match claim ({account['uid']})"
            raise InvalidTokenError(found)
        if self._is_gone(stored["metadata"]):
            raise InvalidTokenError(f"service account {namespace}/{name} has been deleted")

    def _check_bound(self, kind: str, namespace: str, bound: Claims, account: str) -> None:
        stored = self._api.get(_KINDS[kind], "" if kind == "node" else namespace, bound["name"])
        if stored is None or self._is_gone(stored["metadata"]):
            raise InvalidTokenError("service account token has been invalidated")
        uid = stored["metadata"]["uid"]
        if uid != bound["uid"]:
            claim = f"does not match service account {kind} ref claim ({bound['uid']})"
            raise InvalidTokenError(f"{kind} UID ({uid}) {claim}")

    def _is_gone(self, metadata: Mapping[str, Any]) -> bool:
        """Marked for deletion longer ago than clocks may differ."""
        since = metadata.get("deletionTimestamp")
        if not since:
            return False
        at = datetime.strptime(since, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return at.timestamp() < self._clock() - _LEEWAY_S

    def _claims(self, token: str) -> Claims | None:
        """What the token says, if this server signed it."""
        try:
            text, _, signature = token.rpartition(".")
            raw = _decoded(signature)
            encoded = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self._key.public_key().verify(encoded, text.encode(), ec.ECDSA(hashes.SHA256()))
            claims: Claims = json.loads(_decoded(text.partition(".")[2]))
        except (InvalidSignature, ValueError, binascii.Error):
            return None
        return claims


def _part(content: dict[str, Any]) -> str:
    return _encoded(json.dumps(content, separators=(",", ":")).encode())


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


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
