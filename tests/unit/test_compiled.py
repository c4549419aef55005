"""Compiled modules: which are, how to do without them, and that they decide as their source does."""

from __future__ import annotations

import ast
import json
import os
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_IS_COMPILED = find_spec("kubesched__mypyc") is not None

_HISTORY = """
import hashlib, json, sys
from random import Random
import kubesched
from harness.trials import hold, random_cluster
from kubesched.scheduler.engine import loop

def told(answer):
    return hashlib.sha256(repr(answer).encode()).hexdigest()

found = []
for seed in range(int(sys.argv[1])):
    objects = random_cluster(8, Random(seed))
    found.append(told(kubesched.simulate(objects, seed=seed, until="1h").to_dict()))
    world = kubesched.world(objects, seed=seed)
    found += [told(hold(world, str(number))) for number in range(5)]
print(json.dumps([not loop.__file__.endswith(".py"), found]))
"""


def _history(n_seeds: int, *, pure: bool) -> tuple[bool, list[str]]:
    paths = os.pathsep.join([*os.environ.get("PYTHONPATH", "").split(os.pathsep), str(ROOT / "tests")])
    environment = {**os.environ, "KUBESCHED_PURE": "1" if pure else "0", "PYTHONPATH": paths}
    command = [sys.executable, "-c", _HISTORY, str(n_seeds)]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    is_compiled, found = json.loads(out)
    return is_compiled, found


def test_the_modules_to_compile_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBESCHED_COMPILE", raising=False)
    monkeypatch.setattr("setuptools.setup", lambda **given: None)
    made = runpy.run_path(str(ROOT / "setup.py"))
    assert made["extensions"]() == []
    assert [name for name in made["COMPILED"] if not (ROOT / name).is_file()] == []
    assert made["COMPILED"] == sorted(made["COMPILED"])


def test_who_inherits_from_a_compiled_class_is_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreted class cannot, which nobody notices as long as the source runs."""
    monkeypatch.setattr("setuptools.setup", lambda **given: None)
    compiled = {ROOT / name for name in runpy.run_path(str(ROOT / "setup.py"))["COMPILED"]}
    classes = [
        (path, statement)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.ClassDef)
    ]
    parents = {statement.name for path, statement in classes if path in compiled}
    heirs = [
        f"{path.relative_to(ROOT)}: {statement.name}"
        for path, statement in classes
        if path not in compiled and parents & {base.id for base in statement.bases if isinstance(base, ast.Name)}
    ]
    assert heirs == []


def test_an_environment_variable_gives_the_source() -> None:
    is_compiled, _ = _history(0, pure=True)
    assert not is_compiled


@pytest.mark.skipif(not _IS_COMPILED, reason="nothing is compiled: `make test-compiled` runs this")
def test_compiled_modules_decide_as_their_source_does() -> None:
    is_compiled, found = _history(12, pure=False)
    assert is_compiled
    assert _history(12, pure=True) == (False, found)
