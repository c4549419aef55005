"""Who may do what on the scripted server: its own token and refusals, and the reviews that others ask it for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.scripted_server.answers import RefusalError
from harness.scripted_server.routing import Address

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(slots=True)
class Access:
    """`accepts_token` is what callers must show. `token_users` answers token reviews (token → user info) and `grants`
    answers access reviews, given their spec."""

    accepts_token: str | None = None
    user: str = "system:kube-scheduler"
    refused: set[tuple[str, str]] = field(default_factory=set)
    token_users: dict[str, dict[str, Any]] = field(default_factory=dict)
    grants: Callable[[dict[str, Any]], bool] = field(default=lambda spec: True)

    def check_token(self, authorization: str) -> None:
        if self.accepts_token is not None and authorization != f"Bearer {self.accepts_token}":
            raise RefusalError(401, "Unauthorized")

    def check(self, verb: str, address: Address) -> None:
        """As RBAC would."""
        if (verb, address.resource) not in self.refused:
            return
        where = f'in the namespace "{address.namespace}"' if address.namespace else "at the cluster scope"
        what = f'{address.resource} is forbidden: User "{self.user}" cannot {verb} resource "{address.resource}"'
        raise RefusalError(403, f'{what} in API group "{address.served.group}" {where}')

    def review(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a token or access review; `None` if the path is none."""
        spec = body.get("spec") or {}
        if path == TOKEN_REVIEWS:
            user = self.token_users.get(spec.get("token", ""))
            status: dict[str, Any] = {"authenticated": user is not None, **({"user": user} if user else {})}
        elif path == ACCESS_REVIEWS:
            status = {"allowed": self.grants(spec)}
        else:
            return None
        return {**body, "status": status}
