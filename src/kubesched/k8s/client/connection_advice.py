"""Why a server could not be reached, in words, and what to check: the texts of `Unreachable`.

Next: `errors`; the page docs/guides/connect.md lists these messages.
"""

from __future__ import annotations

import errno
import socket
import ssl

from kubesched.k8s.client.errors import AnswerLost, Unreachable
from kubesched.k8s.client.target import ServerTarget

_X509_EXPIRED = 10
_X509_NOT_YET_VALID = 9
_X509_HOST_MISMATCH = (62, 64)


def unreachable(target: ServerTarget, failure: BaseException) -> Unreachable:
    """The error for a connection that could not be made."""
    via = f" through the proxy {without_password(target.proxy)}" if target.proxy else ""
    return Unreachable(f"cannot reach the API server at {target.url}{via}: {_why(target, failure)}")


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    scheme, found, rest = url.partition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}"


def answer_lost(target: ServerTarget, method: str, path: str, why: str) -> AnswerLost:
    """The error for a request that was sent and not answered."""
    return AnswerLost(f"no answer from {target.url} to {method} {path.partition('?')[0]}: {why}")


def _why(target: ServerTarget, failure: BaseException) -> str:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return _why_not_trusted(target, failure)
    if isinstance(failure, ssl.SSLError):
        return _why_no_tls(failure)
    if isinstance(failure, TimeoutError):
        return "no connection in time; check that the address is right and that no firewall is in between"
    if isinstance(failure, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(failure):
        if target.proxy:
            return "connection refused; check that the proxy runs there, and proxy-url or HTTPS_PROXY"
        return f"connection refused; check that the API server runs there and that {target.source} has the right port"
    if isinstance(failure, socket.gaierror):
        if target.proxy:
            return f"unknown host ({failure.strerror}); check the proxy's name in proxy-url or HTTPS_PROXY"
        return f"unknown host ({failure.strerror}); check the server address in {target.source} and the name server"
    if isinstance(failure, ConnectionError):
        return "the connection was closed while it was being made; check the address and what listens there"
    number = getattr(failure, "errno", None)
    if number in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return "there is no route to that address; check the network and VPN"
    return f"{failure or type(failure).__name__}"


def _why_not_trusted(target: ServerTarget, failure: ssl.SSLCertVerificationError) -> str:
    code = failure.verify_code
    if code in (_X509_EXPIRED, _X509_NOT_YET_VALID):
        when = "has expired" if code == _X509_EXPIRED else "is not valid yet"
        return f"the server's certificate {when}; check the clocks, and renew the certificate on the server"
    if code in _X509_HOST_MISMATCH:
        return (
            f"the server's certificate is for another name ({failure.verify_message}); check the server address in "
            f"{target.source}, or set tls-server-name"
        )
    return (
        f"the server's certificate is not signed by the expected authority ({failure.verify_message}); check "
        f"certificate-authority in {target.source}, and that the address leads to that cluster"
    )


def _why_no_tls(failure: ssl.SSLError) -> str:
    reason = failure.reason or str(failure)
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS on this port; check whether the address should begin with http://"
    if "ALERT" in reason or "alert" in reason:
        return f"the server refused the TLS connection ({reason}); check the client certificate"
    return f"the TLS handshake failed ({reason})"
