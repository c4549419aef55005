"""Server-side apply: who owns what, conflicts, forcing, and what goes away."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_objects import NOW, PODS, create, pod, resource_of

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.patching.apply import apply, record
from kubesched.playground.apiserver.patching.field_sets import print_path, read_fields, write_fields
from kubesched.playground.apiserver.served_resource import Object

CONFIG_MAPS = resource_of("v1", "configmaps")


def _map(**data: str) -> Object:
    return {"metadata": {"name": "cm"}, "data": data}


def _apply(live: Object | None, applied: Object, manager: str, force: bool = False) -> Object:
    return apply(live, applied, CONFIG_MAPS, manager, force, NOW)


def _owned(obj: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"].get("f:data") for entry in obj["metadata"]["managedFields"]}


def test_the_first_apply_owns_what_it_sets() -> None:
    assert _owned(_apply(None, _map(a="1", b="2"), "m1")) == {"m1": {"f:a": {}, "f:b": {}}}


def test_a_second_manager_may_own_the_same_value() -> None:
    live = _apply(None, _map(a="1", b="2"), "m1")
    both = _apply(live, _map(a="1"), "m2")
    assert _owned(both) == {"m1": {"f:a": {}, "f:b": {}}, "m2": {"f:a": {}}}
    assert both["data"] == {"a": "1", "b": "2"}


def test_another_value_conflicts_and_names_every_field() -> None:
    live = _apply(None, _map(a="1", b="2"), "m1")
    with pytest.raises(StatusError) as refusal:
        _apply(live, _map(a="9", b="8", c="3"), "m2")
    assert refusal.value.code == 409
    assert refusal.value.message == 'Apply failed with 2 conflicts: conflicts with "m1":\n- .data.a\n- .data.b'
    assert refusal.value.details == {
        "causes": [
            {"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": f".data.{name}"}
            for name in "ab"
        ]
    }


def test_forcing_takes_the_field_over() -> None:
    live = _apply(None, _map(a="1", b="2"), "m1")
    forced = _apply(live, _map(a="9"), "m2", force=True)
    assert forced["data"] == {"a": "9", "b": "2"}
    assert _owned(forced) == {"m1": {"f:b": {}}, "m2": {"f:a": {}}}


def test_what_a_manager_no_longer_applies_goes_away_unless_shared() -> None:
    live = _apply(_apply(None, _map(a="1", b="2"), "m1"), _map(a="1"), "m2")
    assert _apply(live, _map(), "m1")["data"] == {"a": "1"}


def test_an_updater_takes_fields_without_asking_and_conflicts_later() -> None:
    live = _apply(None, _map(a="1"), "m1")
    changed = copy.deepcopy(live)
    changed["data"]["a"] = "2"
    record(changed, live, CONFIG_MAPS, "editor", "", NOW)
    assert _owned(changed) == {"editor": {"f:a": {}}}
    with pytest.raises(StatusError, match=r'conflict with "editor" using v1: \.data\.a'):
        _apply(changed, _map(a="1"), "m1")


def test_an_unchanged_write_changes_no_owner() -> None:
    live = _apply(None, _map(a="1"), "m1")
    same = copy.deepcopy(live)
    record(same, live, CONFIG_MAPS, "editor", "", "2027-01-01T00:00:00Z")
    assert same == live
    assert _apply(live, _map(a="1"), "m1") == live


def test_one_empty_entry_clears_all_owners() -> None:
    live = _apply(None, _map(a="1"), "m1")
    cleared = copy.deepcopy(live)
    cleared["metadata"]["managedFields"] = [{}]
    record(cleared, live, CONFIG_MAPS, "editor", "", NOW)
    assert "managedFields" not in cleared["metadata"]


def test_objects_without_owners_belong_to_a_manager_of_before() -> None:
    with pytest.raises(StatusError, match='conflict with "before-first-apply" using v1'):
        _apply(_map(a="1"), _map(a="2"), "m1")


def test_creating_a_pod_owns_its_defaults_but_not_what_admission_added() -> None:
    stored, _ = create(PODS, pod())
    (entry,) = stored["metadata"]["managedFields"]
    spec = entry["fieldsV1"]["f:spec"]
    assert spec["f:containers"]['k:{"name":"c"}']["f:imagePullPolicy"] == {}
    assert "f:tolerations" not in spec
    assert "f:status" not in entry["fieldsV1"]


def test_list_items_are_owned_by_their_keys_with_defaults_filled_in() -> None:
    applied = pod(containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}])
    obj = apply(None, applied, PODS, "m1", False, NOW)
    ports = obj["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:containers"]['k:{"name":"c"}']["f:ports"]
    assert ports == {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}


def test_a_conflict_within_a_list_names_the_item() -> None:
    live = apply(None, pod(containers=[{"name": "c", "image": "i"}]), PODS, "m1", False, NOW)
    with pytest.raises(StatusError, match=r'conflict with "m1": \.spec\.containers\[name="c"\]\.image'):
        apply(live, pod(containers=[{"name": "c", "image": "j"}]), PODS, "m2", False, NOW)


@pytest.mark.parametrize(
    ("applied", "why"),
    [
        pytest.param(pod(foo=1), ".spec.foo: field not declared in schema", id="an unknown field"),
        pytest.param(
            pod(containers=[{"name": "c"}, {"name": "c"}]),
            '.spec.containers: duplicate entries for key [name="c"]',
            id="an item twice",
        ),
        pytest.param(
            {"metadata": {"name": True}},
            ".metadata.name: expected string, got &value.valueUnstructured{Value:true}",
            id="a wrong type",
        ),
    ],
)
def test_a_configuration_that_does_not_fit_the_schema_is_refused(applied: Object, why: str) -> None:
    with pytest.raises(StatusError) as refusal:
        apply(None, applied, PODS, "m1", False, NOW)
    assert refusal.value.code == 500
    assert refusal.value.message.endswith(f"; /v1, Kind=Pod): {why}")


_PATHS = st.frozensets(
    st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}', 'v:"x"']), min_size=1, max_size=3).map(tuple), max_size=6
)


@given(_PATHS)
def test_field_sets_survive_being_stored(paths: frozenset[tuple[str, ...]]) -> None:
    assert read_fields(write_fields(paths)) == paths


def test_paths_are_printed_as_messages_show_them() -> None:
    assert print_path(("f:spec", 'k:{"name":"c"}', 'v:"x"', "i:2")) == '.spec[name="c"][="x"][2]'


_DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@given(_DATA, _DATA, _DATA)
def test_forced_applies_set_exactly_what_they_say_and_leave_the_rest(
    first: dict[str, str], second: dict[str, str], again: dict[str, str]
) -> None:
    live = _apply(_apply(None, _map(**first), "m1"), _map(**second), "m2", force=True)
    assert live["data"] == {**first, **second}
    final = _apply(live, _map(**again), "m1", force=True)
    assert final["data"] == {**second, **again}
    assert _apply(final, _map(**again), "m1") == final
