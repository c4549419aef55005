"""What may change in a pod that exists."""

from __future__ import annotations

import pytest
from written_objects import PODS, change_mistakes, container, pod

from kubesched.playground.apiserver.served_resource import Object

_GATED = {"schedulingGates": [{"name": "a"}, {"name": "b"}]}
_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
_TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
_NARROWER = {"matchExpressions": [*_TERM["matchExpressions"], {"key": "c", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        pytest.param({}, {"spec.containers": [container(image="other")]}, id="nothing but the image"),
        pytest.param({}, {"spec.activeDeadlineSeconds": 5}, id="a first deadline"),
        pytest.param({"activeDeadlineSeconds": 9}, {"spec.activeDeadlineSeconds": 5}, id="a shorter deadline"),
        pytest.param(_GATED, {"spec.schedulingGates": [{"name": "b"}]}, id="a gate less"),
        pytest.param(_GATED, {"spec.nodeSelector": {"a": "b"}}, id="a node selector while gated"),
        pytest.param({}, {"metadata.labels": {"a": "b"}}, id="labels"),
    ],
)
def test_allowed_changes(spec: Object, changes: Object) -> None:
    assert change_mistakes(PODS, pod(containers=[container()], **spec), changes) == []


@pytest.mark.parametrize(
    ("spec", "changes", "expected"),
    [
        pytest.param(
            {},
            {"spec.containers": [container(), container(name="d")]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
            id="another container",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            {"spec.activeDeadlineSeconds": 9},
            ["spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to previous value"],
            id="a later deadline",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Exists"}]},
            {"spec.tolerations": [{"key": "other", "operator": "Exists"}]},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
            id="a toleration replaced",
        ),
        pytest.param(
            _GATED,
            {"spec.schedulingGates": [{"name": "c"}]},
            ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'c'"],
            id="a new gate",
        ),
        pytest.param(
            {**_GATED, "nodeSelector": {"a": "b"}},
            {"spec.nodeSelector": {"a": "c"}},
            [
                'spec.nodeSelector: Invalid value: {"a":"c"}: '
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            ],
            id="another node selector while gated",
        ),
        pytest.param(
            {**_GATED, "affinity": {"nodeAffinity": {_AFFINITY: {"nodeSelectorTerms": [_TERM]}}}},
            {"spec.affinity": None},
            [
                f"spec.affinity.nodeAffinity.{_AFFINITY}.nodeSelectorTerms: Invalid value: null: "
                "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
            ],
            id="a wider affinity while gated",
        ),
    ],
)
def test_refused_changes(spec: Object, changes: Object, expected: list[str]) -> None:
    assert change_mistakes(PODS, pod(containers=[container()], **spec), changes) == expected


def test_a_narrower_affinity_is_allowed_while_gated() -> None:
    before = {"nodeAffinity": {_AFFINITY: {"nodeSelectorTerms": [_TERM]}}}
    after = {"nodeAffinity": {_AFFINITY: {"nodeSelectorTerms": [_NARROWER]}}}
    assert change_mistakes(PODS, pod(affinity=before, **_GATED), {"spec.affinity": after}) == []


def test_everything_else_is_refused_with_the_difference() -> None:
    (error,) = change_mistakes(PODS, pod(), {"spec.nodeName": "n9"})
    assert error == (
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
        "`spec.tolerations` (only additions to existing tolerations),"
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
        "@@ -42,7 +42,7 @@\n"
        '  "NodeSelector": null,\n'
        '  "ServiceAccountName": "",\n'
        '  "AutomountServiceAccountToken": null,\n'
        '- "NodeName": "",\n'
        '+ "NodeName": "n9",\n'
        '  "SecurityContext": {\n'
        '   "HostNetwork": false,\n'
        '   "HostPID": false,\n'
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"status.phase": "Running"}, [], id="the phase"),
        pytest.param(
            {"status.qosClass": "Guaranteed"},
            ['status.qosClass: Invalid value: "Guaranteed": field is immutable'],
            id="not the quality of service",
        ),
    ],
)
def test_status_changes(changes: Object, expected: list[str]) -> None:
    assert change_mistakes(PODS, pod(), changes, subresource="status") == expected
