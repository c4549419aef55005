"""Which plugins a file has, and what is told of a file that has none or cannot be read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kubesched.scheduler.config import ConfigError
from kubesched.scheduler.plugin_loading import plugins_from_classes, plugins_from_files

GOOD = """
from __future__ import annotations
from dataclasses import dataclass
from kubesched.framework import OK, Status
from kubesched.scheduler.plugins.node_name import NodeName       # imported, so not one of this file

@dataclass(frozen=True)
class QuietArgs:
    label: str = "quiet"

class _Shared:
    def filter_node(self, cycle, pod, node):
        return OK

class Quiet(_Shared):
    name = "Quiet"
    args_type = QuietArgs

class Loud(_Shared):
    name = "Loud"

class Neither:
    name = "no extension point, so no plugin"
"""


@pytest.fixture
def write(tmp_path: Path) -> object:
    def write(text: str, name: str = "my.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_every_plugin_of_the_file_itself_is_found(write: object) -> None:
    path = write(GOOD)  # type: ignore[operator]
    found = plugins_from_files([path], enable=True)
    assert sorted(found.classes) == ["Loud", "Quiet"]
    assert found.enabled == {"Loud", "Quiet"}
    assert found.origins == {"Loud": str(path), "Quiet": str(path)}
    assert not plugins_from_files([path], enable=False).enabled
    assert {"Quiet", "Loud", "NodeName"} <= found.registry().keys()


def test_a_file_is_read_anew_every_time_even_within_the_same_instant(write: object) -> None:
    text = 'from kubesched.framework import OK\nclass A:\n    name = "A"\n    answer = 1\n    filter_node = None\n'
    text = text.replace("    filter_node = None\n", "    def filter_node(self, cycle, pod, node): return OK\n")
    before = plugins_from_files([write(text)], enable=True)  # type: ignore[operator]
    after = plugins_from_files([write(text.replace("answer = 1", "answer = 2"))], enable=True)  # type: ignore[operator]
    assert (before.classes["A"].answer, after.classes["A"].answer) == (1, 2)  # type: ignore[attr-defined]


def test_a_file_that_broke_leaves_the_module_that_worked(write: object) -> None:
    found = plugins_from_files([write(GOOD)], enable=True)  # type: ignore[operator]
    module = found.classes["Quiet"].__module__
    with pytest.raises(ConfigError):
        plugins_from_files([write("1 / 0")], enable=True)  # type: ignore[operator]
    assert sys.modules[module].Quiet is found.classes["Quiet"]


BROKEN = [
    pytest.param("x = (", "line 1: SyntaxError: '(' was never closed", id="a syntax error"),
    pytest.param(
        "import os\nimport nothing_of_that_name",
        "line 2: ModuleNotFoundError: No module named 'nothing_of_that_name'",
        id="an import that fails",
    ),
    pytest.param("def f():\n    return {}['a']\nf()", "line 2: KeyError: 'a'", id="code that raises"),
    pytest.param("raise SystemExit(1)", "line 1: SystemExit: 1", id="code that exits"),
    pytest.param("\0", "SyntaxError: source code string cannot contain null bytes", id="no text at all"),
    pytest.param("x = 1", "no plugin in it", id="nothing in it"),
    pytest.param(
        'class A:\n    name = "A"\n    def filter_nodes(self): ...',
        "no plugin in it: class A has no method of an extension point (pre_enqueue, sort_key, pre_filter, filter, "
        "filter_node, post_filter, pre_score, score, score_node, reserve, permit, pre_bind, bind, post_bind, "
        "generate_placements, score_placement)",
        id="a class without an extension point",
    ),
    pytest.param(
        "class A:\n    def filter_node(self, cycle, pod, node): ...", "A: has no `name`", id="a class without a name"
    ),
    pytest.param(
        "class A:\n    name = 5\n    def filter_node(self, cycle, pod, node): ...",
        "A: has no `name`",
        id="a name that is none",
    ),
    pytest.param(
        'class A:\n    name = "my plugin"\n    def filter_node(self, cycle, pod, node): ...',
        "A: name: 'my plugin' cannot be the name of a plugin",
        id="a name with a space",
    ),
    pytest.param(
        'class A:\n    name = "NodeName"\n    def filter_node(self, cycle, pod, node): ...',
        "the plugin NodeName is also in kubesched itself: a name stands for one plugin only",
        id="the name of an in-tree plugin",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    def filter_node(self, cycle, pod, node): ...\nclass B(A): pass',
        "the plugin A is twice in it: a name stands for one plugin only",
        id="a name twice",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    def filter_node(self, cycle, pod): ...',
        "line 3: A.filter_node: takes (cycle, pod), but is called with (cycle, pod, node)",
        id="too few parameters",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    def score(self, cycle, pod, nodes, more): ...',
        "line 3: A.score: takes (cycle, pod, nodes, more), but is called with (cycle, pod, nodes)",
        id="too many parameters",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    def permit(self, *given): ...\n    def events_to_register(self, x): ...',
        "line 4: A.events_to_register: takes (x), but is called with nothing",
        id="parameters where none are given",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    async def permit(self, cycle, pod, node_name): ...',
        "line 3: A.permit: must not be async: nothing in the scheduler waits",
        id="async",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    def filter_node(self, cycle, pod, node): yield',
        "line 3: A.filter_node: must return its answer, not yield",
        id="a generator where none is wanted",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    def pre_filter(self, cycle, pod, nodes): ...\n'
        "    def add_pod(self, cycle, pod, added, node): ...",
        "line 4: A.add_pod: without remove_pod it is never asked",
        id="half a pair",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    filter_scope = "node"\n    def filter_node(self, cycle, pod, node): ...',
        "A: filter_scope: 'node' is not a Scope",
        id="a scope that is none",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    args_type = dict\n    def filter_node(self, cycle, pod, node): ...',
        "A: args_type: <class 'dict'> is not a dataclass",
        id="arguments that are no dataclass",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    default_weight = 0\n    def score_node(self, cycle, pod, node): ...',
        "A: default_weight: 0 is not a whole number above 0",
        id="a weight of nothing",
    ),
    pytest.param(
        'class A:\n    name = "A"\n    def __init__(self, a, b, c): ...\n    def permit(self, c, p, n): ...',
        "line 3: A.__init__: needs a, b, c; it is given args and handle at most",
        id="a constructor that wants too much",
    ),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_is_wrong_with_a_file_is_told_with_its_line(write: object, text: str, message: str) -> None:
    path = write(text)  # type: ignore[operator]
    with pytest.raises(ConfigError) as caught:
        plugins_from_files([path], enable=True)
    assert str(caught.value) == f"{path}: {message}"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.py: No such file or directory"):
        plugins_from_files([tmp_path / "gone.py"], enable=True)


def test_the_same_name_in_two_files_is_an_error_that_names_both(write: object) -> None:
    first, second = write(GOOD), write(GOOD, "other.py")  # type: ignore[operator]
    with pytest.raises(ConfigError) as caught:
        plugins_from_files([first, second], enable=True)
    assert str(caught.value) == (f"{second}: the plugin Loud is also in {first}: a name stands for one plugin only")


def test_classes_are_given_as_classes() -> None:
    with pytest.raises(ConfigError, match="a plugin is given as its class, not as 7"):
        plugins_from_classes([7])  # type: ignore[list-item]
