"""Go's words for JSON that cannot be parsed, from Python's finding where it breaks.

Only the message is made here; the body was already refused by the fast parser. Used by ``bodies.py`` and by patches.
"""

from __future__ import annotations

import json


def go_json_error(data: bytes) -> str:
    """What Go's decoder would say about this text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "invalid UTF-8"
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _worded(text, error)
    except RecursionError:
        return "exceeded max depth"
    return "invalid JSON"


def _worded(text: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    if at >= len(text) or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    character = text[at]
    shown = "'\\''" if character == "'" else f"'{character}'"
    where = {
        "Expecting value": "looking for beginning of value",
        "Expecting ',' delimiter": "after object key:value pair",
        "Expecting ':' delimiter": "after object key",
        "Extra data": "after top-level value",
        "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    }.get(error.msg, "in string literal")
    return f"invalid character {shown} {where}"
