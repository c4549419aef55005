"""HTTP/1.1 answers out of bytes, however they were cut."""

from __future__ import annotations

import gzip
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.k8s.client.http1_connection import AnswerReader, MalformedAnswer, read_at_once
from kubesched.k8s.client.transport import Answer


class Case(NamedTuple):
    data: bytes
    status: int
    body: bytes
    keeps: bool = True


CASES = {
    "counted": Case(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
    "counted and empty": Case(b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH:0\r\n\r\n", 200, b""),
    "chunked": Case(
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        201,
        b"hello0123456789",
    ),
    "chunked with trailer": Case(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\n\n\r\n0\r\nDigest: x\r\nA: b\r\n\r\n", 200, b"\n"
    ),
    "no body by status": Case(b"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", 204, b""),
    "interim answers first": Case(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        200,
        b"ok",
    ),
    "without a phrase": Case(b"HTTP/1.1 409\r\nContent-Length: 1\r\n\r\nx", 409, b"x"),
    "closing": Case(b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx", 200, b"x", keeps=False),
    "old version": Case(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", keeps=False),
    "gzip": Case(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
        % (len(gzip.compress(b"a" * 99, mtime=0)), gzip.compress(b"a" * 99, mtime=0)),
        200,
        b"a" * 99,
    ),
}


@given(st.sampled_from(sorted(CASES)), st.lists(st.integers(0, 150), max_size=8))
def test_an_answer_is_the_same_wherever_it_is_cut(name: str, cuts: list[int]) -> None:
    case = CASES[name]
    reader, answers = AnswerReader(), []
    edges = [0, *sorted(min(cut, len(case.data)) for cut in cuts), len(case.data)]
    for start, end in pairwise(edges):
        if start < end:
            answers.append(reader.feed(case.data[start:end]))
    *before, last = answers
    assert before == [None] * len(before)
    assert isinstance(last, Answer)
    assert (last.status, last.body, reader.keeps_connection) == (case.status, case.body, case.keeps)


@pytest.mark.parametrize("name", CASES)
def test_an_answer_read_at_once_is_the_same(name: str) -> None:
    """The short cut gives what the reader gives, or nothing; and it is taken for the plain case."""
    case = CASES[name]
    answer = read_at_once(case.data)
    assert answer is None or (answer.status, answer.body, True) == (case.status, case.body, case.keeps)
    assert (answer is not None) == (name == "counted")


@given(st.sampled_from(sorted(CASES)), st.integers(0, 200), st.binary(max_size=20))
def test_the_short_cut_agrees_with_the_reader_on_damaged_answers(name: str, at: int, damage: bytes) -> None:
    data = CASES[name].data
    data = data[:at] + damage + data[at + len(damage) :]
    answer = read_at_once(data)
    if answer is not None:
        read = AnswerReader().feed(data)
        assert read is not None and (read.status, read.body) == (answer.status, answer.body)


def test_a_body_without_a_length_lasts_until_the_end() -> None:
    reader = AnswerReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nab") is None
    assert reader.feed(b"cd") is None
    answer = reader.end()
    assert answer is not None and answer.body == b"abcd"
    assert not reader.keeps_connection


def test_header_names_are_in_lower_case() -> None:
    answer = AnswerReader().feed(b"HTTP/1.1 429 X\r\nRetry-After:  7 \r\nContent-Length: 0\r\n\r\n")
    assert answer is not None and answer.headers == {"retry-after": "7", "content-length": "0"}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", id="too short"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", id="within a chunk"),
        pytest.param(b"HTTP/1.1 200", id="within the head"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_an_answer_cut_off_is_no_answer(data: bytes) -> None:
    reader = AnswerReader()
    assert reader.feed(data) is None
    assert reader.end() is None
    assert reader.has_begun == bool(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP/1.1", id="another protocol"),
        pytest.param(b"HTTP/2 200\r\n\r\n", "not HTTP/1.1", id="another version"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", "not HTTP/1.1", id="a status that is none"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not a number", id="a negative length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy", "more bytes", id="more than announced"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\n\r\n", "unknown", id="an unknown encoding"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", "size", id="a negative chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "size", id="a chunk of zz"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n", "does not end", id="a long chunk"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X" * 70_000, "too long", id="a head without end"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx", "gzip", id="broken gzip"
        ),
    ],
)
def test_what_is_not_an_answer_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(MalformedAnswer, match=why):
        AnswerReader().feed(data)
