"""A table of named columns: whole numbers, numbers and texts, any of which may be missing (None).

    polars.DataFrame(table)      pyarrow.table(table)      pandas.DataFrame(table.to_dict())

Next: `arrow`, which makes the first two work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from kubesched.simulator.tables.arrow import export_schema, export_stream

Cell = str | int | float | None
_SHOWN_ROWS = 10


class ColumnKind(Enum):
    """What a column holds, and Arrow's letter for it."""

    INT64 = "l"
    FLOAT64 = "g"
    UTF8 = "u"


class ColumnTable:
    """Does not change once it is made."""

    def __init__(self, kinds: Mapping[str, ColumnKind], rows: Iterable[Sequence[Cell]]) -> None:
        self.kinds = dict(kinds)
        self._rows = [tuple(row) for row in rows]

    @property
    def column_names(self) -> list[str]:
        return list(self.kinds)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, column: str) -> list[Cell]:
        """The values of a column."""
        position = self.column_names.index(column) if column in self.kinds else -1
        if position < 0:
            raise KeyError(column)
        return [row[position] for row in self._rows]

    def __iter__(self) -> Iterator[tuple[Cell, ...]]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnTable) and self.kinds == other.kinds and self._rows == other._rows

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = [f"ColumnTable of {len(self)} rows", "  ".join(self.kinds)]
        lines += ["  ".join("" if cell is None else str(cell) for cell in row) for row in self._rows[:_SHOWN_ROWS]]
        return "\n".join([*lines, "…"] if len(self) > _SHOWN_ROWS else lines)

    def to_dict(self) -> dict[str, list[Cell]]:
        """Lists by column."""
        return {name: [row[position] for row in self._rows] for position, name in enumerate(self.kinds)}

    def to_rows(self) -> list[dict[str, Cell]]:
        """A dictionary for each row."""
        return [dict(zip(self.kinds, row, strict=True)) for row in self._rows]

    # -- for dataframe libraries ---------------------------------------------------------------------------------------

    def __arrow_c_schema__(self) -> object:
        return export_schema({name: kind.value for name, kind in self.kinds.items()})

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        """One batch with all rows. Another schema than our own is not provided, as the protocol allows."""
        return export_stream({name: kind.value for name, kind in self.kinds.items()}, self.to_dict(), len(self))
