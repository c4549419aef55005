"""The picture of the house shows the house: drawn again, it is the same; and it is drawn right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import architecture_picture as drawing

ROOT = Path(__file__).parents[2]


def test_the_picture_is_up_to_date() -> None:
    assert drawing.PICTURE.read_text() == drawing.picture(ROOT), "run `make docs`"


def test_an_import_that_others_imply_has_no_arrow() -> None:
    edges = drawing.imports(["cli", "scheduler", "framework", "k8s"])
    assert edges["scheduler"] == {"framework"}
    assert edges["framework"] == {"k8s"}
    assert edges["k8s"] == set()


def test_a_room_stands_below_all_that_import_it() -> None:
    rooms = [drawing.Room(name, "") for name in "abcd"]
    rows = drawing.in_rows(rooms, {"a": {"c"}, "b": {"d"}, "c": {"d"}, "d": set()})
    assert [[room.name for room in row] for row in rows] == [["a", "b"], ["c"], ["d"]]


def test_an_arrow_over_several_rows_passes_between_rooms() -> None:
    rooms = [drawing.Room(name, "") for name in "abc"]
    edges: dict[str, set[str]] = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    rows = drawing.arrange(drawing.in_rows(rooms, edges), edges)
    assert [[spot.room.name if spot.room else "" for spot in row] for row in rows] == [["a"], ["", "b"], ["c"]]
    passing, room = rows[1]
    assert abs(passing.x - room.x) >= (passing.width + room.width) / 2


@pytest.mark.parametrize("layer", ["a | b", "a : b"])
def test_layers_are_read_as_the_import_linter_reads_them(layer: str) -> None:
    contract = {"type": "layers", "containers": ["kubesched"], "layers": [layer, "c"]}
    assert drawing.layers({"tool": {"importlinter": {"contracts": [contract]}}}) == [["a", "b"], ["c"]]
