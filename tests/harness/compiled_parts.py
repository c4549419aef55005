"""A plugin of pytest for `make test-compiled`: who puts something of their own in place of a compiled part is skipped.

Compiled code does not look its own parts up by name, so that a planted bug, or a part that stands in for another, would
not be met. Such tests say something about tests, and run on the source.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest


def _is_of_compiled(target: object) -> bool:
    if isinstance(target, str):
        owner = target.rpartition(".")[0]
        return any(_is_compiled_module(owner[:end]) for end, letter in enumerate(f"{owner}.") if letter == ".")
    if isinstance(target, ModuleType):
        return _is_compiled_module(target.__name__)
    kind = target if isinstance(target, type) else type(target)
    return any(_is_compiled_module(base.__module__) for base in kind.__mro__)


def _is_compiled_module(name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return name.startswith("kubesched.") and file is not None and not file.endswith(".py")


_replace_attribute = pytest.MonkeyPatch.setattr


def _replace_unless_compiled(self: pytest.MonkeyPatch, target: Any, *rest: Any, **options: Any) -> None:
    if _is_of_compiled(target):
        pytest.skip("a compiled part cannot be replaced")
    _replace_attribute(self, target, *rest, **options)


_NOT_COMPILED = ("test_a_run_of_the_fault_simulation_is_reproduced",)
"""Tests that give a running loop another class, which a compiled one does not take."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name.partition("[")[0] in _NOT_COMPILED:
            item.add_marker(pytest.mark.skip(reason="a compiled object keeps its class"))


def pytest_configure() -> None:
    pytest.MonkeyPatch.setattr = _replace_unless_compiled  # type: ignore[method-assign]
