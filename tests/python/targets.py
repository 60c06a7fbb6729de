"""The statements of `evenkeel evaluate --target`, run by the systems that Python's package index
has, and the figures beside theirs.

    targets.py EVENKEEL

`run_targets.sh` makes the environment. PostgreSQL and ClickHouse create the tables, take the rows
of the export, and count the rows of each partition, which must be those of the evaluation.
PostgreSQL also creates the tables of Citus and Greenplum without what it lacks. sqlglot parses the
statements of Doris, StarRocks and Spark, and evenkeel itself those of Spanner. Cassandra, MongoDB
and Paimon have no engine or parser there.
"""

import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import chdb.session
import duckdb
import pgserver
import sqlglot

EVENKEEL = sys.argv[1]
PARTITIONS = 12
TARGETS = "clickhouse citus postgres greenplum doris starrocks spanner cassandra mongodb kafka iceberg paimon".split()
# Types whose values PostgreSQL reads from the text of a CSV file as they are.
TYPES = {
    "flag": "(i % 2 = 0)", "tiny": "(i % 100)::TINYINT", "small": "(i % 9999)::SMALLINT", "medium": "(i * 7)::INTEGER",
    "big": "(i * 1234567891)::BIGINT", "utiny": "(i % 200)::UTINYINT", "usmall": "(i % 60000)::USMALLINT",
    "umedium": "(i * 40)::UINTEGER", "ubig": "(i * 99999)::UBIGINT", "real4": "(i / 4)::FLOAT", "real8": "(i / 8)::DOUBLE",
    "price": "(i / 100)::DECIMAL(22, 9)", "note": "'text ' || i", "raw": "encode('raw ' || i)", "tag": "md5(i::VARCHAR)::UUID",
    "day": "DATE '2026-01-01' + (i % 300)::INTEGER",
}


class Refused(Exception):
    """The system takes no keys of that type."""


class Export:
    """An export of random rows: its file, and the keys to evaluate."""

    def __init__(self, folder, name, partition_key, primary_key, columns, rows=20_000):
        self.name, self.partition_key, self.primary_key = name, partition_key, primary_key
        self.parquet, self.csv = folder / f"{name}.parquet", folder / f"{name}.csv"
        listed = ", ".join(f'{expression} AS "{column}"' for column, expression in columns.items())
        db = duckdb.connect()
        db.execute(f"CREATE TABLE t AS SELECT {listed} FROM range({rows}) AS r(i)")
        db.execute(f"COPY t TO '{self.parquet}'")
        db.execute(f"COPY t TO '{self.csv}' (HEADER false)")

    def evaluate(self, target):
        command = [EVENKEEL, "evaluate", str(self.parquet), "--target", target, "--partitions", str(PARTITIONS), "--format", "json",
                   "--partition-key", self.partition_key, "--primary-key", self.primary_key]
        found = subprocess.run(command, capture_output=True, text=True)
        if " in a key: " in found.stderr:
            raise Refused
        assert found.returncode == 0, f"{' '.join(command)}\n{found.stderr}"
        answer = json.loads(found.stdout)
        return answer["recommendation"]["ddl"], answer["candidates"][0]["placements"][0]["rows_per_partition"]


def exports(folder):
    at = "TIMESTAMP '2026-03-01' + (i * 61) * INTERVAL 1 SECOND + (i % 1000) * INTERVAL 1 MICROSECOND"
    user = f"(hash(i) % 700)::BIGINT + {random.Random(1).randrange(10**6)}"
    yield Export(folder, "events", "user_id", "at,user_id", {"user_id": user, "at": at, "amount": "random()"})
    yield Export(folder, "types", "big", "big,note", {"big": TYPES["big"], "note": TYPES["note"], **TYPES})
    for key in ("medium", "note", "tag", "day"):
        yield Export(folder, f"by_{key}", key, f"{key},big", {key: TYPES[key], "big": TYPES["big"], "at": at})
    odd = {"Order": "'o' || (i % 900)", "select": "i", "a \"\"b\"\"": "i % 3", "währung": "'€'", "it's": "i"}
    yield Export(folder, "odd", "Order", "Order,select", odd)
    epoch = {"user_id": user, "created_at": "1772366400 + i * 3", "amount": "random()"}
    yield Export(folder, "epochs", "user_id", "created_at,user_id", epoch)
    yield Export(folder, "repeats", "user_id", "user_id", {"user_id": user, "amount": "random()"})


class ClickHouse:
    def __init__(self, folder):
        self.session = chdb.session.Session(str(folder / "chdb"))
        self.session.query("CREATE DATABASE d ENGINE = Atomic")
        self.session.query("USE d")

    def check(self, export, ddl, rows_per_partition):
        local, distributed = statements(ddl)
        self.session.query(local)
        table = f"{export.name}_local"
        self.session.query(f"INSERT INTO {table} SELECT * FROM file('{export.parquet}', Parquet)")
        key = re.search(r"Distributed\('cluster', currentDatabase\(\), '\w+', (.*)\)$", distributed, re.S)
        counted = self.session.query(f"SELECT {key[1]} % {PARTITIONS} AS p, count() FROM file('{export.parquet}', Parquet) GROUP BY p", "CSV")
        found = [0] * PARTITIONS
        for line in str(counted).split():
            partition, rows = line.split(",")
            found[int(partition)] = int(rows)
        assert found == rows_per_partition, f"{found}\n{rows_per_partition}"
        assert "CreateQuery" in str(self.session.query(f"EXPLAIN AST {distributed}")), distributed
        self.session.query(f"DROP TABLE {table}")


class Postgres:
    def __init__(self, folder):
        self.server = pgserver.get_server(str(folder / "pg"), cleanup_mode="stop")
        stub = "(relation text, \"column\" text, shard_count int) RETURNS void LANGUAGE sql AS ''"
        self.run(f"CREATE FUNCTION create_distributed_table{stub}")

    def run(self, sql):
        return self.server.psql("\\set ON_ERROR_STOP on\n" + sql)

    def check(self, export, ddl, rows_per_partition):
        self.run(ddl)
        self.run(f"\\copy {export.name} FROM '{export.csv}' (FORMAT csv)")
        counts = "\n".join(f"SELECT 'n=' || count(*) FROM {export.name}_{i};" for i in range(PARTITIONS))
        found = [int(rows) for rows in re.findall(r"n=(\d+)", self.run(counts))]
        assert found == rows_per_partition, f"{found}\n{rows_per_partition}"
        self.run(f"DROP TABLE {export.name}")

    def declares(self, export, ddl, target):
        if target == "greenplum":
            ddl, changed = re.subn(r" WITH \(appendoptimized = true, orientation = column\)\nDISTRIBUTED BY \([^)]*\);", ";", ddl)
            assert changed == 1, ddl
        self.run(ddl)
        self.run(f"\\copy {export.name} FROM '{export.csv}' (FORMAT csv)")
        self.run(f"DROP TABLE {export.name}")


def statements(ddl):
    bare = "\n".join(line for line in ddl.splitlines() if not line.startswith("--"))
    return [statement.strip(" \n;") for statement in bare.split(";\n") if statement.strip(" \n;")]


def parse(target, ddl):
    dialect = {"doris": "doris", "starrocks": "starrocks", "iceberg": "spark"}[target]
    first = statements(ddl)[0].rstrip(";")
    tree = sqlglot.parse_one(first, read=dialect)
    assert isinstance(tree, sqlglot.exp.Create), f"{target} is not parsed:\n{first}"


def parse_spanner(folder, export, ddl):
    (folder / "spanner.sql").write_text(ddl)
    command = [EVENKEEL, "spanner", "simulate", str(export.parquet), "--ddl", str(folder / "spanner.sql")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, f"{' '.join(command)}\n{found.stderr}\n{ddl}"


def main():
    failures = checked = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        clickhouse, postgres = ClickHouse(folder), Postgres(folder)
        for export in exports(folder):
            for target in TARGETS:
                try:
                    ddl, rows_per_partition = export.evaluate(target)
                    if target == "clickhouse":
                        clickhouse.check(export, ddl, rows_per_partition)
                    elif target == "postgres":
                        postgres.check(export, ddl, rows_per_partition)
                    elif target in ("citus", "greenplum"):
                        postgres.declares(export, ddl, target)
                    elif target == "spanner" and export.name not in ("odd", "by_tag", "repeats", "epochs"):
                        parse_spanner(folder, export, ddl)
                    elif target in ("doris", "starrocks", "iceberg"):
                        parse(target, ddl)
                    assert ddl.strip(), "no statements"
                    checked += 1
                except Refused:
                    refused += 1
                except Exception as error:
                    failures += 1
                    print(f"--- {export.name}, {target}: {str(error)[:1500]}")
    print(f"{checked} statements of {len(TARGETS)} systems are right, {failures} wrong; {refused} keys are of types that a system takes in no key")
    sys.exit(1 if failures else 0)


main()
