"""A table of named columns: whole numbers, numbers and texts, any of which may be missing (None).

    polars.DataFrame(table)      pyarrow.table(table)      pandas.DataFrame(table.to_dict())

The first two read it through Arrow's PyCapsule interface, which nanoarrow speaks for us (the extra `arrow`); the third
needs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

Cell = str | int | float | None
_SHOWN_ROWS = 10


class ColumnKind(Enum):
    """What a column holds, by the name of nanoarrow's function for its type."""

    INT64 = "int64"
    FLOAT64 = "float64"
    UTF8 = "string"


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
        return _nanoarrow().c_schema(self._arrow_schema()).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """One batch with all rows. Another schema than our own is not provided, as the protocol allows."""
        nanoarrow = _nanoarrow()
        columns = self.to_dict()
        arrays = [
            nanoarrow.c_array(columns[name], getattr(nanoarrow, kind.value)()) for name, kind in self.kinds.items()
        ]
        # a struct has one buffer, which says what rows are missing: none
        rows = nanoarrow.c_array_from_buffers(self._arrow_schema(), len(self), buffers=[None], children=arrays)
        return nanoarrow.c_array_stream(rows).__arrow_c_stream__()

    def _arrow_schema(self) -> Any:
        """A row of columns: a struct in Arrow's words."""
        nanoarrow = _nanoarrow()
        return nanoarrow.struct({name: getattr(nanoarrow, kind.value)() for name, kind in self.kinds.items()})


def _nanoarrow() -> Any:
    try:
        import nanoarrow
    except ImportError as problem:
        hint = "dataframe libraries read this table through nanoarrow: pip install 'kubesched[arrow]', or use to_dict()"
        raise ImportError(hint, name="nanoarrow") from problem
    return nanoarrow
