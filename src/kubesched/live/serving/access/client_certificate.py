"""Who a client certificate says is asking: its common name, and its organizations as groups.

TLS has checked the certificate against all CAs that are trusted for anything (`tls/renewing`); here it is asked whether
the one that counts is among those it was traced to.

Next: `request_header`, for proxies that speak for others.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier

from kubesched.live.serving.access.expiring import ExpiringCache
from kubesched.live.serving.access.user import AuthenticationError, UserInfo
from kubesched.live.serving.tls.ca_bundle import CaBundle

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")
_DER = 2  # how `_ssl.Certificate.public_bytes` is told to give DER
_MOST_KEPT = 1024
_KEPT_FOR_S = 7200.0
"""OpenSSL resumes nothing that is older."""


@dataclass(frozen=True, slots=True)
class VerifiedChain:
    """Certificates as DER, the client's first, up to the one that is trusted."""

    ders: tuple[bytes, ...]

    @property
    def leaf(self) -> x509.Certificate:
        try:
            return x509.load_der_x509_certificate(self.ders[0])
        except ValueError as problem:  # OpenSSL takes some that are not quite right
            raise AuthenticationError(f"the client's certificate cannot be read: {problem}") from None

    def check_traced_to(self, bundle: CaBundle) -> None:
        """Also that it is still valid: connections may stand for long."""
        leaf = self.leaf
        problem = ""
        if not any(der in bundle for der in self.ders):
            problem = "x509: certificate signed by unknown authority"
        elif not leaf.not_valid_before_utc <= datetime.now(UTC) <= leaf.not_valid_after_utc:
            problem = "x509: certificate has expired or is not yet valid"
        if problem:
            raise AuthenticationError(f"verifying certificate SN={leaf.serial_number} failed: {problem}")


class VerifiedChains:
    """Of connections. One that resumes an earlier one brings the client's certificate alone: what was found out then,
    counts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._known: ExpiringCache[bytes, VerifiedChain] = ExpiringCache(clock, _MOST_KEPT)

    def of(self, ssl_object: Any) -> VerifiedChain | None:
        """None if the client showed no certificate."""
        der = None if ssl_object is None else ssl_object.getpeercert(binary_form=True)
        if der is None:
            return None
        if ssl_object.session_reused:
            return self._known.get(der) or VerifiedChain((der,))
        chain = VerifiedChain((der, *_issuers(ssl_object)))
        self._known.put(der, chain, _KEPT_FOR_S)
        return chain


def _issuers(ssl_object: Any) -> Sequence[bytes]:
    """Public since Python 3.13; before, the same method of what stands behind."""
    if hasattr(ssl_object, "get_verified_chain"):
        return tuple(ssl_object.get_verified_chain() or ())[1:]
    chain = ssl_object._sslobj.get_verified_chain() or ()
    return tuple(certificate.public_bytes(_DER) for certificate in chain)[1:]


def user_of_certificate(chain: VerifiedChain) -> UserInfo | None:
    """None if the certificate names nobody."""
    subject = chain.leaf.subject
    name = common_name(subject)
    if not name:
        return None
    groups = tuple(_values(subject, NameOID.ORGANIZATION_NAME))
    fingerprint = f"X509SHA256={hashlib.sha256(chain.ders[0]).hexdigest()}"
    return UserInfo(name, _uid(subject), groups, {CREDENTIAL_ID: (fingerprint,)})


def common_name(subject: x509.Name) -> str:
    """The last one, as Go has it."""
    names = _values(subject, NameOID.COMMON_NAME)
    return names[-1] if names else ""


def _uid(subject: x509.Name) -> str:
    uids = _values(subject, _UID)
    if len(uids) > 1:
        raise AuthenticationError(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if uids == [""]:
        raise AuthenticationError("UID cannot be an empty string")
    return uids[0] if uids else ""


def _values(subject: x509.Name, oid: ObjectIdentifier) -> list[str]:
    values = (attribute.value for attribute in subject.get_attributes_for_oid(oid))
    return [value if isinstance(value, str) else value.decode(errors="replace") for value in values]
