"""The guide to simulations says what is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched.cli.simulate import TABLES, simulate
from kubesched.k8s.workloads.pod_states import DURATION_ANNOTATION, RESULT_ANNOTATION
from kubesched.simulator.scenario import ScenarioEvent

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "guides" / "simulate.md").read_text()
EXAMPLE = ROOT / "examples" / "simulate"


def test_the_answer_in_the_guide_is_the_answer() -> None:
    (command,) = re.findall(r"^kubesched (simulate -f examples/simulate .*)$", GUIDE, flags=re.M)
    arguments = command.replace("examples/simulate", str(EXAMPLE)).split()
    result = CliRunner().invoke(main, arguments)
    assert f"```text\n{result.stdout}```" in GUIDE


def test_the_scenario_in_the_guide_is_the_example() -> None:
    assert (EXAMPLE / "scenario.yaml").read_text() in GUIDE


@pytest.mark.parametrize(
    "word",
    [
        *(
            option
            for parameter in simulate.params
            for option in parameter.opts
            if option not in ("--filename", "--output")
        ),
        *(f"`{field}" for field in ScenarioEvent.__struct_encode_fields__),
        *TABLES,
        DURATION_ANNOTATION,
        RESULT_ANNOTATION,
    ],
)
def test_the_guide_mentions(word: str) -> None:
    assert word in GUIDE
