"""Engines that read a Delta table.

Each gives the columns of the rows that a condition (column, operator, value) keeps.
"""

import datetime as dt
import json
import operator
import subprocess
import tempfile
from pathlib import Path

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from delta_checks.comparison import expected, same
from delta_checks.program import EXTENSION_PYTHON, query

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
            [EXTENSION_PYTHON, Path(__file__).parents[1] / "delta_extension.py"],
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
    """Columns that a reader takes.

    Polars by itself makes no signed integer of an unsigned one of 64 bits, or of a duration.
    """
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
