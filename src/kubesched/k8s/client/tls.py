"""TLS contexts for API servers: which authorities to trust, which client certificate to show.

Private keys that come as data are handed to OpenSSL through anonymous memory where the system has it, else through a
file that only we can read and that is gone before the function returns.

Next: `kubeconfig`, which makes contexts; `credentials.stored`, which renews certificates.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from pathlib import Path

from kubesched.k8s.errors import KubeschedError

_PEM_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


class TlsMaterialError(KubeschedError, ValueError):
    """A certificate or key cannot be used; the text says why and holds nothing of it."""


def make_tls_context(*, authorities: bytes | None = None, verify: bool = True) -> ssl.SSLContext:
    """A context that trusts `authorities` (PEM), or the system's when None, or anybody when not `verify`."""
    if not verify:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust(context, authorities)
    # As Go's TLS does: any certificate given as an authority is one, and old authorities without key ids are accepted.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def trust(context: ssl.SSLContext, authorities: bytes) -> None:
    """Adds authorities (PEM) to those that the context trusts."""
    blocks = _PEM_CERTIFICATE.findall(authorities)
    if not blocks:
        raise TlsMaterialError("holds no PEM certificate")
    try:
        context.load_verify_locations(cadata=b"\n".join(blocks).decode("ascii"))
    except ssl.SSLError as failure:
        raise TlsMaterialError(f"holds a PEM certificate that cannot be read ({failure.reason})") from None


def show_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Makes new connections of the context show this client certificate (PEM)."""
    pem = certificate.rstrip() + b"\n" + key.rstrip() + b"\n"
    try:
        if hasattr(os, "memfd_create"):
            _load_from_memory(context, pem)
        else:
            _load_from_private_file(context, pem)
    except ssl.SSLError as failure:
        if failure.reason == "KEY_VALUES_MISMATCH":
            raise TlsMaterialError("the private key does not belong to the certificate") from None
        raise TlsMaterialError(f"not a PEM certificate with an unencrypted private key ({failure.reason})") from None


def _load_from_memory(context: ssl.SSLContext, pem: bytes) -> None:
    number = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        os.write(number, pem)
        context.load_cert_chain(f"/proc/self/fd/{number}", password=_no_password)
    finally:
        os.close(number)


def _load_from_private_file(context: ssl.SSLContext, pem: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="kubesched-") as directory:  # 0700
        path = Path(directory, "client.pem")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> str:
    """OpenSSL would ask on the terminal."""
    return ""
