"""Defaults, validation and admission of the kinds other than pods."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import PODS, FakeLookup, change_mistakes, container, create, errors, pod, resource_of

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds import custom
from kubesched.playground.apiserver.served_resource import DecodeError, Object, ServedResource

_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}


def _deployment(**spec: Any) -> Object:
    return {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE, **spec}}


@pytest.mark.parametrize(
    ("group_version", "plural", "body", "path", "expected"),
    [
        pytest.param("v1", "namespaces", {}, "spec", {"finalizers": ["kubernetes"]}, id="a namespace's finalizer"),
        pytest.param("v1", "namespaces", {}, "status", {"phase": "Active"}, id="a namespace's phase"),
        pytest.param(
            "v1",
            "nodes",
            {"status": {"capacity": {"cpu": "4000m"}}},
            "status.allocatable",
            {"cpu": "4"},
            id="a node's allocatable is its capacity",
        ),
        pytest.param("v1", "secrets", {"stringData": {"a": "x"}}, "data", {"a": "eA=="}, id="a secret's plain text"),
        pytest.param(
            "apps/v1",
            "deployments",
            _deployment(),
            "spec.strategy",
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            id="a deployment's strategy",
        ),
        pytest.param(
            "batch/v1",
            "jobs",
            {"spec": {"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}}},
            "spec.selector",
            {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
            id="a job's own selector",
        ),
        pytest.param(
            "storage.k8s.io/v1", "storageclasses", {"provisioner": "p"}, "volumeBindingMode", "Immediate", id="a class"
        ),
        pytest.param(
            "scheduling.k8s.io/v1",
            "priorityclasses",
            {"value": 5},
            "preemptionPolicy",
            "PreemptLowerPriority",
            id="a priority class",
        ),
        pytest.param(
            "v1",
            "persistentvolumeclaims",
            {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
            "metadata.finalizers",
            ["kubernetes.io/pvc-protection"],
            id="a claim is protected",
        ),
        pytest.param(
            "v1",
            "services",
            {"spec": {"ports": [{"port": 80}]}},
            "spec.ports",
            [{"protocol": "TCP", "port": 80, "targetPort": 80}],
            id="a service's target port",
        ),
    ],
)
def test_defaults(group_version: str, plural: str, body: Object, path: str, expected: Any) -> None:
    stored, _ = create(resource_of(group_version, plural), {"metadata": {"name": "x"}, **body})
    for name in path.split("."):
        stored = stored[name]
    assert stored == expected


@pytest.mark.parametrize(
    ("group_version", "plural", "body", "expected"),
    [
        pytest.param(
            "v1",
            "nodes",
            {"spec": {"taints": [{"key": "k", "effect": "Foo"}]}},
            [
                'metadata.taints[0].effect: Unsupported value: "Foo": '
                'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            ],
            id="a taint with an unknown effect",
        ),
        pytest.param(
            "v1",
            "nodes",
            {"status": {"capacity": {"cpu": "-1"}}},
            [
                'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
                'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
            ],
            id="a node with less than nothing",
        ),
        pytest.param(
            "apps/v1",
            "deployments",
            _deployment(selector={"matchLabels": {"z": "z"}}),
            ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
            id="a selector that misses its template",
        ),
        pytest.param(
            "apps/v1",
            "deployments",
            _deployment(replicas=-1),
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            id="fewer than no replicas",
        ),
        pytest.param(
            "batch/v1",
            "jobs",
            {"spec": {"template": _TEMPLATE}},
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
            id="a job that restarts forever",
        ),
        pytest.param(
            "batch/v1",
            "cronjobs",
            {
                "spec": {
                    "schedule": "often",
                    "jobTemplate": {
                        "spec": {"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}}
                    },
                }
            },
            ['spec.schedule: Invalid value: "often": expected exactly 5 fields, found 1: [often]'],
            id="no schedule",
        ),
        pytest.param(
            "policy/v1",
            "poddisruptionbudgets",
            {"spec": {"minAvailable": "150%"}},
            ['spec.minAvailable: Invalid value: "150%": must not be greater than 100%'],
            id="a budget of more than all",
        ),
        pytest.param(
            "scheduling.k8s.io/v1",
            "priorityclasses",
            {"value": 1000000001},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
            id="a priority above the system's",
        ),
        pytest.param("v1", "services", {"spec": {}}, ["spec.ports: Required value"], id="a service without ports"),
        pytest.param(
            "coordination.k8s.io/v1",
            "leases",
            {"spec": {"leaseDurationSeconds": 0}},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
            id="a lease for no time",
        ),
        pytest.param(
            "events.k8s.io/v1",
            "events",
            {
                "regarding": {"namespace": "default"},
                "reportingController": "c",
                "reportingInstance": "i",
                "reason": "r",
                "type": "Normal",
            },
            ["eventTime: Required value"],
            id="an event at no time",
        ),
        pytest.param(
            "scheduling.k8s.io/v1alpha2",
            "podgroups",
            {"spec": {"schedulingPolicy": {"gang": {"minCount": 0}}}},
            ["spec.schedulingPolicy.gang.minCount: Required value"],
            id="a gang of nobody",
        ),
        pytest.param(
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            {
                "metadata": {"name": "other"},
                "spec": {
                    "group": "g.example.com",
                    "scope": "Cluster",
                    "names": {"plural": "ws", "kind": "W"},
                    "versions": [
                        {
                            "name": "v1",
                            "served": True,
                            "storage": True,
                            "schema": {"openAPIV3Schema": {"type": "object"}},
                        }
                    ],
                },
            },
            ['metadata.name: Invalid value: "other": must be spec.names.plural+"."+spec.group'],
            id="a definition under another name",
        ),
    ],
)
def test_what_is_wrong_is_told_in_the_real_words(
    group_version: str, plural: str, body: Object, expected: list[str]
) -> None:
    assert errors(resource_of(group_version, plural), {"metadata": {"name": "x"}, **body}) == expected


@pytest.mark.parametrize(
    ("group_version", "plural", "body", "changes", "expected"),
    [
        pytest.param(
            "scheduling.k8s.io/v1",
            "priorityclasses",
            {"value": 5},
            {"value": 6},
            ["value: Forbidden: may not be changed in an update."],
            id="the value of a priority class",
        ),
        pytest.param(
            "v1",
            "nodes",
            {"spec": {"providerID": "a"}},
            {"spec.providerID": "b"},
            ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'],
            id="the provider of a node",
        ),
        pytest.param(
            "apps/v1",
            "deployments",
            _deployment(),
            {"spec.selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}},
            [
                'spec.selector: Invalid value: {"matchLabels":{"a":"b"},'
                '"matchExpressions":[{"key":"a","operator":"Exists"}]}: field is immutable'
            ],
            id="the selector of a deployment",
        ),
        pytest.param(
            "v1",
            "configmaps",
            {"immutable": True, "data": {"a": "1"}},
            {"data": {"a": "2"}},
            ["data: Forbidden: field is immutable when `immutable` is set"],
            id="the data of an immutable config map",
        ),
    ],
)
def test_what_may_not_change(
    group_version: str, plural: str, body: Object, changes: Object, expected: list[str]
) -> None:
    resource = resource_of(group_version, plural)
    assert change_mistakes(resource, {"metadata": {"name": "x"}, **body}, changes) == expected


def test_only_one_priority_class_is_the_default() -> None:
    resource = resource_of("scheduling.k8s.io/v1", "priorityclasses")
    first = {"metadata": {"name": "first"}, "value": 1, "globalDefault": True}
    lookup = FakeLookup({"priorityclasses.scheduling.k8s.io": [first]})
    with pytest.raises(StatusError, match="PriorityClass first is already marked as default"):
        create(resource, {"metadata": {"name": "second"}, "value": 2, "globalDefault": True}, lookup)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            {"metadata": {"name": True}},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string",
            id="a name that is a truth value",
        ),
        pytest.param(
            {"spec": {"containers": "x"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
            id="containers that are text",
        ),
        pytest.param(
            {"spec": {"containers": [{"resources": {"requests": {"cpu": "abc"}}}]}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="an amount that is none",
        ),
    ],
)
def test_wrong_types_are_refused_in_the_words_of_go(body: Object, message: str) -> None:
    with pytest.raises(DecodeError) as refusal:
        resource_of("v1", "pods").decode(body)
    assert str(refusal.value) == message


def test_unknown_fields_are_dropped_and_told_in_the_order_of_the_document() -> None:
    body = {"spec": {"containers": [{"name": "c", "fooBar": True}], "bogus": 1}, "extra": {}}
    assert resource_of("v1", "pods").decode(body) == ["spec.containers[0].fooBar", "spec.bogus", "extra"]
    assert "extra" not in body


_WIDGET_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "color": {"type": "string", "default": "blue", "enum": ["blue", "red"]},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}


def _widgets() -> ServedResource:
    names = {"plural": "widgets", "kind": "Widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _WIDGET_SCHEMA}}
    spec = {"group": "g.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    (resource,) = custom.served_resources({"spec": spec})
    return resource


def test_a_custom_schema_prunes_and_sets_defaults() -> None:
    body = {"metadata": {"name": "a"}, "spec": {"size": 3, "foo": 1, "free": {"any": [1]}}, "extra": 1}
    assert _widgets().decode(body) == ["spec.foo", "extra"]
    assert body == {"metadata": {"name": "a"}, "spec": {"size": 3, "color": "blue", "free": {"any": [1]}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"size": 1}, [], id="good"),
        pytest.param(
            {"size": 0},
            ["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"],
            id="too small",
        ),
        pytest.param(
            {"size": 1, "color": "green"},
            ['spec.color: Unsupported value: "green": supported values: "blue", "red"'],
            id="another colour",
        ),
        pytest.param({}, ["spec.size: Required value"], id="without its size"),
        pytest.param(
            {"size": "x"},
            ['spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'],
            id="a size that is text",
        ),
    ],
)
def test_a_custom_schema_validates(spec: Object, expected: list[str]) -> None:
    assert errors(_widgets(), {"metadata": {"name": "a"}, "spec": spec}) == expected


def test_a_limit_range_fills_in_and_refuses() -> None:
    item = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"memory": "64Mi"}, "max": {"cpu": "2"}}
    lookup = FakeLookup({"limitranges": [{"metadata": {"name": "lr"}, "spec": {"limits": [item]}}]})
    stored, _ = create(PODS, pod(), lookup)
    assert stored["spec"]["containers"][0]["resources"] == {"requests": {"memory": "64Mi"}, "limits": {"cpu": "500m"}}
    told = "LimitRanger plugin set: memory request for container c; cpu limit for container c"
    assert stored["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": told}
    with pytest.raises(StatusError, match="maximum cpu usage per Container is 2, but limit is 3"):
        create(PODS, pod(containers=[container(resources={"limits": {"cpu": "3"}})]), lookup)


def test_an_event_is_the_same_object_in_both_views() -> None:
    core = resource_of("v1", "events")
    new = resource_of("events.k8s.io/v1", "events")
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    body = {"regarding": about, "note": "m", "reportingController": "c", "eventTime": "2026-01-01T00:00:00.000001Z"}
    written, _ = create(new, {"metadata": {"name": "e"}, **body})
    assert new.to_stored is not None
    assert new.from_stored is not None
    stored = new.to_stored(written)
    assert (stored["involvedObject"], stored["message"], stored["reportingComponent"]) == (about, "m", "c")
    assert new.from_stored(stored) == written
    assert core.selectable_fields(stored)["involvedObject.name"] == "p"


def test_the_older_autoscaler_is_stored_as_the_newer() -> None:
    old = resource_of("autoscaling/v1", "horizontalpodautoscalers")
    written, _ = create(old, {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3}})
    assert old.to_stored is not None
    assert old.from_stored is not None
    stored = old.to_stored(written)
    target = {"type": "Utilization", "averageUtilization": 80}
    assert stored["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert old.from_stored(stored)["spec"] == written["spec"]
