"""Writes the reference page of the library (docs/reference/library.md) from what `kubesched` exports, with docstrings.

python tools/library_page.py
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubesched
from kubesched.simulator.report import ReportPlots

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "library.md"

_INTRODUCTION = """\
# The library

What `import kubesched` has. [In a notebook](../guides/notebook.md) shows how it goes together.

This page is generated from the code (`tools/library_page.py`).
"""


def page() -> str:
    exported = [(name, getattr(kubesched, name)) for name in dir(kubesched) if not name.startswith("_")]
    functions = [(name, item) for name, item in exported if inspect.isfunction(item)]
    classes = [(name, item) for name, item in exported if inspect.isclass(item)]
    errors = [(name, item) for name, item in classes if issubclass(item, Exception)]
    plain = [(name, item) for name, item in classes if not issubclass(item, Exception)]
    parts = [_INTRODUCTION, "## Functions\n"]
    parts += ["\n".join(_function(name, item)) for name, item in functions]
    parts.append("## What they give\n")
    parts += ["\n".join(_class(name, item)) for name, item in [*plain, ("report.plot", ReportPlots)]]
    parts.append("## Errors\n")
    parts.append("\n".join(_errors(errors)))
    return "\n".join(parts) + "\n"


def _function(name: str, item: Any) -> Iterator[str]:
    """The heading, the signature as it is written, a line for each parameter, and the description."""
    node = _tree(item)
    assert isinstance(node, ast.FunctionDef)
    given = ast.parse(f"def {name}(): ...").body[0]
    assert isinstance(given, ast.FunctionDef)
    given.args, given.returns = node.args, node.returns
    text = ast.unparse(given).removesuffix(":\n    ...").removeprefix("def ")
    inside, _, returns = text.removeprefix(f"{name}(").rpartition(")")
    parameters = [f"    {part}," for part in _parameters(node)]
    assert inside
    yield f"### {name}\n"
    yield "\n".join(["```python", f"{name}(", *parameters, f"){returns}", "```", ""])
    yield f"{inspect.getdoc(item)}\n"


def _parameters(node: ast.FunctionDef) -> Iterator[str]:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(positional, defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.vararg is not None:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = "" if argument.annotation is None else f": {ast.unparse(argument.annotation)}"
    return f"{argument.arg}{annotation}" + ("" if default is None else f" = {ast.unparse(default)}")


def _class(name: str, item: Any) -> Iterator[str]:
    node = _tree(item)
    assert isinstance(node, ast.ClassDef)
    yield f"### {name}\n"
    yield f"{inspect.getdoc(item)}\n"
    for index, part in enumerate(node.body):
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
            yield from _entry(_signature(part), ast.get_docstring(part))
        elif isinstance(part, ast.AnnAssign) and not ast.unparse(part.target).startswith("_"):
            following = node.body[index + 1] if index + 1 < len(node.body) else None
            yield from _entry(f"{ast.unparse(part.target)}: {ast.unparse(part.annotation)}", _text(following))
    yield ""


def _signature(function: ast.FunctionDef) -> str:
    returns = "" if function.returns is None else ast.unparse(function.returns)
    if any(ast.unparse(found) in ("property", "cached_property") for found in function.decorator_list):
        return f"{function.name}: {returns}"
    arguments = re.sub(r"^(self|cls)(, )?", "", ast.unparse(function.args))
    return f"{function.name}({arguments}) -> {returns}"


def _entry(code: str, text: str | None) -> Iterator[str]:
    yield f"- `{code}`" + (f": {' '.join(text.split())}" if text else "")


def _errors(errors: list[tuple[str, Any]]) -> Iterator[str]:
    for name, item in sorted(errors, key=lambda entry: entry[0] != "KubeschedError"):
        bases = ", ".join(f"`{base.__name__}`" for base in item.__bases__)
        yield f"- `{name}` ({bases}): {' '.join((inspect.getdoc(item) or '').split())}"


def _tree(item: Any) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(item))).body[0]


def _text(statement: ast.stmt | None) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return None


if __name__ == "__main__":
    PAGE.write_text(page())
