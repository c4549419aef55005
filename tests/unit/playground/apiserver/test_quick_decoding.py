"""The quick way of reading objects gives what the careful one gives, or leaves the object to it."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.playground.apiserver.openapi.decoding import CloserLookError, _read_struct, read_struct
from kubesched.playground.apiserver.openapi.go_json import needs_no_restoring, restore_error, restore_whole_numbers
from kubesched.playground.apiserver.openapi.schemas import ValueType, type_of_kind
from kubesched.playground.apiserver.served_resource import DecodeError

_KINDS = (("", "v1", "Pod"), ("", "v1", "Node"), ("apps", "v1", "Deployment"), ("", "v1", "Event"))
_SCALARS = st.sampled_from(
    [
        None,
        "",
        "x",
        0,
        1,
        -1,
        True,
        False,
        "100m",
        "1.5Gi",
        "2026-01-01T00:00:00Z",
        "2026-01-01T01:00:00.5+01:00",
        2**40,
    ]
)


def _fitting(of: ValueType, depth: int) -> st.SearchStrategy[Any]:
    """Values that mostly fit the type."""
    fits: st.SearchStrategy[Any]
    match of.form:
        case "struct":
            fits = st.fixed_dictionaries({}) if depth == 0 else _struct(of, depth)
        case "list":
            assert of.element is not None
            fits = st.lists(_fitting(of.element, depth - 1), max_size=2)
        case "map":
            assert of.element is not None
            fits = st.dictionaries(st.sampled_from("bac"), _fitting(of.element, depth - 1), max_size=3)
        case "string":
            fits = st.sampled_from(["", "x"])
        case "integer" | "int-or-string":
            fits = st.sampled_from([0, 1, 80])
        case "boolean":
            fits = st.booleans()
        case "quantity":
            fits = st.sampled_from(["100m", "0.1", "1024Mi", "0"])
        case "time" | "micro-time":
            fits = st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T01:00:00.500000+01:00"])
        case _:
            return _SCALARS
    return st.one_of(fits, fits, fits, fits, fits, fits, st.none())


@st.composite
def _struct(draw: st.DrawFn, of: ValueType, depth: int) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(of.fields)), unique=True, max_size=5))
    found = {name: draw(_fitting(of.fields[name].type, depth - 1)) for name in names}
    if draw(st.integers(0, 30)) == 0:
        found[draw(st.sampled_from([*names, "unheardOf"]))] = draw(_SCALARS)
    return found


def _carefully(obj: dict[str, Any], of: ValueType) -> tuple[Any, list[str]]:
    unknown: list[str] = []
    try:
        return _read_struct(obj, of, "", "", unknown), unknown
    except DecodeError:
        return None, unknown


def _quickly(obj: dict[str, Any], of: ValueType) -> Any:
    try:
        return read_struct(obj, of)
    except (CloserLookError, DecodeError):
        return None


@given(st.data(), st.sampled_from(_KINDS))
@settings(max_examples=300)
def test_both_ways_of_reading_give_the_same_in_the_same_order(data: st.DataObject, kind: tuple[str, str, str]) -> None:
    of = type_of_kind(*kind)
    assert of is not None
    obj = data.draw(_struct(of, 6))
    careful, unknown = _carefully(copy.deepcopy(obj), of)
    quick = _quickly(obj, of)
    if quick is not None:
        assert not unknown
        assert repr(quick) == repr(careful)  # the order of fields counts too
    elif careful is not None and not unknown:
        assert "None" in repr(obj), "only nulls within lists and maps are left to the careful way"


@given(st.data(), st.sampled_from(_KINDS))
@settings(max_examples=300)
def test_what_needs_no_restoring_has_no_error_and_does_not_change(
    data: st.DataObject, kind: tuple[str, str, str]
) -> None:
    of = type_of_kind(*kind)
    assert of is not None
    obj = data.draw(_struct(of, 6))
    number = data.draw(st.sampled_from(["replicas", "generation", "priority", "count", "unknown"]))
    obj[data.draw(st.sampled_from(["spec", "metadata", number]))] = {
        number: data.draw(st.sampled_from([1, 1.0, 1.5, "1"]))
    }
    if needs_no_restoring(obj, of):
        restored = copy.deepcopy(obj)
        restore_whole_numbers(restored, of)
        assert restore_error(obj, of) == ""
        assert repr(restored) == repr(obj)
    else:
        restored = copy.deepcopy(obj)
        restore_whole_numbers(restored, of)
        assert restore_error(obj, of) or repr(restored) != repr(obj) or "data" in repr(obj)
