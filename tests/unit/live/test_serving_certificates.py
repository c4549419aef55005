"""The server's own certificate: made where none is given, and followed as files change."""

from __future__ import annotations

import asyncio
import ssl
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from secured_port import LOCAL, serving, trusting_all

from kubesched.live.serving import certificates
from kubesched.live.serving.certificates import ContextMaker, PemPair, self_signed, write_pair
from kubesched.live.serving.settings import ServingError, ServingSettings


async def shown(port: int, context: ssl.SSLContext | None = None) -> tuple[x509.Certificate, str | None]:
    """The certificate that the server shows to a new connection, and the version of TLS."""
    _reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context or trusting_all())
    try:
        ssl_object = writer.get_extra_info("ssl_object")
        return x509.load_der_x509_certificate(ssl_object.getpeercert(binary_form=True)), ssl_object.version()
    finally:
        writer.close()
        await writer.wait_closed()


def show(settings: ServingSettings) -> tuple[x509.Certificate, str | None]:
    async def run() -> tuple[x509.Certificate, str | None]:
        async with serving(settings=settings) as port:
            return await shown(port.port)

    return asyncio.run(run())


def files(directory: Path, name: str, pair: PemPair) -> ServingSettings:
    paths = directory / f"{name}.crt", directory / f"{name}.key"
    write_pair(pair, *paths)
    return replace(LOCAL, tls_cert_file=str(paths[0]), tls_private_key_file=str(paths[1]))


def test_a_certificate_is_made_in_memory() -> None:
    certificate, version = show(LOCAL)
    names_of = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names_of.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names_of.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert version == "TLSv1.3"


def test_a_certificate_is_made_once_under_a_directory(tmp_path: Path) -> None:
    settings = replace(LOCAL, cert_dir=str(tmp_path / "certs"))
    first, _ = show(settings)
    again, _ = show(settings)
    assert first == again
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "certs").iterdir()}
    assert modes["kube-scheduler.key"] == 0o600
    assert modes.keys() == {"kube-scheduler.key", "kube-scheduler.crt"}


def test_clients_that_trust_the_chain_can_check_it(tmp_path: Path) -> None:
    pair = self_signed("10.0.0.7")
    settings = files(tmp_path, "server", pair)
    context = ssl.create_default_context(cadata=pair.certificate.decode())

    async def run() -> None:
        async with serving(settings=settings) as port:
            await shown(port.port, context)

    asyncio.run(run())


def test_a_certificate_that_changes_is_shown_to_who_connects_next(tmp_path: Path) -> None:
    pairs = [self_signed("127.0.0.1") for _ in range(2)]
    settings = files(tmp_path, "server", pairs[0])

    async def run() -> list[int]:
        async with serving(settings=settings) as port:
            found = [(await shown(port.port))[0].serial_number]
            Path(settings.tls_cert_file).write_bytes(pairs[1].certificate)
            found.append((await shown(port.port))[0].serial_number)
            Path(settings.tls_private_key_file).write_bytes(pairs[1].key)
            return [*found, (await shown(port.port))[0].serial_number]

    old, new = (x509.load_pem_x509_certificate(pair.certificate).serial_number for pair in pairs)
    assert asyncio.run(run()) == [old, old, new], "a pair that does not match leaves the old one in use"


def test_the_least_version_is_held() -> None:
    settings = replace(LOCAL, tls_min_version="VersionTLS13")
    context = trusting_all()
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    async def run() -> None:
        async with serving(settings=settings) as port:
            await shown(port.port, context)

    with pytest.raises(OSError):  # refused by an alert or by hanging up, whichever comes first
        asyncio.run(run())


def test_suites_are_those_of_the_flag() -> None:
    maker = ContextMaker(replace(LOCAL, tls_cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)))
    offered = {cipher["name"] for cipher in maker.current().get_ciphers() if cipher["protocol"] == "TLSv1.2"}
    assert offered == {"ECDHE-ECDSA-AES256-GCM-SHA384"}


def test_every_suite_with_a_name_is_one_that_openssl_knows() -> None:
    for name, openssl_name in certificates.CIPHER_SUITES.items():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(openssl_name)
        assert openssl_name in {cipher["name"] for cipher in context.get_ciphers()}, name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            replace(LOCAL, tls_min_version="TLS1"), "--tls-min-version: unknown tls version 'TLS1'", id="version"
        ),
        pytest.param(
            replace(LOCAL, tls_cipher_suites=("RC4",)),
            "--tls-cipher-suites: Cipher suite RC4 not supported or doesn't exist",
            id="suite",
        ),
        pytest.param(replace(LOCAL, tls_cert_file="a"), "must be given together", id="certificate without key"),
        pytest.param(
            replace(LOCAL, tls_cert_file="/no/a", tls_private_key_file="/no/b"),
            "--tls-cert-file, --tls-private-key-file: /no/a and /no/b: ",
            id="files that are not there",
        ),
    ],
)
def test_what_cannot_be_used_is_named(settings: ServingSettings, message: str) -> None:
    with pytest.raises(ServingError, match=message):
        ContextMaker(settings)


def test_a_port_that_is_taken_is_named() -> None:
    async def run() -> None:
        async with serving() as port, serving(settings=replace(LOCAL, port=port.port)):
            pass

    with pytest.raises(ServingError, match=r"--bind-address 127\.0\.0\.1, --secure-port \d+: "):
        asyncio.run(run())
