"""Tokens of service accounts: signed JSON web tokens, made on request and checked without any list of them.

Signed with the server's own key (ES256). A token dies with its account: its uid is compared with the stored one.
``authentication.py`` asks.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kubesched.apiserver.api import Api
from kubesched.apiserver.verbs.request import RequestUser

ISSUER = "https://kubernetes.default.svc"


class ServiceTokens:
    """Makes and checks tokens."""

    def __init__(self, api: Api, key: ec.EllipticCurvePrivateKey, clock: Callable[[], float] = time.time) -> None:
        self._api = api
        self._key = key
        self._clock = clock
        self._checked = lru_cache(maxsize=1024)(self._claims)  # a signature stays right; all else is asked every time

    def issue(self, namespace: str, name: str, uid: str, audiences: list[str], for_s: int) -> str:
        """A new token for the account."""
        now = int(self._clock())
        claims = {
            "aud": audiences,
            "exp": now + for_s,
            "iat": now,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        text = _part({"alg": "ES256", "typ": "JWT"}) + "." + _part(claims)
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return text + "." + _encoded(r.to_bytes(32, "big") + s.to_bytes(32, "big"))

    def user_of(self, token: str) -> RequestUser | None:
        """The account of a valid token, None for anything else."""
        claims = self._checked(token)
        if claims is None or ISSUER not in claims.get("aud", []) or claims.get("exp", 0) < self._clock():
            return None
        bound = claims["kubernetes.io"]
        namespace, account = bound["namespace"], bound["serviceaccount"]
        stored = self._api.get("serviceaccounts", namespace, account["name"])
        if stored is None or stored["metadata"]["uid"] != account["uid"]:
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
        return RequestUser(claims["sub"], groups, account["uid"], extra)

    def _claims(self, token: str) -> dict[str, Any] | None:
        try:
            text, _, signature = token.rpartition(".")
            raw = _decoded(signature)
            encoded = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self._key.public_key().verify(encoded, text.encode(), ec.ECDSA(hashes.SHA256()))
            claims: dict[str, Any] = json.loads(_decoded(text.partition(".")[2]))
        except (InvalidSignature, ValueError, binascii.Error):
            return None
        return claims


def _part(content: dict[str, Any]) -> str:
    return _encoded(json.dumps(content, separators=(",", ":")).encode())


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
