"""Policies in CEL that validate and change what is written, in the words of the real server."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver_serving import TestClient, serve

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ON_CONFIG_MAPS: dict[str, Any] = {
    "resourceRules": [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["configmaps"],
        }
    ]
}
ON_WRITES = {"resourceRules": [{**ON_CONFIG_MAPS["resourceRules"][0], "operations": ["CREATE", "UPDATE"]}]}


def _config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


async def _add(client: TestClient, kind: str, name: str, spec: dict[str, Any], status: int = 201) -> Any:
    plural = {"Policy": "policies", "PolicyBinding": "policybindings"}[kind.split("Admission")[1]]
    path = f"{ADMISSION}/{kind.split('Admission')[0].lower()}admission{plural}"
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    answered = await client.ask("POST", path, body)
    assert answered.status == status, answered.body
    return answered.body


async def _validating(client: TestClient, spec: dict[str, Any], **binding: Any) -> None:
    await _add(client, "ValidatingAdmissionPolicy", "p", {"matchConstraints": ON_CONFIG_MAPS, **spec})
    await _add(
        client,
        "ValidatingAdmissionPolicyBinding",
        "b",
        {"policyName": "p", "validationActions": ["Deny"], **binding},
    )


async def _mutating(client: TestClient, *mutations: dict[str, Any], **more: Any) -> None:
    spec = {"matchConstraints": ON_WRITES, "reinvocationPolicy": "Never", "mutations": list(mutations), **more}
    await _add(client, "MutatingAdmissionPolicy", "m", spec)
    await _add(client, "MutatingAdmissionPolicyBinding", "mb", {"policyName": "m"})


def _apply(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def _patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def test_a_request_that_fails_a_validation_is_refused_with_policy_binding_and_expression() -> None:
    async def body(client: TestClient) -> None:
        await _validating(client, {"validations": [{"expression": "size(object.data) < 2"}]})
        assert (await client.ask("POST", CONFIG_MAPS, _config_map("small", {"a": "1"}))).status == 201
        refused = await client.ask("POST", CONFIG_MAPS, _config_map("large", {"a": "1", "b": "2"}))
        why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: size(object.data) < 2"
        assert refused.status == 422
        assert refused.body["reason"] == "Invalid"
        assert refused.message == f'configmaps "large" is forbidden: {why}'
        assert refused.body["details"] == {"name": "large", "kind": "configmaps", "causes": [{"message": why}]}

    serve(body)


@pytest.mark.parametrize(
    ("rule", "status", "told"),
    [
        ({"message": "too large"}, 422, "too large"),
        ({"messageExpression": "'has ' + string(size(object.data))"}, 422, "has 2"),
        ({"messageExpression": "string(object.data.missing)", "message": "given"}, 422, "given"),
        ({"message": "no", "reason": "Forbidden"}, 403, "no"),
        ({"message": "no", "reason": "RequestEntityTooLarge"}, 413, "no"),
    ],
)
def test_messages_and_reasons_are_those_of_the_validation(rule: dict[str, Any], status: int, told: str) -> None:
    async def body(client: TestClient) -> None:
        await _validating(client, {"validations": [{"expression": "size(object.data) < 2", **rule}]})
        refused = await client.ask("POST", CONFIG_MAPS, _config_map("large", {"a": "1", "b": "2"}))
        assert (refused.status, refused.message.rpartition(": ")[2]) == (status, told)

    serve(body)


def test_variables_match_conditions_the_request_and_the_namespace_can_be_used() -> None:
    async def body(client: TestClient) -> None:
        spec: dict[str, Any] = {
            "variables": [
                {"name": "n", "expression": "size(object.data)"},
                {"name": "twice", "expression": "variables.n * 2"},
            ],
            "matchConditions": [{"name": "not-free", "expression": "!object.metadata.name.startsWith('free')"}],
            "validations": [
                {"expression": "variables.twice < 4", "message": "twice"},
                {"expression": "request.operation != 'UPDATE'", "message": "operation"},
                {"expression": "namespaceObject.metadata.name == request.namespace", "message": "namespace"},
            ],
        }
        await _validating(client, {**spec, "matchConstraints": ON_WRITES})
        large = {"a": "1", "b": "2"}
        assert (await client.ask("POST", CONFIG_MAPS, _config_map("free", large))).status == 201
        assert (await client.ask("POST", CONFIG_MAPS, _config_map("x", large))).message.endswith(": twice")
        assert (await client.ask("POST", CONFIG_MAPS, _config_map("x", {"a": "1"}))).status == 201
        changed = await client.ask("PUT", f"{CONFIG_MAPS}/x", _config_map("x", {"a": "2"}))
        assert changed.message.endswith(": operation")

    serve(body)


def test_a_deletion_shows_the_old_object_alone() -> None:
    async def body(client: TestClient) -> None:
        rule = "request.operation != 'DELETE' || (object == null && oldObject.metadata.name != 'kept')"
        await _validating(client, {"validations": [{"expression": rule, "message": "kept"}]})
        for name in ("kept", "other"):
            assert (await client.ask("POST", CONFIG_MAPS, _config_map(name))).status == 201
        assert (await client.ask("DELETE", f"{CONFIG_MAPS}/kept")).status == 422
        assert (await client.ask("DELETE", f"{CONFIG_MAPS}/other")).status == 200

    serve(body)


def test_an_expression_without_a_value_counts_as_the_failure_policy_says() -> None:
    async def body(client: TestClient) -> None:
        await _validating(client, {"validations": [{"expression": "object.missing == ''"}]})
        refused = await client.ask("POST", CONFIG_MAPS, _config_map("x"))
        assert refused.message.endswith("expression 'object.missing == ''' resulted in error: no such key: missing")
        policy = (await client.ask("GET", f"{ADMISSION}/validatingadmissionpolicies/p")).body
        policy["spec"]["failurePolicy"] = "Ignore"
        assert (await client.ask("PUT", f"{ADMISSION}/validatingadmissionpolicies/p", policy)).status == 200
        assert (await client.ask("POST", CONFIG_MAPS, _config_map("x"))).status == 201

    serve(body)


def test_a_binding_that_warns_lets_the_request_pass_with_a_warning() -> None:
    async def body(client: TestClient) -> None:
        rule = {"expression": "false", "message": "never"}
        await _validating(client, {"validations": [rule]}, validationActions=["Warn"])
        made = await client.ask("POST", CONFIG_MAPS, _config_map("x"))
        assert made.status == 201
        told = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': never"
        assert told in made.headers["Warning"]

    serve(body)


def test_parameters_come_from_objects_that_the_binding_names() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", CONFIG_MAPS, _config_map("limits", {"most": "1"}))
        spec = {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{"expression": "size(object.data) <= int(params.data.most)", "message": "most"}],
        }
        reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
        await _validating(client, spec, paramRef=reference)
        large = _config_map("large", {"a": "1", "b": "2"})
        assert (await client.ask("POST", CONFIG_MAPS, large)).message.endswith(": most")
        assert (await client.ask("POST", CONFIG_MAPS, _config_map("small", {"a": "1"}))).status == 201
        binding = (await client.ask("GET", f"{ADMISSION}/validatingadmissionpolicybindings/b")).body
        binding["spec"]["paramRef"]["name"] = "nowhere"
        await client.ask("PUT", f"{ADMISSION}/validatingadmissionpolicybindings/b", binding)
        missing = await client.ask("POST", CONFIG_MAPS, large)
        assert "no params found for policy binding with `Deny` parameterNotFoundAction" in missing.message

    serve(body)


@pytest.mark.parametrize(
    ("constraints", "is_refused"),
    [
        ({}, True),
        ({"objectSelector": {"matchLabels": {"check": "yes"}}}, True),
        ({"objectSelector": {"matchLabels": {"check": "no"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"resourceRules": [{**ON_CONFIG_MAPS["resourceRules"][0], "resourceNames": ["x"]}]}, True),
        ({"resourceRules": [{**ON_CONFIG_MAPS["resourceRules"][0], "resourceNames": ["y"]}]}, False),
        ({"resourceRules": [{**ON_CONFIG_MAPS["resourceRules"][0], "resources": ["*"]}]}, True),
        ({"resourceRules": [{**ON_CONFIG_MAPS["resourceRules"][0], "scope": "Cluster"}]}, False),
        ({"excludeResourceRules": [{**ON_CONFIG_MAPS["resourceRules"][0], "operations": ["*"]}]}, False),
    ],
)
def test_only_what_matches_is_looked_at(constraints: dict[str, Any], is_refused: bool) -> None:
    async def body(client: TestClient) -> None:
        spec = {"matchConstraints": {**ON_CONFIG_MAPS, **constraints}, "validations": [{"expression": "false"}]}
        await _validating(client, spec)
        made = await client.ask("POST", CONFIG_MAPS, _config_map("x", labels={"check": "yes"}))
        assert made.status == (422 if is_refused else 201)

    serve(body)


def test_an_applied_configuration_is_merged_into_what_is_written() -> None:
    async def body(client: TestClient) -> None:
        await _mutating(client, _apply("Object{metadata: Object.metadata{labels: {'by': 'policy'}}}"))
        made = await client.ask("POST", CONFIG_MAPS, _config_map("x", labels={"a": "1"}))
        assert made.body["metadata"]["labels"] == {"a": "1", "by": "policy"}

    serve(body)


def test_mutations_run_in_order_and_see_what_the_ones_before_did() -> None:
    async def body(client: TestClient) -> None:
        first = _patch("[JSONPatch{op: 'add', path: '/data/first', value: 'one'}]")
        second = _patch("[JSONPatch{op: 'add', path: '/data/second', value: object.data.first + '!'}]")
        await _mutating(client, first, second)
        made = await client.ask("POST", CONFIG_MAPS, _config_map("x", {"a": "1"}))
        assert made.body["data"] == {"a": "1", "first": "one", "second": "one!"}

    serve(body)


def test_a_patch_whose_test_fails_is_not_wanted_and_others_that_fail_refuse() -> None:
    async def body(client: TestClient) -> None:
        test = "JSONPatch{op: 'test', path: '/data/a', value: 'no'}"
        await _mutating(client, _patch(f"[{test}, JSONPatch{{op: 'remove', path: '/data/a'}}]"))
        made = await client.ask("POST", CONFIG_MAPS, _config_map("x", {"a": "1"}))
        assert made.body["data"] == {"a": "1"}
        policy = (await client.ask("GET", f"{ADMISSION}/mutatingadmissionpolicies/m")).body
        policy["spec"]["mutations"] = [_patch("[JSONPatch{op: 'remove', path: '/data/nothing'}]")]
        await client.ask("PUT", f"{ADMISSION}/mutatingadmissionpolicies/m", policy)
        refused = await client.ask("POST", CONFIG_MAPS, _config_map("y", {"a": "1"}))
        assert refused.message.startswith("policy 'm' with binding 'mb' denied request: JSON Patch: ")

    serve(body)


def test_structs_must_be_named_after_their_place() -> None:
    async def body(client: TestClient) -> None:
        await _mutating(client, _apply("Object{metadata: Object.spec{labels: {'by': 'policy'}}}"))
        refused = await client.ask("POST", CONFIG_MAPS, _config_map("x"))
        assert 'unexpected type name "Object.spec", expected "Object.metadata"' in refused.message

    serve(body)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"validations": []}, "spec.validations: Required value: validations or auditAnnotations must contain"),
        ({"validations": [{"expression": " "}]}, "spec.validations[0].expression: Required value: expression is not"),
        ({"validations": [{"expression": "1 + 1"}]}, "must evaluate to bool"),
        ({"validations": [{"expression": "objekt.x"}]}, "undeclared reference to 'objekt'"),
        ({"validations": [{"expression": "request.verb == ''"}]}, "undefined field 'verb'"),
        ({"validations": [{"expression": "params.x == 1"}]}, "undeclared reference to 'params'"),
        ({"validations": [{"expression": "true", "messageExpression": "1"}]}, "must evaluate to string but got int"),
        ({"validations": [{"expression": "true", "reason": "Gone"}]}, 'Unsupported value: "Gone"'),
        ({"variables": [{"name": "a b", "expression": "1"}]}, "must be a valid CEL identifier"),
        ({"matchConstraints": None}, "spec.matchConstraints: Required value"),
        ({"failurePolicy": "Perhaps"}, "spec.failurePolicy: Unsupported value"),
        ({"matchConstraints": {"resourceRules": [{"operations": ["LOOK"]}]}}, 'supported values: "*", "CONNECT"'),
    ],
)
def test_policies_that_cannot_work_are_refused_when_they_are_written(change: dict[str, Any], message: str) -> None:
    async def body(client: TestClient) -> None:
        spec = {"matchConstraints": ON_CONFIG_MAPS, "validations": [{"expression": "true"}], **change}
        refused = await _add(client, "ValidatingAdmissionPolicy", "p", spec, status=422)
        assert message in refused["message"]

    serve(body)


def test_policies_end_with_their_bindings() -> None:
    async def body(client: TestClient) -> None:
        await _validating(client, {"validations": [{"expression": "false"}]})
        assert (await client.ask("POST", CONFIG_MAPS, _config_map("x"))).status == 422
        await client.ask("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/b")
        assert (await client.ask("POST", CONFIG_MAPS, _config_map("x"))).status == 201

    serve(body)
