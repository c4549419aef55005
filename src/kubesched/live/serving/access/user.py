"""Whoever asks, and the names Kubernetes has for those who are not anybody in particular."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

ANONYMOUS_NAME = "system:anonymous"
UNAUTHENTICATED = "system:unauthenticated"
AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class UserInfo:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def authenticated(self) -> UserInfo:
        """With the group that everybody is in who is known."""
        if self.name == ANONYMOUS_NAME or {AUTHENTICATED, UNAUTHENTICATED} & set(self.groups):
            return self
        return replace(self, groups=(*self.groups, AUTHENTICATED))


ANONYMOUS = UserInfo(ANONYMOUS_NAME, groups=(UNAUTHENTICATED,))


class AuthenticationError(Exception):
    """Somebody claims to be somebody, and it is not so, or it could not be found out. Holds no secret."""
