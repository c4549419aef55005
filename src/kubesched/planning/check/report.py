"""What the checks came to: passed, failed, or undecided, each with what was found and where it stands.

As text, and as CI systems want it: JUnit, SARIF, Markdown, GitHub's workflow commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Any, ClassVar
from xml.etree import ElementTree

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
    """`passed` is the answer; `str()` is the report as text. `kubesched.planning.check.report` has the others."""

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

        return junit(self)

    def to_sarif(self) -> dict[str, Any]:

        return sarif(self)

    def to_markdown(self) -> str:

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


MARKDOWN_LIMIT = 60_000
"""Characters; GitHub cuts comments at 65,536."""

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ICONS = {Passed.YES: "✅", Passed.NO: "❌", Passed.UNDECIDED: "⚠️"}
_LEVELS = {Passed.NO: "error", Passed.UNDECIDED: "warning"}


def junit(found: CheckReport) -> str:
    n_failed = len(found.failed)
    suite = ElementTree.Element(
        "testsuite",
        name=found.name or "kubesched check",
        tests=str(len(found.results)),
        failures=str(n_failed),
        errors="0",
        skipped=str(sum(one.passed is Passed.UNDECIDED for one in found.results)),
    )
    for one in found.results:
        case = ElementTree.SubElement(suite, "testcase", classname=f"kubesched.{one.rule}", name=one.name)
        if one.passed is Passed.NO:
            failure = ElementTree.SubElement(case, "failure", message=one.headline)
            failure.text = "\n".join(_line(finding) for finding in one.findings)
        elif one.passed is Passed.UNDECIDED:
            ElementTree.SubElement(case, "skipped", message=one.headline)
        else:
            ElementTree.SubElement(case, "system-out").text = one.headline
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def sarif(found: CheckReport) -> dict[str, Any]:
    """SARIF 2.1.0; what is not about an object of the change is about the check file."""
    rules = [
        {"id": one.name, "name": one.rule, "shortDescription": {"text": f"{one.rule}: {one.name}"}}
        for one in found.results
    ]
    results = [
        _sarif_result(found, index, one, finding)
        for index, one in enumerate(found.results)
        if one.passed is not Passed.YES
        for finding in one.findings or (CheckFinding(one.headline),)
    ]
    driver = {"name": "kubesched check", "rules": rules}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _sarif_result(found: CheckReport, index: int, one: RuleResult, finding: CheckFinding) -> dict[str, Any]:
    file, line = (found.check_file, 1) if finding.position is None else (finding.position.file, finding.position.line)
    place = {"physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": line}}}
    # Numbers in a message change from run to run; the check and what it is about do not.
    same = blake2b(f"{one.name}\0{one.rule}\0{finding.about}".encode(), digest_size=16).hexdigest()
    return {
        "ruleId": one.name,
        "ruleIndex": index,
        "level": _LEVELS[one.passed],
        "message": {"text": _line(finding)},
        "locations": [place],
        "partialFingerprints": {"kubesched/v1": same},
    }


def markdown(found: CheckReport) -> str:
    """The verdict first; details folded away; never longer than a comment may be."""
    icon = "✅" if found.passed else "⚠️" if found.undecided else "❌"
    lines = [f"{icon} **{_escaped(found.headline)}**", "", "| | check | |", "|---|---|---|"]
    lines += [f"| {_ICONS[one.passed]} | {_escaped(one.name)} | {_escaped(one.headline)} |" for one in found.results]
    for one in found.results:
        if one.findings:
            lines += ["", f"<details><summary>{_escaped(one.name)}</summary>", ""]
            lines += [f"- {_escaped(_line(finding))}" for finding in one.findings]
            lines += ["", "</details>"]
    text = "\n".join(lines) + "\n"
    if len(text) <= MARKDOWN_LIMIT:
        return text
    cut = text[: MARKDOWN_LIMIT - 100].rpartition("\n")[0]
    is_open = cut.count("<details>") > cut.count("</details>")
    return cut + "\n- …" + ("\n\n</details>" if is_open else "") + "\n\nCut: there is more in the log.\n"


def github(found: CheckReport) -> str:
    """Workflow commands: annotations in the files of a pull request."""
    lines = [found.headline]
    for one in found.results:
        if one.passed is Passed.YES:
            continue
        for finding in one.findings or (CheckFinding(one.headline),):
            position = finding.position
            where = "" if position is None else f" file={position.file},line={position.line},"
            title = _command_text(one.name).replace(",", "%2C").replace(":", "%3A")
            place = f"{where or ' '}title={title}"
            lines.append(f"::{_LEVELS[one.passed]}{place}::{_command_text(_line(finding))}")
    return "\n".join(lines) + "\n"


def _line(finding: CheckFinding) -> str:
    return f"{finding.about}: {finding.message}" if finding.about else finding.message


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _command_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
