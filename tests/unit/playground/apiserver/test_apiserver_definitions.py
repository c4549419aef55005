"""Custom resources: their definitions' life, their scale, and writes that must not be taken for others."""

from __future__ import annotations

import copy
from typing import Any

from apiserver_serving import PODS, TestClient, pod, serve

from kubesched.playground.apiserver.kinds.custom_schema import value_errors
from kubesched.playground.apiserver.kinds.structural_schemas import schema_errors

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WIDGETS = "/apis/g.io/v1/namespaces/default/widgets"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


def _definition() -> dict[str, Any]:
    parts = {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "parts": parts}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n"}},
    }
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "metadata": {"name": "widgets.g.io"},
        "spec": {"group": "g.io", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "g.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def test_a_definition_is_accepted_after_its_creation() -> None:
    async def body(client: TestClient) -> None:
        made = await client.ask("POST", _DEFINITIONS, _definition())
        assert made.body["status"]["conditions"] is None
        seen = await client.ask("GET", f"{_DEFINITIONS}/widgets.g.io")
        assert [one["type"] for one in seen.body["status"]["conditions"]] == ["NamesAccepted", "Established"]
        assert [one["manager"] for one in seen.body["metadata"]["managedFields"]][-1] == "kube-apiserver"

    serve(body)


def test_a_definition_goes_after_its_objects() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _DEFINITIONS, _definition())
        held = _widget("held", size=1)
        held["metadata"]["finalizers"] = ["a/b"]
        await client.ask("POST", _WIDGETS, held)
        await client.ask("POST", _WIDGETS, _widget("free", size=1))
        gone = await client.ask("DELETE", f"{_DEFINITIONS}/widgets.g.io")
        assert gone.body["status"]["conditions"][-1]["type"] == "Terminating"
        left = await client.ask("GET", _WIDGETS)
        assert [one["metadata"]["name"] for one in left.body["items"]] == ["held"]
        await client.ask("PATCH", f"{_WIDGETS}/held", {"metadata": {"finalizers": None}}, Content_Type=_MERGE)
        assert (await client.ask("GET", f"{_DEFINITIONS}/widgets.g.io")).status == 404
        assert (await client.ask("GET", _WIDGETS)).status == 404

    serve(body)


def test_a_custom_resource_is_scaled_where_its_definition_says() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _DEFINITIONS, _definition())
        await client.ask("POST", _WIDGETS, _widget("w", size=2))
        assert (await client.ask("GET", f"{_WIDGETS}/w/scale")).body["spec"] == {"replicas": 2}
        await client.ask("PATCH", f"{_WIDGETS}/w/scale", {"spec": {"replicas": 5}}, Content_Type=_MERGE)
        assert (await client.ask("GET", f"{_WIDGETS}/w")).body["spec"] == {"size": 5}
        wrong = await client.ask("POST", _WIDGETS, _widget("x", size="many"))
        assert ".spec.size accessor error: many is of the type string, expected int64" in wrong.message

    serve(body)


def test_appliers_of_a_custom_resource_own_items_of_its_lists() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _DEFINITIONS, _definition())
        for manager, item in (("one", {"name": "a", "n": 1}), ("two", {"name": "b", "n": 2})):
            where = f"{_WIDGETS}/w?fieldManager={manager}"
            answer = await client.ask("PATCH", where, _widget("w", parts=[item]), Content_Type=_APPLY)
        assert answer.body["spec"]["parts"] == [{"name": "a", "n": 1}, {"name": "b", "n": 2}]

    serve(body)


def test_an_apply_needs_no_version_where_an_update_does() -> None:
    async def body(client: TestClient) -> None:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
        await client.ask("POST", _LEASES, lease)
        assert (await client.ask("PUT", f"{_LEASES}/l", lease)).status == 422
        wanted = {**lease, "spec": {"holderIdentity": "me"}}
        applied = await client.ask("PATCH", f"{_LEASES}/l?fieldManager=m", wanted, Content_Type=_APPLY)
        assert (applied.status, applied.body["spec"]) == (200, {"holderIdentity": "me"})

    serve(body)


def test_a_dry_run_asked_for_in_the_body_deletes_nothing() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", PODS, pod("a"))
        assert (await client.ask("DELETE", f"{PODS}/a", {"dryRun": ["All"]})).status == 200
        assert (await client.ask("GET", f"{PODS}/a")).status == 200
        assert (await client.ask("DELETE", f"{PODS}/a", {"dryRun": ["odd"]})).status == 422

    serve(body)


def test_the_old_watch_paths_only_watch() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", PODS, pod("a"))
        assert (await client.ask("DELETE", "/api/v1/watch/namespaces/default/pods/a")).status == 405
        assert (await client.ask("GET", f"{PODS}/a")).status == 200

    serve(body)


def test_a_manager_owns_what_it_sent_and_not_what_the_server_added() -> None:
    async def body(client: TestClient) -> None:
        made = await client.ask("POST", f"{PODS}?fieldManager=m", pod("a"))
        owned = made.body["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
        assert "f:containers" in owned
        assert not {"f:tolerations", "f:priority", "f:preemptionPolicy"} & owned.keys()

    serve(body)


def _with_pattern(pattern: str) -> dict[str, Any]:
    definition = _definition()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["label"] = {"type": "string", "pattern": pattern}
    return definition


def test_a_pattern_that_is_none_is_refused_with_its_definition() -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", _DEFINITIONS, _with_pattern("(a"))
        assert refused.status == 422
        [cause] = refused.body["details"]["causes"]
        assert cause["field"] == "spec.validation.openAPIV3Schema.properties[spec].properties[label].pattern"
        assert cause["message"] == (
            'Invalid value: "(a": must be a valid regular expression, but isn\'t: '
            "error parsing regexp: missing closing ): `(a`"
        )
        await client.ask("POST", _DEFINITIONS, _definition())
        seen = await client.ask("GET", f"{_DEFINITIONS}/widgets.g.io")
        seen.body["spec"]["versions"] = _with_pattern("[b-a]")["spec"]["versions"]
        changed = await client.ask("PUT", f"{_DEFINITIONS}/widgets.g.io", seen.body)
        assert changed.status == 422

    serve(body)


def test_a_pattern_of_versions_that_differ_is_named_by_its_version() -> None:
    async def body(client: TestClient) -> None:
        definition = _with_pattern("*")
        version = copy.deepcopy(_definition()["spec"]["versions"][0])
        definition["spec"]["versions"].append(version | {"name": "v2", "storage": False})
        refused = await client.ask("POST", _DEFINITIONS, definition)
        [cause] = refused.body["details"]["causes"]
        assert cause["field"] == "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[label].pattern"

    serve(body)


def test_patterns_are_found_in_every_part_of_a_schema() -> None:
    broken = {"pattern": "("}
    schema = {
        "properties": {"a": broken},
        "items": broken,
        "additionalProperties": broken,
        "not": broken,
        "anyOf": [{}, broken],
        "allOf": [broken],
        "oneOf": [{"items": broken}],
    }
    found = schema_errors(schema, "root")
    assert {error.field for error in found if error.field.endswith(".pattern")} == {
        f"root.{place}.pattern"
        for place in (
            *("items", "additionalProperties", "not", "properties[a]", "anyOf[1]", "allOf[0]", "oneOf[0].items"),
        )
    }


def test_a_pattern_made_to_backtrack_costs_no_time() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _DEFINITIONS, _with_pattern("^(a+)+$"))
        good = await client.ask("POST", _WIDGETS, _widget("good", label="a" * 50_000))
        assert good.status == 201
        bad = await client.ask("POST", _WIDGETS, _widget("bad", label="a" * 50_000 + "!"))
        assert bad.status == 422
        assert "spec.label in body should match '^(a+)+$'" in bad.body["message"]

    serve(body)


def test_a_text_that_takes_too_much_work_does_not_match() -> None:
    schema = {"type": "string", "pattern": "(a|b)*a(a|b){500}c"}
    [error] = value_errors("ab" * 100_000, schema, "spec.name")
    assert error.message.endswith("c', but pattern takes too much work on this text")
    [stored] = value_errors("x", {"type": "string", "pattern": "("}, "spec.name")
    assert stored.message.endswith("'(, but pattern is invalid: error parsing regexp: missing closing ): `(`'")
