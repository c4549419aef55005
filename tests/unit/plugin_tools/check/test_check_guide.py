"""The guide's examples fail the check that they stand under, and no other, with what the guide says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubesched.plugin_tools.check import check_plugin
from kubesched.plugin_tools.check.battery import CHECKS
from kubesched.plugin_tools.check.subject import outside_subjects
from kubesched.scheduler.plugin_loading import plugins_from_files

GUIDE = (Path(__file__).parents[4] / "docs" / "guides" / "check-a-plugin.md").read_text()
SECTIONS = re.findall(r"^### (\w+)\n.*?```python\n(.*?)```\n\n```text\n(.*?)\n```", GUIDE, flags=re.M | re.S)


def test_every_check_has_its_section() -> None:
    assert [name for name, _, _ in SECTIONS] == [check.name for check in CHECKS]


@pytest.mark.parametrize(("name", "code", "problem"), SECTIONS, ids=[name for name, _, _ in SECTIONS])
def test_the_example_fails_its_check_alone(name: str, code: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(code)
    (subject,) = outside_subjects(plugins_from_files([file], enable=True), lambda _name: None, from_files=True)
    report = check_plugin(subject, n_cases=25, costs=False, elsewhere=False)
    assert [result.check for result in report.failed] == [name], report.as_text()
    violation = report.failed[0].violation
    assert violation is not None
    assert problem in violation.problem
