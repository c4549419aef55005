"""A manifest that no API server has seen is explained as one would store it; a pod of a dump is taken as it is."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.testing import make
from kubesched.testing.make import Manifest

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}


def _pod(name: str = "p", *, uid: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    containers = [{"name": "c", **spec.pop("container", {})}]
    metadata = {"name": name, "namespace": "default", "labels": labels or {}, **({"uid": uid} if uid else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def _anti_affinity(**more: Any) -> Manifest:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**TERM, **more}]}}


NOT_READY = make.taint("node.kubernetes.io/not-ready", effect="NoExecute")
CASES = [
    pytest.param(
        [make.node("n", cpu=4)],
        {"container": {"resources": {"limits": {"cpu": "8"}}}},
        (False, True),
        id="requests from limits",
    ),
    pytest.param(
        [make.node("n", cpu=4)],
        {"container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}},
        (False, True),
        id="devices, which people write as limits",
    ),
    pytest.param(
        [make.node("n", cpu=4), _pod("q", nodeName="n", container={"resources": {"limits": {"cpu": "3"}}})],
        {"container": {"resources": {"requests": {"cpu": "2"}}}},
        (False, False),
        id="those of pods on nodes",
    ),
    pytest.param(
        [
            make.node("n", cpu=4),
            _pod("q", nodeName="n", hostNetwork=True, container={"ports": [{"containerPort": 80}]}),
        ],
        {"container": {"ports": [{"containerPort": 80}]}, "hostNetwork": True},
        (False, True),
        id="ports of the host's network",
    ),
    pytest.param(
        [make.node("n", cpu=4, labels={"zone": "z"}), _pod("q", nodeName="n", labels={"app": "web", "tenant": "a"})],
        {"labels": {"app": "web", "tenant": "a"}, "affinity": _anti_affinity(mismatchLabelKeys=["tenant"])},
        (True, False),
        id="label keys of pod affinity",
    ),
    pytest.param([make.node("n", cpu=4, taints=[NOT_READY])], {}, (True, False), id="tolerations of failed nodes"),
]


@pytest.mark.parametrize(("others", "written", "fits"), CASES)
def test_what_an_api_server_fills_in(others: list[Manifest], written: dict[str, Any], fits: tuple[bool, bool]) -> None:
    as_manifest, as_stored = _pod(**written), _pod(**written, uid="1")
    found = tuple(kubesched.explain([*others, pod], "default/p").fits for pod in (as_manifest, as_stored))
    assert found == fits


def test_a_class_that_is_missing_changes_no_other_default() -> None:
    pod = _pod(priorityClassName="nowhere", container={"resources": {"limits": {"cpu": "8"}}})
    assert not kubesched.explain([make.node("n", cpu=4), pod], "default/p").fits
