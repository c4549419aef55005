"""The library call and its tables, also as dataframe libraries see them."""

from __future__ import annotations

import gc
import sys
from typing import Any

import nanoarrow
import pytest
from simulated_clusters import workload

import kubesched
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.options import OptionError
from kubesched.testing import make

KINDS = {"n": ColumnKind.INT64, "x": ColumnKind.FLOAT64, "text": ColumnKind.UTF8}
ROWS = [(1, 0.5, "one"), (None, None, None), (-(2**62), 1e300, "zwölf ☃"), (0, -0.0, "")]
TABLE = ColumnTable(KINDS, ROWS)


def _report() -> kubesched.SimulationReport:
    nodes = [make.node("a", cpu=1), make.node("b", cpu=1)]
    job = workload("Job", "sum", completions=2, parallelism=2, pod={"cpu": 1, "duration": "10m"})
    big = workload("Deployment", "big", pod={"cpu": 8})
    return kubesched.simulate([*nodes, job, big], tie_break="name")


def test_a_run_gives_tables() -> None:
    report = _report()
    assert report.pods["state"] == ["Succeeded", "Succeeded", "Pending"]
    assert sorted(str(node) for node in report.pods["node"]) == ["None", "a", "b"]
    assert report.nodes.to_dict()["name"] == ["a", "b"]
    assert {row["reason"] for row in report.events.to_rows()} == {"Scheduled", "FailedScheduling"}
    assert "Pending" in str(report)


def test_utilisation_has_the_end_the_peak_and_the_mean() -> None:
    node = make.node("a", cpu=4, allocatable={"pods": 10})
    pod = make.pod("p", cpu=1, metadata={"annotations": {"kubesched.dev/duration": "10m"}})
    later = make.pod("q", cpu=2, metadata={"annotations": {"kubesched.dev/duration": "20m"}})
    report = kubesched.simulate([node, pod, later])
    (cpu,) = (row for row in report.utilisation.to_rows() if row["resource"] == "cpu")
    assert cpu == {
        "node": "a",
        "resource": "cpu",
        "allocatable": 4000,
        "requested": 0,
        "share": 0.0,
        "peak": 3000,
        "mean_share": 0.625,
    }


def test_a_sequence_is_still_a_sequence() -> None:
    found = kubesched.simulate([make.node("a"), make.pod("p")], sequence=["default/p"], tie_break="name")
    assert found.to_dict()["steps"][0]["node"] == "a"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"tie_break": "dice"}, 'tie_break: "dice" is neither of random, name', id="no such tie-break"),
        pytest.param({"until_s": -1.0}, r"until: -1\.0 is negative", id="a time before the start"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        kubesched.simulate([make.node("a")], **options)


def test_a_table_gives_columns_and_rows() -> None:
    assert TABLE["text"] == ["one", None, "zwölf ☃", ""]
    assert TABLE.to_dict()["n"] == [1, None, -(2**62), 0]
    assert TABLE.to_rows()[0] == {"n": 1, "x": 0.5, "text": "one"}
    assert (len(TABLE), list(TABLE)) == (4, ROWS)
    assert ColumnTable(KINDS, ROWS) == TABLE
    with pytest.raises(KeyError, match="nothing: the columns are n, x, text"):
        TABLE["nothing"]
    with pytest.raises(TypeError, match=r"a table has columns by name, not 0; list\(table\) is its rows"):
        TABLE[0]  # type: ignore[index]


def _read(table: ColumnTable) -> dict[str, list[Any]]:
    """As a dataframe library reads it, through its capsules."""
    found = nanoarrow.Array(nanoarrow.c_array_stream(table))
    names = [field.name for field in found.schema.fields]
    return {name: found.child(number).to_pylist() for number, name in enumerate(names)}


@pytest.mark.parametrize("rows", [pytest.param(ROWS, id="rows"), pytest.param([], id="no rows")])
def test_arrow_has_the_columns_of_a_table(rows: list[Any]) -> None:
    table = ColumnTable(KINDS, rows)
    assert _read(table) == table.to_dict()
    fields = nanoarrow.Schema(table).fields
    assert [(field.name, field.type.name, field.nullable) for field in fields] == [
        ("n", "INT64", True),
        ("x", "DOUBLE", True),
        ("text", "STRING", True),
    ]


def test_arrow_has_all_tables_of_a_run() -> None:
    report = _report()
    tables = (report.pods, report.nodes, report.utilisation, report.events, report.preemptions, report.not_created)
    for table in tables:
        assert _read(table) == table.to_dict()


def test_capsules_outlive_their_table_and_may_stay_unread() -> None:
    table = ColumnTable(KINDS, ROWS)
    stream, unread = nanoarrow.c_array_stream(table), table.__arrow_c_stream__()
    assert type(unread).__name__ == "PyCapsule"
    del table, unread
    gc.collect()
    assert nanoarrow.Array(stream).child(2).to_pylist() == TABLE["text"]


def test_without_nanoarrow_a_table_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoarrow", None)
    for ask in (TABLE.__arrow_c_stream__, TABLE.__arrow_c_schema__):
        with pytest.raises(ImportError, match=r"pip install '\.\[arrow\]'"):
            ask()
    assert TABLE.to_dict()["n"] == [1, None, -(2**62), 0]


@pytest.mark.parametrize("rows", [pytest.param(ROWS, id="rows"), pytest.param([], id="no rows")])
def test_pyarrow_reads_a_table(rows: list[Any]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = ColumnTable(KINDS, rows)
    found = pyarrow.table(table)
    assert [str(field.type) for field in found.schema] == ["int64", "double", "string"]
    assert found.to_pydict() == table.to_dict()
    assert pyarrow.schema(table) == found.schema


def test_a_column_outlives_the_batch_it_came_in() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.RecordBatchReader.from_stream(TABLE).read_all()["text"]
    gc.collect()
    assert column.to_pylist() == TABLE["text"]


def test_polars_reads_a_table() -> None:
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(TABLE).rows() == ROWS


def test_pandas_reads_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE.to_dict())
    assert list(frame["text"].dropna()) == ["one", "zwölf ☃", ""]
    if hasattr(pandas.DataFrame, "from_arrow"):
        pytest.importorskip("pyarrow")
        assert list(pandas.DataFrame.from_arrow(TABLE)["n"].dropna()) == [1, -(2**62), 0]
