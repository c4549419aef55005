"""A certificate for a server that was given none: signed by a CA made for it alone, whose key is thrown away.

Clients that want to be sure need a real certificate; this one only keeps readers out. Next: `renewing`.
"""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_FOR = timedelta(days=365)
_SKEW = timedelta(hours=1)
"""Valid a little earlier than now: clocks differ."""


class PemPair(NamedTuple):
    """A certificate (with the chain behind it) and its key."""

    certificate: bytes
    key: bytes


def self_signed(bind_address: str, now: datetime | None = None) -> PemPair:
    """For the address the server listens on; for `localhost` if it listens on all."""
    now = datetime.now(UTC) if now is None else now
    host = "localhost"
    stamp = int(now.timestamp())
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name, name = _name(f"{host}-ca@{stamp}"), _name(f"{host}@{stamp}")
    ca = _signed(_builder(ca_name, ca_name, ca_key, now, is_ca=True), ca_key)
    builder = _builder(name, ca_name, key, now, is_ca=False).add_extension(
        x509.SubjectAlternativeName(_alternatives(host, bind_address)), critical=False
    )
    leaf = _signed(builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False), ca_key)
    pem = serialization.Encoding.PEM
    key_pem = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return PemPair(leaf.public_bytes(pem) + ca.public_bytes(pem), key_pem)


def write_pair(pair: PemPair, certificate_file: Path, key_file: Path) -> None:
    """The key is readable for nobody else, from its first byte on."""
    for file, content, mode in ((certificate_file, pair.certificate, 0o644), (key_file, pair.key, 0o600)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            opened.write(content)


def _alternatives(host: str, bind_address: str) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    try:
        address = ipaddress.ip_address(bind_address)
    except ValueError:
        names.append(x509.DNSName(bind_address))
    else:
        if not address.is_unspecified and str(address) != "127.0.0.1":
            names.append(x509.IPAddress(address))
    return names


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, *, is_ca: bool
) -> x509.CertificateBuilder:
    usage = x509.KeyUsage(True, False, not is_ca, False, False, is_ca, False, False, False)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now - _SKEW + _VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())
