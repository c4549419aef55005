"""A certificate for a server that was given none: signed by a CA made for it alone, whose key is thrown away.

Clients that want to be sure need a real certificate; this one only keeps readers out. Next: `renewing`.
"""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from kubesched.k8s.certificates import Authority, key_pem, new_key

_VALID_FOR = timedelta(days=365)


class PemPair(NamedTuple):
    """A certificate (with the chain behind it) and its key."""

    certificate: bytes
    key: bytes


def self_signed(bind_address: str, now: datetime | None = None) -> PemPair:
    """For the address the server listens on; for `localhost` if it listens on all."""
    now = datetime.now(UTC) if now is None else now
    host, stamp = "localhost", int(now.timestamp())
    authority, key = Authority.create(f"{host}-ca@{stamp}", now, _VALID_FOR), new_key()
    leaf = authority.server_certificate(f"{host}@{stamp}", _hosts(host, bind_address), key, now, _VALID_FOR)
    return PemPair(leaf + authority.pem, key_pem(key))


def write_pair(pair: PemPair, certificate_file: Path, key_file: Path) -> None:
    """The key is readable for nobody else, from its first byte on."""
    for file, content, mode in ((certificate_file, pair.certificate, 0o644), (key_file, pair.key, 0o600)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            opened.write(content)


def _hosts(host: str, bind_address: str) -> list[str]:
    found = [host, "127.0.0.1"]
    try:
        is_any = ipaddress.ip_address(bind_address).is_unspecified
    except ValueError:
        is_any = False
    return found if is_any or bind_address in found else [*found, bind_address]
