"""Headers as text that can be shown, stored and sent on, whatever bytes came."""

from __future__ import annotations

from multidict import CIMultiDict, CIMultiDictProxy


def plain_text(value: str) -> str:
    """What is no UTF-8 becomes U+FFFD, as Go writes it into JSON."""
    return value if value.isascii() else value.encode(errors="surrogateescape").decode(errors="replace")


def plain_headers(headers: CIMultiDictProxy[str]) -> CIMultiDictProxy[str]:
    if all(value.isascii() for value in headers.values()):
        return headers
    return CIMultiDictProxy(CIMultiDict((name, plain_text(value)) for name, value in headers.items()))
