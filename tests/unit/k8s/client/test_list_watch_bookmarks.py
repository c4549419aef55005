"""Bookmarks are read whatever their object looks like: it has no content, which for some kinds is not valid."""

from __future__ import annotations

import pytest

from kubesched.k8s.client.list_watch.exchange import KindDecoder, Unread
from kubesched.k8s.model.core import Pod

_POD = b'{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"},"spec":{"containers":null},"status":{}}'


@pytest.mark.parametrize("change", ["BOOKMARK", "ADDED"])
def test_a_pod_whose_containers_are_null_is_read_as_one_without(change: str) -> None:
    event = KindDecoder(Pod).event(b'{"type":"%b","object":%b}' % (change.encode(), _POD))
    assert isinstance(event, Unread)
    assert (event.change, event.metadata.resource_version) == (change, "7")
    reading = event.read()
    assert reading.item is not None
    assert (reading.item.name, reading.item.spec.containers, reading.problems) == ("a", (), [])
