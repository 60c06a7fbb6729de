"""A random table, and what happens to it: batches, deletes, new columns, compactions."""

import random
import subprocess

import duckdb

from differential_rounds.answers import Answers
from differential_rounds.columns import TYPES, Column
from differential_rounds.joined_statements import JoinedStatements
from differential_rounds.parts import StatementParts
from differential_rounds.plain_statements import PlainStatements
from differential_rounds.richer_statements import RicherStatements


class Round(StatementParts, PlainStatements, JoinedStatements, Answers, RicherStatements):
    """One table: DuckDB holds the rows as they arrived, and evenkeel the table."""

    def __init__(self, options, seed, folder, server):
        self.rng = rng = random.Random(seed)
        self.seed, self.folder, self.server, self.options = seed, folder, server, options
        self.duck = duckdb.connect(config={"memory_limit": "4GB", "threads": 2})
        self.large = rng.random() < options.large
        keys = [Column(f"k{i}", rng.choice([k for k, t in TYPES.items() if t[1]]), False)
                for i in range(rng.choice([1, 1, 2, 2, 3]))]
        values = [Column(f"c{i}", rng.choice(list(TYPES)), True) for i in range(rng.randrange(1, 6))]
        for column in keys:
            column.spread = rng.choice([3, 40, 1000, 5000])
        keys[0].spread = max(keys[0].spread, 1000)
        if self.large:
            keys[0].kind, keys[0].spread = "utf8", 10**9
            keys[0].duck = "VARCHAR"
        for column in values:
            column.spread = rng.choice([2, 10, 100, 10_000])
        self.keys, self.columns = keys, keys + values
        self.table = folder / f"t{seed}"
        partition_key = rng.sample([c.name for c in keys], rng.randrange(1, len(keys) + 1))
        self.command("create", self.table, *[a for c in self.columns for a in
                     ("--column", f"{c.name}:{c.kind}" + ("" if c.nullable else ":not-null"))],
                     "--primary-key", ",".join(c.name for c in keys),
                     "--partition-key", ",".join(partition_key),
                     "--partitions", str(rng.choice([1, 2, 3, 7])))
        self.duck.execute("CREATE TABLE arrived (__order BIGINT, " +
                          ", ".join(f"{c.name} {c.duck}" for c in self.columns) + ")")
        self.batches = 0
        self.stopped = 0

    def command(self, *arguments):
        run = subprocess.run([self.options.binary, *map(str, arguments)], capture_output=True, text=True)
        if run.returncode != 0:
            raise AssertionError(f"round {self.seed}: evenkeel {' '.join(map(str, arguments))}: {run.stderr}")

    def ingest(self):
        rng = self.rng
        rows = 150_000 if self.large else rng.choice([1, 50, 900, 3000, 9000])
        start = rng.choice([0, 0, self.batches * 500, self.batches * 10_000])
        columns = ", ".join(f"{c.expression(rng)} AS {c.name}" for c in self.columns)
        order = " ORDER BY " + ", ".join(c.name for c in self.keys) if rng.random() < 0.5 else ""
        self.duck.execute(f"CREATE OR REPLACE TABLE batch AS SELECT {columns} "
                          f"FROM (SELECT i + {start} AS i FROM range({rows}) r(i)){order}")
        file = self.folder / f"batch{self.batches}.parquet"
        size = rng.choice([2048, 20_000, 200_000])
        self.duck.execute(f"COPY batch TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE {size})")
        # DuckDB reads the rows back in the order of the file, as evenkeel does.
        self.duck.execute(f"INSERT INTO arrived SELECT {self.batches} * 10000000 + file_row_number, "
                          + ", ".join(c.name for c in self.columns) +
                          f" FROM read_parquet('{file}', file_row_number = true)")
        memory = ["--memory", rng.choice(["128MiB", "256MiB", "1GiB"])]
        self.command("ingest", self.table, file, "--again", "--compact", rng.choice(["auto", "off", "off"]), *memory)
        file.unlink()
        self.batches += 1

    def delete(self):
        """Deletes rows by a condition, or by a file of keys of which some have no rows."""
        rng = self.rng
        key = ", ".join(c.name for c in self.keys)
        self.duck.execute(f"CREATE OR REPLACE TABLE arrived AS SELECT * FROM arrived "
                          f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY __order DESC) = 1")
        if rng.random() < 0.5:
            condition = self.predicate()
            self.command("delete", self.table, "--where", self.for_evenkeel(condition))
            self.duck.execute(f"DELETE FROM arrived WHERE {self.for_duckdb(condition)}")
            return
        share = rng.choice([0.02, 0.3, 0.9])
        file = self.folder / "keys.parquet"
        self.duck.execute(f"CREATE OR REPLACE TABLE gone AS SELECT {key} FROM arrived "
                          f"WHERE hash({key}, {rng.randrange(1000)}) % 1000 < {int(share * 1000)}")
        self.duck.execute(f"COPY gone TO '{file}' (FORMAT parquet)")
        self.command("ingest", self.table, file, "--deletes", "--compact", rng.choice(["auto", "off", "off"]))
        self.duck.execute("DELETE FROM arrived USING gone WHERE "
                          + " AND ".join(f"arrived.{c.name} = gone.{c.name}" for c in self.keys))
        file.unlink()

    def change(self):
        rng = self.rng
        for _ in range(rng.choice([1, 2, 4, 7]) if not self.large else 2):
            self.ingest()
            if rng.random() < 0.3:
                self.delete()
            roll = rng.random()
            if roll < 0.12:
                column = Column(f"a{len(self.columns)}", rng.choice(list(TYPES)), True)
                self.command("alter", self.table, "--add-column", f"{column.name}:{column.kind}")
                self.duck.execute(f"ALTER TABLE arrived ADD COLUMN {column.name} {column.duck}")
                self.columns.append(column)
            elif roll < 0.3:
                self.command("compact", self.table)
            elif roll < 0.36:
                self.command("compact", self.table, "--full")
            elif roll < 0.45:
                self.command("clean", self.table, "--keep", "0s")
        if rng.random() < 0.3:
            self.command("compact", self.table, "--full")
        names = ", ".join(c.name for c in self.columns)
        key = ", ".join(c.name for c in self.keys)
        self.duck.execute(f"CREATE OR REPLACE TABLE t AS SELECT {names} FROM arrived "
                          f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY __order DESC) = 1")
