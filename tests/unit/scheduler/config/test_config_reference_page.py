"""The reference page says what the code says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kubesched.scheduler.config import ARGS_BY_PLUGIN, reference_page
from kubesched.scheduler.config.plugin_args import ConfigStruct, SparseConfigStruct

PAGE = Path(__file__).parents[4] / "docs/reference/configuration.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference_page.reference_page(), (
        "run: python -m kubesched.scheduler.config.reference_page > docs/reference/configuration.md"
    )


def test_every_field_of_every_struct_is_on_the_page() -> None:
    text = reference_page.reference_page()
    structs = [*ConfigStruct.__subclasses__(), *SparseConfigStruct.__subclasses__()]
    assert len(structs) > len(ARGS_BY_PLUGIN)
    missing = [
        f"{struct.__name__}.{field.encode_name}"
        for struct in structs
        for field in msgspec.structs.fields(struct)
        if f"| `{field.encode_name}` |" not in text
    ]
    assert missing == []


def test_a_field_without_a_description_is_an_error() -> None:
    class Undescribed(ConfigStruct, frozen=True):
        field: int = 0
        other: int = 0

    with pytest.raises(LookupError, match=r"Undescribed\.field has no description"):
        reference_page._field_descriptions(Undescribed)
