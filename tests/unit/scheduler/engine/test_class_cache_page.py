"""The worked example of the page on the class cache: its code runs, and says what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[4] / "docs" / "concepts" / "class-cache.md"


def test_the_worked_example_runs_and_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE.read_text(), re.DOTALL).groups()  # type: ignore[union-attr]
    exec(code, {"__name__": "worked_example"})
    assert capsys.readouterr().out == printed


def test_its_table_adds_up_to_what_is_printed() -> None:
    text = PAGE.read_text()
    rows = re.findall(
        r"^\| (?:web-\d, to n\d|together) \|.*?\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE
    )
    *pods, together = [[int(count) for count in row] for row in rows]
    assert len(pods) == 5
    assert [sum(column) for column in zip(*pods, strict=True)] == together
    names = ("ByNode", "ByAmounts", "ByRow", "SaysNothing")
    assert ", ".join(f"{name} {count}" for name, count in zip(names, together, strict=True)) in text
