"""JSON text into plain values, as Go's decoder takes it: with its replacement of broken characters, and its messages.

The fast parser reads what is good; ``json_errors.py`` words what is not.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from kubesched.playground.apiserver.json_errors import go_json_error

_decode = msgspec.json.Decoder().decode


def read_json(data: bytes) -> Any:
    """The value; ValueError with Go's message if the text is no JSON."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        error = go_json_error(data)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    if error:
        raise ValueError(error)
    # Go takes halves of surrogate pairs and broken UTF-8 within strings, and puts a replacement character there
    try:
        return _repaired(json.loads(data.decode(errors="replace")))
    except (ValueError, RecursionError):
        raise ValueError("invalid JSON") from None


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_repaired(name): _repaired(item) for name, item in value.items()}
    return [_repaired(item) for item in value] if isinstance(value, list) else value
