"""Columns that definitions ask for, and the columns of kinds that steer a server."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import create, resource_of

from kubesched.playground.apiserver.http import answers
from kubesched.playground.apiserver.kinds import custom

_OBJECT = {
    "metadata": {"name": "w", "annotations": {"a.b/c": "q"}},
    "spec": {"n": 3, "f": 1.5, "b": False, "l": ["a", "b"], "o": {"y": 1, "x": [True]}, "t": "2026-01-01T00:00:00Z"},
    "status": {"conditions": [{"type": "Other", "status": "No"}, {"type": "Ready", "status": "True", "n": 2}]},
}


@pytest.mark.parametrize(
    ("path", "form", "expected"),
    [
        pytest.param(".spec.n", "integer", 3, id="an integer"),
        pytest.param(".spec.f", "integer", 1, id="a fraction cut"),
        pytest.param(".spec.f", "number", 1.5, id="a number"),
        pytest.param(".spec.b", "boolean", False, id="a truth"),
        pytest.param(".spec.n", "boolean", None, id="another type"),
        pytest.param(".spec.n", "string", "3", id="a number as text"),
        pytest.param(".spec.o", "string", '{"x":[true],"y":1}', id="an object as text"),
        pytest.param(".spec.l[1]", "string", "b", id="a position"),
        pytest.param(".spec.l[-1]", "string", "b", id="a position from the end"),
        pytest.param(".spec.l[7]", "string", None, id="no such position"),
        pytest.param(".spec.l[*]", "string", "a", id="the first of all"),
        pytest.param(".spec.l[1:]", "string", "b", id="a slice"),
        pytest.param(".metadata.annotations['a.b/c']", "string", "q", id="a quoted name"),
        pytest.param(r".metadata.annotations.a\.b/c", "string", "q", id="a name with a dot"),
        pytest.param('.status.conditions[?(@.type=="Ready")].status', "string", "True", id="a filter"),
        pytest.param(".status.conditions[?(@.type != 'Other')].n", "integer", 2, id="a filter by difference"),
        pytest.param(".status.conditions[?(@.n==2)].status", "string", "True", id="a filter by number"),
        pytest.param(".status.nothing.at.all", "string", None, id="nothing"),
        pytest.param(".spec.n", "date", None, id="no date"),
        pytest.param(".metadata.name", "date", "<invalid>", id="a text that is no date"),
        pytest.param("..name", "string", None, id="more than a simple path"),
    ],
)
def test_a_column_shows_the_first_result_of_its_path(path: str, form: str, expected: Any) -> None:
    _, column = custom.columns_of([{"name": "C", "type": form, "jsonPath": path}])
    assert column.value(_OBJECT) == expected


def test_dates_are_shown_as_ages_and_a_definition_without_columns_has_the_age() -> None:
    _, column = custom.columns_of([{"name": "C", "type": "date", "jsonPath": ".spec.t"}])
    assert str(column.value(_OBJECT)).endswith(("d", "h", "y"))
    assert [column.name for column in custom.columns_of([])] == ["Name", "Age"]


def _cells(group_version: str, plural: str, body: dict[str, Any]) -> list[Any]:
    resource = resource_of(group_version, plural)
    obj, _ = create(resource, {"metadata": {"name": "x"}, **body})
    obj["status"] = body.get("status", {})
    cells: list[Any] = answers.table_row(resource, obj, "None", "v1")["cells"]
    return cells


_METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
_READING = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 70}}}
_PODS = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "3"}}}


@pytest.mark.parametrize(
    ("metrics", "readings", "expected"),
    [
        pytest.param([_METRIC], None, "cpu: <unknown>/50%", id="nothing measured"),
        pytest.param([_METRIC], [_READING], "cpu: 70%/50%", id="measured"),
        pytest.param([_PODS, _METRIC, _METRIC], None, "<unknown>/3, cpu: <unknown>/50% + 1 more...", id="many"),
        pytest.param(None, None, "cpu: <unknown>/80%", id="the default"),
    ],
)
def test_targets_of_an_autoscaler(metrics: Any, readings: Any, expected: str) -> None:
    spec: dict[str, Any] = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    spec |= {} if metrics is None else {"metrics": metrics}
    cells = _cells("autoscaling/v2", "horizontalpodautoscalers", {"spec": spec, "status": {"currentMetrics": readings}})
    assert cells[1:5] == ["Deployment/d", expected, "1", 3]


def test_behavior_of_an_autoscaler_is_filled_in() -> None:
    behavior = {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
    spec = {"scaleTargetRef": {"kind": "D", "name": "d"}, "maxReplicas": 3, "behavior": behavior}
    obj, _ = create(
        resource_of("autoscaling/v2", "horizontalpodautoscalers"), {"metadata": {"name": "x"}, "spec": spec}
    )
    filled = obj["spec"]["behavior"]
    assert filled["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert filled["scaleDown"]["selectPolicy"] == "Max"
    assert filled["scaleDown"]["policies"] == behavior["scaleDown"]["policies"]


@pytest.mark.parametrize(
    ("group_version", "plural", "body", "expected"),
    [
        pytest.param(
            "admissionregistration.k8s.io/v1",
            "validatingwebhookconfigurations",
            {"webhooks": [{"name": "a.b.c"}, {"name": "d.e.f"}]},
            [2],
            id="webhooks",
        ),
        pytest.param(
            "flowcontrol.apiserver.k8s.io/v1",
            "flowschemas",
            {"spec": {"priorityLevelConfiguration": {"name": "p"}}},
            ["p", 1000, "<none>"],
            id="a flow schema",
        ),
        pytest.param(
            "flowcontrol.apiserver.k8s.io/v1",
            "prioritylevelconfigurations",
            {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 3}}}}},
            ["Limited", 30, 3, 8, 50],
            id="a priority level",
        ),
        pytest.param(
            "networking.k8s.io/v1",
            "ipaddresses",
            {"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}},
            ["services/n/s"],
            id="an address",
        ),
        pytest.param(
            "networking.k8s.io/v1", "servicecidrs", {"spec": {"cidrs": ["10.0.0.0/16"]}}, ["10.0.0.0/16"], id="a range"
        ),
    ],
)
def test_kinds_that_steer_a_server_have_columns(
    group_version: str, plural: str, body: dict[str, Any], expected: list[Any]
) -> None:
    cells = [cell for cell in _cells(group_version, plural, body)[1:] if cell not in ("0s", "<unknown>")]
    assert cells[: len(expected)] == expected
