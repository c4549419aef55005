"""The guide to connecting quotes messages that the client really gives."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "guides" / "connect.md"
_QUOTED = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def _texts() -> list[str]:
    """Every string in the client's code, with `…` for what is put in when it runs."""
    found = []
    for module in sorted((ROOT / "src" / "kubesched" / "k8s" / "client").rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def _messages() -> list[str]:
    text = PAGE.read_text()
    return _QUOTED.findall(text[text.index("## What a message means") :])


TEXTS = _texts()


@pytest.mark.parametrize("message", _messages())
def test_a_quoted_message_is_in_the_code(message: str) -> None:
    """Piece by piece between the `…`, since a message may be put together from two texts."""
    for piece in filter(None, (piece.strip(" :;") for piece in message.split("…"))):
        assert any(piece in text for text in TEXTS), piece


def test_the_page_quotes_many_messages() -> None:
    assert len(_messages()) > 30
