"""Gathers the pages of the docs site in build/site-pages, from where mkdocs makes build/site of them (`make site`).

The documents are written to be read in the repository: they link to each other, to examples and to source files by
relative paths. Here each of these links becomes one within the site: pages outside of docs/ are taken along, and each
file or folder that a page links to gets a page that shows it. So the site is whole by itself, wherever it is served. A
link that leads nowhere is left as it is, and mkdocs, which is run with --strict, fails on it.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import notebooks

ROOT = Path(__file__).parents[1]
PAGES_OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/reporting.md",
    "deploy/README.md": "deploy/README.md",
}
_LINK = re.compile(r"(!?\[[^\]]*\])\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r" *([-*]|\d+\.) ")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json", ".sh": "sh"}
_PICTURES = {".png", ".svg"}


class Site:
    """All pages of the site by their place in it; links are followed as pages are added."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pages: dict[str, str | bytes] = {}
        for page in sorted((root / "docs").rglob("*.md")):
            self._add(page)
        for name in PAGES_OUTSIDE:
            self._add(root / name)

    def _add(self, path: Path) -> str:
        """Adds what `path` shows, unless it is there, and returns its place."""
        place = self._place(path)
        if place in self.pages:
            return place
        self.pages[place] = ""  # pages may link to each other
        if path.is_dir():
            self.pages[place] = self._listing(path, place)
        elif path.suffix == ".md":
            self.pages[place] = self._with_links(spaced_lists(path.read_text()), path, place)
        elif path.suffix == ".ipynb":
            self.pages[place] = self._with_links(notebooks.as_markdown(path), path, place)
        elif path.suffix in _PICTURES:
            self.pages[place] = path.read_bytes()
        else:
            self.pages[place] = self._listing_of_code(path)
        return place

    def _place(self, path: Path) -> str:
        """Where in the site a file or folder of the repository is shown."""
        name = path.relative_to(self.root).as_posix()
        if path.is_dir():
            return f"{name.removeprefix('docs/')}/index.md"
        if name in PAGES_OUTSIDE:
            return PAGES_OUTSIDE[name]
        if path.suffix == ".md" or path.suffix in _PICTURES:
            return name.removeprefix("docs/")
        return f"source/{name}.md"

    def _with_links(self, text: str, path: Path, place: str) -> str:
        """The text of the page at `path`, with every link as the site needs it. Code stays as it is."""

        def linked(match: re.Match[str]) -> str:
            words, link, anchor = match.groups(default="")
            target = Path(os.path.normpath(path.parent / link))
            if not target.exists() or self.root not in target.parents:
                return match.group()
            if (target / "README.md").exists():
                target /= "README.md"
            return f"{words}({relative(self._add(target), place)}{anchor})"

        spans = [match.span() for match in _CODE.finditer(text)]
        return _LINK.sub(lambda m: m[0] if any(a <= m.start() and m.end() <= b for a, b in spans) else linked(m), text)

    def _listing(self, folder: Path, place: str) -> str:
        rows = []
        for path in sorted(folder.iterdir()):
            if path.name.startswith((".", "__pycache__")):
                continue
            name = title(path) if path.suffix == ".md" else f"`{path.name}`"
            rows.append(f"- [{name}]({relative(self._add(path), place)})" if path.is_file() else f"- {name}/")
        return f"# {folder.relative_to(self.root).as_posix()}\n\n" + "\n".join(rows) + "\n"

    def _listing_of_code(self, path: Path) -> str:
        name = path.relative_to(self.root).as_posix()
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            text = f"({path.stat().st_size} bytes that are not text)"
        fence = "`" * max(4, *(len(run) + 1 for run in [*re.findall(r"`+", text), ""]))
        language = _LANGUAGES.get(path.suffix, "text")
        return f'---\nsearch: {{exclude: true}}\n---\n# `{name}`\n\n{fence}{language} linenums="1"\n{text}\n{fence}\n'


def title(page: Path) -> str:
    """A page's first heading."""
    return page.read_text().partition("\n")[0].removeprefix("# ")


def relative(target: str, place: str) -> str:
    return os.path.relpath(target, Path(place).parent)


def spaced_lists(text: str) -> str:
    """A blank line before each list: elsewhere a list may follow a paragraph at once, for mkdocs it may not."""
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        before = lines[-1] if lines else ""
        is_text = bool(before.strip()) and not before.startswith(" ") and not _ITEM.match(before)
        if not is_code and is_text and _ITEM.match(line):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    folder = ROOT / "build" / "site-pages"
    shutil.rmtree(folder, ignore_errors=True)
    for place, content in Site(ROOT).pages.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


if __name__ == "__main__":
    main()
