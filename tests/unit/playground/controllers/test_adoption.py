"""Who belongs to whom: adopted by selector, let go when labels change."""

from __future__ import annotations

import pytest

from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference
from kubesched.playground.controllers.workload import claims_of

OWNER = Pod(metadata=ObjectMeta(name="o", uid="mine"))


def _pod(labels: dict[str, str], owner: str = "", *, going: bool = False) -> Pod:
    owners = (OwnerReference(uid=owner, controller=True),) if owner else None
    gone = "2026-01-01T00:00:00Z" if going else None
    return Pod(metadata=ObjectMeta(name="p", labels=labels, owner_references=owners, deletion_timestamp=gone))


@pytest.mark.parametrize(
    ("pod", "adopted", "released"),
    [
        pytest.param(_pod({"a": "b"}), 1, 0, id="matches and belongs to nobody"),
        pytest.param(_pod({"a": "c"}), 0, 0, id="belongs to nobody and does not match"),
        pytest.param(_pod({"a": "b"}, "mine"), 0, 0, id="ours, and matches"),
        pytest.param(_pod({"a": "c"}, "mine"), 0, 1, id="ours, and matches no more"),
        pytest.param(_pod({"a": "b"}, "other"), 0, 0, id="of another owner"),
        pytest.param(_pod({"a": "b"}, going=True), 0, 0, id="on its way out"),
    ],
)
def test_a_selector_decides_who_belongs_to_an_owner(pod: Pod, adopted: int, released: int) -> None:
    claims = claims_of(OWNER, selectors.from_labels({"a": "b"}), [pod])
    assert (len(claims.adopted), len(claims.released)) == (adopted, released)
