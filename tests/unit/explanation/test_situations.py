"""For every situation: the first line names the true cause, and the nearest nodes come first."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace

import pytest
from situations.situation import SITUATIONS, Situation

from kubesched.explanation.answer import Explanation
from kubesched.explanation.layout import Style
from kubesched.explanation.text import render
from kubesched.simulator.asking import explain

for module in ("amounts", "places", "volumes", "before", "mixed_amounts", "mixed_places", "mixed_volumes"):
    importlib.import_module(f"situations.{module}")

NEVER_FIRST = {"raise-priority"}
MOST_LINES = 27


@pytest.fixture(scope="module", params=sorted(SITUATIONS))
def told(request: pytest.FixtureRequest) -> tuple[Situation, Explanation]:
    found = SITUATIONS[request.param]()
    return found, explain(found.objects, found.pod)


def test_there_are_enough() -> None:
    assert len(SITUATIONS) >= 140


def test_the_first_line_names_the_cause(told: tuple[Situation, Explanation]) -> None:
    situation, explanation = told
    first = render(explanation).splitlines()[0]
    assert explanation.cause.kind.value == situation.cause, first
    assert [part for part in situation.says if part not in first] == [], first
    assert [part for part in situation.silent_about if part in first] == [], first


def test_colours_change_nothing_but_the_colour(told: tuple[Situation, Explanation]) -> None:
    _, explanation = told
    for plain in (Style(), Style(width=60), Style(wide=True)):
        coloured = render(explanation, replace(plain, paint=lambda tone, text: f"\x1b<{tone.value}>{text}\x1b<>"))
        assert coloured.startswith(("\x1b<bad>", "\x1b<good>"))
        assert re.sub(r"\x1b<\w*>", "", coloured) == render(explanation, plain)


def test_the_nearest_nodes_come_first(told: tuple[Situation, Explanation]) -> None:
    situation, explanation = told
    if situation.nearest:
        assert explanation.groups[0].nodes[0].name in situation.nearest
        assert explanation.cause.nodes[0] in situation.nearest
        first_row = next(line for line in render(explanation).splitlines() if "internal" in line and line[0] == " ")
        assert any(name in first_row for name in situation.nearest), first_row


def test_what_is_proposed_first_is_acceptable(told: tuple[Situation, Explanation]) -> None:
    situation, explanation = told
    kinds = [change.kind.value for change in explanation.changes]
    if situation.first_change:
        assert kinds[0] in situation.first_change, [change.description for change in explanation.changes]
    if kinds:
        assert kinds[0] not in NEVER_FIRST
        first = explanation.changes[0]
        assert "kubernetes.io/arch" not in first.description or kinds[0] in ("add-node", "correct")
        assert kinds[0] != "tolerate" or situation.first_change == ("tolerate",)
    assert all(change.cost for change in explanation.changes)


def test_it_is_short(told: tuple[Situation, Explanation]) -> None:
    _, explanation = told
    text = render(explanation)
    assert len(text.splitlines()) <= MOST_LINES, text
