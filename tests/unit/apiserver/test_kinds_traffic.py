"""Objects about traffic and scale: the real server's words for what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import mistakes, resource_of

from kubesched.apiserver.kinds.kind import DecodeError

_NETWORKING = "networking.k8s.io/v1"
_REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def _ingress(**path: Any) -> dict[str, Any]:
    return {"spec": {"rules": [{"http": {"paths": [path]}}]}}


@pytest.mark.parametrize(
    ("group_version", "plural", "body", "expected"),
    [
        pytest.param(
            _NETWORKING,
            "ingressclasses",
            {"spec": {"controller": "x", "parameters": {"name": "n"}}},
            [
                'spec.controller: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")',
                "spec.parameters.kind: Required value",
            ],
            id="a class without a domain",
        ),
        pytest.param(
            _NETWORKING,
            "ingresses",
            _ingress(path="/", backend={"service": {"name": "s"}}),
            ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
            id="a path without a type",
        ),
        pytest.param(
            _NETWORKING,
            "ingresses",
            _ingress(path="/", pathType="Prefix"),
            ['spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required'],
            id="a path that leads nowhere",
        ),
        pytest.param(
            _NETWORKING,
            "networkpolicies",
            {"spec": {"podSelector": {}, "ingress": [{"from": [{}]}]}},
            ["spec.ingress[0].from[0]: Required value: must specify a peer"],
            id="a peer that is nobody",
        ),
        pytest.param(
            "discovery.k8s.io/v1",
            "endpointslices",
            {"addressType": "IPv4", "endpoints": [{}]},
            ["endpoints[0].addresses: Required value: must contain at least 1 address"],
            id="an endpoint without an address",
        ),
        pytest.param(
            "autoscaling/v2",
            "horizontalpodautoscalers",
            {"spec": {"scaleTargetRef": {**_REFERENCE, "name": ""}, "maxReplicas": 0}},
            [
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                "spec.scaleTargetRef.name: Required value",
            ],
            id="an autoscaler without a goal",
        ),
        pytest.param(
            "v1",
            "podtemplates",
            {"template": {"spec": {}}},
            ["template.spec.containers: Required value"],
            id="a template without containers",
        ),
    ],
)
def test_what_is_wrong_is_told(group_version: str, plural: str, body: dict[str, Any], expected: list[str]) -> None:
    assert mistakes(resource_of(group_version, plural), {"metadata": {"name": "x"}, **body}) == expected


@pytest.mark.parametrize(
    ("group_version", "plural", "body", "go_type"),
    [
        pytest.param(
            "autoscaling/v2",
            "horizontalpodautoscalers",
            {"spec": {"behavior": "x"}},
            "v2.HorizontalPodAutoscalerBehavior",
            id="of its own version",
        ),
        pytest.param(
            "scheduling.k8s.io/v1",
            "priorityclasses",
            {"preemptionPolicy": 1},
            "v1.PreemptionPolicy",
            id="of another package",
        ),
    ],
)
def test_types_are_called_by_their_package(group_version: str, plural: str, body: dict[str, Any], go_type: str) -> None:
    with pytest.raises(DecodeError, match=f"of type {go_type}$"):
        resource_of(group_version, plural).decode({"metadata": {"name": "x"}, **body})
