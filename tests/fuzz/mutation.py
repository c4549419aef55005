"""New inputs out of old ones: bytes changed, left out, doubled, swapped; pieces of other inputs; numbers and signs that
parsers trip over.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

_MOST_BYTES = 4096
_TRAPS = (
    b"\x00",
    b"\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\r\n",
    b"\r\n\r\n",
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"-",
    b"~",
    b"&a ",
    b"*a ",
    b"<<: ",
    b"!!int ",
    b"1e999",
    b"-1",
    b"0x7fffffff",
    b"9223372036854775808",
    b"9" * 400,
    b"9" * 4500,
    b"1e-400",
    b".inf",
    b"NaN",
    b'"\\ud800"',
    b"(" * 60,
    b"[" * 60,
    b"{1,1000}",
    b"\\",
    b"%ff",
    b"\xe2\x80\xa8",
)


def mutated(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    """A few changes of `data`; `others` lend pieces."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3, 5))):
        at = chance.randrange(len(made) + 1)
        match chance.randrange(8):
            case 0 if made:
                made[at - 1] = chance.randrange(256)
            case 1:
                del made[at : at + chance.randrange(1, 12)]
            case 2:
                made[at:at] = made[at : at + chance.randrange(1, 40)]
            case 3:
                made[at:at] = chance.choice(_TRAPS)
            case 4:
                made[at : at + chance.randrange(1, 8)] = chance.choice(_TRAPS)
            case 5:
                other = chance.choice(others)
                start = chance.randrange(len(other) + 1)
                made[at:at] = other[start : start + chance.randrange(1, 60)]
            case 6 if made:
                made[at - 1] ^= 1 << chance.randrange(8)
            case _:
                end = chance.randrange(at, len(made) + 1)
                made[at:end] = made[at:end][::-1]
    return bytes(made[:_MOST_BYTES])
