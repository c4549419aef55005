"""Cuts a stream of byte chunks into lines, however long a line is and wherever the chunks were cut.

A watch sends one JSON object per line; a line may be larger than any buffer, which is why this is not left to the
HTTP library.

Next: `rest`, which feeds it.
"""

from __future__ import annotations


class LineSplitter:
    """Feed chunks, get whole lines without their newline. What follows the last newline waits for the next chunk."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        return [line for line in lines if line]

    @property
    def has_rest(self) -> bool:
        """A line has begun and has not ended."""
        return bool(self._parts)
