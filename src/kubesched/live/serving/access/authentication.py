"""Who is asking: a trusted proxy's word, a client certificate, or a token, in this order; else it is anonymous.

One way that says yes is enough. If none does and one of them was tried in vain (a token of nobody), the request is
refused rather than taken for an anonymous one.

Next: `authorization`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.live.serving.access.client_certificate import VerifiedChain, user_of_certificate
from kubesched.live.serving.access.request_header import Headers, RequestHeaders
from kubesched.live.serving.access.token_review import TokenReviews, bearer_token
from kubesched.live.serving.access.user import ANONYMOUS, AuthenticationError, UserInfo
from kubesched.live.serving.tls.ca_bundle import CaBundle


@dataclass(frozen=True, slots=True)
class Authenticator:
    """What is None is a way that is not offered; a bundle without CAs has no opinion."""

    request_headers: RequestHeaders | None = None
    client_cas: CaBundle | None = None
    tokens: TokenReviews | None = None

    async def user_of(self, chain: VerifiedChain | None, headers: Headers) -> UserInfo:
        """Raises `AuthenticationError`."""
        problems: list[str] = []
        if chain is not None:
            found = self._by_certificate(chain, headers, problems)
            if found is not None:
                return found.authenticated()
        token = bearer_token(headers)
        if token and self.tokens is not None:
            try:
                return (await self.tokens.user_of(token)).authenticated()
            except AuthenticationError as problem:
                problems.append(str(problem))
        if problems:
            raise AuthenticationError(", ".join(problems))
        return ANONYMOUS

    def _by_certificate(self, chain: VerifiedChain, headers: Headers, problems: list[str]) -> UserInfo | None:
        proxies = self.request_headers
        if proxies is not None and proxies.cas:
            try:
                found = proxies.user_of(chain, headers)
                if found is not None:
                    return found
            except AuthenticationError as problem:
                problems.append(str(problem))
        if self.client_cas:
            try:
                chain.check_traced_to(self.client_cas)
                return user_of_certificate(chain)
            except AuthenticationError as problem:
                problems.append(str(problem))
        return None
