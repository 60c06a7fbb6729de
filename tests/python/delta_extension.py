"""Runs SQL with the Delta extension of DuckDB: a list of [statement, Parquet file] as JSON on
standard input."""

import importlib.resources
import json
import sys

import duckdb

package = importlib.resources.files("duckdb_extension_delta") / "extensions" / f"v{duckdb.__version__}"
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.execute(f"LOAD '{package / 'delta.duckdb_extension'}'")
for statement, file in json.load(sys.stdin):
    connection.execute(f"COPY ({statement}) TO '{file}' (FORMAT parquet)")
