"""Exported tables read by other engines: every row and type beside what `evenkeel query` gives.

    delta.py EVENKEEL PYTHON_WITH_DUCKDB_EXTENSION

`run_delta.sh` makes the environments. Each function named test_* runs in a folder of its own.
"""

import datetime as dt
import json
import operator
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
import uuid
from pathlib import Path

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

EVENKEEL, EXTENSION_PYTHON = sys.argv[1:3]
EPOCH = dt.datetime(1970, 1, 1)


# The program


def evenkeel(*arguments, code=0):
    run = subprocess.run([EVENKEEL, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == code, f"{arguments}: exit code {run.returncode}\n{run.stdout}{run.stderr}"
    return run.stdout if code == 0 else run.stderr


def export(table, *arguments):
    return json.loads(evenkeel("export", "delta", table, "--format", "json", *arguments))


def query(table, sql="SELECT * FROM t", *arguments):
    """The rows of a query, by way of a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        evenkeel("query", table, "-c", sql, "--format", "parquet", "--output", f"{folder}/rows.parquet", *arguments)
        return pq.read_table(f"{folder}/rows.parquet")


def ingest(table, rows, *arguments):
    """Ingests rows with one commit, as NDJSON."""
    file = table.parent / "rows.ndjson"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    evenkeel("ingest", table, file, "--again", "--compact", "off", *arguments)


# What Delta makes of a table

DELTA_TYPES = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.timestamp("ms"): pa.timestamp("us"),
    pa.duration("us"): pa.int64(),
    pa.binary(16): pa.binary(),
}


def plain(table):
    """The table with one Arrow type where readers choose among several: views, large or small
    offsets, dictionaries."""
    fields = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
            kind = pa.string()
        elif pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
            kind = pa.binary()
        fields.append(pa.field(field.name, kind))
    return table.cast(pa.schema(fields))


def expected(rows):
    """The rows of evenkeel in the types of Delta. The casts are exact or fail."""
    rows = plain(rows)
    fields = [pa.field(field.name, DELTA_TYPES.get(field.type, field.type)) for field in rows.schema]
    return rows.cast(pa.schema(fields))


def same(name, found, wanted, key="k"):
    found, wanted = plain(found), plain(wanted)
    order = [(column, "ascending") for column in ([key] if isinstance(key, str) else key)]
    found, wanted = found.sort_by(order).combine_chunks(), wanted.sort_by(order).combine_chunks()
    assert found.schema.equals(wanted.schema), f"{name}: {found.schema}\ninstead of\n{wanted.schema}"
    assert found.num_rows == wanted.num_rows, f"{name}: {found.num_rows} rows instead of {wanted.num_rows}"
    for column in wanted.column_names:
        if not found[column].equals(wanted[column]):
            pairs = zip(found[column].to_pylist(), wanted[column].to_pylist())
            wrong = [pair for pair in pairs if pair[0] != pair[1]]
            raise AssertionError(f"{name}: column {column}: (found, wanted) {wrong[:3]}")


# The readers. Each gives the columns of the rows that a condition (column, operator, value) keeps.

COMPARE = {"<": operator.lt, "<=": operator.le, "=": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt}
CONVERTED = (pa.uint64(), pa.duration("us"))


def literal(value):
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ', timespec='microseconds')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def sql_of(columns, condition, source):
    names = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
    where = ""
    if condition:
        column, comparison, value = condition
        where = f' WHERE "{column}" {comparison} {literal(value)}'
    return f"SELECT {names} FROM {source}{where}"


def deltalake_arrow(path, columns, condition, version):
    table = deltalake.DeltaTable(path, version=version)
    return table.to_pyarrow_table(columns=columns, filters=[condition] if condition else None)


def deltalake_sql(path, columns, condition, version):
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path, version=version))
    return pa.table(builder.execute(sql_of(columns, condition, "t")).read_all())


def polars(path, columns, condition, version, **options):
    frame = pl.scan_delta(str(path), version=version, **options)
    if condition:
        column, comparison, value = condition
        frame = frame.filter(COMPARE[comparison](pl.col(column), pl.lit(value)))
    return frame.select(columns).collect().to_arrow()


def polars_arrow(path, columns, condition, version):
    return polars(path, columns, condition, version, use_pyarrow=True)


def duckdb_dataset(path, columns, condition, version):
    files = deltalake.DeltaTable(path, version=version).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("files", files)
        return connection.sql(sql_of(columns, condition, "files")).to_arrow_table()


def duckdb_extension(path, columns, condition, version):
    source = f"delta_scan('{path}'" + ("" if version is None else f", version={version}") + ")"
    return extension([sql_of(columns, condition, source)])[0]


def extension(statements):
    """The rows of SQL statements, run by the DuckDB that has the Delta extension."""
    with tempfile.TemporaryDirectory() as folder:
        work = [[sql, f"{folder}/{number}.parquet"] for number, sql in enumerate(statements)]
        run = subprocess.run(
            [EXTENSION_PYTHON, Path(__file__).with_name("delta_extension.py")],
            input=json.dumps(work), capture_output=True, text=True,
        )
        assert run.returncode == 0, run.stderr
        return [pq.read_table(file) for _, file in work]


READERS = {
    "deltalake": deltalake_arrow,
    "deltalake SQL": deltalake_sql,
    "Polars": polars,
    "Polars by pyarrow": polars_arrow,
    "DuckDB on the dataset": duckdb_dataset,
    "DuckDB's extension": duckdb_extension,
}


def readable(reader, schema):
    """Columns that a reader takes: Polars by itself makes no signed integer of an unsigned one of
    64 bits, or of a duration."""
    return [field.name for field in schema if not (reader == "Polars" and field.type in CONVERTED)]


def check(table, version=None, rows=None, key="k"):
    """Every reader finds what a query finds, or the rows that were found earlier."""
    rows = query(table) if rows is None else rows
    for name, read in READERS.items():
        columns = readable(name, rows.schema)
        if key not in columns:
            continue
        same(name, read(table, columns, None, version), expected(rows).select(columns), key)
    return rows


# Tables

TYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double", "decimal(22,9)",
    "decimal(5,2)", "decimal(35,0)", "utf8", "string", "json", "jsondocument", "yson", "uuid", "date", "datetime", "timestamp",
    "interval", "date32", "datetime64", "timestamp64", "interval64",
]
TEXTS = ['qu"ote', "it's", "back\\slash", "comma, and\nline", "\ttab", "é", "日本語", "😀🏴‍☠️", "%3D =/?#", "\u0001", " ", "z" * 80, "NULL"]


def value(kind, rng):
    """A random value, often one at an end of the type, as NDJSON has it."""
    near = rng.random() < 0.4
    if kind == "bool":
        return rng.random() < 0.5
    if kind.startswith(("int", "uint")) and not kind.startswith("interval"):
        bits = int("".join(c for c in kind if c.isdigit()))
        # Delta ends where signed integers do.
        low, high = (0, 2 ** min(bits, 63) - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return rng.choice([low, low + 1, high - 1, high]) if near else rng.randint(low, high)
    if kind in ("float", "double"):
        return rng.choice([0.0, -0.5, 1.5, 2.0**100, -(2.0**-100)])
    if kind.startswith("decimal"):
        digits, scale = map(int, kind[8:-1].split(","))
        most = 10**digits - 1
        number = rng.choice([0, 1, -1, most, -most]) if near else rng.randint(-most, most)
        return f"{'-' if number < 0 else ''}{abs(number) // 10**scale}" + (f".{abs(number) % 10**scale:0{scale}}" if scale else "")
    if kind in ("utf8", "string"):
        return rng.choice(TEXTS)
    if kind in ("json", "jsondocument", "yson"):
        return json.dumps({"a": rng.choice(TEXTS)}, ensure_ascii=False)
    if kind == "uuid":
        return str(uuid.UUID(int=rng.getrandbits(128)))
    if kind in ("interval", "interval64"):
        return rng.randint(-(10**12), 10**12)
    late = kind.endswith(("32", "64"))
    low = dt.datetime(1600, 1, 1) if late else EPOCH
    span = int((dt.datetime(2100, 1, 1) - low).total_seconds())
    at = low + dt.timedelta(seconds=rng.randrange(span), microseconds=rng.randrange(10**6))
    if late and near:
        at = EPOCH - dt.timedelta(microseconds=rng.choice([1, 999_999, 1_000_000]))
    if kind.startswith("date") and not kind.startswith("datetime"):
        return at.date().isoformat()
    return at.isoformat(timespec="seconds" if kind.startswith("datetime") else "microseconds")


def name_of(kind):
    return "c_" + kind.replace("(", "_").replace(",", "_").replace(")", "")


def create_with_all_types(folder, partitions=32):
    table = folder / "all"
    columns = [argument for kind in TYPES for argument in ("--column", f"{name_of(kind)}:{kind}")]
    evenkeel("create", table, "--column", "k:int64:not-null", *columns, "--primary-key", "k", "--partitions", partitions)
    return table


def random_rows(keys, rng):
    for k in keys:
        row = {name_of(kind): value(kind, rng) for kind in TYPES if rng.random() < 0.8}
        yield {"k": k, **row}


# The tests


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
