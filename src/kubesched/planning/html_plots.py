"""Plots for a page, as SVG without any script: bars, levels over time, differences with their intervals, a matrix.

Next: `html_maps`, for nodes and for pods that move between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

MOST_BARS = 40
_MOST_POINTS = 500
_WIDTH = 600
_LABELS = 220
_VALUES = 90
_BAR = 20
_LABEL_LENGTH = 26
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
    """A bar for each, beside its label; `whole` is what a full bar stands for, the largest if it is not given. No plot
    if there is nothing to compare."""
    if not shown or (whole is None and not any(bar.amount > 0 for bar in shown)):
        return ""
    most = whole or max(bar.amount for bar in shown)
    left = min(_LABELS, 16 + max(_LETTER * len(short(bar.label)) for bar in shown[:MOST_BARS]))
    room = _WIDTH - left - _VALUES
    lines = []
    for position, bar in enumerate(shown[:MOST_BARS]):
        y = position * _BAR
        length = max(0.0, min(1.0, bar.amount / most)) * room
        lines.append(
            f"<g><title>{escape(bar.label)}: {escape(bar.text)}</title>"
            f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(short(bar.label))}</text>'
            f'<rect class="rail" x="{left}" y="{y + 3}" width="{room}" height="14"/>'
            f'<rect class="{bar.tone}" x="{left}" y="{y + 3}" width="{length:.1f}" height="14"/>'
            f'<text x="{left + room + 8}" y="{y + 14}">{escape(bar.text)}</text></g>'
        )
    more = len(shown) - MOST_BARS
    told = f"{title}: the first {MOST_BARS} of {len(shown):,}" if more > 0 else title
    return figure(told, len(lines) * _BAR, lines)


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


def levels(title: str, at: Sequence[float], series: Sequence[tuple[str, Sequence[float]]], unit: str) -> str:
    """Up to two numbers over time, each of which stays as it is until the next instant. No plot of a single instant."""
    if len(at) < 2 or at[-1] <= at[0]:
        return ""
    step = -(-len(at) // _MOST_POINTS)
    kept = sorted({*range(0, len(at), step), len(at) - 1})
    most = max((max(values) for _, values in series), default=0) or 1
    wide, start, span = _WIDTH - _LEFT - 10, at[0], at[-1] - at[0]
    lines = []
    for y, label in ((10, f"{most:,.6g}"), (_HEIGHT, "0")):
        lines.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y}" y2="{y}"/>')
        lines.append(f'<text class="dim" x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{label}</text>')
    for (name, values), tone, place in zip(series, "ab", (_LEFT, _LEFT + 110), strict=False):
        path = []
        for position, index in enumerate(kept):
            x, y = _LEFT + (at[index] - start) / span * wide, _HEIGHT - values[index] / most * (_HEIGHT - 10)
            path.append(f"M{x:.1f} {y:.1f}" if not position else f"H{x:.1f}V{y:.1f}")
        lines.append(f'<path class="{tone}" d="{"".join(path)}"/>')
        lines.append(f'<rect class="{tone}" x="{place}" y="{_HEIGHT + 14}" width="10" height="10"/>')
        lines.append(f'<text x="{place + 15}" y="{_HEIGHT + 23}">{escape(name)}</text>')
    ends = f"{start:,.6g} to {at[-1]:,.6g} {unit}"
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
            f"<g><title>{escape(one.label)}: {one.middle:+,.3g} ({one.low:+,.3g} to {one.high:+,.3g})</title>"
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
    return figure(title, len(rows) * _BAR + 30, lines)


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


def figure(title: str, height: int, lines: Sequence[str], width: int = _WIDTH) -> str:
    """A wide one takes a row of the page for itself."""
    kind = " class=full" if width > _WIDTH else ""
    return (
        f'<figure{kind}><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}">{"".join(lines)}</svg></figure>'
    )


def short(label: str, length: int = _LABEL_LENGTH) -> str:
    """Of a name with its end, which is what tells nodes apart; of a sentence its beginning."""
    if len(label) <= length:
        return label
    n_first = length - 1 if " " in label else length // 3
    return f"{label[:n_first]}…{label[len(label) - (length - 1 - n_first) :]}"
