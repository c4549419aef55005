"""The page that lists the kinds lists them all, as they are served."""

from __future__ import annotations

from pathlib import Path

from kubesched.playground.apiserver.kinds.registry import ALL_KINDS

_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "api-kinds.md"


def test_the_page_has_a_row_for_every_kind_and_no_other() -> None:
    rows = [line.split(" | ") for line in _PAGE.read_text().splitlines() if line.count(" | ") == 6]
    listed = [(row[0].removeprefix("| "), row[1], row[2]) for row in rows if not row[0].endswith("version")]
    assert listed == [(kind.api_version, kind.kind, kind.plural) for kind in ALL_KINDS]
