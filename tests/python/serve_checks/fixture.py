"""The tables that are served, and a query of them that takes too long."""

import datetime
import decimal
import os
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq

SLOW = "SELECT count(*) FROM events a, events b, events c WHERE a.cost + b.cost + c.cost = -7"


class Fixture:
    """Tables on disk."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.events = os.path.join(folder, "ads", "events")
        columns = ["id:Uint64:not-null", "at:Timestamp:not-null", "user:Utf8:not-null", "kind:Utf8", "cost:Decimal(12,2)"]
        arguments = [argument for column in columns for argument in ("--column", column)]
        self.run("create", self.events, *arguments, "--primary-key", "at,user,id", "--partition-key", "user", "--partitions", "8")
        users = os.path.join(folder, "ads", "users")
        self.run("create", users, "--column", "user:Utf8:not-null", "--column", "country:Utf8", "--primary-key", "user", "--partitions", "8")
        for batch in range(3):
            self.ingest(batch)
        names = pa.table({"user": [f"u{n}" for n in range(10)], "country": ["de", None] * 5})
        self.run("ingest", users, self.parquet("users", names))

    def run(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def parquet(self, name, table):
        path = os.path.join(self.folder, f"{name}.parquet")
        pq.write_table(table, path)
        return path

    def ingest(self, batch, rows=1000):
        ids = range(batch * rows, (batch + 1) * rows)
        start = datetime.datetime(2026, 1, 1)
        table = pa.table(
            {
                "id": pa.array([2**64 - 1 if id == 0 else id for id in ids], pa.uint64()),
                "at": pa.array([start + datetime.timedelta(seconds=id) for id in ids], pa.timestamp("us")),
                "user": [f"u{id % 10}" for id in ids],
                "kind": [None if id % 7 == 0 else "click" if id % 3 == 0 else "view" for id in ids],
                "cost": pa.array([decimal.Decimal(id) / 100 for id in ids], pa.decimal128(12, 2)),
            }
        )
        self.run("ingest", self.events, self.parquet(f"events-{batch}", table))
