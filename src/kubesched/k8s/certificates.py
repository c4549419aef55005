"""Certificates that a server makes for itself: an authority, and what it signs.

Used by the secure port of `kubesched run` and by the playground's API server.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_SKEW = timedelta(hours=1)
"""Valid a little earlier than now: clocks differ."""

_PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs what it is asked to, for as long as it is valid itself."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, common_name: str, now: datetime, valid_for: timedelta) -> Authority:
        key, name = new_key(), _name(common_name)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        builder = _builder(name, name, key, key, now, valid_for, is_ca=True)
        return cls(key, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()))

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(_PEM)

    def server_certificate(
        self, common_name: str, hosts: list[str], key: ec.EllipticCurvePrivateKey, now: datetime, valid_for: timedelta
    ) -> bytes:
        """For a server with this key that is reached by these names and addresses."""
        usage = x509.KeyUsage(True, False, True, False, False, False, False, False, False)
        builder = _builder(_name(common_name), self.certificate.subject, key, self.key, now, valid_for, is_ca=False)
        certificate = (
            builder.add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return certificate.public_bytes(_PEM)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    now: datetime,
    valid_for: timedelta,
    *,
    is_ca: bool,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now - _SKEW + valid_for)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
