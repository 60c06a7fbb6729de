"""The program, and what it gives and takes."""

import json
import subprocess
import sys
import tempfile

import pyarrow.parquet as pq

EVENKEEL, EXTENSION_PYTHON = sys.argv[1:3]


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
