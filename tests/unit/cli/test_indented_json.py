"""Records as JSON: the same text as Python's own encoder makes, only sooner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.cli.output import indented_json

RECORDS: list[dict[str, Any]] = [
    {},
    {"a": [], "b": {}, "c": [[], [{}]], "": ""},
    {"numbers": [0, -1, 2.5, 1e-7, 1e22, 10**30, True, None]},
    {"text": 'ü "quoted" \\ / \u2028 \t\n😀', "ä": {"nested": [{"deep": [1]}]}},
    {"unlimited": float("inf"), "left": [1]},
]


@pytest.mark.parametrize("record", RECORDS)
def test_it_is_what_the_encoder_of_python_makes(record: dict[str, Any]) -> None:
    assert indented_json(record) == json.dumps(record, indent=2, ensure_ascii=False)
