"""The tutorial is true: each command of each lesson, on one playground, prints what the lesson shows."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground_process import why_no_kubectl

from harness.tutorial import GUIDES, PAGES, ROOT, Picture, Step, Student, read_page


@pytest.fixture
def student(tmp_path: Path) -> Iterator[Student]:
    student = Student(tmp_path)
    yield student
    student.stop()


def _give_stand_in(student: Student, folder: Path) -> None:
    stand_in = folder / "kubectl"
    stand_in.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / "small_kubectl.py"} "$@"\n')
    stand_in.chmod(0o755)
    student.use_kubectl_from(folder)


def _follow(student: Student, pages: list[Path]) -> None:
    for page in pages:
        for step in read_page(page):
            if isinstance(step, Picture):
                assert step.path.exists()
                continue
            printed = student.follow(step)
            assert step.is_as_shown(printed), f"{page.name}: $ {step.command}\n" + "\n".join(printed)


def test_every_command_prints_what_its_lesson_shows(student: Student, tmp_path: Path) -> None:
    assert len(PAGES) == 8
    if why_no_kubectl():
        _give_stand_in(student, tmp_path)
    _follow(student, PAGES)


def test_the_stand_in_for_kubectl_prints_the_same(student: Student, tmp_path: Path) -> None:
    """The whole tutorial runs with it where there is no kubectl; elsewhere the first lessons show that it is true."""
    _give_stand_in(student, tmp_path)
    _follow(student, PAGES[:3])


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_command_of_a_guide_prints_what_it_shows(guide: Path, student: Student, tmp_path: Path) -> None:
    if why_no_kubectl():
        _give_stand_in(student, tmp_path)
    _follow(student, [guide])


def test_a_lesson_that_is_not_true_is_found() -> None:
    step = Step("kubectl get pod web", ["NAME   AGE", "web    4s"])
    assert step.is_as_shown(["NAME   AGE", "web    2m10s"])
    assert not step.is_as_shown(["NAME   AGE", "big    4s"])
    assert not step.is_as_shown(["NAME   AGE", "web    4s", "big    4s"])
    assert Step("kubectl get pods", ["NAME", "…"]).is_as_shown(["NAME", "web", "big"])
    assert not Step("kubectl get pods", ["NAME", "…"]).is_as_shown(["POD", "web", "big"])


def test_every_manifest_of_the_tutorial_is_in_a_lesson() -> None:
    shown = "\n".join(page.read_text() for page in PAGES)
    for path in (ROOT / "examples" / "tutorial").rglob("*.yaml"):
        assert str(path.relative_to(ROOT)) in shown


def test_the_plugin_is_in_its_lesson_word_by_word() -> None:
    code = re.search(r"```python\n(.*?)```", PAGES[-1].read_text(), re.DOTALL)
    source = (ROOT / "examples" / "tutorial" / "07-plugin" / "one_tenant.py").read_text()
    assert code is not None
    assert code[1] in source
