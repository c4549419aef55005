"""The reference page of the logs, made from the declared lines, and from the source for those that are not declared.

python -m kubesched.live.logs.reference_page > docs/reference/logs.md
"""

from __future__ import annotations

import ast
import logging
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from kubesched.k8s.client.list_watch import log_lines as list_watch_lines
from kubesched.k8s.connections.log_lines import LogLine
from kubesched.live.logs import scheduling_lines, start_lines

_HEAD = """# Logs

This page is generated (`make docs`). Logs go to standard error, one line each, in one of two formats
(`--logging-format`).

**text** is klog's: severity (I, W, E), date, time, process, file and line, message, and key-value pairs.

```
I1118 04:20:07.411653    5571 scheduling.py:273] "Successfully bound pod to node" pod="default/low1" node="n2" evaluatedNodes=2 feasibleNodes=2
E1118 04:20:07.388112    5571 scheduling.py:131] "Status after running PostFilter plugins for pod" pod="default/nopvc" status="not found"
```

In an error line, the first pair is the error. Multi-line values are written between `=<` and ` >`, each line after a tab.
Lines of other libraries have no quotes and no pairs.

**json** has one object per line; `ts` is in milliseconds, and errors have no `v`.

```json
{"ts":1763439607411.653,"caller":"logs/scheduling.py:273","msg":"Successfully bound pod to node","v":2,"pod":"default/low1","node":"n2","evaluatedNodes":2,"feasibleNodes":2}
```

| flag | meaning |
|---|---|
| `-v N` | write lines up to V(N); 0 by default. Warnings and errors are always written |
| `--vmodule pattern=N,…` | more for the files whose names match (`scheduling=4`, `leader_election=5`, `client/*=4`); text only |

| level | what to expect |
|---|---|
| 0 | what an operator should see; errors |
| 2 | the result for each pod; slow decisions; changes of state, retries |
| 3, 4 | every attempt and event, for debugging |
| 5 to 9 | every move between queues, every status |
| 10 | every plugin's score of every node. The [class cache](../concepts/class-cache.md) is off at this level, so that there are scores to show: decisions are the same, but slow |

Messages, levels and pairs are those of kube-scheduler and client-go v1.36.4; *ours* marks lines that they do not have.
Identical errors about the same pod are joined: five of them in ten seconds are written, the
others counted.

**A plugin that raises** is logged with its stack, once a minute for each place; `repeated` says how often it raised there
since.

**A slow decision** (over 100 ms) is logged at V(2) as a trace like kube-scheduler's, with the steps that took more than
their share, from V(4) on with all of them:

```
Trace[1298498081]: "Scheduling" namespace:shop,name:web-1 (18-Nov-2026 04:20:07.388) (total time: 412ms):
Trace[1298498081]: ---"Computing predicates done" 409ms (04:20:07.797)
Trace[1298498081]: [412.3ms] [412.3ms] END
```
"""  # noqa: E501  tables and log lines are as long as they are

_FOOT = """
## What is never written

Values of pairs named like secrets (`token`, `password`, `authorization`, `client-key-data` …) and text that looks like
one: Authorization headers, bearer tokens, JSON web tokens, private keys, secret fields of a kubeconfig, passwords in
addresses. `REDACTED` stands in their place. Bytes are only counted.
"""

_OTHER_PARTS = ("live", "k8s/client", "scheduler/plugin_loading", "cli/run.py")
_SEVERITIES = {"info": "I", "warning": "W", "error": "E", "exception": "E"}


class ScannedLine(NamedTuple):
    """A line that some part writes without having declared it."""

    place: str
    severity: str
    v: int
    message: str


def declared_lines(module: ModuleType) -> list[LogLine]:
    return [value for value in vars(module).values() if isinstance(value, LogLine)]


def scanned_lines() -> list[ScannedLine]:
    """Of all parts that `kubesched run` is made of."""
    source = Path(__file__).parents[2]
    files = [path for part in _OTHER_PARTS for path in _python_files(source / part)]
    return [line for path in files for line in _lines_in(path, str(path.relative_to(source)))]


def _python_files(path: Path) -> list[Path]:
    return [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))


def _lines_in(path: Path, place: str) -> Iterator[ScannedLine]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        logger = node.func.value
        message = _text(node.args[0])
        if isinstance(logger, ast.Name) and logger.id == "_log" and node.func.attr in _SEVERITIES and message:
            yield ScannedLine(place, _SEVERITIES[node.func.attr], _v(node), message)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _v(call: ast.Call) -> int:
    extra = next((keyword.value for keyword in call.keywords if keyword.arg == "extra"), None)
    pairs = zip(extra.keys, extra.values, strict=True) if isinstance(extra, ast.Dict) else ()
    found = [value.value for key, value in pairs if isinstance(value, ast.Constant) and _is_v(key)]
    return found[0] if found and isinstance(found[0], int) else 0


def _is_v(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == "v"


def _level(line: LogLine) -> str:
    if line.level >= logging.ERROR:
        return "error"
    return "warning" if line.level >= logging.WARNING else f"V({line.v})"


def _table(title: str, lines: Iterable[LogLine]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield "| line | level | pairs | when |"
    yield "|---|---|---|---|"
    for line in lines:
        ours = " *ours*" if line.is_ours else ""
        pairs = ", ".join(f"`{name}`" for name in line.pairs)
        yield f"| {_cell(line.message)}{ours} | {_level(line)} | {pairs} | {_cell(line.when)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _scanned_table() -> Iterator[str]:
    yield "\n## Other parts\n"
    yield "| line | level | file |"
    yield "|---|---|---|"
    for line in sorted(set(scanned_lines())):
        level = {"I": f"V({line.v})", "W": "warning", "E": "error"}[line.severity]
        yield f"| {_cell(line.message)} | {level} | `{line.place}` |"


def page() -> str:
    body = [
        *_table("Start and stop", declared_lines(start_lines)),
        *_table("Pods and nodes", declared_lines(scheduling_lines)),
        *_table("List and watch", declared_lines(list_watch_lines)),
        *_scanned_table(),
    ]
    return "\n".join([_HEAD.rstrip(), *body]) + "\n" + _FOOT


if __name__ == "__main__":
    sys.stdout.write(page())
