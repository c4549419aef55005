"""Pods with volumes and devices are decided alike with and without the class cache, whatever their claims become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from claim_histories import (
    DEVICE_API,
    DRIVER,
    GPUS,
    LATE,
    Step,
    device_class,
    device_requests,
    histories,
    named,
    outcome,
)
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.framework import PodInfo
from kubesched.framework.caching import ClaimQuestion
from kubesched.scheduler.engine.class_cache.claims import QuestionBook
from kubesched.scheduler.plugins import dynamic_resources
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.dynamic_resources.allocator import SharedDevices
from kubesched.scheduler.plugins.dynamic_resources.state import claims_of
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.scheduler.plugins.node_volume_limits.ledger import VolumeLedger
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions
from kubesched.testing import make
from kubesched.testing.make import Manifest


@pytest.mark.parametrize("focus", ["any", "limits", "devices"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_with_the_cache_off_every_decision_on_pods_with_claims_is_the_same(focus: str, data: st.DataObject) -> None:
    history: list[Step] = data.draw(histories(focus))
    kept, without = outcome(history, keeps_classes=True), outcome(history, keeps_classes=False)
    event(f"bound: {min(len(kept['bound']), 5)}, by class: {min(_by_class(kept), 5)}")
    assert _by_class(without) == 0
    assert kept == without


def _by_class(found: dict[str, Any]) -> int:
    n_decided: int = found.pop("by class")
    return n_decided


# -- planted bugs ------------------------------------------------------------------------------------------------------


def _node(name: str, *, limit: int = 5) -> list[Step]:
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": limit}}
    csi_node = named("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [driver]})
    return [("put", make.node(name, cpu=20, labels={make.HOSTNAME: name})), ("put", csi_node)]


def _claim(name: str, mode: str = "ReadWriteOnce") -> Step:
    """Whose volume is made where its pod goes."""
    wanted = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": LATE}
    return "put", named("v1", "PersistentVolumeClaim", name, "default", spec=wanted)


def _pod_with_volume(number: int, claim_name: str = "") -> list[Step]:
    """With a claim of its own, or one that there is."""
    name = claim_name or f"c{number}"
    volume = {"name": "w", "persistentVolumeClaim": {"claimName": name}}
    pod: Step = "put", make.pod(f"p{number}", cpu=1, spec={"volumes": [volume]})
    return [*([] if claim_name else [_claim(name)]), pod, ("run", {}), ("bind volumes", {}), ("run", {})]


def _pod_with_device(number: int, claim_name: str, verb: str = "run") -> list[Step]:
    claim = named(DEVICE_API, "ResourceClaim", claim_name, "default", spec=device_requests("one"))
    pod = make.pod(f"p{number}", cpu=1, spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}]})
    return [("put", claim), ("put", pod), (verb, {})]


def _slice(name: str) -> Manifest:
    devices = [{"name": f"d{number}"} for number in range(4)]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return named(
        DEVICE_API, "ResourceSlice", name, spec={"driver": GPUS, "nodeName": name, "pool": pool, "devices": devices}
    )


_LATE_CLASS = named(
    "storage.k8s.io/v1", "StorageClass", LATE, provisioner=DRIVER, volumeBindingMode="WaitForFirstConsumer"
)
_WITH_VOLUMES: list[Step] = [
    *_node("a"),
    *_node("b"),
    ("put", _LATE_CLASS),
    *(step for number in range(3) for step in _pod_with_volume(number)),
]
_WITH_DEVICES: list[Step] = [
    *_node("a"),
    *_node("b"),
    ("put", device_class("true")),
    ("put", _slice("a")),
    ("put", _slice("b")),
    *(step for number in range(3) for step in _pod_with_device(number, f"d{number}")),
]
_NOWHERE: Manifest = {"key": make.HOSTNAME, "values": ["nowhere"]}
_FOREIGN: Manifest = {"name": "w", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def _limits_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeVolumeLimits, "nodes_to_ask_again", lambda *_: ())


def _offers_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DynamicResources, "nodes_to_ask_again", lambda *_: ())


def _volumes_that_cannot_be_told_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VolumeLedger, "broken", property(lambda _: {}, lambda *_: None), raising=False)


def _pending_claims_can_be_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_question(
        pod: PodInfo, shared: SharedDevices, _: object, allocator: Any, **_more: object
    ) -> dynamic_resources.AskingPod:
        claims = tuple(claims_of(pod.pod, shared.book.get))
        return dynamic_resources.AskingPod(pod, claims, allocator.order(claims))

    monkeypatch.setattr(dynamic_resources, "find_question", find_question)


def _claims_for_one_pod_are_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VolumeRestrictions, "question_of", lambda *_: ClaimQuestion(()))


def _questions_are_no_part_of_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuestionBook, "_number", lambda *_: 1)


@pytest.mark.parametrize(
    ("plant", "history"),
    [
        pytest.param(
            _limits_are_not_followed,
            [*_WITH_VOLUMES, *_node("a", limit=0), *_node("b", limit=0), *_pod_with_volume(4)],
            id="limits that change",
        ),
        pytest.param(
            _offers_are_not_followed,
            [*_WITH_DEVICES, ("delete", _slice("a")), ("delete", _slice("b")), *_pod_with_device(4, "d4")],
            id="devices that go",
        ),
        pytest.param(
            _volumes_that_cannot_be_told_are_left_out,
            [
                *_WITH_VOLUMES,
                ("put", named("v1", "PersistentVolumeClaim", "p4-w", "default", spec={})),
                ("put", make.pod("p4", spec={"volumes": [_FOREIGN], "nodeName": "a"})),
                *_pod_with_volume(5),
            ],
            id="a pod whose volumes cannot be told",
        ),
        pytest.param(
            _pending_claims_can_be_allocated,
            [*_WITH_DEVICES, *_pod_with_device(4, "both", "decide"), *_pod_with_device(5, "both", "decide")],
            id="a claim that is about to be allocated",
        ),
        pytest.param(
            _claims_for_one_pod_are_for_all,
            [
                *_WITH_VOLUMES,
                _claim("one", "ReadWriteOncePod"),
                _claim("many"),
                *(step for number in (4, 5, 6, 7) for step in _pod_with_volume(number, "many")),
                *_pod_with_volume(8, "one"),
                *_pod_with_volume(9, "one"),
            ],
            id="a claim for one pod alone",
        ),
        pytest.param(
            _questions_are_no_part_of_the_class,
            [
                *_WITH_VOLUMES,
                ("put", {**_LATE_CLASS, "allowedTopologies": [{"matchLabelExpressions": [_NOWHERE]}]}),
                *_pod_with_volume(4),
            ],
            id="a class of storage that allows other nodes",
        ),
    ],
)
def test_the_comparison_sees_planted_bugs(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], history: list[Step]
) -> None:
    right = outcome(history, keeps_classes=True)
    assert _by_class(right) > 0
    without = outcome(history, keeps_classes=False)
    assert right == {name: found for name, found in without.items() if name != "by class"}
    plant(monkeypatch)
    wrong = outcome(history, keeps_classes=True)
    assert right != {name: found for name, found in wrong.items() if name != "by class"}
