"""Nodes as tiles, how full each is, before and after; and the pods that move between them, as a flow. SVG."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from kubesched.planning.html_plots import figure, short

MOST_TILES = 400
"""More nodes than that are counted, not drawn."""
_MOST_LABELLED = 60
_FEW_TILES = 6
"""So many need half a page."""
_WIDTH = 1180
_HEADING = 24
_MOST_ENDS = 24
_HALF_WIDTH = 600
_FLOW_LABELS = 190


@dataclass(frozen=True, slots=True)
class Tile:
    """A node: how full it is of each resource, and was."""

    name: str
    group: str
    shares: Mapping[str, float]
    before: Mapping[str, float]
    """Empty if nothing changes."""
    fate: str = ""
    """`goes`, `comes`, or nothing."""


def node_map(title: str, tiles: Sequence[Tile]) -> str:
    """A tile for each node, under a heading for each group. A pale bar is how full it was. No map of too many."""
    if not tiles or len(tiles) > MOST_TILES:
        return ""
    is_labelled = len(tiles) <= _MOST_LABELLED
    wide, high = (190, 52) if is_labelled else (46, 26)
    width = _WIDTH if len(tiles) > _FEW_TILES else _HALF_WIDTH
    n_columns = width // (wide + 6)
    groups: dict[str, list[Tile]] = {}
    for tile in tiles:
        groups.setdefault(tile.group, []).append(tile)
    lines, y = [], 0
    for group in sorted(groups):
        if group:
            lines.append(f'<text class="dim" x="0" y="{y + 16}">{escape(group)}: {len(groups[group])}</text>')
            y += _HEADING
        for at, tile in enumerate(groups[group]):
            row, column = divmod(at, n_columns)
            lines.append(_drawn(tile, column * (wide + 6), y + row * (high + 6), wide, high, is_labelled))
        y += -(-len(groups[group]) // n_columns) * (high + 6) + 6
    resources = list(dict.fromkeys(name for tile in tiles for name in (*tile.shares, *tile.before)))
    legend = [*zip("ab", resources, strict=False), *(_FATES[f] for f in ("goes", "comes") if _has(tiles, f))]
    for place, (tone, text) in enumerate(legend):
        x = place * 110
        lines.append(f'<rect class="{tone}" x="{x + 1}" y="{y + 5}" width="10" height="10"/>')
        lines.append(f'<text x="{x + 16}" y="{y + 14}">{escape(text)}</text>')
    return figure(title, y + 20, lines, width)


_FATES = {"goes": ("tile goes", "goes"), "comes": ("tile comes", "comes")}


def _has(tiles: Sequence[Tile], fate: str) -> bool:
    return any(tile.fate == fate for tile in tiles)


def _drawn(tile: Tile, x: int, y: int, wide: int, high: int, is_labelled: bool) -> str:
    told = "; ".join(_told(name, tile) for name in (tile.shares or tile.before))
    parts = [
        f"<g><title>{escape(tile.name)}{f' {tile.fate}' if tile.fate else ''}: {escape(told)}</title>",
        f'<rect class="tile {tile.fate}" x="{x + 1}" y="{y + 1}" width="{wide - 2}" height="{high - 2}" rx="4"/>',
    ]
    if is_labelled:
        parts.append(f'<text x="{x + 8}" y="{y + 16}">{escape(short(tile.name, 24))}</text>')
    top, room = (y + 22, wide - 62) if is_labelled else (y + 5, wide - 10)
    for place, (name, tone) in enumerate(zip(tile.shares or tile.before, "ab", strict=False)):
        bar_y, left = top + place * (12 if is_labelled else 9), x + (8 if is_labelled else 5)
        share, was = tile.shares.get(name, 0.0), tile.before.get(name, 0.0)
        parts += [
            f'<rect class="{kind}" x="{left}" y="{bar_y}" width="{min(1.0, part) * room:.1f}" height="7"/>'
            for kind, part in (("rail", 1.0), (f"{tone} was", was), (tone, share))
            if part
        ]
        if is_labelled:
            text = "" if tile.fate == "goes" else _percent(share)
            parts.append(f'<text class="dim" x="{x + wide - 8}" y="{bar_y + 8}" text-anchor="end">{text}</text>')
    return f"{''.join(parts)}</g>"


def _told(name: str, tile: Tile) -> str:
    now = _percent(tile.shares.get(name, 0.0))
    return f"{name} {_percent(tile.before[name])}, then {now}" if name in tile.before else f"{name} {now}"


def _percent(share: float) -> str:
    """Rounded down, as the tables are: a node that is nearly full is not full."""
    return f"{math.floor(100 * share + 1e-9)} %"


def flow(title: str, moves: Sequence[tuple[str, str]]) -> str:
    """Bands from where pods are to where they go, as wide as there are pods. Of many ends the smallest are one."""
    if not moves:
        return ""
    links = Counter(zip(_few(source for source, _ in moves), _few(target for _, target in moves), strict=True))
    ends = [Counter[str](), Counter[str]()]
    for (source, target), n in links.items():
        ends[0][source] += n
        ends[1][target] += n
    gap, per_pod = 6, max(1.5, min(14.0, 420 / len(moves)))
    sides = [[name for name, _ in sorted(side.items(), key=lambda one: (-one[1], one[0]))] for side in ends]
    starts = [_starts(side, counts, per_pod, gap) for side, counts in zip(sides, ends, strict=True)]
    height = max(starts[at][side[-1]] + ends[at][side[-1]] * per_pod for at, side in enumerate(sides))
    left, right = _FLOW_LABELS, _HALF_WIDTH - _FLOW_LABELS
    lines = []
    used = [dict(one) for one in starts]
    for source in sides[0]:
        for target in sides[1]:
            n = links.get((source, target), 0)
            if not n:
                continue
            thick = n * per_pod
            y1, y2 = used[0][source], used[1][target]
            used[0][source], used[1][target] = y1 + thick, y2 + thick
            middle = (left + right) / 2
            lines.append(
                f'<g><title>{escape(source)} to {escape(target)}: {n}</title><path class=band d="'
                f"M{left + 6} {y1:.1f}C{middle} {y1:.1f} {middle} {y2:.1f} {right - 6} {y2:.1f}"
                f'v{thick:.1f}C{middle} {y2 + thick:.1f} {middle} {y1 + thick:.1f} {left + 6} {y1 + thick:.1f}z"/></g>'
            )
    for at, side in enumerate(sides):
        x, anchor, text_x = ((left, "end", left - 8), (right - 6, "start", right + 8))[at]
        for name in side:
            y, thick = starts[at][name], ends[at][name] * per_pod
            lines.append(f'<rect class="{"ab"[at]}" x="{x}" y="{y:.1f}" width="6" height="{thick:.1f}"/>')
            label = escape(f"{short(name, 20)} ({ends[at][name]:,})")
            lines.append(f'<text x="{text_x}" y="{y + thick / 2 + 4:.1f}" text-anchor="{anchor}">{label}</text>')
    return figure(title, int(height) + 8, lines)


def _few(names: Iterable[str]) -> list[str]:
    """Those that are least often there have one name together."""
    found = list(names)
    counts = Counter(found)
    if len(counts) <= _MOST_ENDS:
        return found
    kept = {name for name, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[: _MOST_ENDS - 1]}
    others = f"{len(counts) - len(kept)} others"
    return [name if name in kept else others for name in found]


def _starts(side: Sequence[str], counts: Mapping[str, int], per_pod: float, gap: int) -> dict[str, float]:
    found, y = {}, 4.0
    for name in side:
        found[name] = y
        y += max(16.0, counts[name] * per_pod + gap)
    return found
