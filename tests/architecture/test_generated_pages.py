"""Pages and pictures that are generated say what the code says now."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path

from kubesched.live.logs import reference_page as logs_page
from kubesched.live.options import reference_page as flags_page
from kubesched.scheduler.plugins import reference_page

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import explain_picture
import library_page

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_plugin_page_is_up_to_date() -> None:
    assert (REFERENCE / "plugins.md").read_text() == reference_page.page(), "run `make docs`"


def test_the_page_of_the_flags_is_up_to_date() -> None:
    assert (REFERENCE / "flags.md").read_text() == flags_page.page(), "run `make docs`"


def test_the_page_of_the_logs_is_up_to_date() -> None:
    assert (REFERENCE / "logs.md").read_text() == logs_page.page(), "run `make docs`"


def test_the_page_of_the_library_is_up_to_date() -> None:
    assert (REFERENCE / "library.md").read_text() == library_page.page(), "run `make docs`"


def test_the_picture_of_an_answer_is_up_to_date() -> None:
    """Compared by its words and colours: where a version of rich places them is its own affair."""
    assert _drawn(explain_picture.PICTURE.read_text()) == _drawn(explain_picture.draw()), "run `make docs`"


def _drawn(picture: str) -> list[tuple[str, str]]:
    fills = dict(re.findall(r"\.explain-(r\d+) \{ fill: (#\w+)", picture))
    texts = re.findall(r'<text class="explain-(r\d+)"[^>]*>([^<]+)</text>', picture)
    return [(fills[look], unescape(text)) for look, text in texts if text.strip()]
