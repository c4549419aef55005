"""The tables that kubectl get shows, and the names that all kinds are served under."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import PODS, create, pod, resource_of

from kubesched.playground.apiserver.kinds import custom
from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
from kubesched.playground.apiserver.kinds.serving import human
from kubesched.playground.apiserver.openapi.schemas import type_of_kind
from kubesched.playground.apiserver.served_resource import Object, ServedResource


def _row(resource: ServedResource, obj: Object) -> dict[str, Any]:
    return {column.name: column.value(obj) for column in resource.columns if column.name != "Age"}


def _status(**status: Any) -> Object:
    stored, _ = create(PODS, pod())
    return {**stored, "status": {**stored["status"], **status}}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        pytest.param({}, ("0/1", "Pending", "0"), id="new"),
        pytest.param(
            {
                "phase": "Running",
                "containerStatuses": [{"name": "c", "ready": True, "restartCount": 2, "state": {"running": {}}}],
            },
            ("1/1", "Running", "2"),
            id="running",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            ("0/1", "ImagePullBackOff", "0"),
            id="waiting for its image",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 3}}}]},
            ("0/1", "ExitCode:3", "0"),
            id="ended badly",
        ),
        pytest.param(
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
            ("0/1", "SchedulingGated", "0"),
            id="gated",
        ),
    ],
)
def test_a_pods_row(status: Object, shown: tuple[str, str, str]) -> None:
    row = _row(PODS, _status(**status))
    assert (row["Ready"], row["Status"], row["Restarts"]) == shown


def test_a_pod_being_deleted_is_terminating() -> None:
    obj = _status(phase="Running")
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert _row(PODS, obj)["Status"] == "Terminating"


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        pytest.param({}, ("Unknown", "<none>"), id="nothing known"),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "spec": {"unschedulable": True}},
            ("Ready,SchedulingDisabled", "<none>"),
            id="ready and cordoned",
        ),
        pytest.param(
            {"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": ""}}},
            ("Unknown", "worker"),
            id="with a role",
        ),
    ],
)
def test_a_nodes_row(node: Object, shown: tuple[str, str]) -> None:
    nodes = resource_of("v1", "nodes")
    row = _row(nodes, create(nodes, {"metadata": {"name": "n"}, **node})[0])
    assert (row["Status"], row["Roles"]) == shown


@pytest.mark.parametrize(
    ("for_s", "text"),
    [
        pytest.param(-5, "<invalid>", id="in the future"),
        pytest.param(0, "0s", id="now"),
        pytest.param(119, "119s", id="below two minutes"),
        pytest.param(125, "2m5s", id="minutes and seconds"),
        pytest.param(600, "10m", id="ten minutes"),
        pytest.param(3 * 3600 + 60, "3h1m", id="hours and minutes"),
        pytest.param(40 * 3600, "40h", id="below two days"),
        pytest.param(3 * 86400 + 7200, "3d2h", id="days and hours"),
        pytest.param(400 * 86400, "400d", id="below two years"),
        pytest.param(3 * 365 * 86400, "3y", id="years"),
    ],
)
def test_ages_are_exact_while_short(for_s: int, text: str) -> None:
    assert human(for_s) == text


@pytest.mark.parametrize("resource", ALL_KINDS, ids=lambda one: f"{one.api_version} {one.plural}")
def test_every_kind_has_a_schema_and_columns(resource: ServedResource) -> None:
    assert type_of_kind(resource.group, resource.version, resource.kind) is not None
    assert resource.columns
    assert resource.columns[0].name in ("Name", "Last Seen")


@pytest.mark.parametrize("resource", ALL_KINDS, ids=lambda one: f"{one.api_version} {one.plural}")
def test_an_object_with_nothing_in_it_can_be_written_and_shown(resource: ServedResource) -> None:
    if "create" not in resource.verbs or resource.verbs == ("create",):
        return
    obj, _ = create(resource, {"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}})
    resource.validate(obj, None)
    resource.validate(obj, obj)
    assert len([column.value(obj) for column in resource.columns]) == len(resource.columns)
    assert resource.selectable_fields(obj)["metadata.name"] == "x"


def test_a_definition_adds_kinds_with_its_columns() -> None:
    spec = {
        "group": "g.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            },
            {"name": "v0", "served": False, "storage": False},
        ],
    }
    (widgets,) = custom.served_resources({"spec": spec})
    assert (widgets.group_resource, widgets.singular, widgets.is_custom) == ("widgets.g.example.com", "widget", True)
    obj = {"metadata": {"name": "a"}, "spec": {"size": 3}}
    assert _row(widgets, obj) == {"Name": "a", "Size": 3}
