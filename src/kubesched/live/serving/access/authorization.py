"""May they: some paths everybody may, some groups may everything, and for the rest the API server is asked.

Answers are kept for a while, yes and no each for its own. Next: `filters`, which acts on them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.live.serving.access.authentication import UserInfo
from kubesched.live.serving.access.reviews import ExpiringCache, ReviewClient, ReviewError, Sleep, review
from kubesched.live.serving.errors import ServingError
from kubesched.live.serving.settings import AuthorizationSettings

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_MOST_KEPT = 8192
_LONGEST_KEPT = 10_000
"""Of a path: callers must not fill the memory."""


@dataclass(frozen=True, slots=True)
class AccessDecision:
    is_allowed: bool
    reason: str = ""


class AlwaysAllowedPaths:
    def __init__(self, paths: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._prefixes: list[str] = []
        for path in paths:
            bare = path.removeprefix("/")
            if "*" in bare[:-1]:
                raise ServingError(f"--authorization-always-allow-paths: only trailing * allowed in {bare!r}")
            if bare.endswith("*"):
                self._prefixes.append(bare[:-1])
            else:
                self._exact.add(bare)

    def __contains__(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._exact or any(bare.startswith(prefix) for prefix in self._prefixes)


class Authorizer:
    """Without a client, nobody but the privileged groups may see what is not open to all."""

    def __init__(
        self,
        settings: AuthorizationSettings,
        client: ReviewClient | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._open_paths = AlwaysAllowedPaths(settings.always_allow_paths)
        self._client = client
        self._sleep = sleep
        self._known: ExpiringCache[bytes, AccessDecision] = ExpiringCache(clock, _MOST_KEPT)

    async def decide(self, user: UserInfo, verb: str, path: str) -> AccessDecision:
        """Raises `ReviewError` if the API server had to be asked, and could not be."""
        if set(self._settings.always_allow_groups) & set(user.groups) or path in self._open_paths:
            return AccessDecision(True)
        if self._client is None:
            return AccessDecision(False)
        spec = _spec(user, verb, path)
        key = msgspec.json.encode(spec)
        found = self._known.get(key)
        if found is None:
            question = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}
            found = _decision(await review(self._client, PATH, question, self._sleep))
            if len(path) + len(verb) < _LONGEST_KEPT:
                ttl_s = self._settings.authorized_ttl_s if found.is_allowed else self._settings.unauthorized_ttl_s
                self._known.put(key, found, ttl_s)
        return found


def _spec(user: UserInfo, verb: str, path: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"nonResourceAttributes": {"path": path, "verb": verb}, "user": user.name}
    if user.groups:
        spec["groups"] = user.groups
    if user.extra:
        spec["extra"] = {key: user.extra[key] for key in sorted(user.extra)}
    if user.uid:
        spec["uid"] = user.uid
    return spec


def _decision(status: dict[str, Any]) -> AccessDecision:
    is_allowed, is_denied = bool(status.get("allowed")), bool(status.get("denied"))
    if is_allowed and is_denied:
        raise ReviewError("webhook subject access review returned both allow and deny response")
    return AccessDecision(is_allowed, str(status.get("reason") or ""))
