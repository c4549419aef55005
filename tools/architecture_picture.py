"""Draws the house: its rooms, what is inside them, and who imports whom, as the code is now.

`make docs` writes docs/pictures/architecture.svg. Rooms and the layers inside them come from import-linter's contracts
in pyproject.toml, what a room is from the first sentence of its package, and arrows and rows from the import graph: a
room stands below all that import it. An arrow that others imply is left out: if A imports B, and B imports C, A's own
imports of C say nothing new. The same source gives the same bytes.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
PACKAGE = "kubesched"

_BOX_WIDTH = 250
_LINE = 15
_GAP = 26
_ROW_GAP = 46
_MARGIN = 20
_WIRE = 18
_STYLE = """
  text { font-family: system-ui, sans-serif; fill: #1f2937 }
  .room { fill: #eef2ff; stroke: #4f5fc4; stroke-width: 1.3 }
  .name { font-size: 14px; font-weight: 600 }
  .what { font-size: 11px }
  .inner { font-size: 11px; fill: #4f5fc4 }
  .wire { fill: none; stroke: #7c86b8; stroke-width: 1.3 }
  .head { fill: #7c86b8 }
  .paper { fill: #ffffff }
"""


@dataclass(frozen=True)
class Room:
    """A package right below ours: what it is in a sentence, and its own layers, if any, from top to bottom."""

    name: str
    what: str
    inner: tuple[str, ...] = ()

    @property
    def lines(self) -> list[tuple[str, str]]:
        words = textwrap.wrap(self.what, 40, max_lines=4, placeholder=" …")
        inner = [line for layer in self.inner for line in textwrap.wrap(layer, 40)]
        return [("name", self.name), *(("what", line) for line in words), *(("inner", line) for line in inner)]


@dataclass
class Spot:
    """A place in a row: a room, or where an arrow passes between rooms."""

    room: Room | None
    above: list[Spot] = field(default_factory=list)
    x: float = 0.0

    @property
    def width(self) -> int:
        return _BOX_WIDTH if self.room else _WIRE


def layers(pyproject: Mapping[str, object], container: str = PACKAGE) -> list[list[str]]:
    """The layers of `container`, from top to bottom, as its contract has them; none without a contract."""
    contracts = pyproject["tool"]["importlinter"]["contracts"]  # type: ignore[index]
    for contract in contracts:
        if contract["type"] == "layers" and container in contract.get("containers", []):
            return [re.findall(r"[\w.]+", layer) for layer in contract["layers"]]
    return []


def imports(rooms: Sequence[str]) -> dict[str, set[str]]:
    """Whom each room imports, without what follows from others."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    names = {room: f"{PACKAGE}.{room}" for room in rooms}
    direct = {
        a: {
            b
            for b in rooms
            if a != b and graph.direct_import_exists(importer=names[a], imported=names[b], as_packages=True)
        }
        for a in rooms
    }
    return {a: {b for b in bs if not any(b in _reached(direct, c) for c in bs - {b})} for a, bs in direct.items()}


def _reached(direct: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in direct[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def first_sentence(package: Path) -> str:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    sentence = re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()), maxsplit=1)[0]
    return sentence.rstrip(".").replace("`", "")


def arrange(rows: Sequence[Sequence[Room]], edges: Mapping[str, set[str]]) -> list[list[Spot]]:
    """Rooms row by row, with a spot in every row that an arrow passes, each near those above that lead to it."""
    spots: list[list[Spot]] = [[Spot(room) for room in row] for row in rows]
    home = {spot.room.name: (n, spot) for n, row in enumerate(spots) for spot in row if spot.room}
    for name in sorted(edges):
        for target in sorted(edges[name]):
            (start, upper), (end, lower) = home[name], home[target]
            for n in range(start + 1, end):
                passing = Spot(None, [upper])
                spots[n].append(passing)
                upper = passing
            lower.above.append(upper)
    for row in spots:
        centre = {id(spot): sum(other.x for other in spot.above) / len(spot.above) for spot in row if spot.above}
        row.sort(key=lambda spot: (centre.get(id(spot), 0.0), spot.room.name if spot.room else ""))
        x = -sum(spot.width + _GAP for spot in row) / 2
        for spot in row:
            spot.x = x + spot.width / 2
            x += spot.width + _GAP
    return spots


def draw(spots: Sequence[Sequence[Spot]]) -> str:
    left = min(spot.x - spot.width / 2 for row in spots for spot in row) - _MARGIN
    right = max(spot.x + spot.width / 2 for row in spots for spot in row) + _MARGIN
    boxes: list[str] = []
    wires: list[str] = []
    bottoms: dict[int, float] = {}
    y = float(_MARGIN)
    for row in spots:
        height = max((len(spot.room.lines) for spot in row if spot.room), default=0) * _LINE + 16
        for spot in row:
            for other in sorted(spot.above, key=lambda one: one.x):
                start, middle = bottoms[id(other)], (bottoms[id(other)] + y) / 2
                wires.append(
                    f'<path class="wire" d="M{other.x:.0f},{start:.0f} C{other.x:.0f},{middle:.0f} '
                    f'{spot.x:.0f},{middle:.0f} {spot.x:.0f},{y:.0f}"/>'
                )
            if spot.room:
                if spot.above:
                    wires.append(f'<path class="head" d="M{spot.x:.0f},{y:.0f} l-4,-7 l8,0 z"/>')
                boxes += _box(spot.room, spot.x, y, height)
            else:
                wires.append(f'<path class="wire" d="M{spot.x:.0f},{y:.0f} v{height}"/>')
            bottoms[id(spot)] = y + height
        y += height + _ROW_GAP
    size = f"{left:.0f} 0 {right - left:.0f} {y - _ROW_GAP + _MARGIN:.0f}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img">',
            "<title>The rooms of kubesched: each imports only from rooms below it</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" x="{left:.0f}" y="0" width="100%" height="100%"/>',
            *wires,
            *boxes,
            "</svg>\n",
        ]
    )


def _box(room: Room, x: float, y: float, height: float) -> list[str]:
    left = x - _BOX_WIDTH / 2
    box = f'<rect class="room" x="{left:.0f}" y="{y:.0f}" width="{_BOX_WIDTH}" height="{height:.0f}" rx="6"/>'
    texts = [
        f'<text class="{style}" x="{left + 9:.0f}" y="{y + 19 + n * _LINE:.0f}">{escape(line)}</text>'
        for n, (style, line) in enumerate(room.lines)
    ]
    return [box, *texts]


def _inside(pyproject: Mapping[str, object], package: Path) -> tuple[str, ...]:
    """The layers inside a room, from top to bottom; its packages in one line if they have none."""
    inner = layers(pyproject, f"{PACKAGE}.{package.name}")
    packages = sorted(path.parent.name for path in package.glob("*/__init__.py"))
    return tuple(" · ".join(layer) for layer in inner or [packages] if layer)


def in_rows(rooms: Sequence[Room], edges: Mapping[str, set[str]]) -> list[list[Room]]:
    """Rooms, given in an order in which none imports an earlier one, each in the first row below all that import it."""
    row_of: dict[str, int] = {}
    for room in rooms:
        row_of[room.name] = max((row_of[name] + 1 for name in row_of if room.name in edges[name]), default=0)
    return [[room for room in rooms if row_of[room.name] == n] for n in range(max(row_of.values()) + 1)]


def picture(root: Path) -> str:
    """The whole picture, as SVG."""
    pyproject = tomllib.loads((root / "pyproject.toml").read_text())
    packages = [root / "src" / PACKAGE / name for layer in layers(pyproject) for name in layer]
    rooms = [Room(path.name, first_sentence(path), _inside(pyproject, path)) for path in packages]
    edges = imports([room.name for room in rooms])
    return draw(arrange(in_rows(rooms, edges), edges))


if __name__ == "__main__":
    PICTURE.write_text(picture(ROOT))
