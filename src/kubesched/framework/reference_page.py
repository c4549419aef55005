"""The reference page of the plugin API, made from the protocols: every method with its parameters and its description.

    python -m kubesched.framework.reference_page > docs/reference/plugin-api.md

Next: `extension_points` and `caching`, which hold the facts.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType

from kubesched.framework import caching, effects, extension_points, handle, nodes, pod_info, results, status, verdicts

_INTRODUCTION = """\
# Plugin API

What a plugin can implement, what it is given, and what it answers. What it needs of this can be imported from
`kubesched.framework`. [Write a plugin](../guides/write-a-plugin.md) shows how it goes together.

This page is generated from the code (`kubesched.framework.reference_page`).
"""

_SECTIONS: tuple[tuple[str, ModuleType, tuple[str, ...]], ...] = (
    ("Extension points", extension_points, ()),
    ("How long an answer stays true", caching, ()),
    ("Answers", status, ("Code", "Status")),
    ("", verdicts, ("Verdicts",)),
    ("", results, ("PreFilterResult", "PostFilterResult", "NominatingMode", "NodeStatuses")),
    ("The pod", pod_info, ("PodInfo",)),
    ("Nodes", nodes, ("NodeInfo", "NodeTable", "Column", "PodTable")),
    ("The handle", handle, ("Handle", "HeldPod", "Objects")),
    ("Effects", effects, ("WriteObject", "PatchObject", "WaitUntil", "BindPod", "PatchPodStatus", "EvictPod")),
    ("", effects, ("RecordEvent", "Done", "Written", "Failed", "Withheld")),
)
"""(heading, module, classes); without classes, all of them."""


def page() -> str:
    """The page in Markdown."""
    parts = [_INTRODUCTION]
    for heading, module, names in _SECTIONS:
        if heading:
            parts.append(f"## {heading}\n")
        tree = ast.parse(inspect.getsource(module))
        if not names:
            table = (module.__doc__ or "").partition("\n\n")[2].partition("\n\n")[2]
            parts.append(table.strip() + "\n")
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        parts += ["\n".join(_class(node)) for node in classes if node.name in names or not names]
    return "\n".join(parts)


def _class(node: ast.ClassDef) -> Iterator[str]:
    yield f"### {node.name}\n"
    if text := ast.get_docstring(node):
        yield f"{text}\n"
    for index, item in enumerate(node.body):
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
            yield from _entry(_signature(item), ast.get_docstring(item))
        elif isinstance(item, ast.AnnAssign | ast.Assign):
            following = node.body[index + 1] if index + 1 < len(node.body) else None
            if not ast.unparse(item).startswith("_"):
                yield from _entry(ast.unparse(item), _text_of(following))
    yield ""


def _entry(code: str, text: str | None) -> Iterator[str]:
    described = f": {' '.join(text.split())}" if text else ""
    yield f"- `{code}`{described}"


def _signature(function: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns is not None else ""
    if any(isinstance(found, ast.Name) and found.id == "property" for found in function.decorator_list):
        return f"{function.name}{returns.replace(' -> ', ': ')}"
    arguments = ast.unparse(function.args)
    for first in ("self, ", "cls, ", "self", "cls"):
        if arguments.startswith(first):
            arguments = arguments.removeprefix(first)
            break
    return f"{function.name}({arguments}){returns}"


def _text_of(statement: ast.stmt | None) -> str | None:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return str(statement.value.value) if is_text else None  # type: ignore[union-attr]


if __name__ == "__main__":
    sys.stdout.write(page())
