"""Notebooks without a notebook server: runs the cells of a file in order, and writes them as a page of the docs site.

    python tools/notebooks.py examples/notebooks/*.ipynb

runs them and prints what each cell shows. Notebooks are kept without outputs and counts.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cell:
    kind: str
    """`markdown` or `code`."""
    source: str
    is_stripped: bool
    """It has no output and no count."""


def cells(path: Path) -> list[Cell]:
    found = json.loads(path.read_text())["cells"]
    return [
        Cell(
            cell["cell_type"],
            "".join(cell["source"]),
            not cell.get("outputs") and cell.get("execution_count") is None,
        )
        for cell in found
    ]


def run(path: Path) -> list[Any]:
    """What each code cell shows: the value of its last expression, None if there is none. Runs in the notebook's
    directory, as a notebook server would."""
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell.source for cell in cells(path) if cell.kind == "code"]
    with _inside(path.parent):
        return [_run_cell(source, names, path) for source in code]


def _run_cell(source: str, names: dict[str, Any], path: Path) -> Any:
    tree = ast.parse(source, str(path))
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, str(path), "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), str(path), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(path), "eval"), names)


@contextmanager
def _inside(directory: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def as_markdown(path: Path) -> str:
    """The cells as a page: texts as they are, code in fences."""
    parts = [cell.source if cell.kind == "markdown" else f"```python\n{cell.source}\n```" for cell in cells(path)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for shown in run(Path(name)):
            print(shown if shown is not None else "")
