"""Plots for a page, as SVG without any script: bars, levels over time, differences with their intervals, a matrix.

Nodes are drawn as tiles, how full each is, before and after; and the pods that move between them, as a flow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from kubesched.simulator.report_text import exact_span

MOST_BARS = 40
_MOST_POINTS = 500
_WIDTH = 600
_LABELS = 256
_VALUES = 90
_BAR = 20
_LABEL_LENGTH = 32
_SENTENCE_LENGTH = 66
_LETTER = 7.5
"""How wide a letter is, more or less."""
_MOST_COLUMNS = 10
_HEIGHT = 180
_LEFT = 46
_BUCKETS = 10


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    amount: float
    text: str
    tone: str = "a"
    """`a`, `b`, `good` or `bad`."""


def bars(title: str, shown: Sequence[Bar], *, whole: float | None = None) -> str:
    """A bar for each, beside its label, or below it where labels are sentences; `whole` is what a full bar stands for,
    the largest if it is not given. No plot if there is nothing to compare."""
    if not shown or (whole is None and not any(bar.amount > 0 for bar in shown)):
        return ""
    most = whole or max(bar.amount for bar in shown)
    tells = any(" " in bar.label and len(bar.label) > _LABEL_LENGTH for bar in shown[:MOST_BARS])
    left = 0 if tells else min(_LABELS, 16 + max(_LETTER * len(short(bar.label)) for bar in shown[:MOST_BARS]))
    room, step = _WIDTH - left - _VALUES, 2 * _BAR if tells else _BAR
    lines = []
    for position, bar in enumerate(shown[:MOST_BARS]):
        y = position * step
        length = max(0.0, min(1.0, bar.amount / most)) * room
        label = short(bar.label, _SENTENCE_LENGTH if tells else _LABEL_LENGTH)
        place = f'x="0" y="{y + 14}"' if tells else f'x="{left - 8}" y="{y + 14}" text-anchor="end"'
        lines.append(
            f"<g><title>{escape(bar.label)}: {escape(bar.text)}</title>"
            f"<text {place}>{escape(label)}</text>"
            f'<rect class="rail" x="{left}" y="{y + step - 17}" width="{room}" height="14"/>'
            f'<rect class="{bar.tone}" x="{left}" y="{y + step - 17}" width="{length:.1f}" height="14"/>'
            f'<text x="{left + room + 8}" y="{y + step - 6}">{escape(bar.text)}</text></g>'
        )
    more = len(shown) - MOST_BARS
    told = f"{title}: the first {MOST_BARS} of {len(shown):,}" if more > 0 else title
    return figure(told, len(lines) * step, lines)


def shares(title: str, shown: Sequence[tuple[str, float]]) -> str:
    """How full each is; of many, how many are how full."""
    if len(shown) <= MOST_BARS:
        return bars(title, [Bar(name, share, f"{share:.1%}") for name, share in shown], whole=1.0)
    counts = [0] * _BUCKETS
    for _, share in shown:
        counts[min(_BUCKETS - 1, max(0, int(share * _BUCKETS)))] += 1
    found = [
        Bar(f"{low * 100 // _BUCKETS} to {(low + 1) * 100 // _BUCKETS} %", count, f"{count:,}")
        for low, count in enumerate(counts)
    ]
    return bars(f"{title}: how many of {len(shown):,} are how full", found)


def levels(title: str, at: Sequence[float], series: Sequence[tuple[str, Sequence[float]]], unit: str = "") -> str:
    """Up to two numbers over time, each of which stays as it is until the next instant. No plot of a single instant.

    Without a unit, `at` is in seconds."""
    if len(at) < 2 or at[-1] <= at[0]:
        return ""
    step = -(-len(at) // _MOST_POINTS)
    kept = sorted({*range(0, len(at), step), len(at) - 1})
    most = max((max(values) for _, values in series), default=0) or 1
    top = f"{most:,.6g}"
    left = max(_LEFT, 10 + _LETTER * len(top))
    wide, start, span = _WIDTH - left - 10, at[0], at[-1] - at[0]
    lines = []
    for y, label in ((10, top), (_HEIGHT, "0")):
        lines.append(f'<line x1="{left}" x2="{_WIDTH - 10}" y1="{y}" y2="{y}"/>')
        lines.append(f'<text class="dim" x="{left - 6}" y="{y + 4}" text-anchor="end">{label}</text>')
    for (name, values), tone, place in zip(series, "ab", (left, left + 110), strict=False):
        path = []
        for position, index in enumerate(kept):
            x, y = left + (at[index] - start) / span * wide, _HEIGHT - values[index] / most * (_HEIGHT - 10)
            path.append(f"M{x:.1f} {y:.1f}" if not position else f"H{x:.1f}V{y:.1f}")
        lines.append(f'<path class="{tone}" d="{"".join(path)}"/>')
        lines.append(f'<rect class="{tone}" x="{place}" y="{_HEIGHT + 14}" width="10" height="10"/>')
        lines.append(f'<text x="{place + 15}" y="{_HEIGHT + 23}">{escape(name)}</text>')
    ends = f"{start:,.6g} to {at[-1]:,.6g} {unit}" if unit else f"{exact_span(start)} to {exact_span(at[-1])}"
    lines.append(f'<text class="dim" x="{_WIDTH - 10}" y="{_HEIGHT + 23}" text-anchor="end">{escape(ends)}</text>')
    return figure(title, _HEIGHT + 30, lines)


@dataclass(frozen=True, slots=True)
class Difference:
    label: str
    middle: float
    low: float
    high: float
    text: str


def forest(title: str, shown: Sequence[Difference]) -> str:
    """Differences with their intervals beside a line at zero. Each has a scale of its own, since each has its unit."""
    room = _WIDTH - _LABELS - _VALUES
    centre = _LABELS + room / 2
    lines = [f'<line x1="{centre}" x2="{centre}" y1="0" y2="{len(shown[:MOST_BARS]) * _BAR}"/>']
    for position, one in enumerate(shown[:MOST_BARS]):
        y = position * _BAR + 10
        scale = 0.95 * room / 2 / (max(abs(one.low), abs(one.high), abs(one.middle)) or 1)
        low, middle, high = (centre + amount * scale for amount in (one.low, one.middle, one.high))
        lines.append(
            f"<g><title>{escape(one.label)}: {signed(one.middle)} ({signed(one.low)} to {signed(one.high)})</title>"
            f'<text x="{_LABELS - 8}" y="{y + 4}" text-anchor="end">{escape(short(one.label))}</text>'
            f'<line class="a" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="a" cx="{middle:.1f}" cy="{y}" r="4"/>'
            f'<text x="{_LABELS + room + 8}" y="{y + 4}">{escape(one.text)}</text></g>'
        )
    return figure(title, len(shown[:MOST_BARS]) * _BAR, lines) if shown else ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A cell of a matrix: so many of so many are missing."""

    row: str
    column: str
    missing: int
    had: int


def matrix(title: str, hits: Sequence[Hit]) -> str:
    """Rows and columns in the order in which they come first; the more is missing, the darker."""
    rows = list(dict.fromkeys(hit.row for hit in hits))[:MOST_BARS]
    columns = list(dict.fromkeys(hit.column for hit in hits))
    if len(columns) < 2 or len(columns) > _MOST_COLUMNS or not rows:
        return ""
    wide = (_WIDTH - _LABELS) / len(columns)
    lines = [
        f'<text class="dim" x="{_LABELS + (at + 0.5) * wide:.1f}" y="14" text-anchor="middle">'
        f"<title>{escape(column)}</title>{escape(short(column, max(3, int(wide / _LETTER))))}</text>"
        for at, column in enumerate(columns)
    ]
    found = {(hit.row, hit.column): hit for hit in hits}
    for place, row in enumerate(rows, 1):
        y = place * _BAR + 4
        lines.append(f'<text x="{_LABELS - 8}" y="{y + 14}" text-anchor="end">{escape(short(row))}</text>')
        for at, column in enumerate(columns):
            lines.append(_cell(found.get((row, column)), f"{row}, {column}", _LABELS + at * wide, y, wide))
    return figure(title, len(rows) * _BAR + 30, lines, is_dense=True)


def _cell(hit: Hit | None, about: str, x: float, y: float, wide: float) -> str:
    place = f'x="{x + 1:.1f}" y="{y + 1}" width="{wide - 2:.1f}" height="{_BAR - 2}"'
    if hit is None or not hit.missing:
        tone, told = ("rail", "not hit") if hit is None else ("fine", f"all {hit.had} are back")
        return f'<g><title>{escape(about)}: {told}</title><rect class="{tone}" {place}/></g>'
    share = hit.missing / (hit.had or 1)
    return (
        f"<g><title>{escape(about)}: {hit.missing} of {hit.had} are missing</title>"
        f'<rect class="rail" {place}/><rect class="bad" {place} opacity="{0.25 + 0.6 * share:.2f}"/>'
        f'<text x="{x + wide / 2:.1f}" y="{y + 14}" text-anchor="middle">{hit.missing} of {hit.had}</text></g>'
    )


def figure(title: str, height: int, lines: Sequence[str], width: int = _WIDTH, *, is_dense: bool = False) -> str:
    """A wide one takes a row of the page for itself. On a phone letters grow; a dense one, which has no room for
    that, is scrolled."""
    kinds = [*(["dense"] if is_dense else []), *(["full"] if width > _WIDTH else [])]
    return (
        f'<figure class="{" ".join(kinds)}"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">{"".join(lines)}</svg></figure>'
    )


def signed(number: float) -> str:
    return f"{number:+,.0f}" if abs(number) >= 1000 else f"{number:+.3g}"


def short(label: str, length: int = _LABEL_LENGTH) -> str:
    """Of a name with its end, which is what tells nodes apart; of a sentence its beginning."""
    if len(label) <= length:
        return label
    n_first = length - 1 if " " in label else length // 3
    return f"{label[:n_first]}…{label[len(label) - (length - 1 - n_first) :]}"


MOST_TILES = 400
"""More nodes than that are counted, not drawn."""
_MOST_LABELLED = 60
_FEW_TILES = 6
"""So many need half a page."""
_MAP_WIDTH = 1180
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
    width = _MAP_WIDTH if len(tiles) > _FEW_TILES else _HALF_WIDTH
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
    return figure(title, y + 20, lines, width, is_dense=True)


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
    """Bands from where pods are to where they go, as wide as there are pods. Of many ends the smallest are one; no plot
    if most pods go from those to those: that says nothing."""
    if not moves:
        return ""
    links = Counter(zip(_few(source for source, _ in moves), _few(target for _, target in moves), strict=True))
    thickest, n_most = links.most_common(1)[0]
    if thickest not in moves and n_most > len(moves) / 2:
        return ""
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
