"""Values of every type: there and back, as parameters, and by way of pandas."""

from __future__ import annotations

import datetime
import decimal
import pathlib

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenkeel

UTC = datetime.timezone.utc
D = decimal.Decimal

#: Type of the table, type of Arrow, values: extremes, NULL, and what other libraries lose.
TYPES = [
    ("json", pa.string(), ['{"a": [1, null]}', "[]", None]),
    ("jsondocument", pa.string(), ["{}", None, None]),
    ("yson", pa.binary(), [b"{a=1}", None, None]),
    ("uuid", pa.binary(16), [bytes(range(16)), b"\xff" * 16, None]),
    ("date32", pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    ("datetime64", pa.timestamp("s"), [datetime.datetime(1900, 1, 1), None, None]),
    ("timestamp64", pa.timestamp("us"), [datetime.datetime(1900, 1, 1, 0, 0, 0, 1), None, None]),
    ("interval64", pa.duration("us"), [datetime.timedelta(days=-9000), None, None]),
    ("bool", pa.bool_(), [True, False, None]),
    ("int8", pa.int8(), [-128, 127, None]),
    ("int16", pa.int16(), [-(2**15), 2**15 - 1, None]),
    ("int32", pa.int32(), [-(2**31), 2**31 - 1, None]),
    ("int64", pa.int64(), [-(2**63), 2**63 - 1, None]),
    ("uint8", pa.uint8(), [0, 255, None]),
    ("uint16", pa.uint16(), [0, 2**16 - 1, None]),
    ("uint32", pa.uint32(), [0, 2**32 - 1, None]),
    ("uint64", pa.uint64(), [0, 2**64 - 1, None]),
    ("float", pa.float32(), [0.5, float("inf"), None]),
    ("double", pa.float64(), [-0.0, 1e308, None]),
    ("utf8", pa.string(), ["", "a\u0000'\"\n", None]),
    ("utf8", pa.large_string(), ["ä", "𝄞", None]),
    ("utf8", pa.string_view(), ["a text of more than twelve bytes", "short", None]),
    ("string", pa.binary(), [b"", b"\x00\xff", None]),
    ("decimal(22,9)", pa.decimal128(22, 9), [D("-1234567890123.123456789"), D("0E-9"), None]),
    ("date", pa.date32(), [datetime.date(1970, 1, 1), datetime.date(2105, 12, 31), None]),
    ("timestamp", pa.timestamp("us"), [datetime.datetime(1970, 1, 1), datetime.datetime(2026, 7, 1, 1, 2, 3, 4), None]),
    ("timestamp", pa.timestamp("us", "Asia/Tokyo"), [datetime.datetime(2026, 1, 1, tzinfo=UTC), None, None]),
    ("datetime", pa.timestamp("s"), [datetime.datetime(2026, 1, 1), None, None]),
    ("interval", pa.duration("us"), [datetime.timedelta(microseconds=-1), datetime.timedelta(days=9), None]),
]


@pytest.mark.parametrize(("declared", "arrow", "values"), TYPES, ids=lambda one: str(one))
def test_every_type_there_and_back(
    declared: str, arrow: pa.DataType, values: list, tmp_path: pathlib.Path
) -> None:
    table = evenkeel.Table.create(
        tmp_path / "t",
        columns={"k": "int64:not-null", "v": declared},
        primary_key="k",
        partitions=3,
    )
    rows = pa.table({"k": range(len(values)), "v": pa.array(values, arrow)})
    assert table.ingest(rows).rows == len(values)
    back = table.sql("SELECT v FROM t ORDER BY k").to_arrow()["v"].to_pylist()

    def plain(value: object) -> object:
        is_time = isinstance(value, datetime.datetime) and value.tzinfo is not None
        return value.astimezone(UTC).replace(tzinfo=None) if is_time else value

    assert list(map(plain, back)) == list(map(plain, values))
    if declared == "double":
        assert str(back[0]) == "-0.0"
    # The same by Polars and DuckDB, which read the stream themselves.
    polars = pl.DataFrame(table.sql("SELECT v FROM t ORDER BY k"))["v"].to_list()
    assert list(map(plain, polars)) == list(map(plain, values))
    stream = table.sql("SELECT v FROM t ORDER BY k")
    of_duckdb = duckdb.connect().from_arrow(pa.RecordBatchReader.from_stream(stream)).fetchall()
    # DuckDB hands over lengths of time and UUIDs as values of its own.
    if declared not in ("interval", "interval64", "uuid"):
        assert [plain(value) for (value,) in of_duckdb] == list(map(plain, values))


def test_parameters_of_every_type(table: evenkeel.Table) -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    for value, expected in [
        (1, 1),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
        (1.5, 1.5),
        ("it's", "it's"),
        (True, True),
        (None, None),
        (b"\x00\xff", b"\x00\xff"),
        (when, when),
        (when.replace(tzinfo=berlin), when.replace(tzinfo=berlin).astimezone(UTC)),
        (datetime.date(2026, 1, 2), datetime.date(2026, 1, 2)),
        (datetime.time(1, 2, 3, 4), datetime.time(1, 2, 3, 4)),
        (datetime.timedelta(days=1, microseconds=1), datetime.timedelta(days=1, microseconds=1)),
        (D("-12.345"), D("-12.345")),
        (D("1E+3"), D("1000")),
        (2**100, D(2**100)),
        (np.int64(7), 7),
    ]:
        found = table.sql("SELECT $x AS x", {"x": value}).to_pylist()[0]["x"]
        assert found == expected, value
    for wrong in (
        {"x": np.longdouble(1.5)},
        {"x": np.array([1])},
        {"x": datetime.timedelta(days=200_000_000)},
        {"x": pd.Timedelta(1500, "ns")},
        {"x": np.datetime64("30000-01-01", "us")},
        {"x": datetime.time(1, tzinfo=UTC)},
    ):
        with pytest.raises(evenkeel.UsageError, match="parameter x"):
            table.sql("SELECT $x AS x", wrong)
    for wrong in ({"x": object()}, {"x": D("1E+50")}, {"x": [1]}):
        with pytest.raises(evenkeel.UsageError, match="parameter x"):
            table.sql("SELECT $x AS x", wrong)
    with pytest.raises(evenkeel.UsageError):
        table.sql("SELECT $x AS x", {})


def test_times_of_numpy_and_pandas_are_parameters(table: evenkeel.Table) -> None:
    for value in (np.datetime64("2026-01-02T03:04:05.000006000", "ns"), pd.Timestamp("2026-01-02T03:04:05.000006")):
        found = table.sql("SELECT $x AS x", {"x": value}).to_pylist()
        assert found == [{"x": datetime.datetime(2026, 1, 2, 3, 4, 5, 6)}]
    found = table.sql("SELECT $x AS x", {"x": np.timedelta64(1500, "ms")}).to_pylist()
    assert found == [{"x": datetime.timedelta(seconds=1.5)}]
    for nothing in (pd.NA, pd.NaT, np.datetime64("NaT", "ns")):
        assert table.sql("SELECT $x AS x", {"x": nothing}).to_pylist() == [{"x": None}]
    for fine in (np.datetime64(1, "ns"), pd.Timestamp(1)):
        with pytest.raises(evenkeel.UsageError, match="finer than microseconds"):
            table.sql("SELECT $x AS x", {"x": fine})


def test_unsigned_and_decimal_columns_survive_pandas(tmp_path: pathlib.Path) -> None:
    table = evenkeel.Table.create(
        tmp_path / "t", columns={"k": "uint64:not-null", "d": "decimal(22,9)"}, primary_key="k", partitions=2
    )
    frame = pd.DataFrame({"k": np.array([0, 2**64 - 1], dtype="uint64"), "d": [D("0.1"), None]})
    table.ingest(frame)
    back = table.sql("SELECT * FROM t ORDER BY k").to_pandas()
    assert back["k"].dtype == np.dtype("uint64") and list(back["k"]) == [0, 2**64 - 1]
    assert back["d"][0] == D("0.100000000")
