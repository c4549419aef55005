"""Limit ranges at work, and what is wrong with limit ranges and quotas themselves, in the real server's words."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver_serving import PODS, TestClient, pod, serve

_RANGES = "/api/v1/namespaces/default/limitranges"
_QUOTAS = "/api/v1/namespaces/default/resourcequotas"
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def _range(**item: Any) -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", **item}]}}


def _asking(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    made = pod("p")
    made["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}
    return made


@pytest.mark.parametrize(
    ("item", "requests", "limits", "why"),
    [
        ({"min": {"cpu": "100m"}}, {"cpu": "50m"}, {}, "minimum cpu usage per Container is 100m, but request is 50m"),
        (
            {"max": {"cpu": "1"}},
            {"cpu": "1"},
            {"cpu": "2"},
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            {"type": "Pod", "max": {"memory": "1Gi"}},
            {},
            {},
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "100m"},
            {"cpu": "300m"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"maxLimitRequestRatio": {"memory": "2"}},
            {"memory": "0"},
            {"memory": "1Gi"},
            "memory max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            {"min": {"cpu": "1", "memory": "1Gi"}},
            {"cpu": "500m", "memory": "1Mi"},
            {},
            "[minimum cpu usage per Container is 1, but request is 500m, "
            "minimum memory usage per Container is 1Gi, but request is 1Mi]",
        ),
    ],
)
def test_a_pod_out_of_range_is_refused(
    item: dict[str, Any], requests: dict[str, str], limits: dict[str, str], why: str
) -> None:
    async def body(client: TestClient) -> None:
        assert (await client.ask("POST", _RANGES, _range(**item))).status == 201
        refused = await client.ask("POST", PODS, _asking(requests, limits))
        assert (refused.status, refused.message) == (403, f'pods "p" is forbidden: {why}')

    serve(body)


def test_the_first_range_with_a_default_sets_it() -> None:
    async def body(client: TestClient) -> None:
        for name, amount in (("a", "100m"), ("b", "200m")):
            one = {**_range(default={"cpu": amount}, defaultRequest={"cpu": amount}), "metadata": {"name": name}}
            await client.ask("POST", _RANGES, one)
        made = await client.ask("POST", PODS, pod("p"))
        assert made.body["spec"]["containers"][0]["resources"] == {
            "requests": {"cpu": "100m"},
            "limits": {"cpu": "100m"},
        }

    serve(body)


def test_a_claim_out_of_range_is_refused() -> None:
    async def body(client: TestClient) -> None:
        item = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
        await client.ask("POST", _RANGES, _range(**item))
        for amount, word, bound in (("500Mi", "minimum", "1Gi"), ("3Gi", "maximum", "2Gi")):
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": amount}}}
            refused = await client.ask("POST", _CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
            rule = f"{word} storage usage per PersistentVolumeClaim is {bound}, but request is {amount}"
            assert refused.message == f'persistentvolumeclaims "c" is forbidden: {rule}'

    serve(body)


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"min": {"cpu": "2"}, "max": {"cpu": "1"}}, "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is "
         "greater than max value 1"),
        ({"type": "Pod", "default": {"cpu": "1"}}, "spec.limits[0].default: Forbidden: may not be specified when "
         "`type` is 'Pod'"),
        ({"type": "PersistentVolumeClaim"}, "spec.limits[0].limits: Required value: either minimum or maximum storage "
         "value is required, but neither was provided"),
        ({"type": "Room"}, 'spec.limits[0].type: Invalid value: "Room": must be a standard limit type or fully '
         "qualified"),
        ({"maxLimitRequestRatio": {"cpu": "500m"}}, "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "
         '"500m": ratio 500m is less than 1'),
    ],
)  # fmt: skip
def test_a_limit_range_that_makes_no_sense(item: dict[str, Any], why: str) -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", _RANGES, _range(**item))
        assert refused.status == 422
        assert why in refused.message

    serve(body)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"hard": {"rooms": "1"}}, "spec.hard[rooms]: Invalid value: \"rooms\": must be a standard resource"),
        ({"hard": {"pods": "1500m"}}, 'spec.hard[pods]: Invalid value: "1500m": must be an integer'),
        ({"hard": {"secrets": "1"}, "scopes": ["BestEffort"]}, "unsupported scope applied to resource"),
        ({"scopes": ["BestEffort", "NotBestEffort"]}, "conflicting scopes"),
        ({"scopes": ["Sometimes"]}, "unsupported scope"),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}},
            "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is",
        ),
    ],
)  # fmt: skip
def test_a_quota_that_makes_no_sense(spec: dict[str, Any], why: str) -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", _QUOTAS, {"metadata": {"name": "q"}, "spec": spec})
        assert refused.status == 422
        assert why in refused.message

    serve(body)


def test_nothing_is_admitted_under_a_quota_that_does_not_know_its_use() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
        assert (await client.ask("POST", PODS, pod("before"))).status == 201  # nobody has looked at the quota yet
        half = {"status": {"hard": {"pods": "1"}}}
        merge = "application/merge-patch+json"
        assert (await client.ask("PATCH", f"{_QUOTAS}/q/status", half, Content_Type=merge)).status == 200
        refused = await client.ask("POST", PODS, pod("p"))
        assert refused.message == 'pods "p" is forbidden: status unknown for quota: q, resources: pods'

    serve(body)
