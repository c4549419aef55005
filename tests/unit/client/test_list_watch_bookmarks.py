"""Bookmarks are read whatever their object looks like: it has no content, which for some kinds is not valid."""

from __future__ import annotations

import pytest

from kubesched.client.list_watch.decoding import UNREADABLE, KindDecoder
from kubesched.model.core import Pod

_POD = b'{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"},"spec":{"containers":null},"status":{}}'


@pytest.mark.parametrize(
    ("change", "read_as"),
    [
        pytest.param(b"BOOKMARK", "BOOKMARK", id="a bookmark, as a real server sends it"),
        pytest.param(b"ADDED", UNREADABLE, id="the same of a pod that is said to be there"),
    ],
)
def test_a_pod_without_containers_can_be_a_bookmark_only(change: bytes, read_as: str) -> None:
    event = KindDecoder(Pod).event(b'{"type":"%b","object":%b}' % (change, _POD))
    assert (event.type, event.object.metadata.resource_version) == (read_as, "7")
