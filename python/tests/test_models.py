"""Placement, lint, capacity and Spanner, and tables for DataFusion."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evenkeel


def placed(key: list[str], types: str, placement: str, partitions: int) -> int:
    program = [sys.executable, "-m", "evenkeel", "place", "--format", "json", "--types", types]
    program += ["--placement", placement, "--partitions", str(partitions), "--", *key]
    return json.loads(subprocess.run(program, capture_output=True, check=True).stdout)["partition"]


def test_published_vectors() -> None:
    # XXH64 of the little-endian bytes, and its interval; also in docs of the placement module.
    keys = pa.array([0, 42], pa.uint64())
    assert evenkeel.place(keys, partitions=12).tolist() == [2, 8]
    assert evenkeel.place(keys, partitions=64).tolist() == [13, 45]
    assert evenkeel.place(keys, partitions=64, placement="ydb-modulo").tolist() == [59, 19]
    assert evenkeel.place(keys, hashes=True).tolist() == [0x34C96ACDCADB1BBB, 0xB556806FB6D14353]
    # Iceberg's specification: bucket of 34 is hash 2017239379 mod N.
    assert evenkeel.place([34], "int64", 16, "iceberg").tolist() == [2017239379 % 16]


def test_whole_arrays_equal_single_keys() -> None:
    users = [f"u{n}" for n in range(40)]
    numbers = list(range(-20, 20))
    for placement in ("ydb", "ydb-modulo", "cassandra", "citus"):
        found = evenkeel.place({"u": users}, "utf8", 12, placement).tolist()
        assert found[::13] == [placed([user], "utf8", placement, 12) for user in users[::13]]
    both = evenkeel.place([users, numbers], ["utf8", "int64"], 7).tolist()
    assert both[::13] == [placed([u, str(n)], "utf8,int64", "ydb", 7) for u, n in list(zip(users, numbers))[::13]]


def test_every_kind_of_column_is_taken() -> None:
    values = list(range(1000))
    expected = evenkeel.place(pa.array(values, pa.int64()), partitions=16).tolist()
    for source in (
        values,
        np.array(values),
        pa.chunked_array([values[:300], values[300:]]),
        pd.Series(values),
        pl.Series(values),
        pl.LazyFrame({"k": values}),
        pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), pa.table({"k": values}).to_batches()),
        duckdb.connect().from_arrow(pa.table({"k": values})),
        pd.DataFrame({"k": values}),
        pl.DataFrame({"k": values}),
        pa.table({"k": values}),
        {"k": values},
        [values],
    ):
        found = evenkeel.place(source, partitions=16)
        assert np.asarray(found).tolist() == expected, type(source)
        assert pa.array(found).to_pylist() == expected
    # The width of a type changes the hash; a value that does not fit is refused with its row.
    assert evenkeel.place(values, "uint32", partitions=16).tolist() != expected
    with pytest.raises(evenkeel.UsageError) as refused:
        evenkeel.place([1, 2, -3], "uint64")
    assert refused.value.row == 3
    for wrong in ("abc", [1, "a"], object()):
        with pytest.raises(evenkeel.UsageError):
            evenkeel.place(wrong)
    with pytest.raises(evenkeel.UsageError, match="2 types"):
        evenkeel.place([1], ["int64", "int64"])
    with pytest.raises(evenkeel.UsageError, match="unknown placement"):
        evenkeel.place([1], "int64", placement="nowhere")
    with pytest.raises(evenkeel.UsageError):
        evenkeel.place([1], "int64", partitions=0)
    assert evenkeel.place(pa.array([], pa.int64())).tolist() == []
    assert evenkeel.place(pa.array([None], pa.int64())).tolist() == [evenkeel.place([""], "utf8").tolist()[0]]


def test_a_table_has_the_rows_that_place_says(table: evenkeel.Table, make_events) -> None:
    rows = make_events(3000)
    table.ingest(rows, compact=False)
    expected = np.bincount(np.asarray(evenkeel.place(rows["user_id"], partitions=table.partitions)), minlength=8)
    assert table.ingest(make_events(0)).rows == 0
    assert table.skew().to_dict()["rows_per_partition"] == expected.tolist()


def test_placements_are_listed() -> None:
    names = [one.placement for one in evenkeel.placements()]
    assert {"ydb", "cassandra", "iceberg"} <= set(names) and len(names) >= 26


def test_models_of_capacity_and_spanner(
    make_events, project: pathlib.Path, table: evenkeel.Table
) -> None:
    rows = make_events(20_000)
    model = evenkeel.capacity(rows, partition_keys=["user_id", "event_type"])
    assert model.to_dict() and "user_id" in str(model)
    splits = evenkeel.spanner.simulate(rows, time="event_timestamp", primary_key="event_timestamp,user_id")
    assert splits.to_dict() and splits.to_html().startswith("<!doctype html>")
    assert "CREATE TABLE" in evenkeel.spanner.ddl(table.path)
    log = evenkeel.spanner.access_log(rows=5000)
    assert log.to_dict() and log.to_html().startswith("<!doctype html>")
    linted = evenkeel.lint(rows, key="user_id", partitions=16)
    assert linted.to_dict()["keys"] == linted.keys
    for model in (evenkeel.capacity, evenkeel.spanner.simulate):
        with pytest.raises(evenkeel.Error) as missing:
            model(project / "absent.csv", time="at", primary_key="at")
        assert missing.value.file == str(project / "absent.csv") or isinstance(missing.value, evenkeel.UsageError)


def test_tables_register_in_the_datafusion_package(table: evenkeel.Table, make_events) -> None:
    datafusion = pytest.importorskip("datafusion")
    rows = make_events(2000)
    table.ingest(rows, compact=False)
    table.ingest(rows.slice(0, 500), compact=False)  # replaces equal rows
    context = datafusion.SessionContext()
    context.register_table("events", table)
    sql = "SELECT campaign_id, count(*) AS n FROM {} WHERE event_type = 'click' GROUP BY 1 ORDER BY 1"
    theirs = context.sql(sql.format("events")).to_arrow_table().to_pylist()
    assert theirs == table.sql(sql.format("events")).to_pylist()
    some = context.sql("SELECT user_id FROM events WHERE user_id = 'u00007' LIMIT 3").to_arrow_table()
    assert set(some["user_id"].to_pylist()) <= {"u00007"}


def test_another_version_of_datafusion_is_refused(table: evenkeel.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    monkeypatch.setattr(importlib.metadata, "version", lambda _: "54.1.0")
    with pytest.raises(ImportError, match=r"datafusion==55\.\*"):
        table.__datafusion_table_provider__(object())

    def absent(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(ImportError, match="no datafusion package"):
        table.__datafusion_table_provider__(object())


def test_partitions_are_a_column_of_a_frame(make_events) -> None:
    frame = make_events(500).to_pandas()
    frame["partition"] = evenkeel.place(frame["user_id"], partitions=8)
    assert frame["partition"].dtype == np.dtype("uint32") and frame["partition"].max() < 8
    polars = pl.DataFrame(frame).with_columns(again=evenkeel.place(frame["user_id"], partitions=8))
    assert (polars["again"] == polars["partition"]).all()


def test_hashes_are_as_the_system_writes_them() -> None:
    keys = [1, 2, 34, -5]
    for placement in ("kafka", "iceberg", "spark", "hive", "ydb", "cassandra"):
        types = ["utf8"] if placement == "kafka" else ["int64"]
        values = list(map(str, keys)) if placement == "kafka" else keys
        found = evenkeel.place(values, types, 16, placement, hashes=True).tolist()
        for value, hash_value in zip(values, found):
            program = [sys.executable, "-m", "evenkeel", "place", "--format", "json", "--types", *types]
            program += ["--placement", placement, "--partitions", "16", "--", str(value)]
            printed = json.loads(subprocess.run(program, capture_output=True, check=True).stdout)
            assert str(hash_value) == printed["hash"], (placement, value)
