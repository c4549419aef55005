"""The threat model names tests that exist, and none of its defences goes without one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| (?!threat |---|who )(.+) \|$", re.MULTILINE)
SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
NAMED = _TEST.findall(PAGE.read_text())


@cache
def _tests_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "test"), NAMED, ids=[test for _, test in NAMED])
def test_a_test_that_is_named_exists(file: str, test: str) -> None:
    assert (ROOT / file).exists(), f"{file} is gone"
    assert test in _tests_of(file)


def test_every_defence_names_a_test() -> None:
    for section in SECTIONS:
        if "| threat | defence | tested by |" not in section:
            continue
        for row in _ROW.findall(section):
            assert _TEST.search(row), row


def test_every_room_that_can_be_reached_has_its_section() -> None:
    titles = " ".join(section.partition("\n")[0] for section in SECTIONS)
    for room in (
        "API server",
        "State directory",
        "web page",
        "secure port",
        "Extender",
        "hostile cluster",
        "command line",
    ):
        assert room in titles


def test_what_is_not_defended_is_said() -> None:
    assert PAGE.read_text().count("Not defended: ") >= 5


def test_there_is_a_way_to_report() -> None:
    assert "Reporting a vulnerability" in (ROOT / "SECURITY.md").read_text()
