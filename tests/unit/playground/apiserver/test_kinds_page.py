"""The page that lists the kinds lists them all, as they are served."""

from __future__ import annotations

from pathlib import Path

from kubesched.playground.apiserver.kinds.registry import ALL_KINDS, NEXT, RULES, kinds_of
from kubesched.playground.apiserver.served_resource import ServedResource

_PAGE = Path(__file__).parents[4] / "docs" / "reference" / "api-kinds.md"


def _row(kind: ServedResource) -> str:
    scope = "namespaced" if kind.namespaced else "cluster"
    short = ", ".join(kind.short_names) or "–"
    subresources = ", ".join(sorted(kind.subresources)) or "–"
    cells = (kind.api_version, kind.kind, kind.plural, short, scope, subresources, _checked_by(kind))
    return f"| {' | '.join(cells)} |"


def _checked_by(kind: ServedResource) -> str:
    if kind.verbs == ("create",):
        return "answered, not stored"
    return "own rules" if (kind.api_version, kind.kind) in RULES else "schema and metadata"


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.count(" | ") == 6][1:]


def test_the_page_has_a_row_for_every_kind_and_no_other() -> None:
    today, _, later = _PAGE.read_text().partition("\n## In v1.37\n")
    assert _rows(today) == [_row(kind) for kind in ALL_KINDS]
    known = {kind.api_version for kind in ALL_KINDS}
    assert _rows(later) == [_row(kind) for kind in kinds_of(NEXT) if kind.api_version not in known]
