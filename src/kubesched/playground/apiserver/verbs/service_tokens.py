"""Tokens of service accounts: signed JSON web tokens, made on request and checked without any list of them.

Signed with the server's own key (ES256). A token ends with its account and with the pod, secret or node that it is
bound to: their uids are compared with the stored ones at every use. ``http/authentication.py`` asks,
``token_requests.py`` makes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kubesched.playground.apiserver.api import Api
from kubesched.playground.apiserver.verbs.request import RequestUser
from kubesched.playground.apiserver.verbs.role_rules import quoted_list

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
