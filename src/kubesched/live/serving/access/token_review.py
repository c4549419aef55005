"""Whose token is it? The API server knows. Answers are kept for a while, under a keyed hash: tokens are not kept.

Next: `authentication`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from kubesched.live.serving.access.expiring import ExpiringCache
from kubesched.live.serving.access.reviews import ReviewClient, ReviewError, Sleep, review
from kubesched.live.serving.access.user import AuthenticationError, UserInfo

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
INVALID = "invalid bearer token"
_MOST_KEPT = 4096


def bearer_token(headers: Mapping[str, str]) -> str:
    """The token in the Authorization header; empty if there is none."""
    parts = headers.get("Authorization", "").strip().split(" ", 2)
    return parts[1] if len(parts) >= 2 and parts[0].lower() == "bearer" else ""


class TokenReviews:
    def __init__(
        self,
        client: ReviewClient,
        ttl_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._client = client
        self._ttl_s = ttl_s
        self._sleep = sleep
        self._salt = secrets.token_bytes(32)
        self._known: ExpiringCache[bytes, UserInfo | str] = ExpiringCache(clock, _MOST_KEPT)

    async def user_of(self, token: str) -> UserInfo:
        """Raises `AuthenticationError` if the token is nobody's, or nobody could be asked."""
        if not token.isascii():
            raise AuthenticationError(INVALID)
        key = hmac.new(self._salt, token.encode(), hashlib.sha256).digest()
        found = self._known.get(key)
        if found is None:
            found = await self._asked(token)
            self._known.put(key, found, self._ttl_s)
        if isinstance(found, str):
            raise AuthenticationError(found)
        return found

    async def _asked(self, token: str) -> UserInfo | str:
        """The user, or why it is nobody's. What cannot be found out is raised, and so not kept."""
        question = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
        try:
            status = await review(self._client, PATH, question, self._sleep)
        except ReviewError as problem:
            raise AuthenticationError(str(problem)) from None
        if not status.get("authenticated"):
            if status.get("error"):
                raise AuthenticationError(str(status["error"]))
            return INVALID
        return _user(status.get("user") or {})


def _user(found: dict[str, Any]) -> UserInfo:
    extra = {key: tuple(values) for key, values in (found.get("extra") or {}).items()}
    return UserInfo(found.get("username", ""), found.get("uid", ""), tuple(found.get("groups") or ()), extra)
