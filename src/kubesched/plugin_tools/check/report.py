"""What the battery found: per check a result, and for a failed one the smallest case that still breaks the rule.

`as_record` is the form for machines, `as_text` the one for people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import yaml

from kubesched.plugin_tools.check.subject import Case, DrawnChange


class CheckOutcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    """The plugin has no extension point that the rule is about, or no case ever touched it."""


@dataclass(frozen=True)
class RuleViolation:
    """A rule is broken. `answers` are what was held against each other, by what gave them."""

    problem: str
    node: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    change: DrawnChange | None = None
    """After which change, for rules about what comes after one."""


@dataclass(frozen=True)
class CheckResult:
    check: str
    """A short name, for `--only` and for machines."""
    rule: str
    outcome: CheckOutcome
    n_asked: int = 0
    """In how many cases the rule had something to say."""
    violation: RuleViolation | None = None
    case: Case | None = None
    note: str = ""

    @property
    def earlier_changes(self) -> list[dict[str, Any]]:
        """What has to happen before the change after which the rule is broken; mostly nothing."""
        if self.case is None or self.violation is None or self.violation.change is None:
            return []
        return [_change_record(change) for change in self.case.changes if change != self.violation.change]

    def as_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"check": self.check, "rule": self.rule, "result": self.outcome.value}
        record["cases"] = self.n_asked
        if self.note:
            record["note"] = self.note
        if self.violation is not None:
            record |= {"problem": self.violation.problem, "node": self.violation.node}
            record["answers"] = self.violation.answers
            if self.violation.change is not None:
                record["change"] = _change_record(self.violation.change)
            if earlier := self.earlier_changes:
                record["earlierChanges"] = earlier
        if self.case is not None:
            record["smallestCase"] = self.case.as_record()
        return record


@dataclass(frozen=True)
class CostLine:
    """What an extension point costs, and how often it is asked."""

    extension_point: str
    form: str
    ms_per_1000_nodes: float
    scope: str
    kept: str
    """How long an answer is kept for pods with the same signature."""

    def as_record(self) -> dict[str, Any]:
        return {
            "extensionPoint": self.extension_point,
            "form": self.form,
            "msPer1000Nodes": round(self.ms_per_1000_nodes, 4),
            "scope": self.scope,
            "kept": self.kept,
        }


@dataclass(frozen=True)
class BatteryReport:
    plugin: str
    file: str
    extension_points: tuple[str, ...]
    seed: int
    n_cases: int
    results: tuple[CheckResult, ...]
    costs: tuple[CostLine, ...] = ()

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if result.outcome is CheckOutcome.FAILED)

    @property
    def has_passed(self) -> bool:
        return not self.failed

    def as_record(self) -> dict[str, Any]:
        return {
            "plugin": self.plugin,
            "file": self.file,
            "extensionPoints": list(self.extension_points),
            "seed": self.seed,
            "cases": self.n_cases,
            "result": CheckOutcome.PASSED.value if self.has_passed else CheckOutcome.FAILED.value,
            "checks": [result.as_record() for result in self.results],
            "cost": [line.as_record() for line in self.costs],
        }

    def as_text(self) -> str:
        origin = f" ({self.file})" if self.file else ""
        lines = [f"{self.plugin}{origin}: {', '.join(self.extension_points)}", ""]
        for result in self.results:
            lines.extend(_result_lines(result))
        lines.extend(_cost_lines(self.costs))
        n_failed = len(self.failed)
        verdict = f"{n_failed} check{'s' if n_failed != 1 else ''} failed" if n_failed else "all checks passed"
        lines.extend(("", f"{verdict} ({self.n_cases} cases, seed {self.seed})"))
        return "\n".join(lines)


_MARKS = {CheckOutcome.PASSED: "passed ", CheckOutcome.FAILED: "FAILED ", CheckOutcome.NOT_APPLICABLE: "-      "}


def _result_lines(result: CheckResult) -> list[str]:
    asked = f" ({result.n_asked} cases)" if result.outcome is CheckOutcome.PASSED else ""
    note = f": {result.note}" if result.note else ""
    lines = [f"  {_MARKS[result.outcome]} {result.check:<12} {result.rule}{asked}{note}"]
    violation = result.violation
    if violation is None:
        return lines
    lines.append(f"      {violation.problem}")
    if violation.node:
        lines.append(f"      node: {violation.node}")
    lines.extend(f"      {who}: {answer}" for who, answer in violation.answers.items())
    if violation.change is not None:
        lines.extend(_indented("after this change", _change_record(violation.change)))
    if result.earlier_changes:
        lines.extend(_indented("which came after", result.earlier_changes))
    if result.case is not None:
        lines.extend(_indented("smallest case found", result.case.as_record()))
    return lines


def _indented(title: str, record: object) -> list[str]:
    text = yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=100)
    return [f"      {title}:", *(f"        {line}" for line in text.splitlines())]


def _change_record(change: DrawnChange) -> dict[str, Any]:
    if change.new is None:
        return {"deleted": f"{change.kind} {change.name}"}
    return {"new": change.new}


def _cost_lines(costs: tuple[CostLine, ...]) -> list[str]:
    if not costs:
        return []
    rows = [("extension point", "form", "ms per 1,000 nodes", "scope", "kept")]
    rows += [(c.extension_point, c.form, f"{c.ms_per_1000_nodes:.3f}", c.scope, c.kept) for c in costs]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return ["", "Cost", *lines]
