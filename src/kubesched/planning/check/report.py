"""What the checks came to: passed, failed, or undecided, each with what was found and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from kubesched.explanation.layout import Style, Tone, counted, wrapped
from kubesched.planning.check.positions import Position
from kubesched.planning.html_report import ReportAsPage

_FINDINGS_SHOWN = 10


class Passed(StrEnum):
    YES = "passed"
    NO = "failed"
    UNDECIDED = "undecided"
    """Other seeds give other answers."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One problem, about one object."""

    message: str
    about: str = ""
    """`Deployment shop/web`."""
    position: Position | None = None

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"message": self.message}
        if self.about:
            record["about"] = self.about
        if self.position is not None:
            record |= {"file": self.position.file, "line": self.position.line}
        return record


@dataclass(frozen=True, slots=True)
class RuleResult:
    name: str
    rule: str
    passed: Passed
    headline: str
    findings: tuple[CheckFinding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rule": self.rule,
            "result": self.passed.value,
            "headline": self.headline,
            "findings": [one.to_dict() for one in self.findings],
        }


@dataclass(frozen=True, slots=True)
class CheckReport(ReportAsPage):
    """`passed` is the answer; `str()` is the report as text. `kubesched.planning.check.formats` has the others."""

    command: ClassVar[str] = "kubesched check"

    name: str
    results: tuple[RuleResult, ...]
    seeds: int
    check_file: str = ""

    @property
    def passed(self) -> bool:
        return all(one.passed is Passed.YES for one in self.results)

    @property
    def undecided(self) -> bool:
        """Nothing failed, and something depends on the seed."""
        return not self.failed and any(one.passed is Passed.UNDECIDED for one in self.results)

    @property
    def failed(self) -> list[RuleResult]:
        return [one for one in self.results if one.passed is Passed.NO]

    @property
    def headline(self) -> str:
        n = counted(len(self.results), "check")
        if self.passed:
            return f"Passed: all {n}." if len(self.results) > 1 else f"Passed: {self.results[0].headline}"
        bad = self.failed or [one for one in self.results if one.passed is Passed.UNDECIDED]
        verb = "Failed" if self.failed else "Undecided"
        return f"{verb}: {len(bad)} of {n}. {bad[0].name}: {bad[0].headline}"

    def __str__(self) -> str:
        return render_check(self, Style())

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "passed": self.passed,
            "undecided": self.undecided,
            "seeds": self.seeds,
            "checks": [one.to_dict() for one in self.results],
        }

    def to_junit(self) -> str:
        from kubesched.planning.check.formats import junit

        return junit(self)

    def to_sarif(self) -> dict[str, Any]:
        from kubesched.planning.check.formats import sarif

        return sarif(self)

    def to_markdown(self) -> str:
        from kubesched.planning.check.formats import markdown

        return markdown(self)


_MARKS = {Passed.YES: "ok  ", Passed.NO: "FAIL", Passed.UNDECIDED: "?   "}


def render_check(found: CheckReport, style: Style) -> str:
    lines = [style.first_line(found.headline, Tone.GOOD if found.passed else Tone.BAD), ""]
    for one in found.results:
        lines += wrapped(f"{_MARKS[one.passed]}  {one.name}: {one.headline}", indent=2, hanging=6, width=style.width)
        shown = one.findings[: style.most(_FINDINGS_SHOWN)]
        for finding in shown:
            where = "" if finding.position is None else f" ({finding.position.file}:{finding.position.line})"
            about = f"{finding.about}{where}: " if finding.about else ""
            lines += wrapped(f"{about}{finding.message}", indent=8, hanging=2, width=style.width)
        if len(one.findings) > len(shown):
            lines.append(f"        and {len(one.findings) - len(shown)} more (-o wide)")
    return "\n".join(lines)
