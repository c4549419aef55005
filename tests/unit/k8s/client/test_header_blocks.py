"""Header blocks of answers, with the examples of RFC 7541; anything else is malformed, and nothing worse."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.k8s.client.header_blocks import HeaderWriter, MalformedHeaders, read_headers, read_status


@pytest.mark.parametrize(
    ("block", "status"),
    [
        pytest.param("88", 200, id="200 by its number"),
        pytest.param("8d", 404, id="404 by its number"),
        pytest.param("4803333032", 302, id="as text, to be kept (C.5.1)"),
        pytest.param("48826402", 302, id="Huffman codes (C.6.1)"),
        pytest.param("4883640eff", 307, id="more of them (C.6.2)"),
        pytest.param("2008821003", 201, id="after a table's new size"),
    ],
)
def test_the_status_comes_first(block: str, status: int) -> None:
    assert read_status(bytes.fromhex(block)) == status


def test_headers_of_interest_are_read() -> None:
    date = "d07abe941054d444a8200595040b8166e082a62d1bff"  # C.6.1: Mon, 21 Oct 2013 20:13:21 GMT
    block = f"88 61 96{date} 5a839bd9ab 0f26 96{date} 0f1e 9c {'00' * 28}"
    expected = {"content-encoding": "gzip", "retry-after": "Mon, 21 Oct 2013 20:13:21 GMT"}
    assert read_headers(bytes.fromhex(block.replace(" ", ""))) == expected


def test_headers_may_be_named_in_full() -> None:
    assert read_headers(b"\x88\x00\x0bretry-after\x0230\x10\x01x\x01y") == {"retry-after": "30"}


def test_what_has_unknown_codes_is_empty() -> None:
    assert read_headers(b"\x88\x0f\x26\x84\xff\xff\xff\xff") == {"retry-after": ""}


@given(st.binary(max_size=60))
def test_no_bytes_do_harm(block: bytes) -> None:
    for read in (read_status, read_headers):
        with contextlib.suppress(MalformedHeaders):
            read(block)


def test_a_full_table_takes_no_more() -> None:
    writer = HeaderWriter(4096)
    blocks = [writer.request("PATCH", "h", "/", (("A", f"{number:0100}"),), None) for number in range(60)]
    again = writer.request("PATCH", "h", "/", (("A", f"{0:0100}"),), None)
    assert len(blocks[1]) > 100 < len(blocks[-1])
    assert len(again) < 20
    assert blocks[-1] == writer.request("PATCH", "h", "/", (("A", f"{59:0100}"),), None)


def test_long_numbers_are_written_in_parts() -> None:
    block = HeaderWriter(0).request("GET", "h", "/" * 1337, (), None)
    assert b"\x04\x7f\xba\x09" + b"/" * 1337 in block  # as 1337 in C.1.2, with seven bits
