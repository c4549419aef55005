"""Headers as HTTP/2 has them (RFC 7541, HPACK), as far as a client of API servers needs them.

Requests: what every request says again (credentials, media types) goes into the table that both sides keep for a
connection, and is a byte or two from then on. Nothing is ever evicted from it: what finds no room goes as it is.

Answers: the server is told to keep no table (a table of size 0), so that each block stands for itself and
only what is of interest is read: the status, and of the headers those in `_READ`. Huffman codes of printable characters
are known; a value with others counts as empty.

Next: `http2_connection`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")


class MalformedHeaders(Exception):  # noqa: N818 - it is the headers that are malformed
    """The bytes are no header block, or one that needs a table that we do not keep."""


TABLE_SIZE = 4096
"""What both sides keep unless they say something else."""
_OVERHEAD = 32
_FIRST_OWN = 62
"""The numbers below are those of fields that everybody knows."""
_METHODS = {"GET": b"\x82", "POST": b"\x83"}
_METHOD, _AUTHORITY, _PATH, _SCHEME_HTTPS, _LENGTH = b"\x02", ":authority", b"\x04", b"\x87", b"\x0f\x0d"
_STATUSES = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
_STATUS_NAMES = range(8, 15)
_READ = {26: "content-encoding", 53: "retry-after"}
_LAST_KNOWN = 61


def _number(first: int, bits: int, value: int) -> bytes:
    """With the rest of its first byte as it is."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    parts = bytearray((first | most,))
    value -= most
    while value >= 128:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _text(value: str) -> bytes:
    data = value.encode()
    return _number(0, 7, len(data)) + data


class HeaderWriter:
    """Of one connection. `table_size` is what the server keeps."""

    def __init__(self, table_size: int) -> None:
        self._room = min(table_size, TABLE_SIZE) if table_size >= TABLE_SIZE else 0
        self._begin = b"" if self._room else b"\x20"  # a table of another size is begun by saying so; we do without
        self._numbers: dict[tuple[str, str], int] = {}
        self._known: dict[tuple[str, str, tuple[tuple[str, str], ...]], tuple[bytes, bytes]] = {}

    def request(
        self, method: str, authority: str, path: str, headers: tuple[tuple[str, str], ...], length: int | None
    ) -> bytes:
        known = self._known.get((method, authority, headers))
        if known is None:
            known = self._standing(method, authority, headers)
        before, after = known
        begin, self._begin = self._begin, b""
        block = begin + before + _PATH + _text(path) + after
        return block if length is None else block + _LENGTH + _text(str(length))

    def _standing(self, method: str, authority: str, headers: tuple[tuple[str, str], ...]) -> tuple[bytes, bytes]:
        """What comes before the path, and after it."""
        n_before = len(self._numbers)
        before = (_METHODS.get(method) or _METHOD + _text(method)) + _SCHEME_HTTPS
        before += self._field(_AUTHORITY, authority)
        after = b"".join([self._field(name.lower(), value) for name, value in headers])
        if len(self._numbers) == n_before:
            self._known[method, authority, headers] = before, after
        else:
            self._known.clear()  # what is new moves all numbers
        return before, after

    def _field(self, name: str, value: str) -> bytes:
        number = self._numbers.get((name, value))
        if number is not None:
            return _number(0x80, 7, _FIRST_OWN + len(self._numbers) - 1 - number)
        text = _text(name) + _text(value)
        size = len(name.encode()) + len(value.encode()) + _OVERHEAD
        if size > self._room:
            return b"\x00" + text
        self._room -= size
        self._numbers[name, value] = len(self._numbers)
        return b"\x40" + text


# -- answers -----------------------------------------------------------------------------------------------------------


def read_status(block: bytes) -> int:
    """The first field of an answer."""
    return _checked(_status, block)


def read_headers(block: bytes) -> dict[str, str]:
    """Those that are of interest."""
    return _checked(_headers, block)


def _checked(read: Callable[[bytes], T], block: bytes) -> T:
    try:
        return read(block)
    except IndexError:
        raise MalformedHeaders("a header block ends in the middle of a field") from None


def _status(block: bytes) -> int:
    at = 0
    while block[at] & 0xE0 == 0x20:
        _, at = _read_number(block, at, 5)
    first = block[at]
    if first & 0x80:
        status = _STATUSES.get(first & 0x7F)
    else:
        number, at = _read_number(block, at, 6 if first & 0x40 else 4)
        text = _read_text(block, at)[0] if number in _STATUS_NAMES else ""
        status = int(text) if len(text) == 3 and text.isascii() and text.isdigit() else None
    if status is None:
        raise MalformedHeaders("an answer does not begin with its status")
    return status


def _headers(block: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at, end = 0, len(block)
    while at < end:
        first = block[at]
        if first & 0x80:
            number, at = _read_number(block, at, 7)
            if not 0 < number <= _LAST_KNOWN:
                raise MalformedHeaders("a header refers to a table that we do not keep")
            continue
        if first & 0xE0 == 0x20:
            _, at = _read_number(block, at, 5)
            continue
        number, at = _read_number(block, at, 6 if first & 0x40 else 4)
        if number > _LAST_KNOWN:
            raise MalformedHeaders("a header refers to a table that we do not keep")
        if number:
            name = _READ.get(number, "")
        else:
            name, at = _read_text(block, at)
        value, at = _read_text(block, at)
        if name in _READ.values():
            found[name] = value
    return found


def _read_number(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """The number, and where it ends."""
    most = (1 << bits) - 1
    value = data[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while True:
        byte = data[at]
        at += 1
        value += (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 28:
            raise MalformedHeaders("a number in a header block is too large")


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    is_coded = data[at] & 0x80
    length, at = _read_number(data, at, 7)
    end = at + length
    if end > len(data):
        raise IndexError
    text = data[at:end]
    return (_decoded(text) if is_coded else text.decode("latin-1")), end


# Characters by the length of their Huffman code, from 5 bits on: within a length, and from one to the next, codes count
# up (RFC 7541, appendix B). Codes of 16 bits and more are those of what is not printable, and of the backslash.
_BY_LENGTH = {
    5: "012aceiost",
    6: " %-./3456789=A_bdfghlmnpru",
    7: ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: "&*,;XZ",
    10: '!"()?',
    11: "'+|",
    12: "#>",
    13: "\0$@[]~",
    14: "^}",
    15: "<`{",
}
_LONGEST = max(_BY_LENGTH)


def _codes() -> dict[tuple[int, int], str]:
    codes: dict[tuple[int, int], str] = {}
    code = 0
    for length in range(5, _LONGEST + 1):
        for character in _BY_LENGTH.get(length, ""):
            codes[length, code] = character
            code += 1
        code <<= 1
    return codes


_CODES = _codes()


@lru_cache(maxsize=256)
def _decoded(data: bytes) -> str:
    characters: list[str] = []
    length = code = 0
    for byte in data:
        for bit in range(7, -1, -1):
            code = code << 1 | byte >> bit & 1
            length += 1
            character = _CODES.get((length, code))
            if character is not None:
                characters.append(character)
                length = code = 0
            elif length > _LONGEST:
                return ""
    return "".join(characters)
