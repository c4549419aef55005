"""Lines out of chunks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kubesched.k8s.client.rest import LineSplitter


@given(st.binary(max_size=200).map(lambda data: data.replace(b"\x00", b"\n")), st.lists(st.integers(0, 200)))
def test_lines_are_the_same_wherever_the_chunks_are_cut(data: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    lines = [line for start, end in pairwise(edges) for line in splitter.feed(data[start:end])]
    *whole, rest = data.split(b"\n")
    assert lines == [line for line in whole if line]
    assert splitter.has_rest == bool(rest)


def test_a_line_of_many_chunks_is_one_line() -> None:
    splitter = LineSplitter()
    assert [splitter.feed(b"x" * 1000) for _ in range(100)] == [[]] * 100
    assert splitter.feed(b"\ny\n") == [b"x" * 100_000, b"y"]
