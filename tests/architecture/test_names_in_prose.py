"""What docstrings and documents name in backticks is there: modules, functions, classes, fields, files.

A path is looked for from the root, from the source and from the page that names it; a dotted name part by part, in the
module or class before the dot; any other name in the code. What cannot be one of ours (a flag, an address, a line for a
shell, a word of a page) is left alone: a rule with false alarms would soon be switched off.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kubesched"
MODULES = sorted(chain.from_iterable((ROOT / place).rglob("*.py") for place in ("src", "tests", "tools", "benchmarks")))
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
PAGES = sorted(
    [*ROOT.glob("*.md"), *chain.from_iterable((ROOT / p).rglob("*.md") for p in ("docs", "examples", "deploy"))]
)

# Their names are checked by tests of their own, and most are names of kube-scheduler's that have nothing here.
PAGES_OF_OTHER_NAMES = {"docs/reference/from-go.md", "docs/reference/metrics.md", "docs/reference/older-metrics.md"}
NAMES_OF_OTHERS = {
    "DeletedFinalStateUnknown",
    "ExtenderBindingResult",
    "ExtenderPreemptionResult",
    "HostPriorityList",
    "InformerFor",
    "KUBE_MAX_PD_VOLS",
    "RevertAssumedPodVolumes",
    "SharedInformerFactory",
    "TCPSite",
    "arrow_array_stream",
    "arrow_schema",
}

_QUOTED = re.compile(r"(?<!`)(?:`|``)([^`\n]+)(?:`|``)(?!`)")
_FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)
_NEXT = re.compile(r"^Next: `([\w.]+)`|[Rr]ead `([\w.]+)` next", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_FILE = re.compile(r"[\w-][\w./-]*\.(py|md)|(src|tests|tools|docs|examples|deploy|benchmarks|kubesched)/[\w./-]*")
_FIELD = re.compile(r"(.*\.)?[a-z]+[A-Z][A-Za-z]*(\..*)?")  # the API spells its fields so, and we nothing
_WORD = re.compile(r"[A-Za-z_]\w*")


class Code(NamedTuple):
    """One module: the names in its code, the members of its classes, its docstrings, and its other texts."""

    names: frozenset[str]
    members: dict[str, frozenset[str]]
    docstrings: tuple[str, ...]
    texts: str


def read_code(source: str) -> Code:
    tree = ast.parse(source)
    docstrings = dict(_docstrings(tree))
    names: set[str] = set()
    members: dict[str, frozenset[str]] = {}
    texts: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            members[node.name] = frozenset(_members(node))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings:
                texts.append(node.value)
        else:
            names.update(_names_of(node))
    # A text of one word may be a field or a metric. A sentence is no place where a name lives, but in its own module.
    names.update(chain.from_iterable(_WORD.findall(text) for text in texts if not re.search(r"\s", text)))
    return Code(frozenset(names), members, tuple(docstrings.values()), "\n".join(texts))


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str(text)) as constant), *_]:
                    yield id(constant), text


def _names_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield from (other or name).split(".")
        case ast.ImportFrom(module=str(name)):
            yield from name.split(".")


def _members(statement: ast.ClassDef) -> Iterator[str]:
    """Methods and attributes of a class; its bases as `(Base)`."""
    for node in ast.walk(statement):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
    for base in statement.bases:
        yield f"({ast.unparse(base).partition('[')[0].rpartition('.')[2]})"


@cache
def _code(path: Path) -> Code:
    return read_code(path.read_text())


@cache
def _all_names(is_source_only: bool) -> frozenset[str]:
    here = Path(__file__)  # it names what is not there
    paths = [path for path in [*MODULES, *EXAMPLES] if (PACKAGE in path.parents or not is_source_only) and path != here]
    names = {*dir(builtins), *keyword.kwlist, *sys.stdlib_module_names, *NAMES_OF_OTHERS, "kubesched"}
    names.update(chain.from_iterable([path.stem, path.parent.name] for path in paths))
    return frozenset(names.union(*(_code(path).names for path in paths)))


@cache
def _classes() -> dict[str, set[str]]:
    classes: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for name, members in _code(path).members.items():
            classes[name] |= members
    return classes


def _has_member(name: str, member: str) -> bool:
    """Whether a class has `member`, itself or by a base; of a base from elsewhere nothing is known."""
    if name not in _classes():
        return name not in {"object", "Protocol", "NamedTuple", "Generic", "Enum", "Struct", "Exception"}
    members = _classes()[name]
    return member in members or any(_has_member(base[1:-1], member) for base in members if base.startswith("("))


def _module(name: str, place: Path) -> Path | None:
    """What a reader of `place` finds as a module: beside it, in a package around it, or under its whole name."""
    path = name.replace(".", "/")
    for folder in [*(parent for parent in place.parents if PACKAGE in (parent, *parent.parents)), ROOT / "src"]:
        for found in (folder / f"{path}.py", folder / path / "__init__.py"):
            if found.exists():
                return found
    return None


def _has_file(path: str, place: Path) -> bool:
    around = [parent for parent in place.parents if ROOT in (parent, *parent.parents)]
    return any((folder / path).exists() for folder in (*around, ROOT / "src", PACKAGE))


def is_there(name: str, place: Path, is_prose: bool, shown: str = "") -> bool:
    """Whether what `name` stands for exists. On a page only what looks like code counts; `shown` is the code in it."""
    name = name.removesuffix("()")
    path, _, test = name.partition("::")
    path = path.partition(" ")[0]
    if _FILE.fullmatch(path):
        return path in shown or (_has_file(path, place) and (not test or test in _code(ROOT / path).names))
    if not _NAME.fullmatch(name) or _FIELD.fullmatch(name):
        return True
    head, _, member = name.rpartition(".")
    if head.rpartition(".")[2] in _classes():
        return _has_member(head.rpartition(".")[2], member)
    if name.startswith("kubesched."):
        module = _module(head, place)
        return _module(name, place) is not None or (module is not None and member in _code(module).names)
    if is_prose and "_" not in name:
        return True
    names = _all_names(not is_prose and PACKAGE in place.parents)
    if _module(name, place) is not None or name in shown or name.removeprefix("scheduler_") in names:
        return True
    return all(part in names for part in name.split("."))


@pytest.mark.parametrize("place", ["src", "tests", "tools", "benchmarks"])
def test_what_docstrings_name_is_there(place: str) -> None:
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        if ROOT / place in path.parents
        for name in chain.from_iterable(map(_QUOTED.findall, _code(path).docstrings))
        if not is_there(name, path, is_prose=False, shown=_code(path).texts)
    ]
    assert not lost, "\n".join(lost)


def test_the_module_to_read_next_is_there() -> None:
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        if PACKAGE in path.parents
        for name in chain.from_iterable(chain.from_iterable(map(_NEXT.findall, _code(path).docstrings)))
        if name and _module(name.removesuffix(".py"), path) is None and _module(name.rpartition(".")[0], path) is None
    ]
    assert not lost, "\n".join(lost)


def test_what_pages_name_is_there() -> None:
    lost = []
    for page in PAGES:
        if str(page.relative_to(ROOT)) in PAGES_OF_OTHER_NAMES:
            continue
        text = page.read_text()
        shown = "\n".join(match.group() for match in _FENCED.finditer(text))
        names = _QUOTED.findall(_FENCED.sub("", text))
        lost += [
            f"{page.relative_to(ROOT)}: {name}"
            for name in names
            if not is_there(name, page, is_prose=True, shown=shown)
        ]
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize(
    "name",
    [
        "tests/architecture/test_no_names.py",
        "tests/architecture/test_docs.py::test_that_nobody_wrote",
        "no_such_page.md",
        "kubesched.framework.no_such_name",
        "kubesched.no_such_package.status",
        "Verdicts.no_such_member",
        "no_such_function()",
    ],
)
def test_a_name_that_is_gone_is_found(name: str) -> None:
    assert not is_there(name, PACKAGE / "__init__.py", is_prose=False)
    assert not is_there(name, ROOT / "docs" / "limits.md", is_prose=True)


@pytest.mark.parametrize(
    "text",
    ["kubesched up", "--emulate", "spec.nodeName", "status.used", "/healthz", "test_docs.py", "kubesched.framework"],
)
def test_what_is_there_or_is_no_name_of_ours_is_left_alone(text: str) -> None:
    assert is_there(text, Path(__file__), is_prose=True)
