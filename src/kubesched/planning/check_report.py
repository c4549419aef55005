"""What the checks came to: passed, failed, or undecided, each with what was found and where it stands.

As text, and as CI systems want it: JUnit, SARIF, Markdown, GitHub's workflow commands. `Positions` knows in which line
of which file an object stands, and a field of it, so that a problem is shown where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import yaml

from kubesched.explanation.layout import Style, Tone, counted, wrapped
from kubesched.k8s.loaded_cluster import files_of
from kubesched.k8s.model.kubernetes_yaml import KubernetesLoader
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge

TEXT = ColumnKind.UTF8


@dataclass(frozen=True, slots=True)
class Position:
    file: str
    line: int
    """From 1."""


FieldPath = tuple[str | int, ...]


def path_of_spec(kind: str) -> FieldPath:
    """Where the pod's spec stands in an object of a kind."""
    if kind == "Pod":
        return ("spec",)
    above = ("spec", "jobTemplate") if kind == "CronJob" else ()
    return (*above, "spec", "template", "spec")


_FIELDS: dict[str, tuple[FieldPath, ...]] = {
    "NodeResourcesFit": (("containers", 0, "resources", "requests"), ("containers", 0, "resources")),
    "NodeAffinity": (("nodeSelector",), ("affinity", "nodeAffinity")),
    "InterPodAffinity": (("affinity", "podAntiAffinity"), ("affinity", "podAffinity")),
    "PodTopologySpread": (("topologySpreadConstraints",),),
    "NodePorts": (("containers", 0, "ports"),),
    "TaintToleration": (("tolerations",),),
    "SchedulingGates": (("schedulingGates",),),
}
"""By plugin, the fields of a pod's spec that it looks at."""


def fields_of(plugins: Iterable[str]) -> list[FieldPath]:
    """The fields that decide, where these plugins reject a pod; of whichever kind makes it."""
    specs = [path_of_spec(kind) for kind in ("Deployment", "CronJob", "Pod")]
    return [(*spec, *field) for plugin in plugins for field in _FIELDS.get(plugin, ()) for spec in specs]


class Positions:
    """Of the objects in these files; built when it is asked for the first time."""

    def __init__(self, sources: Iterable[str], relative_to: Path | None = None) -> None:
        self._sources = tuple(sources)
        self._base = relative_to
        self._known: dict[tuple[str, str, str], tuple[str, yaml.Node]] | None = None

    def of(self, kind: str, namespace: str, name: str, paths: Iterable[FieldPath] = ()) -> Position | None:
        """Of the first of these fields of the object that is written there; else of the object itself."""
        if self._known is None:
            self._known = dict(self._all())
        found = self._known.get((kind, namespace, name)) or self._known.get((kind, "", name))
        if found is None:
            return None
        file, node = found
        written = (_field(node, path) for path in paths)
        line = next((one for one in written if one is not None), node.start_mark.line)
        return Position(file, line + 1)

    def _all(self) -> Iterator[tuple[tuple[str, str, str], tuple[str, yaml.Node]]]:
        for source in self._sources:
            for file in files_of(source):
                yield from self._in(Path(file))

    def _in(self, path: Path) -> Iterator[tuple[tuple[str, str, str], tuple[str, yaml.Node]]]:
        try:
            documents = list(yaml.compose_all(path.read_text(), Loader=KubernetesLoader))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            return  # whoever reads the objects says what is wrong
        shown = str(path.relative_to(self._base)) if self._base and path.is_relative_to(self._base) else str(path)
        for document in documents:
            for node in _objects(document):
                kind, metadata = _text(node, "kind"), _child(node, "metadata")
                key = (kind, _text(metadata, "namespace"), _text(metadata, "name"))
                yield key, (shown, node)


def _objects(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if node is None:
        return
    items = _child(node, "items")
    if isinstance(items, yaml.SequenceNode):
        yield from items.value
    elif isinstance(node, yaml.MappingNode):
        yield node


def _field(node: yaml.Node, path: FieldPath) -> int | None:
    """In which line the field stands, from 0: that of its name."""
    line: int | None = None
    for part in path:
        if isinstance(part, int):
            entries = node.value if isinstance(node, yaml.SequenceNode) else []
            if part >= len(entries):
                return None
            node = entries[part]
            line = node.start_mark.line
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = next(((key, value) for key, value in pairs if getattr(key, "value", None) == part), None)
        if found is None:
            return None
        line, node = found[0].start_mark.line, found[1]
    return line


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == name:
                found: yaml.Node = value
                return found
    return None


def _text(node: yaml.Node | None, name: str) -> str:
    child = _child(node, name)
    return str(child.value) if isinstance(child, yaml.ScalarNode) else ""


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
class CheckReport(AnsweredReport):
    """`passed` is the answer; `str()` is the report as text. `kubesched.planning.check_report` has the others."""

    command: ClassVar[str] = "kubesched check"

    name: str
    results: tuple[RuleResult, ...]
    seeds: int
    check_file: str = ""
    assumptions: tuple[str, ...] = ()
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

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

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        passed = tuple(({"check": one.name}, float(one.passed is Passed.YES)) for one in self.results)
        undecided = tuple(({"check": one.name}, float(one.passed is Passed.UNDECIDED)) for one in self.results)
        return (
            Gauge("kubesched_check_passed", "Whether the check passes with every seed.", passed),
            Gauge("kubesched_check_undecided", "Whether it passes with some seeds only.", undecided),
        )

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """`checks`, and `findings` of those that did not pass."""
        checks = [(one.name, one.rule, one.passed.value, one.headline) for one in self.results]
        findings = [
            (one.name, found.about or None, found.message, *_place(found.position))
            for one in self.results
            for found in one.findings
        ]
        return {
            "checks": ColumnTable({"check": TEXT, "rule": TEXT, "result": TEXT, "found": TEXT}, checks),
            "findings": ColumnTable(
                {"check": TEXT, "about": TEXT, "message": TEXT, "file": TEXT, "line": ColumnKind.INT64}, findings
            ),
        }

    def render(self, style: Style) -> str:
        return render_check(self, style)

    def __str__(self) -> str:
        return self.render(Style())

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._about(),
            "name": self.name,
            "passed": self.passed,
            "undecided": self.undecided,
            "seeds": self.seeds,
            "checks": [one.to_dict() for one in self.results],
            "assumptions": list(self.assumptions),
        }

    def to_junit(self) -> str:

        return junit(self)

    def to_sarif(self) -> dict[str, Any]:

        return sarif(self)

    def to_markdown(self) -> str:

        return markdown(self)


def _place(position: Position | None) -> tuple[str | None, int | None]:
    return (None, None) if position is None else (str(position.file), position.line)


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
    if found.assumptions:
        lines += ["", style.heading("Assumptions"), *(f"  {text}" for text in found.assumptions)]
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
