"""The guard of the logs: nothing that could be used to log in somewhere is ever written.

Two nets. By name: a field called like a secret (`token`, `password`, `client-key-data` …) loses its value. By looks:
text that contains an Authorization header, a bearer token, a JSON web token, a private key, a secret field of a
kubeconfig or a password in an address loses that part. Bytes are never shown, only counted. Code that logs must not
rely on it: secrets do not belong into messages in the first place.

Next: `setup`, whose formats pass everything through here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

REDACTED = "REDACTED"

SECRET_NAMES = frozenset(
    {
        "accesstoken",
        "apikey",
        "authorization",
        "bearertoken",
        "clientkey",
        "clientkeydata",
        "clientsecret",
        "cookie",
        "idtoken",
        "keydata",
        "passwd",
        "password",
        "privatekey",
        "proxyauthorization",
        "refreshtoken",
        "secret",
        "setcookie",
        "token",
    }
)

_SUSPICIOUS = re.compile(
    r"authorization|bearer|token|passw|secret|private key|key[-_]?data|eyJ|LS0tLS1CRUdJTi|api[-_]?key|cookie|://[^/\s]*@",
    re.IGNORECASE,
)
_VALUE = r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&}"']+)"""
_NETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), REDACTED),
    (re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]*"), REDACTED),
    (re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), REDACTED),
    (
        re.compile(
            r"""(authorization["']?\s*[:=]\s*["']?\s*)(?:(?:bearer|basic|negotiate|digest)\s+)?[^\s"',}]+""",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"\b(bearer\s+)[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE), rf"\1{REDACTED}"),
    (
        re.compile(
            r"""((?:client[-_]?key[-_]?data|client[-_]?secret|passw(?:or)?d|api[-_]?key|(?:set-)?cookie)["']?\s*[:=]\s*)"""
            + _VALUE,
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        # "token: no such file" is prose, "token: abcdefgh1" is a token.
        re.compile(
            r"""(token["']?\s*[:=]\s*)("[^"]+"|'[^']+'|(?=[^\s,;&}]*[\d_.-])[^\s,;&}/"']{6,}|(?<==)[^\s,;&}"']+)""",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"://[^/\s@]+@"), f"://{REDACTED}@"),
)


def redact(text: str) -> str:
    """The text without what looks like a secret."""
    if not _SUSPICIOUS.search(text):
        return text
    for pattern, replacement in _NETS:
        text = pattern.sub(replacement, text)
    return text


def safe_value(name: str, value: object) -> object:
    """A field's value as it may be written: plain data (text, numbers, lists, maps) without secrets."""
    if _bare(name) in SECRET_NAMES:
        return REDACTED
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, Mapping):
        return {str(key): safe_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [safe_value("", inner) for inner in value]
    return redact(str(value))


def _bare(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
