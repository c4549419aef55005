"""Objects about traffic and scale: the real server's words for what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import errors, resource_of

from kubesched.playground.apiserver.served_resource import DecodeError

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
            {"spec": {"podSelector": {}, "policyTypes": ["Sideways"]}},
            ['spec.policyTypes[0]: Unsupported value: "Sideways": supported values: "Ingress", "Egress"'],
            id="a policy about neither direction",
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
            {"addressType": "IPv6", "endpoints": [{"addresses": ["10.0.0.1", "127.0.0.1"]}], "ports": [{}, {}]},
            [
                'ports[1].name: Duplicate value: ""',
                'endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address',
                'endpoints[0].addresses: Invalid value: "127.0.0.1": must be an IPv6 address',
                'endpoints[0].addresses[1]: Invalid value: "127.0.0.1": '
                "may not be in the loopback range (127.0.0.0/8, ::1/128)",
            ],
            id="addresses of another sort",
        ),
        pytest.param(
            "v1",
            "services",
            {"spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}], "trafficDistribution": "x"}},
            [
                'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,'
                '"TargetPort":0,"NodePort":0}',
                'spec.trafficDistribution: Unsupported value: "x": supported values: "PreferClose", "PreferSameZone", '
                '"PreferSameNode"',
            ],
            id="a port twice",
        ),
        pytest.param(
            "v1",
            "services",
            {"spec": {"ports": [{"port": 80, "nodePort": 30100}], "loadBalancerSourceRanges": ["10.0.0.0"]}},
            [
                "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
                "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
                'spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.0": '
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            ],
            id="what only load balancers have",
        ),
        pytest.param(
            "autoscaling/v2",
            "horizontalpodautoscalers",
            {
                "spec": {
                    "scaleTargetRef": _REFERENCE,
                    "maxReplicas": 3,
                    "metrics": [{"type": "Pods", "resource": {"name": "cpu", "target": {"type": "Value"}}}],
                    "behavior": {"scaleUp": {"policies": [{"type": "x", "value": 1, "periodSeconds": 1801}]}},
                }
            },
            [
                "spec.metrics[0].resource.target.averageUtilization: Required value: "
                "must set either a target raw value or a target utilization",
                "spec.metrics[0].pods: Required value: must populate information for the given metric source",
                'spec.behavior.scaleUp.policies[0].type: Unsupported value: "x": supported values: "Percent", "Pods"',
                "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: "
                "must be less than or equal to 1800",
            ],
            id="metrics and pace of an autoscaler",
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
    assert errors(resource_of(group_version, plural), {"metadata": {"name": "x"}, **body}) == expected


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
