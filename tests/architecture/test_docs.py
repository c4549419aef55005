"""What the documents say can be followed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = _LINK.findall(page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_the_map_of_the_source_has_every_package() -> None:
    page = (ROOT / "docs" / "contributing" / "map.md").read_text()
    source = ROOT / "src" / "kubesched"
    rooms = {path.parent.name for path in source.glob("*/__init__.py")}
    chambers = {
        path.parent.relative_to(source).as_posix()
        for room in ("k8s", "older", "playground", "plugin_tools", "scheduler")
        for path in source.glob(f"{room}/*/__init__.py")
    }
    assert set(re.findall(r"^\| `([\w/]+)` \|", page, re.MULTILINE)) == rooms | chambers


def test_a_pods_path_takes_at_most_thirty_files() -> None:
    page = (ROOT / "docs" / "concepts" / "pod-path.md").read_text()
    files = re.findall(r"^\| \d+ \| \[([\w/.]+)\]\(\.\./\.\./src/kubesched/([\w/.]+)\)", page, re.MULTILINE)
    assert 20 <= len(files) <= 30
    for shown, linked in files:
        assert shown == linked and (ROOT / "src" / "kubesched" / linked).is_file(), linked


def test_every_decision_is_listed_under_its_title() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (folder / "README.md").read_text(), re.MULTILINE)
    titles = {page.name: page.read_text().partition("\n")[0] for page in folder.glob("0*.md")}
    assert {name: f"# {number}. {title}" for number, title, name in listed} == titles
