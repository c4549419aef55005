"""A bundle of CAs whose certificates are trusted: from a file, re-read when it changes, or set by somebody who looked.

Next: `renewing`, which asks clients for certificates of these CAs; `access/authentication`, which says whose.
"""

from __future__ import annotations

import logging
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kubesched.live.serving.errors import ServingError
from kubesched.live.serving.tls.file_watch import FileWatch

_log = logging.getLogger("kubesched.serving")


class CaBundle:
    """`version` grows whenever the CAs change."""

    def __init__(self, pem: str = "") -> None:
        self.version = 0
        self.pem = ""
        self._given = ""
        self._ders: frozenset[bytes] = frozenset()
        self._watch: FileWatch | None = None
        if pem:
            self.set(pem)

    @classmethod
    def from_file(cls, path: str, flag: str) -> CaBundle:
        bundle = cls()
        try:
            bundle.set(Path(path).read_text())
        except (OSError, ValueError) as problem:
            raise ServingError(f"{flag}: {path}: {problem}") from None
        bundle._watch = FileWatch((Path(path),))
        return bundle

    def set(self, pem: str) -> None:
        """Raises ValueError if there is no certificate in it."""
        if pem == self._given:
            return
        certificates = x509.load_pem_x509_certificates(pem.encode())
        self._given = pem
        # Written anew, as OpenSSL does not take the remarks between certificates in all languages.
        self.pem = "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
        self._ders = frozenset(certificate.public_bytes(Encoding.DER) for certificate in certificates)
        self.version += 1

    def refresh(self) -> None:
        """Reads the file again if it changed; what cannot be read leaves the CAs as they were."""
        if self._watch is None or not self._watch.has_changed():
            return
        try:
            self.set(self._watch.files[0].read_text())
        except (OSError, ValueError) as problem:
            _log.error("Loading a CA bundle failed", extra={"fields": {"file": self._watch.files[0], "err": problem}})

    def __bool__(self) -> bool:
        return bool(self._ders)

    def __contains__(self, der: object) -> bool:
        return der in self._ders
