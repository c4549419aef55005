"""Tables as CSV: what each row has under the names in the first line, and the line that it ends on, for messages."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.k8s.loaded_cluster import InputError

Row = Mapping[str, str | None]
"""None under a name that the row is too short for."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    names: tuple[str, ...]
    rows: tuple[tuple[int, Row], ...]
    """With the number of the line."""


def read_table(data: bytes | str, source: str) -> CsvTable:
    """Raises `InputError` for what is no text, or no CSV."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{source}: not a text file") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = tuple(reader.fieldnames or ())
        return CsvTable(names, tuple((reader.line_num, row) for row in reader))
    except csv.Error as problem:
        raise InputError(f"{source}: line {reader.line_num + 1}: not CSV: {problem}") from None
