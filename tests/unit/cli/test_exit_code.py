"""`--exit-code`: 1 if a pod is or stays unschedulable, for scripts; without it, an answer is a success."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched.testing import make

GATED = {"schedulingGates": [{"name": "example.com/quota"}]}
FITTING, HUGE = make.pod("fits", requests={"cpu": "1"}), make.pod("huge", requests={"cpu": "64"})
OBJECTS = [make.node("n", cpu="4"), FITTING, HUGE, make.pod("bound", on="n"), make.pod("gated", spec=GATED)]


def code(tmp_path: Path, *arguments: str, objects: list[make.Manifest] = OBJECTS) -> int:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return CliRunner().invoke(main, [*arguments, "-f", str(path)]).exit_code


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("fits",), 0),
        (("pod/fits",), 0),
        (("fits", "-n", "default"), 0),
        (("bound",), 0),
        (("huge",), 1),
        (("gated",), 1),
        (("namespace/default",), 1),
        (("node/n",), 1),
        (("fits", "--node", "n"), 0),
        (("huge", "--node", "n"), 1),
        (("nobody",), 2),
    ],
)
def test_explain(asked: tuple[str, ...], expected: int, tmp_path: Path) -> None:
    assert code(tmp_path, "explain", *asked, "--exit-code") == expected
    assert code(tmp_path, "explain", *asked) == (2 if expected == 2 else 0)


def test_simulate(tmp_path: Path) -> None:
    assert code(tmp_path, "simulate", "--exit-code") == 1
    assert code(tmp_path, "simulate") == 0
    assert code(tmp_path, "simulate", "--exit-code", objects=OBJECTS[:2]) == 0
    assert code(tmp_path, "simulate", "--exit-code", "--config", "/nowhere") == 2
