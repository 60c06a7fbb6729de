"""Exported tables read by other engines: every row and type beside what `evenkeel query` gives.

    delta.py EVENKEEL PYTHON_WITH_DUCKDB_EXTENSION

`run_delta.sh` makes the environments. Each function named test_* runs in a folder of its own.
"""

import datetime as dt
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from delta_checks.comparison import expected, same
from delta_checks.program import EVENKEEL, evenkeel, export, ingest, query
from delta_checks.random_rows import EPOCH, create_with_all_types, random_rows
from delta_checks.readers import COMPARE, READERS, check, extension, readable, sql_of


def test_every_type_and_value_is_read_as_a_query_reads_it(folder):
    table = create_with_all_types(folder)
    # 40 keys leave some of 32 partitions empty; the last file has NULLs alone.
    ingest(table, random_rows(range(40), random.Random(1)))
    report = export(table, "--compact")
    assert (report["delta_version"], report["rows"], report["removed"]) == (0, 40, 0), report
    assert 0 < report["files"] < 32, report
    rows = check(table)
    assert rows.num_rows == 40
    # JSON is another way to the same rows.
    lines = evenkeel("query", table, "-c", "SELECT k, c_uint64, c_utf8 FROM t ORDER BY k", "--format", "ndjson").splitlines()
    delta = deltalake.DeltaTable(table).to_pyarrow_table(columns=["k", "c_uint64", "c_utf8"]).sort_by("k")
    for line, row in zip(lines, delta.to_pylist(), strict=True):
        line = json.loads(line)
        assert {name: line.get(name) for name in row} == row, (line, row)


def test_versions_follow_the_table_and_earlier_ones_stay(folder):
    table = create_with_all_types(folder, partitions=8)
    rng = random.Random(2)
    ingest(table, random_rows(range(300), rng))
    assert export(table)["delta_version"] == 0
    first = query(table)
    again = export(table)
    assert not again["written"] and again["delta_version"] == 0, again
    # Rows that replace others: refused until they are merged.
    ingest(table, random_rows(range(200, 500), rng))
    refused = evenkeel("export", "delta", table, code=1)
    assert "overlap in keys" in refused and "--compact" in refused, refused
    check(table, rows=first)
    report = export(table, "--compact")
    assert report["delta_version"] == 1 and report["removed"] > 0, report
    second = check(table)
    assert second.num_rows == 500
    evenkeel("alter", table, "--add-column", "later:utf8", "--add-column", "at:timestamp")
    ingest(table, [{"k": 1000, "later": "né", "at": "2026-01-01T00:00:00.000001"}])
    assert export(table, "--compact")["delta_version"] == 2
    third = check(table)
    assert third["later"].null_count == 500
    for version, rows in enumerate([first, second, third]):
        check(table, version, rows)
    # Cleaning keeps what the newest version names, and nothing else.
    evenkeel("compact", table, "--full")
    cleaned = json.loads(evenkeel("clean", table, "--keep", "0s", "--format", "json"))
    assert cleaned["portions"] > 0, cleaned
    check(table, rows=third)
    export(table)
    evenkeel("clean", table, "--keep", "0s", "--unnamed", "1us")
    check(table, rows=third)
    assert "0 damaged" in evenkeel("check", table, "--all")
    assert deltalake.DeltaTable(table).transaction_version("evenkeel") is not None


def test_statistics_lose_no_row(folder):
    table = folder / "events"
    kinds = {"u": "uint64", "n": "int32", "s": "utf8", "at": "timestamp64", "day": "date32", "second": "datetime64", "long": "utf8", "rare": "int8", "b": "bool", "f": "double"}
    columns = [argument for name, kind in kinds.items() for argument in ("--column", f"{name}:{kind}")]
    evenkeel("create", table, "--column", "k:int64:not-null", *columns, "--primary-key", "k", "--partitions", 4)
    rng = random.Random(3)
    start = dt.datetime(1969, 12, 30)
    for commit in range(8):
        # Each commit has a stretch of its own in every column, so that one file can be told from
        # the others.
        rows = []
        for k in range(commit * 100, commit * 100 + 100):
            at = start + dt.timedelta(seconds=k * 1000, microseconds=rng.randrange(10**6))
            row = {
                "u": 2**63 - 1 - k, "n": -k, "s": "é" * (commit % 3) + f"{k:05}", "at": at.isoformat(timespec="microseconds"),
                "day": at.date().isoformat(), "second": at.isoformat(timespec="seconds"), "long": "é" * 40 + str(k),
                "b": k % 2 == 0, "f": k / 2,
            }
            # In some files it is all NULL.
            if k % 150 == 0:
                row["rare"] = commit
            rows.append({"k": k} | {name: cell for name, cell in row.items() if rng.random() < 0.95})
        ingest(table, rows)
    report = export(table)
    assert report["files"] == 32, report
    rows = check(table)
    delta = expected(rows)
    # The extension of DuckDB is asked everything at once, for each process loads it anew.
    asked = []
    for column in ["k", *kinds]:
        values = sorted(cell for cell in delta[column].to_pylist() if cell is not None)
        for cell in [values[0], values[len(values) // 3], values[-1], *rng.sample(values, 3)]:
            for comparison in rng.sample(sorted(COMPARE), 2):
                kept = [compare_cell(found, comparison, cell) for found in delta[column].to_pylist()]
                wanted = delta.filter(pa.array(kept)).select(["k"])
                for name, read in READERS.items():
                    if column in readable(name, rows.schema) and name != "DuckDB's extension":
                        condition = (column, comparison, cell)
                        same(f"{name} {condition}", read(table, ["k"], condition, None), wanted)
                statement = sql_of(["k"], (column, comparison, cell), f"delta_scan('{table}')")
                asked.append((statement, wanted))
    for (statement, wanted), found in zip(asked, extension([statement for statement, _ in asked]), strict=True):
        same(statement, found, wanted)
    # Some readers answer these from statistics alone.
    bounds = ", ".join(f'min("{c}") AS min_{c}, max("{c}") AS max_{c}, count("{c}") AS count_{c}' for c in ["k", *kinds])
    wanted = {"rows": delta.num_rows}
    for column in ["k", *kinds]:
        low_high = pc.min_max(delta[column]).as_py()
        wanted |= {f"min_{column}": low_high["min"], f"max_{column}": low_high["max"]}
        wanted |= {f"count_{column}": delta.num_rows - delta[column].null_count}
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
    found = pa.table(builder.execute(f"SELECT count(*) AS rows, {bounds} FROM t").read_all()).to_pylist()
    assert found == [wanted], (found, wanted)
    found = extension([f"SELECT count(*) AS rows, {bounds} FROM delta_scan('{table}')"])[0].to_pylist()
    assert found == [wanted], (found, wanted)
    for column in ["rare", "u", "long"]:
        wanted = {delta[column].null_count}
        statement = f'SELECT count(*) AS n FROM {{}} WHERE "{column}" IS NULL'
        found = {extension([statement.format(f"delta_scan('{table}')")])[0]["n"][0].as_py()}
        found |= {pa.table(builder.execute(statement.format("t")).read_all())["n"][0].as_py()}
        found |= {deltalake.DeltaTable(table).to_pyarrow_dataset().count_rows(filter=pc.field(column).is_null())}
        if column != "u":
            found |= {pl.scan_delta(str(table)).filter(pl.col(column).is_null()).select(pl.len()).collect().item()}
        assert found == wanted, (column, found, wanted)
    assert pl.scan_delta(str(table)).select(pl.len()).collect().item() == delta.num_rows


def compare_cell(found, comparison, cell):
    return found is not None and COMPARE[comparison](found, cell)


def test_integers_beyond_those_of_delta_are_refused_by_name(folder):
    table = folder / "big"
    evenkeel("create", table, "--column", "k:uint64:not-null", "--column", "u:uint64", "--primary-key", "k", "--partitions", 2)
    ingest(table, [{"k": k, "u": 2**63 - 1} for k in range(10)] + [{"k": 2**63 - 1}])
    assert export(table)["converted"] == ["k", "u"]
    check(table)
    ingest(table, [{"k": 50, "u": 2**63}])
    evenkeel("compact", table, "--full")
    refused = evenkeel("export", "delta", table, code=1)
    assert "column 'u' (Uint64) holds 9223372036854775808 in partition=" in refused and "--without u" in refused, refused
    assert export(table, "--without", "u")["left_out"] == ["u"]
    rows = query(table, "SELECT k FROM t")
    check(table, rows=rows)
    assert rows.num_rows == 12
    # The column comes back once its values are small enough, and all of its files are looked at
    # then.
    ingest(table, [{"k": 50, "u": 7}])
    assert export(table, "--compact")["delta_version"] == 2
    check(table)
    ingest(table, [{"k": 2**64 - 1}])
    evenkeel("compact", table, "--full")
    refused = evenkeel("export", "delta", table, code=1)
    assert "column 'k' (Uint64) holds 18446744073709551615" in refused, refused


def test_an_empty_table_has_columns_and_no_rows(folder):
    table = create_with_all_types(folder, partitions=2)
    assert export(table)["files"] == 0
    check(table)


def test_names_of_columns_are_what_they_are(folder):
    table = folder / "names"
    names = ["a b", "Größe", "k.l", 'q"u', "x,y;{z}=(1)", "tick`s", "2nd"]
    columns = [argument for name in names for argument in ("--column", f"{name}:utf8")]
    evenkeel("create", table, "--column", "k:int64:not-null", *columns, "--primary-key", "k", "--partitions", 2)
    ingest(table, [{"k": k} | {name: f"{name}{k}" for name in names} for k in range(20)])
    export(table)
    check(table)


def test_delta_tools_may_not_write(folder):
    table = folder / "kept"
    evenkeel("create", table, "--column", "k:int64:not-null", "--column", "at:timestamp", "--primary-key", "k", "--partitions", 2)
    for commit in range(3):
        ingest(table, [{"k": k, "at": f"2026-01-0{commit + 1}T00:00:00"} for k in range(20)])
    export(table, "--compact")
    old = EPOCH.timestamp() + 10**9
    for file in table.rglob("*.*"):
        os.utime(file, (old, old))
    files = sorted(table.rglob("*"))
    delta = lambda: deltalake.DeltaTable(table)
    more = pa.table({"k": pa.array([99]), "at": pa.array([EPOCH], pa.timestamp("us"))})
    for name, write in {
        "append": lambda: deltalake.write_deltalake(table, more, mode="append"),
        "overwrite": lambda: deltalake.write_deltalake(table, more, mode="overwrite"),
        "delete": lambda: delta().delete("k = 1"),
        "update": lambda: delta().update({"k": "1"}),
        "optimize": lambda: delta().optimize.compact(),
        "vacuum": lambda: delta().vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True),
    }.items():
        try:
            write()
        except Exception as error:
            assert "evenkeel" in str(error) or name == "optimize", f"{name}: {error}"
        else:
            assert name == "optimize", f"{name} was not refused"
    # A checkpoint changes nothing that is there: it may be written, and old commits stay beside it.
    delta().create_checkpoint()
    delta().cleanup_metadata()
    assert (table / "_delta_log/00000000000000000000.checkpoint.parquet").exists()
    # By default there is nothing to vacuum: it keeps files for a hundred years.
    assert delta().vacuum(full=True, dry_run=True) == []
    found = [file for file in sorted(table.rglob("*")) if file in files or file.parent.name.startswith("partition=")]
    assert found == files, set(found) ^ set(files)
    check(table)
    ingest(table, [{"k": 7, "at": "2026-02-01T00:00:00"}])
    assert export(table, "--compact")["delta_version"] == 1
    check(table)


def test_exports_at_the_same_time_make_one_log(folder):
    table = folder / "busy"
    evenkeel("create", table, "--column", "k:int64:not-null", "--primary-key", "k", "--partitions", 2)
    for commit in range(4):
        ingest(table, [{"k": k} for k in range(commit * 10, commit * 10 + 10)])
        command = [EVENKEEL, "export", "delta", str(table), "--format", "json"]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        reports = [json.loads(process.communicate()[0]) for process in running]
        assert sum(report["written"] for report in reports) == 1, reports
        assert {report["delta_version"] for report in reports} == {commit}, reports
    check(table)


def test_plain_files_are_read_by_their_names(folder):
    table = create_with_all_types(folder, partitions=8)
    for commit in range(3):
        ingest(table, random_rows(range(commit * 30, commit * 30 + 40), random.Random(commit)))
    listed = json.loads(evenkeel("inspect", table, "--files", "--format", "json"))
    assert listed["max_depth"] > 1, listed
    evenkeel("compact", table, "--max-depth", 1)
    listed = json.loads(evenkeel("inspect", table, "--files", "--format", "json"))
    assert listed["max_depth"] == 1, listed
    files = [str(table / file["path"]) for file in listed["files"]]
    rows = query(table)
    with duckdb.connect() as connection:
        found = connection.sql("SELECT count(*), sum(k) FROM read_parquet($1, hive_partitioning = false)", params=[files]).fetchall()
    assert found == [(rows.num_rows, pc.sum(rows["k"]).as_py())], found
    frame = pl.read_parquet(files, hive_partitioning=False)
    assert (frame.height, frame["k"].sum(), frame.width) == (rows.num_rows, pc.sum(rows["k"]).as_py(), rows.num_columns)


def main():
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        folder = Path(tempfile.mkdtemp(prefix="evenkeel-delta-"))
        try:
            test(folder)
            print(f"ok      {name}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {name}\n{traceback.format_exc()}", flush=True)
        shutil.rmtree(folder)
    sys.stdout.flush()
    # Without waiting for threads of the readers, which may abort while the interpreter ends.
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
