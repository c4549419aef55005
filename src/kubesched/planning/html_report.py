"""A report as one HTML file: the answer, plots, the report as text, tables to sort and filter, what was assumed.

Nothing is fetched from anywhere, every text is escaped, and a policy in the page lets no other script run than its own.
Long tables are cut, so that a page stays small however large the cluster is.

Next: `report_pages`, which says what is on the page of each command; `html_plots` for the plots.
"""

from __future__ import annotations

import base64
import hashlib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, ClassVar, Self

from kubesched.explanation.layout import readable
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.simulator.column_table import Cell, ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge, exposition
from kubesched.simulator.guesses import check_unguessed
from kubesched.simulator.report_text import exact_span

MOST_ROWS = 300
_MOST_TABLE_BYTES = 180_000
_MOST_LINES = 300
_FEW_LINES = 25
_MOST_CELL = 300
_LONG_CELL = 48
"""A text that is longer is broken into lines, in a column that is wide enough to read it; a name never is."""
_LINE = 140
_ROWS_TO_FILTER = 8
_OF_THE_RESOURCE = ("allocatable", "requested", "stranded")


@dataclass(frozen=True, slots=True)
class ReportPage:
    command: str
    """`kubesched outage`."""
    headline: str
    tone: str
    """`good`, `bad`, or nothing."""
    text: str
    """The report as it is printed, without its headline."""
    plots: tuple[str, ...]
    """SVG."""
    tables: Mapping[str, ColumnTable]
    assumptions: tuple[str, ...]

    def to_html(self) -> str:
        tables = "".join(_section(name, found) for name, found in self.tables.items() if len(found))
        assumed = "".join(f"<li>{escape(one)}</li>" for one in self.assumptions)
        parts = [
            self._top(),
            _text_section(self.text),
            tables,
            f"<section><h2>Assumptions</h2><ul>{assumed}</ul></section>" if assumed else "",
        ]
        return whole_page(f"{self.command}: {self.headline}", chr(10).join(filter(None, parts)), _SCRIPT)

    def first_screen(self) -> str:
        """For a notebook, among other things: no script, and a style that reaches nothing else."""
        return (
            f"<style>.kubesched-page{{{_STYLE}}}</style><div class=kubesched-page><main>"
            f"{self._top()}{_text_section(self.text, _FEW_LINES)}</main></div>"
        )

    def _top(self) -> str:
        plots = f"\n<section class=plots>{''.join(self.plots)}</section>" if self.plots else ""
        return (
            f"<header><p class=dim>{escape(self.command)}</p>"
            f'<h1 class="{escape(self.tone)}">{escape(self.headline)}</h1></header>{plots}'
        )


def whole_page(title: str, body: str, script: str, style: str = "") -> str:
    """A page of HTML that needs nothing else, and whose policy lets no other script run than its own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>body{{margin:0}}.kubesched-page{{{_STYLE}{style}}}</style></head>\n"
        f"<body class=kubesched-page><main>{body}</main>\n<script>{script}</script></body></html>\n"
    )


class ReportAsPage:
    """What a report of the library can do that has a page."""

    __slots__ = ()
    command: ClassVar[str]
    """`kubesched outage`."""

    if TYPE_CHECKING:

        @property
        def assumptions(self) -> tuple[str, ...]: ...
        @property
        def gauges(self) -> tuple[Gauge, ...]: ...

    def to_page(self) -> ReportPage:
        from kubesched.planning.report_pages import page_of

        return page_of(self)

    def to_html(self) -> str:
        """The report as one page that needs nothing else, as `--report` writes it."""
        return self.to_page().to_html()

    def to_prometheus(self) -> str:
        """The answer in numbers, in the text format of metrics."""
        return exposition(self.gauges)

    def strictly(self) -> Self:
        """The report, if nothing had to be guessed about the cluster. Raises GuessedError, which names each guess."""
        check_unguessed(self)
        return self

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        return self.to_page().first_screen()


def _text_section(text: str, most: int = _MOST_LINES) -> str:
    lines = [part for line in text.strip("\n").splitlines() for part in _lines(line)]
    if not lines:
        return ""
    more = len(lines) - most
    told = f"<p class=dim>and {more} more lines (-o wide prints them)</p>" if more > 0 else ""
    shown = escape("\n".join(lines[:most]))
    return f"<section><h2>Summary</h2><pre>{shown}</pre>{told}</section>"


def _lines(line: str) -> list[str]:
    """A long sentence in several lines; the row of a table, which has gaps in it, stays as it is."""
    text = line.lstrip()
    if len(line) <= _LINE or "  " in text:
        return [line]
    indent = " " * (len(line) - len(text))
    return textwrap.wrap(text, _LINE, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def _section(name: str, found: ColumnTable) -> str:
    rows: list[str] = []
    n_bytes = 0
    shown = list(found)[:MOST_ROWS]
    columns = [(at, column) for at, column in enumerate(found.kinds) if any(row[at] not in (None, "") for row in shown)]
    names = list(found.kinds)
    for row in shown:
        resource = str(row[names.index("resource")]) if "resource" in names else ""
        line = f"<tr>{''.join(_cell(column, row[at], resource) for at, column in columns)}</tr>"
        n_bytes += len(line.encode())
        if n_bytes > _MOST_TABLE_BYTES:
            break
        rows.append(line)
    title = escape(name.replace("_", " ").capitalize())
    cut = f"the first {len(rows):,} of {len(found):,} rows" if len(rows) < len(found) else f"{len(found):,}"
    search = (
        f'<input type="search" placeholder="Filter" aria-label="Filter {title}">'
        if len(rows) >= _ROWS_TO_FILTER
        else ""
    )
    heads = "".join(_head(column, found.kinds[column]) for _, column in columns)
    return (
        f"<section><h2>{title} <small class=dim>{cut}</small>{search}</h2><div class=wide><table>"
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _head(column: str, kind: ColumnKind) -> str:
    title = column.removesuffix("_bytes").removesuffix("_milli").removesuffix("_s").replace("_", " ")
    if column.endswith("_percent"):
        title = f"{column.removesuffix('_percent').replace('_', ' ')}, %"
    side = "" if kind is ColumnKind.UTF8 else " class=n"
    return f"<th{side}><button>{escape(title)}</button></th>"


def _cell(column: str, cell: Cell, resource: str) -> str:
    if cell is None:
        return "<td></td>"
    if isinstance(cell, str):
        text = cell if len(cell) <= _MOST_CELL else f"{cell[: _MOST_CELL - 1]}…"
        return f"<td{' class=long' if len(cell) > _LONG_CELL else ''}>{escape(text)}</td>"
    return f'<td class=n data-v="{cell}">{escape(shown_number(column, cell, resource))}</td>'


def shown_number(column: str, number: float, resource: str = "") -> str:
    """As people read it; what it counts is known from the column's name, or from the resource that its row is about."""
    if column.endswith("_bytes"):
        return readable(MEMORY, int(number))
    if column.endswith("_milli"):
        return readable(CPU, int(number))
    if column in _OF_THE_RESOURCE and resource:
        return readable(resource, int(number))
    if column.endswith("_s"):
        return exact_span(number)
    if column.endswith("share"):
        return f"{number:.1%}"
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"


_STYLE = """
--bg:#fff;--fg:#1f2328;--dim:#59636e;--line:#d1d9e0;--soft:#f6f8fa;--good:#1a7f37;--bad:#c4321c;--a:#0969da;
--b:#bf5b00;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;
@media (prefers-color-scheme:dark){--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--line:#3d444d;--soft:#161b22;
--good:#3fb950;--bad:#ff7b6b;--a:#58a6ff;--b:#e3973e}
*{box-sizing:border-box}
main{max-width:80rem;margin:0 auto;padding:1.5rem}
header p{margin:0}h1{font-size:1.45rem;line-height:1.3;margin:.2rem 0 1.2rem;overflow-wrap:anywhere}
h1.good{color:var(--good)}h1.bad{color:var(--bad)}
h2{font-size:1.05rem;margin:1.6rem 0 .5rem;display:flex;gap:.7rem;align-items:baseline}
small{font-weight:400;font-size:.85rem}.dim{color:var(--dim)}
input{margin-left:.5rem;font:inherit;font-size:.85rem;padding:.15rem .5rem;border:1px solid var(--line);
border-radius:6px;background:var(--bg);color:var(--fg)}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.8rem 1rem;overflow-x:auto;
font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace;margin:0}
.wide{overflow:auto;max-height:34rem;border:1px solid var(--line);border-radius:6px;width:fit-content;max-width:100%;
min-width:min(100%,30rem)}
table{border-collapse:collapse;width:100%;font-size:.85rem}
th,td{padding:.3rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);white-space:nowrap}
td.long{white-space:normal;min-width:18rem;overflow-wrap:anywhere}
tbody tr:last-child td{border-bottom:0}th{position:sticky;top:0;background:var(--soft)}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid var(--a)}
th[aria-sort=ascending] button::after{content:" ↑"}th[aria-sort=descending] button::after{content:" ↓"}
.n{text-align:right;font-variant-numeric:tabular-nums}
.plots{columns:2 30rem;column-gap:1rem}
figure{margin:0 0 1rem;border:1px solid var(--line);border-radius:6px;padding:.8rem 1rem;break-inside:avoid;
overflow-x:auto}
figcaption{font-weight:600;margin-bottom:.4rem}svg{width:100%;max-width:38rem;height:auto;display:block}
svg text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--fg)}svg .dim{fill:var(--dim)}
svg .rail{fill:var(--soft)}svg .a{fill:var(--a)}svg .b{fill:var(--b)}svg .bad{fill:var(--bad)}
svg .good{fill:var(--good)}
svg path.a{fill:none;stroke:var(--a);stroke-width:2}svg path.b{fill:none;stroke:var(--b);stroke-width:2}
svg line{stroke:var(--line)}svg line.a{stroke:var(--a);stroke-width:2}
svg .fine{fill:var(--good);opacity:.25}svg .was{opacity:.3}svg .band{fill:var(--a);opacity:.3}
svg g:hover>.band{opacity:.65}.full{column-span:all}.full svg{max-width:none}
@media (max-width:40rem){svg{overflow:visible}svg text{font-size:16px}
.dense svg{min-width:34rem}.dense.full svg{min-width:52rem}.dense svg text{font-size:12px}}
svg .tile{fill:var(--bg);stroke:var(--line)}svg .goes{stroke:var(--bad);stroke-dasharray:4 3}
svg .comes{stroke:var(--good);stroke-width:2}
@media print{--bg:#fff;--fg:#000;--dim:#444;--line:#bbb;--soft:#f4f4f4;--good:#1a7f37;--bad:#c4321c;--a:#0969da;
--b:#bf5b00;main{max-width:none;padding:0}input{display:none}.wide{overflow:visible;max-height:none}th,td{white-space:normal}
pre{white-space:pre-wrap}figure,tr{break-inside:avoid}h2{break-after:avoid}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""

_SCRIPT = """
for (const section of document.querySelectorAll("section")) {
  const body = section.querySelector("tbody");
  if (!body) continue;
  const heads = [...section.querySelectorAll("th")];
  heads.forEach((head, at) => head.firstChild.addEventListener("click", () => {
    const isFalling = head.ariaSort === "ascending";
    for (const other of heads) other.ariaSort = null;
    head.ariaSort = isFalling ? "descending" : "ascending";
    const isNumber = head.classList.contains("n");
    const value = row => {
      const cell = row.cells[at];
      return isNumber ? (cell.dataset.v === undefined ? null : Number(cell.dataset.v)) : cell.textContent;
    };
    const order = (one, two) => {
      const a = value(one), b = value(two);
      if (a === null || b === null) return (a === null) - (b === null);
      const ahead = isNumber ? a - b : a.localeCompare(b, "en", {numeric: true});
      return isFalling ? -ahead : ahead;
    };
    body.append(...[...body.rows].sort(order));
  }));
  const wanted = section.querySelector("input");
  if (wanted) wanted.addEventListener("input", () => {
    const words = wanted.value.toLowerCase().split(/\\s+/);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
  });
}
"""
