"""`--report FILE.html`: every command writes one page that needs nothing else, escaped, small, whole or not at all."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.main import main
from kubesched.explanation.layout import Style
from kubesched.planning.html_report import MOST_ROWS
from kubesched.planning.report_pages import page
from kubesched.simulator.column_table import ColumnKind, ColumnTable

EXAMPLES = Path(__file__).parents[3] / "examples"
OUTAGE = ("-f", str(EXAMPLES / "outage"))
SIMULATED = ("-f", str(EXAMPLES / "simulate"))
SHOP = ("-f", str(EXAMPLES / "plan" / "shop.yaml"), "--catalogue", str(EXAMPLES / "plan" / "catalogue.yaml"))
PACKED = f"packed:config={EXAMPLES / 'replay' / 'packed.yaml'}"
COMMANDS = {
    "capacity": [*OUTAGE, "--shape", "500m/1Gi", "--by", "zone"],
    "plan": [*SHOP, "--from-scratch", "--orders", "1"],
    "consolidate": ["-f", str(EXAMPLES / "consolidate")],
    "outage": [*OUTAGE],
    "upgrade": [*OUTAGE, "--max-surge", "1"],
    "optimal": [*OUTAGE],
    "compare": [*SIMULATED, "--seeds", "2", "--variant", "base", "--variant", PACKED],
    "sweep": [*SIMULATED, "--seeds", "2"],
    "check": [str(EXAMPLES / "check" / "check.yaml")],
    "simulate": [*SIMULATED],
    "explain": ["shop/web-3", "-f", str(EXAMPLES / "explain")],
}
_VOID = {"meta", "input"}
_TEXT = ColumnKind.UTF8
PLANTED = '<script>alert("x")</script>\' onload=alert(1) <img src=//host/x>'


class _Page(HTMLParser):
    """Tags that are not closed, and every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def run(command: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [command, *arguments])


def check_offline(text: str) -> None:
    found = _Page(text)
    assert not found.open
    assert [tag for tag, _ in found.tags].count("script") == 1
    assert not {tag for tag, _ in found.tags} & {"img", "link", "iframe", "object", "embed", "base", "a", "form"}
    names = {name for _, attributes in found.tags for name in attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "href", "action", "srcset"})
    assert not re.search(r"url\(|@import", text)
    assert "default-src 'none'" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_writes_a_page_that_needs_nothing_else(command: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    result = run(command, *COMMANDS[command], "--report", str(path))
    assert result.exit_code in (0, 1), result.output
    text = path.read_text()
    check_offline(text)
    assert f"<p class=dim>kubesched {command}</p>" in text
    assert len(text) < 200_000
    assert "://" not in text
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("command", ["outage", "simulate"])
def test_what_is_printed_stays_as_it_is_and_the_page_is_the_same_each_time(command: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one.html", tmp_path / "two.html"
    result = run(command, *COMMANDS[command], "--report", str(one))
    assert result.stdout == run(command, *COMMANDS[command]).stdout
    run(command, *COMMANDS[command], "-o", "json", "--report", str(two))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (".", "is a directory"),
        ("missing/report.html", "directory missing does not exist"),
        ("/dev/null", "is not a file"),
    ],
)
def test_a_bad_place_is_told_in_a_line_before_the_work(
    place: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("outage", "-f", "nowhere.yaml", "--report", place)
    assert result.exit_code == 2
    assert result.stderr == f"error: --report {place}: {problem}\n"
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_if_there_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    assert run("outage", "-f", str(tmp_path / "nowhere.yaml"), "--report", str(path)).exit_code == 2
    assert path.read_text() == "before"


def test_every_text_is_escaped() -> None:
    scores = ColumnTable({"node": _TEXT, "total": ColumnKind.INT64, PLANTED: _TEXT}, [(PLANTED, 1, PLANTED)] * 9)
    made = page(PLANTED, lambda _style: f"{PLANTED}\n{PLANTED}", {"scores": scores, PLANTED: scores}, (PLANTED,))
    check_offline(made.to_html())
    assert made.plots


def test_a_page_of_5000_nodes_is_small_and_says_what_it_leaves_out() -> None:
    amounts = ("cpu_allocatable_milli", "cpu_requested_milli", "memory_allocatable_bytes", "memory_requested_bytes")
    kinds = {"name": _TEXT, **dict.fromkeys(amounts, ColumnKind.INT64), "message": _TEXT}
    nodes = ColumnTable(kinds, [(f"node-{n}", 4000, n % 4000, 2**34, 2**33, "<" * 1000) for n in range(5000)])
    short = ColumnTable({"name": _TEXT}, [(f"node-{n}",) for n in range(5000)])
    at_s = ColumnTable(
        {"at_s": ColumnKind.FLOAT64, "running": ColumnKind.INT64, "pending": ColumnKind.INT64},
        [(float(n), n, 100_000 - n) for n in range(100_000)],
    )

    def render(_style: Style) -> str:
        return "\n".join(f"line {n}" for n in range(50_000))

    others = {f"table_{n}": nodes for n in range(6)}
    text = page("kubesched x", render, {"nodes": nodes, "short": short, "timeline": at_s, **others}).to_html()
    assert len(text.encode()) < 2_000_000
    assert f"the first {MOST_ROWS} of 5,000 rows" in text
    assert "how many of 5,000 are how full" in text
    assert "more lines (-o wide prints them)" in text
