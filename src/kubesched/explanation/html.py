"""Answers as HTML for notebooks: the headline, tables and lists, with a style of their own for light and dark.

Nothing in it is code or comes from elsewhere, and every text is escaped. Next: `kubesched.simulator.report_text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from kubesched.explanation.layout import WHAT_WOULD_HELP, counted, listed

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.scheduler.engine.score import ScoreOutcome

NODES_SHOWN = 8
GROUPS_SHOWN = 12
NAMES_SHOWN = 4
CHANGES_SHOWN = 6

_STYLE = """<style>
.kubesched{--line:#d0d7de;--dim:#57606a;--bad:#b42318;--good:#1a7f37;font-size:13px;line-height:1.45;max-width:72em}
.kubesched p{margin:.3em 0}.kubesched .head{font-weight:600}.kubesched .bad{color:var(--bad)}
.kubesched .good{color:var(--good)}.kubesched .dim{color:var(--dim)}
.kubesched table{border-collapse:collapse;margin:.4em 0;font-size:12px}
.kubesched th,.kubesched td{border-bottom:1px solid var(--line);padding:.15em .8em .15em 0;text-align:left;
vertical-align:top;background:none;color:inherit}
.kubesched .n{text-align:right;font-variant-numeric:tabular-nums}.kubesched ol{margin:.2em 0 .4em 1.6em;padding:0}
@media (prefers-color-scheme:dark){.kubesched{--line:#444c56;--dim:#9aa4af;--bad:#ff938a;--good:#56d364}}
[data-jp-theme-light="false"] .kubesched,.vscode-dark .kubesched{--line:#444c56;--dim:#9aa4af;--bad:#ff938a;
--good:#56d364}
[data-jp-theme-light="true"] .kubesched,.vscode-light .kubesched{--line:#d0d7de;--dim:#57606a;--bad:#b42318;
--good:#1a7f37}
</style>"""


def block(*parts: str) -> str:
    """The whole of an answer."""
    return f'{_STYLE}<div class="kubesched">{"".join(parts)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """`kind` is one of head, good, bad and dim, or several."""
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Numbers are set to the right; what is missing is left empty."""
    lines = [f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows]
    titles = "".join(f"<th>{escape(title)}</th>" for title in header)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if lines else ""


def _cell(cell: object) -> str:
    kind = ' class="n"' if isinstance(cell, int | float) else ""
    text = "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)
    return f"<td{kind}>{escape(text)}</td>"


def numbered(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ol>{items}</ol>" if items else ""


def explanation_html(explanation: Explanation) -> str:
    headline = paragraph(explanation.headline, "head good" if explanation.fits else "head bad")
    return block(headline, *explanation_tables(explanation))


def explanation_tables(explanation: Explanation) -> list[str]:
    """All but the headline, for a page that has a style."""
    return [*_fitting(explanation.judged), *_rejected(explanation), *_changes(explanation)]


def _fitting(explanation: Explanation) -> list[str]:
    scored = None if explanation.decision is None else explanation.decision.scored
    if scored is None:
        return []
    names = scored.nodes.names
    order = sorted(range(len(names)), key=lambda position: (-int(scored.total[position]), names[position]))
    rows = [_score_row(scored, position) for position in order[:NODES_SHOWN]]
    more = len(order) - len(rows)
    return [
        html_table(["node that fits", "total", *(scores.plugin for scores in scored.by_plugin)], rows),
        paragraph(f"and {counted(more, 'more node')} that fit" if more > 0 else "", "dim"),
    ]


def _score_row(scored: ScoreOutcome, position: int) -> list[object]:
    by_plugin = [int(scores.weighted[position]) for scores in scored.by_plugin]
    return [scored.nodes.names[position], int(scored.total[position]), *by_plugin]


def _rejected(explanation: Explanation) -> list[str]:
    groups = explanation.groups
    rows = [(len(group.nodes), listed(group.names, NAMES_SHOWN), group.summary()) for group in groups[:GROUPS_SHOWN]]
    more = sum(len(group.nodes) for group in groups[GROUPS_SHOWN:])
    return [
        html_table(["nodes", "the nearest to fitting first", "why not"], rows),
        paragraph(f"and {counted(more, 'more node')}, further from fitting" if more else "", "dim"),
    ]


def _changes(explanation: Explanation) -> list[str]:
    changes = explanation.changes
    if not changes:
        return []
    more = len(changes) - CHANGES_SHOWN
    return [
        paragraph(WHAT_WOULD_HELP, "dim"),
        numbered(_told(change.description, change.cost) for change in changes[:CHANGES_SHOWN]),
        paragraph(f"and {counted(more, 'more change')} (.changes)" if more > 0 else "", "dim"),
    ]


def _told(description: str, cost: str) -> str:
    return f"{description}; {cost}" if cost else description
