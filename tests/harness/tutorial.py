"""Follows the tutorial as a student does: every command of its pages, in order, on a playground that they start.

`python -m harness.tutorial` (`make tutorial LESSONS="04 05"`) writes what the commands print today into the pages, and
takes the pictures of the web page anew where there is a browser. The test compares instead.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.headless_browser import has_browser, open_page

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "learn"
PAGES = [FOLDER / "tutorial.md", *sorted(FOLDER.glob("0*.md"))]
GUIDES = [ROOT / "docs" / "guides" / "gang-scheduling.md"]
"""Guides that are followed in the same way, each on a playground of its own."""
WITHIN_S = 60.0
MORE = "…"
"""As the last line of an output: what follows is left out."""

_BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^<!-- page: (#\S+) -->\n!\[[^\]]*\]\(([^)]+)\)$", re.MULTILINE)
_AGE = r"\b(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?s\b|\b\d+m\b"
_UID = r"\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b"
_SUFFIX = r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"
"""Of a name that a controller made."""
_VARIES = re.compile(f"{_AGE}|{_UID}|{_SUFFIX}")
_NAMESPACE_OF_DELETED = re.compile(r"(?<= deleted) from \S+ namespace$")
"""kubectl v1.36 says it, older ones do not."""
_STARTS = "kubesched up"
_LOOKS = re.compile(r"kubectl (get|describe)|kubesched explain|.*--dry-run")


@dataclass
class Step:
    """One command of a page, and the lines that the page shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)

    @property
    def can_be_asked_again(self) -> bool:
        return _LOOKS.match(self.command) is not None

    def is_as_shown(self, printed: list[str]) -> bool:
        shown = comparable(self.shown)
        if shown and shown[-1] == MORE:
            return comparable(printed)[: len(shown) - 1] == shown[:-1]
        return comparable(printed) == shown


@dataclass(frozen=True)
class Picture:
    """The web page with something open, as a page of the tutorial shows it."""

    address: str
    path: Path


def comparable(lines: list[str]) -> list[str]:
    """Without what varies: ages, UIDs, generated names, widths of columns, words of kubectl's versions."""
    plain = (_NAMESPACE_OF_DELETED.sub("", line.rstrip()) for line in lines if line.strip())
    return [" ".join(_VARIES.sub("(varies)", line).split()) for line in plain]


def steps_of(block: str) -> list[Step]:
    steps: list[Step] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:]))
        else:
            steps[-1].shown.append(line)
    return steps


def read_page(path: Path) -> Iterator[Step | Picture]:
    """What a student does and sees, in the order of the page."""
    text = path.read_text()
    for match in sorted([*_BLOCK.finditer(text), *_PICTURE.finditer(text)], key=lambda match: match.start()):
        if match.re is _PICTURE:
            yield Picture(match[1], path.parent / match[2])
        elif match[1] == "console":
            yield from steps_of(match[2])
        else:
            yield from (Step(line) for line in match[2].splitlines() if line.startswith(_STARTS))


class Student:
    """A terminal in which the playground runs, and one for the other commands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._playground: subprocess.Popen[str] | None = None
        binaries = str(Path(sys.executable).parent)
        self._environment = {**os.environ, "HOME": str(folder), "NO_COLOR": "1"}
        self._environment["PATH"] = os.pathsep.join([binaries, os.environ["PATH"]])
        self.page_url = ""

    def use_kubectl_from(self, folder: Path) -> None:
        self._environment["PATH"] = os.pathsep.join([str(folder), self._environment["PATH"]])

    def follow(self, step: Step) -> list[str]:
        """What the command prints. One that only looks is repeated until it prints what the page shows, or in vain."""
        if step.command.startswith(_STARTS):
            self._start(step.command)
            return []
        deadline_s = time.monotonic() + WITHIN_S
        while True:
            printed = self.run(step.command)
            if step.is_as_shown(printed) or not step.can_be_asked_again or time.monotonic() > deadline_s:
                return printed
            time.sleep(0.3)

    def follow_until_settled(self, step: Step) -> list[str]:
        """The same where it is not known yet what will be printed: until that no longer changes."""
        if step.command.startswith(_STARTS) or not step.can_be_asked_again:
            return self.follow(step)
        before: list[list[str]] = []
        while len(before) < 4 or any(comparable(one) != comparable(before[-1]) for one in before[-4:]):
            time.sleep(1.0)
            before.append(self.run(step.command))
        return before[-1]

    def run(self, command: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=WITHIN_S,
            check=False,
        )  # fmt: skip
        return [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]

    def take(self, picture: Picture) -> None:
        asyncio.run(self._take(picture))

    def stop(self) -> None:
        if self._playground is not None:
            self._playground.send_signal(signal.SIGINT)
            self._playground.communicate(timeout=WITHIN_S)
            self._playground = None

    def _start(self, command: str) -> None:
        self.stop()
        words = [*command.split(), "--port", "0", "--start-delay", "0.1", "--stop-delay", "0.1"]
        self._playground = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, text=True
        )
        assert self._playground.stdout is not None
        for line in self._playground.stdout:
            if found := re.match(r"export KUBECONFIG=(.*)", line):
                self._environment["KUBECONFIG"] = found[1]
            if found := re.match(r"web page +(.*)", line):
                self.page_url = found[1]
            if line.startswith("Press Ctrl-C"):
                return
        raise AssertionError(f"{command} ended")

    async def _take(self, picture: Picture) -> None:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        async with open_page(self.page_url, folder / "browser", size=(1280, 800)) as page:
            await page.wait_for("document.querySelector('#totals dd')?.textContent.length")
            await page.evaluate(f"location.hash = '{picture.address}'")
            await page.evaluate("new Promise((resolve) => setTimeout(resolve, 2500))")
            await page.screenshot(picture.path)


def _renewed(block: str, student: Student) -> str:
    lines: list[str] = []
    for step in steps_of(block):
        printed = student.follow_until_settled(step)
        if step.shown and step.shown[-1] == MORE:
            printed = [*printed[: len(step.shown) - 1], MORE]
        lines += [f"$ {step.command}", *printed]
    return "\n".join(lines)


def renew(path: Path, student: Student) -> None:
    """Writes into the page what its commands print now."""
    text, end, parts = path.read_text(), 0, []
    for match in sorted([*_BLOCK.finditer(text), *_PICTURE.finditer(text)], key=lambda match: match.start()):
        parts.append(text[end : match.start()])
        end = match.end()
        if match.re is _PICTURE and has_browser():
            student.take(Picture(match[1], path.parent / match[2]))
        if match.re is _BLOCK and match[1] == "sh":
            for line in match[2].splitlines():
                if line.startswith(_STARTS):
                    student.follow(Step(line))
        is_renewed = match.re is _BLOCK and match[1] == "console"
        parts.append(f"```console\n{_renewed(match[2], student)}\n```" if is_renewed else match[0])
    path.write_text("".join([*parts, text[end:]]))


def main(names: list[str]) -> None:
    if shutil.which("kubectl") is None:
        raise SystemExit("error: the tutorial is renewed with kubectl, and there is none on this machine")
    with tempfile.TemporaryDirectory() as folder:
        student = Student(Path(folder))
        try:
            for page in [*PAGES, *GUIDES]:
                if page is PAGES[0] or not names or page.name.startswith(tuple(names)):
                    renew(page, student)
        finally:
            student.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
