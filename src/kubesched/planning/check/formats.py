"""The report of a check as CI systems want it: JUnit, SARIF, Markdown, GitHub's workflow commands."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any
from xml.etree import ElementTree

from kubesched.planning.check.report import CheckFinding, CheckReport, Passed, RuleResult

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
