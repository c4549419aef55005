"""Claims for devices, slices, device classes and taint rules: what is refused, what stays, what the server adds."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from apiserver_serving import TestClient, serve
from written_objects import FakeLookup, change_mistakes, create, errors, resource_of

from kubesched.playground.apiserver.served_resource import Object, WriteContext

_GROUP = "resource.k8s.io/v1"
_CLAIMS = resource_of(_GROUP, "resourceclaims")
_SLICES = resource_of(_GROUP, "resourceslices")
_NOW = "2026-01-01T00:00:00Z"


def _claim(*requests: Object, **devices: Any) -> Object:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests), **devices}}}


def _request(name: str = "gpu", **exactly: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "gpus", **exactly}}


def _selector(expression: str) -> Object:
    return {"cel": {"expression": expression}}


def _slice(*devices: Object, **spec: Any) -> Object:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    base = {"driver": "d.x", "pool": pool, "allNodes": True, "devices": list(devices)}
    return {"metadata": {"name": "s"}, "spec": {**base, **spec}}


def _allocated(**status: Any) -> Object:
    result = {"request": "gpu", "driver": "d.x", "pool": "p", "device": "dev-0"}
    return {**_claim(_request()), "status": {"allocation": {"devices": {"results": [result]}}, **status}}


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (
            "device.foo",
            "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n | ......^",
        ),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        (
            "",
            "compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', "
            "'.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ),
    ],
)
def test_selectors_are_compiled(expression: str, why: str) -> None:
    shown = f'Invalid value: "{expression}": {why}'
    classes = resource_of(_GROUP, "deviceclasses")
    body = {"metadata": {"name": "gpus"}, "spec": {"selectors": [_selector(expression)]}}
    assert errors(classes, body) == [f"spec.selectors[0].cel.expression: {shown}"]
    at = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert errors(_CLAIMS, _claim(_request(selectors=[_selector(expression)]))) == [f"{at}: {shown}"]


def test_what_is_wrong_with_a_claim() -> None:
    alternatives = {"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": ""}]}
    claim = _claim(
        _request(allocationMode="All", count=2),
        _request(),
        alternatives,
        constraints=[{"requests": ["gpu", "any/b"]}],
        config=[{"opaque": {"driver": "d.x", "parameters": [1]}}],
    )
    at = "spec.devices"
    unknown = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
    one = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    assert errors(_CLAIMS, claim) == [
        f"{at}.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
        f"{at}.requests[2].firstAvailable[0].deviceClassName: Required value",
        f'{at}.requests[1]: Duplicate value: "gpu"',
        f'{at}.constraints[0].requests[1]: Invalid value: "any/b": {unknown}',
        f"{at}.constraints[0]: Required value: {one}",
        f'{at}.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
    ]


def test_what_a_claim_asks_for_stays() -> None:
    (found,) = change_mistakes(_CLAIMS, _claim(_request()), {"spec.devices.requests.0.name": "fpga"})
    assert found == (
        'spec: Invalid value: {"Devices":{"Requests":[{"Name":"fpga","Exactly":{"DeviceClassName":"gpus",'
        '"Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,"Tolerations":null,"Capacity":null},'
        '"FirstAvailable":null}],"Constraints":null,"Config":null}}: field is immutable'
    )


def _status_errors(new: Object, old: Object) -> list[str]:
    return [f"{one.field}: {one.message}" for one in _CLAIMS.validate_through["status"](new, old)]


def test_an_allocation_stays_until_it_is_taken_away() -> None:
    old = _allocated()
    new = copy.deepcopy(old)
    new["status"]["allocation"]["devices"]["results"][0]["device"] = "dev-1"
    (found,) = _status_errors(new, old)
    assert found.startswith("status.allocation: Invalid value: {") and found.endswith(": field is immutable")
    assert not _status_errors(_claim(_request()), old)


def test_what_is_wrong_with_a_status() -> None:
    user = {"resource": "pods", "name": "p", "uid": "u"}
    free = _claim(_request())
    assert _status_errors({**free, "status": {"reservedFor": [user]}}, free) == [
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    ]
    many = [{**user, "uid": str(n)} for n in range(257)]
    assert _status_errors(_allocated(reservedFor=many), free) == [
        "status.reservedFor: Too many: 257: must have at most 256 items"
    ]
    assert _status_errors(_allocated(reservedFor=[user, user]), free) == ['status.reservedFor[1]: Duplicate value: "u"']
    other = {"driver": "d.x", "pool": "p", "device": "dev-9", "networkData": {"ips": ["10.0.0.1"]}}
    shown = '{"Driver":"d.x","Pool":"p","Device":"dev-9","ShareID":""}'
    assert _status_errors(_allocated(devices=[other]), free) == [
        f"status.devices[0]: Invalid value: {shown}: must be an allocated device in the claim",
        'status.devices[0].networkData.ips[0]: Invalid value: "10.0.0.1": must be a valid address in CIDR form, '
        "(e.g. 10.9.8.7/24 or 2001:db8::1/64)",
    ]


def test_what_drivers_said_of_released_devices_goes() -> None:
    old = _allocated(devices=[{"driver": "d.x", "pool": "p", "device": "dev-0"}])
    new = {**copy.deepcopy(old), "status": {"devices": old["status"]["devices"]}}
    _CLAIMS.prepare_update(new, old, WriteContext(FakeLookup(), _NOW, subresource="status"))
    assert new["status"] == {}


def test_access_for_administrators_is_a_matter_of_the_namespace() -> None:
    claim = {**_claim(_request(adminAccess=True)), "metadata": {"name": "c", "namespace": "n"}}
    namespace: Object = {"metadata": {"name": "n"}}
    context = WriteContext(FakeLookup({"namespaces": [namespace]}), _NOW)
    (found,) = _CLAIMS.validate_in_context(claim, None, context)
    label = "`resource.kubernetes.io/admin-access: true` label"
    why = f"admin access to devices requires the {label} on the containing namespace"
    assert (found.field, found.message) == ("spec.devices.requests[0].adminAccess", f"Forbidden: {why}")
    namespace["metadata"]["labels"] = {"resource.kubernetes.io/admin-access": "true"}
    assert not _CLAIMS.validate_in_context(claim, None, context)


def test_taints_of_devices_get_their_time() -> None:
    stored, _ = create(_SLICES, _slice({"name": "a", "taints": [{"key": "k", "effect": "NoSchedule"}]}))
    assert stored["spec"]["devices"][0]["taints"] == [{"key": "k", "effect": "NoSchedule", "timeAdded": _NOW}]


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        pytest.param(
            {"name": "A", "attributes": {"a-b": {"int": 1, "bool": True}}},
            [
                'spec.devices[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
                "alphanumeric characters or '-', and must start and end with an alphanumeric character "
                "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                'spec.devices[0].attributes: Invalid value: "a-b": a valid C identifier must start with alphabetic '
                "character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or "
                "'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')",
                'spec.devices[0].attributes[a-b]: Invalid value: {"IntValue":1,"BoolValue":true,"StringValue":null,'
                '"VersionValue":null,"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: '
                "exactly one value must be specified",
            ],
            id="names and attributes",
        ),
        pytest.param(
            {"name": "a", "capacity": {"m": {"value": "4", "requestPolicy": {"default": "1"}}}},
            ["spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
            id="a policy for what is not shared",
        ),
        pytest.param(
            {
                "name": "a",
                "allowMultipleAllocations": True,
                "capacity": {
                    "m": {
                        "value": "4",
                        "requestPolicy": {"default": "3", "validRange": {"min": "1", "max": "8", "step": "5"}},
                    }
                },
            },
            [
                'spec.devices[0].capacity[m].requestPolicy.validRange.max: Invalid value: "8": '
                "max is larger than capacity value: 4",
                'spec.devices[0].capacity[m].requestPolicy.validRange.step: Invalid value: "5": '
                "one step 6 is larger than capacity value: 4",
                'spec.devices[0].capacity[m].requestPolicy.validRange.step: Invalid value: "3": '
                "value is not a multiple of a given step (5) from (1)",
                'spec.devices[0].capacity[m].requestPolicy.validRange.step: Invalid value: "8": '
                "value is not a multiple of a given step (5) from (1)",
            ],
            id="a range beyond the whole",
        ),
        pytest.param(
            {"name": "a", "taints": [{"key": "k", "effect": "Never"}], "bindingConditions": ["x"]},
            [
                'spec.devices[0].taints[0].effect: Unsupported value: "Never": '
                'supported values: "NoExecute", "NoSchedule", "None"',
                "spec.devices[0].bindingFailureConditions: Invalid value: null: "
                "bindingFailureConditions are required to use bindingConditions",
            ],
            id="taints and binding conditions",
        ),
    ],
)
def test_what_is_wrong_with_a_device(device: Object, expected: list[str]) -> None:
    assert errors(_SLICES, _slice(device)) == expected


def test_taint_rules_keep_the_time_of_their_effect() -> None:
    rules = resource_of("resource.k8s.io/v1beta2", "devicetaintrules")
    old, _ = create(rules, {"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "None"}}})
    assert old["spec"]["taint"]["timeAdded"] == _NOW
    new = copy.deepcopy(old)
    new["spec"]["taint"]["effect"] = "NoExecute"
    later = "2026-01-01T00:05:00Z"
    rules.prepare_update(new, old, WriteContext(FakeLookup(), later))
    assert new["spec"]["taint"]["timeAdded"] == later
    assert not rules.validate(new, old)


def test_slices_are_selected_by_node_and_driver() -> None:
    async def body(client: TestClient) -> None:
        path = "/apis/resource.k8s.io/v1/resourceslices"
        for name, node in (("a", "n1"), ("b", "n2")):
            piece = _slice(nodeName=node)
            piece["metadata"]["name"] = name
            del piece["spec"]["allNodes"]
            assert (await client.ask("POST", path, piece)).status == 201
        found = await client.ask("GET", f"{path}?fieldSelector=spec.nodeName%3Dn2,spec.driver%3Dd.x")
        assert [one["metadata"]["name"] for one in found.body["items"]] == ["b"]
        assert (await client.ask("GET", f"{path}?fieldSelector=spec.pool%3Dp")).status == 400

    serve(body)
