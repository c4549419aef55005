"""Custom resources by their schemas: defaults, pruning, bounds, rules in CEL, selectable fields, versions."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver_serving import TestClient, serve

from kubesched.playground.apiserver.kinds.custom_rules import escape
from kubesched.playground.apiserver.kinds.custom_schema import list_type_errors, value_errors
from kubesched.playground.apiserver.kinds.structural_schemas import schema_errors

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WIDGETS = "/apis/g.io/v1/namespaces/default/widgets"
_MERGE = "application/merge-patch+json"


def _version(spec: dict[str, Any], name: str = "v1", **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}


def _definition(*versions: dict[str, Any], plural: str = "widgets", kind: str = "Widget") -> dict[str, Any]:
    names = {"plural": plural, "kind": kind}
    spec = {"group": "g.io", "names": names, "scope": "Namespaced", "versions": list(versions)}
    return {"metadata": {"name": f"{plural}.g.io"}, "spec": spec}


def _widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "g.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def _define(client: TestClient, *versions: dict[str, Any]) -> None:
    made = await client.ask("POST", _DEFINITIONS, _definition(*versions))
    assert made.status == 201, made.body


# -- shape -------------------------------------------------------------------------------------------------------------


def test_defaults_are_set_on_writing_and_on_reading_what_is_older() -> None:
    size = {"type": "integer"}
    inner = {"type": "object", "properties": {"deep": {"type": "string", "default": "d"}}}

    async def body(client: TestClient) -> None:
        await _define(client, _version({"properties": {"size": size, "inner": inner}}))
        await client.ask("POST", _WIDGETS, _widget("old", inner={}))
        seen = await client.ask("GET", f"{_DEFINITIONS}/widgets.g.io")
        part = seen.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        part["size"]["default"] = 3
        assert (await client.ask("PUT", f"{_DEFINITIONS}/widgets.g.io", seen.body)).status == 200
        read = await client.ask("GET", f"{_WIDGETS}/old")
        assert read.body["spec"] == {"inner": {"deep": "d"}, "size": 3}
        listed = await client.ask("GET", _WIDGETS)
        assert listed.body["items"][0]["spec"]["size"] == 3
        nothing = await client.ask("POST", _WIDGETS, _widget("new", size=None))
        assert nothing.body["spec"] == {"size": 3}

    serve(body)


def test_a_nullable_field_stays_null() -> None:
    async def body(client: TestClient) -> None:
        await _define(client, _version({"properties": {"n": {"type": "string", "nullable": True, "default": "x"}}}))
        made = await client.ask("POST", _WIDGETS, _widget("w", n=None))
        assert made.body["spec"] == {"n": None}

    serve(body)


def test_unknown_fields_go_except_where_they_are_kept() -> None:
    loose = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    whole = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}

    async def body(client: TestClient) -> None:
        await _define(client, _version({"properties": {"loose": loose, "whole": whole}}))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}, "other": 1}
        sent = _widget("w", loose={"free": 1, "known": {"a": "b", "c": 1}}, whole=pod, gone=1)
        made = await client.ask("POST", f"{_WIDGETS}?fieldValidation=Ignore", sent)
        assert made.body["spec"] == {
            "loose": {"free": 1, "known": {"a": "b"}},
            "whole": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
        }
        strict = await client.ask("POST", f"{_WIDGETS}?fieldValidation=Strict", _widget("v", gone=1))
        assert 'unknown field "spec.gone"' in strict.message

    serve(body)


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (5, {"type": "integer", "maximum": 5, "exclusiveMaximum": True}, "x in body should be less than 5"),
        (7, {"type": "integer", "multipleOf": 2}, "x in body should be a multiple of 2"),
        ("ab", {"type": "string", "format": "ipv4"}, 'x in body must be of type ipv4: "ab"'),
        ("2026-13-01", {"type": "string", "format": "date"}, 'x in body must be of type date: "2026-13-01"'),
        ({}, {"type": "object", "minProperties": 1}, "x in body should have at least 1 properties"),
        (1.5, {"x-kubernetes-int-or-string": True}, 'x in body must be of type integer,string: "number"'),
        (5, {"anyOf": [{"minimum": 7}, {"maximum": 3}]}, '"x" must validate at least one schema (anyOf)'),
        (
            5,
            {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
            '"x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
        (5, {"oneOf": [{"minimum": 7}]}, '"x" must validate one and only one schema (oneOf). Found none valid'),
        (5, {"allOf": [{"minimum": 7}]}, '"x" must validate all the schemas (allOf). None validated'),
        (5, {"not": {"minimum": 1}}, '"x" must not validate the schema (not)'),
    ],
)
def test_what_is_wrong_with_values(value: Any, schema: dict[str, Any], expected: str) -> None:
    assert any(error.message.endswith(expected) for error in value_errors(value, schema, "x"))


def test_sets_and_maps_have_nothing_twice() -> None:
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object"},
    }
    [error] = list_type_errors([{"a": 1, "b": 2, "c": 1}, {"a": 1, "b": 2, "c": 2}, {"a": 1, "b": 2}], keyed, "l")
    assert (error.field, error.message) == ("l[1]", 'Duplicate value: {"a":1,"b":2}')
    [error] = list_type_errors(["x", "y", "x"], {"x-kubernetes-list-type": "set"}, "l")
    assert (error.field, error.message) == ("l[2]", 'Duplicate value: "x"')


def test_what_was_wrong_before_and_did_not_change_is_let_be() -> None:
    async def body(client: TestClient) -> None:
        await _define(client, _version({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}))
        await client.ask("POST", _WIDGETS, _widget("w", a=9, b=1))
        seen = await client.ask("GET", f"{_DEFINITIONS}/widgets.g.io")
        part = seen.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        part["a"]["maximum"] = 5
        await client.ask("PUT", f"{_DEFINITIONS}/widgets.g.io", seen.body)
        other = await client.ask("PATCH", f"{_WIDGETS}/w", {"spec": {"b": 2}}, Content_Type=_MERGE)
        assert other.status == 200
        refused = await client.ask("PATCH", f"{_WIDGETS}/w", {"spec": {"a": 8}}, Content_Type=_MERGE)
        assert refused.status == 422

    serve(body)


# -- rules -------------------------------------------------------------------------------------------------------------


def _ruled(*rules: dict[str, Any], **properties: Any) -> dict[str, Any]:
    numbers = {name: {"type": "integer"} for name in ("least", "most")}
    return _version({"properties": {**numbers, **properties}, "x-kubernetes-validations": list(rules)})


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({}, "spec: Invalid value: failed rule: self.least <= self.most"),
        ({"message": "least must not be above most"}, "spec: Invalid value: least must not be above most"),
        ({"messageExpression": "'%d > %d'.format([self.least, self.most])"}, "spec: Invalid value: 3 > 2"),
        ({"fieldPath": ".least", "reason": "FieldValueForbidden"}, "spec.least: Forbidden: failed rule"),
    ],
)
def test_a_rule_that_does_not_hold_refuses(rule: dict[str, Any], told: str) -> None:
    async def body(client: TestClient) -> None:
        await _define(client, _ruled({"rule": "self.least <= self.most", **rule}))
        assert (await client.ask("POST", _WIDGETS, _widget("good", least=1, most=2))).status == 201
        refused = await client.ask("POST", _WIDGETS, _widget("bad", least=3, most=2))
        assert refused.status == 422
        assert told in refused.message

    serve(body)


def test_rules_of_transition_look_at_the_value_before() -> None:
    async def body(client: TestClient) -> None:
        fixed = {"rule": "self == oldSelf", "message": "is fixed"}
        first = {"rule": "oldSelf.hasValue() || self < 5", "optionalOldSelf": True}
        properties = {"color": {"type": "string", "x-kubernetes-validations": [fixed]}}
        properties["start"] = {"type": "integer", "x-kubernetes-validations": [first]}
        await _define(client, _ruled(**properties))
        refused = await client.ask("POST", _WIDGETS, _widget("w", color="red", start=7))
        assert "spec.start: Invalid value: 7: failed rule" in refused.message
        assert (await client.ask("POST", _WIDGETS, _widget("w", color="red", start=1))).status == 201
        later = await client.ask("PATCH", f"{_WIDGETS}/w", {"spec": {"start": 9}}, Content_Type=_MERGE)
        assert later.status == 200
        other = await client.ask("PATCH", f"{_WIDGETS}/w", {"spec": {"color": "blue"}}, Content_Type=_MERGE)
        assert 'spec.color: Invalid value: "blue": is fixed' in other.message

    serve(body)


def test_rules_that_do_not_compile_are_refused_with_their_definition() -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", _DEFINITIONS, _definition(_ruled({"rule": "self.other == 1"})))
        assert refused.status == 422
        at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: "
        assert at + '{"Rule":"self.other == 1"' in refused.message
        assert "undefined field 'other'" in refused.message
        number = await client.ask("POST", _DEFINITIONS, _definition(_ruled({"rule": "self.least"})))
        assert "cel expression must evaluate to a bool" in number.message
        useless = {"rule": "self.least > 0", "optionalOldSelf": True}
        told = await client.ask("POST", _DEFINITIONS, _definition(_ruled(useless)))
        assert "may not be set if oldSelf is not used in rule" in told.message

    serve(body)


def test_a_rule_that_costs_too_much_ends_the_request_alone() -> None:
    numbers = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}
    rule = {"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}

    async def body(client: TestClient) -> None:
        await _define(client, _version({"properties": {"l": {**numbers, "x-kubernetes-validations": [rule]}}}))
        refused = await client.ask("POST", _WIDGETS, _widget("w", l=list(range(500))))
        assert "no further validation rules will be run due to call cost exceeds limit for rule" in refused.message
        assert (await client.ask("POST", _WIDGETS, _widget("w", l=[1]))).status == 201

    serve(body)


def test_names_that_expressions_cannot_write_are_escaped() -> None:
    names = ["plain", "a-b", "a.b/c", "x__y", "namespace", "1st", "a b"]
    assert [escape(name) for name in names] == [
        *("plain", "a__dash__b", "a__dot__b__slash__c", "x__underscores__y", "__namespace__", None, None),
    ]


# -- definitions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array", "items": {"type": "string"}}, "s.type: Invalid value: \"array\": must be object at"),
        ({"type": "object", "properties": {"a": {}}}, "must not be empty for specified object fields"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "s.properties[a].items: Required value"),
        ({"type": "object", "anyOf": [{"type": "object"}]}, "s.anyOf[0].type: Forbidden: must be empty"),
        (
            {"type": "object", "properties": {"a": {"type": "string", "default": 1}}},
            's.properties[a].default: Invalid value: "integer": default in body must be of type string: "integer"',
        ),
        (
            {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {}}}}},
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "array", "items": {}, "uniqueItems": True}}},
            "s.properties[a].uniqueItems: Forbidden",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-list-type": "set"}}},
            "must be array if x-kubernetes-list-type is specified",
        ),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, "must be true or undefined"),
    ],
)  # fmt: skip
def test_schemas_must_be_structural(schema: dict[str, Any], expected: str) -> None:
    assert any(expected in f"{error.field}: {error.message}" for error in schema_errors(schema, "s"))


def test_a_name_that_another_definition_has_is_not_accepted_until_it_is_free() -> None:
    async def body(client: TestClient) -> None:
        await _define(client, _version({}))
        await client.ask("POST", _DEFINITIONS, _definition(_version({}), plural="gadgets"))
        second = await client.ask("GET", f"{_DEFINITIONS}/gadgets.g.io")
        states = {one["type"]: (one["status"], one["reason"]) for one in second.body["status"]["conditions"]}
        assert states == {"NamesAccepted": ("False", "SingularConflict"), "Established": ("False", "NotAccepted")}
        assert (await client.ask("GET", "/apis/g.io/v1/namespaces/default/gadgets")).status == 404
        await client.ask("DELETE", f"{_DEFINITIONS}/widgets.g.io")
        assert (await client.ask("GET", "/apis/g.io/v1/namespaces/default/gadgets")).status == 200

    serve(body)


def test_versions_show_the_same_objects_and_old_ones_warn() -> None:
    async def body(client: TestClient) -> None:
        older = _version({"properties": {"size": {"type": "integer"}}}, storage=False, deprecated=True)
        newer = _version({"properties": {"size": {"type": "integer"}, "color": {"type": "string"}}}, "v2")
        await _define(client, older, newer)
        made = await client.ask("POST", _WIDGETS, _widget("w", size=1))
        assert made.headers["Warning"] == '299 - "g.io/v1 Widget is deprecated"'
        seen = await client.ask("GET", "/apis/g.io/v2/namespaces/default/widgets/w")
        assert (seen.body["apiVersion"], seen.body["spec"]) == ("g.io/v2", {"size": 1})
        group = await client.ask("GET", "/apis/g.io")
        assert group.body["preferredVersion"]["version"] == "v2"

    serve(body)


def test_selectable_fields_choose() -> None:
    async def body(client: TestClient) -> None:
        spec = {"properties": {"color": {"type": "string"}, "on": {"type": "boolean"}}}
        fields = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.on"}]
        await _define(client, _version(spec, selectableFields=fields))
        await client.ask("POST", _WIDGETS, _widget("a", color="red", on=True))
        await client.ask("POST", _WIDGETS, _widget("b", color="blue"))
        for selector, names in (("spec.color=red", ["a"]), ("spec.color!=red", ["b"]), ("spec.on=true", ["a"])):
            listed = await client.ask("GET", f"{_WIDGETS}?fieldSelector={selector}")
            assert [item["metadata"]["name"] for item in listed.body["items"]] == names
        wrong = await client.ask("GET", f"{_WIDGETS}?fieldSelector=spec.size=1")
        assert wrong.message == "field label not supported: spec.size"
        nowhere = _definition(_version(spec, selectableFields=[{"jsonPath": ".spec.size"}]), plural="gadgets", kind="G")
        refused = await client.ask("POST", _DEFINITIONS, nowhere)
        assert "is an invalid path: does not refer to a valid field" in refused.message

    serve(body)


def test_schemas_are_published() -> None:
    async def body(client: TestClient) -> None:
        spec = {"description": "What is wanted", "properties": {"size": {"type": "integer", "nullable": True}}}
        await _define(client, _version(spec))
        for path, place in (("v2", ("definitions",)), ("v3/apis/g.io/v1", ("components", "schemas"))):
            document = (await client.ask("GET", f"/openapi/{path}")).body
            for name in place:
                document = document[name]
            widget = document["io.g.v1.Widget"]
            assert widget["properties"]["spec"]["description"] == "What is wanted"
            assert widget["properties"]["metadata"]["description"].startswith("Standard object's metadata")
            assert widget["x-kubernetes-group-version-kind"] == [{"group": "g.io", "kind": "Widget", "version": "v1"}]
            assert "io.g.v1.WidgetList" in document
        await client.ask("DELETE", f"{_DEFINITIONS}/widgets.g.io")
        assert "io.g.v1.Widget" not in (await client.ask("GET", "/openapi/v2")).body["definitions"]

    serve(body)
