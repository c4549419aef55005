"""A table of named columns: whole numbers, numbers and texts, any of which may be missing (None).

    table.to_pandas()      table.to_polars()      pandas.DataFrame(table)      polars.DataFrame(table)

These need nothing but pandas or polars, save the last: it reads the table through Arrow's PyCapsule interface, as
`pyarrow.table(table)` does, which nanoarrow speaks for us (the extra `arrow`).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import takewhile
from typing import Any

from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.layout import counted, table

Cell = str | int | float | None
_SHOWN_ROWS = 10
_SHOWN_WIDTH = 60


class ColumnKind(Enum):
    """What a column holds, by the name of nanoarrow's function for its type."""

    INT64 = "int64"
    FLOAT64 = "float64"
    UTF8 = "string"


class ColumnTable:
    """Does not change once it is made."""

    def __init__(self, kinds: Mapping[str, ColumnKind], rows: Iterable[Sequence[Cell]]) -> None:
        self.kinds = dict(kinds)
        make = _row_type(tuple(self.kinds))._make
        self._rows = [make(row) for row in rows]

    @property
    def column_names(self) -> list[str]:
        return list(self.kinds)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, column: str) -> list[Cell]:
        """The values of a column."""
        if not isinstance(column, str):
            raise TypeError(f"a table has columns by name, not {column!r}; list(table) is its rows")
        if column not in self.kinds:
            raise KeyError(f"{column}: the columns are {', '.join(self.kinds)}")
        position = self.column_names.index(column)
        return [row[position] for row in self._rows]

    def __iter__(self) -> Iterator[tuple[Cell, ...]]:
        """Rows, whose cells have names, too: `row.node`."""
        return iter(self._rows)

    def named(self) -> Sequence[Any]:
        """The same, where the names are known: `row.node` for each row of `named()`."""
        return self._rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnTable) and self.kinds == other.kinds and self._rows == other._rows

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        rows = [[_shown(cell) for cell in row] for row in self._rows[:_SHOWN_ROWS]]
        n_left = sum(1 for _ in takewhile(lambda kind: kind is ColumnKind.UTF8, self.kinds.values()))
        lines = [f"ColumnTable of {counted(len(self), 'row')}", *table(list(self.kinds), rows, indent=0, n_left=n_left)]
        return "\n".join([*lines, "…"] if len(self) > _SHOWN_ROWS else lines)

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        more = len(self) - _SHOWN_ROWS
        told = paragraph(f"and {counted(more, 'more row')}", "dim") if more > 0 else ""
        return block(html_table(list(self.kinds), self._rows[:_SHOWN_ROWS]) or paragraph(repr(self)), told)

    def to_dict(self) -> dict[str, list[Cell]]:
        """Lists by column."""
        return {name: [row[position] for row in self._rows] for position, name in enumerate(self.kinds)}

    def to_rows(self) -> list[dict[str, Cell]]:
        """A dictionary for each row."""
        return [dict(zip(self.kinds, row, strict=True)) for row in self._rows]

    # -- for dataframe libraries ---------------------------------------------------------------------------------------

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; whole numbers stay whole where some are missing."""
        pandas = _library("pandas")
        frame = pandas.DataFrame(self.to_dict())
        dtypes = {ColumnKind.INT64: "Int64", ColumnKind.FLOAT64: "float64", ColumnKind.UTF8: "object"}
        return frame.astype(
            {
                name: "int64" if kind is ColumnKind.INT64 and None not in self[name] else dtypes[kind]
                for name, kind in self.kinds.items()
            }
        )

    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
        polars = _library("polars")
        dtypes = {ColumnKind.INT64: polars.Int64, ColumnKind.FLOAT64: polars.Float64, ColumnKind.UTF8: polars.String}
        return polars.DataFrame(self.to_dict(), schema={name: dtypes[kind] for name, kind in self.kinds.items()})

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


@cache
def _row_type(columns: tuple[str, ...]) -> Any:
    return namedtuple("Row", columns, rename=True)  # the columns are known at run time only


def _shown(cell: Cell) -> str:
    text = "" if cell is None else str(cell)
    return text if len(text) <= _SHOWN_WIDTH else f"{text[: _SHOWN_WIDTH - 1]}…"


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as problem:
        hint = f"{name} is not installed: pip install {name}, or use to_dict() or to_rows()"
        raise ImportError(hint, name=name) from problem


def _nanoarrow() -> Any:
    try:
        import nanoarrow
    except ImportError as problem:
        hint = "dataframes read this table through nanoarrow: pip install '.[arrow]' in a clone, or use to_dict()"
        raise ImportError(hint, name="nanoarrow") from problem
    return nanoarrow
