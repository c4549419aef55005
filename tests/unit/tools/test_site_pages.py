"""The docs site has every page, and a link of a page leads to a page."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import site_pages

ROOT = Path(__file__).parents[3]
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
_FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site() -> site_pages.Site:
    return site_pages.Site(ROOT)


def test_every_link_of_the_site_leads_to_a_page(site: site_pages.Site) -> None:
    for place, text in site.pages.items():
        if isinstance(text, bytes) or place.startswith("source/"):
            continue
        for link in _LINK.findall(_FENCED.sub("", text)):
            assert os.path.normpath(Path(place).parent / link) in site.pages, f"{place} links to {link}"


def test_every_document_is_found_from_the_navigation(site: site_pages.Site) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = set(re.findall(r"- (?:[\w ]+: )?(\S+\.md)$", navigation, re.MULTILINE))
    elsewhere = ("source/", "examples/", "decisions/0")
    assert named >= {place for place in site.pages if place.endswith(".md") and not place.startswith(elsewhere)}
    assert named <= set(site.pages)


def _tree(root: Path, **texts: str) -> site_pages.Site:
    for name in [*site_pages.PAGES_OUTSIDE, "docs/a.md"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(texts.get(Path(name).stem.lower(), "# A page\n"))
    (root / "src").mkdir()
    (root / "src" / "code.py").write_text('"""Code with ```` in it."""\n')
    return site_pages.Site(root)


def test_a_link_to_code_becomes_a_page_that_shows_it(tmp_path: Path) -> None:
    site = _tree(tmp_path, a="# A\n\n[code](../src/code.py), [home](../README.md#start)\n")
    assert site.pages["a.md"] == "# A\n\n[code](source/src/code.py.md), [home](index.md#start)\n"
    assert '`````python linenums="1"\n"""Code with ```` in it."""\n' in str(site.pages["source/src/code.py.md"])


def test_a_link_to_a_folder_becomes_a_list_of_what_is_in_it(tmp_path: Path) -> None:
    site = _tree(tmp_path, a="[src](../src)\n")
    assert site.pages["a.md"] == "[src](src/index.md)\n"
    assert site.pages["src/index.md"] == "# src\n\n- [`code.py`](../source/src/code.py.md)\n"


def test_a_link_that_leads_nowhere_stays_for_mkdocs_to_find(tmp_path: Path) -> None:
    assert _tree(tmp_path, a="[gone](gone.md)\n").pages["a.md"] == "[gone](gone.md)\n"


def test_code_is_not_touched(tmp_path: Path) -> None:
    text = "```python\nx[0](../README.md)\n```\n\n`[a](../README.md)`\n"
    assert _tree(tmp_path, a=text).pages["a.md"] == text


def test_a_list_after_a_paragraph_gets_a_blank_line() -> None:
    assert site_pages.spaced_lists("Text:\n- a\n- b\n  more\n- c") == "Text:\n\n- a\n- b\n  more\n- c"
    assert site_pages.spaced_lists("```\na\n- b\n```") == "```\na\n- b\n```"
