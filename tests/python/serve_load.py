#!/usr/bin/env python3
"""Many clients query a server while the table is ingested to and compacted.

usage: serve_load.py PROGRAM [--clients N] [--seconds N]

Each ingest adds rows whose numbers sum up to zero, and replaces others by rows with the same sum.
So each snapshot has a sum of zero, and the counts that a client sees never go down.
"""

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import psycopg

from server import Server

ROWS = 2000
MEMORY = 512
# What the process may take beyond the memory of queries: code, caches, threads and connections.
BESIDES = 512
# Errors that a server under load may answer with.
DECLARED = {"53200", "57014", "53300"}


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Load:
    def __init__(self, program, folder, server):
        self.program, self.folder, self.server = program, folder, server
        self.table = os.path.join(folder, "numbers")
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.queries, self.problems, self.declared, self.peak, self.changes = 0, [], {}, 0, 0

    def write(self):
        """Ingests batches, and compacts now and then."""
        batch = 0
        try:
            while not self.stop.is_set():
                self.ingest(batch)
                batch += 1
                if batch % 5 == 0:
                    run(self.program, "compact", self.table)
                if batch % 10 == 0:
                    run(self.program, "clean", self.table, "--keep", "1h")
                self.changes += 1
        except AssertionError as error:
            self.problems.append(f"a change failed: {error}")

    def ingest(self, batch):
        path = os.path.join(self.folder, f"batch-{batch}.csv")
        with open(path, "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "number", "text"])
            # Half of the rows are those of the batch before, with other numbers.
            for id in range(max(0, batch - 1) * ROWS, (batch + 1) * ROWS):
                number = (1 if id % 2 else -1) * (id // 2 + batch)
                rows.writerow([id, number, f"text {id % 100}"])
        run(self.program, "ingest", self.table, path)

    def measure(self):
        while not self.stop.wait(0.2):
            self.peak = max(self.peak, self.server.memory())

    def query(self, seed):
        rng = random.Random(seed)
        seen = 0
        connection = None
        while not self.stop.is_set():
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(self.server.url(), autocommit=True)
                seen = self.one(connection, rng, seen)
                with self.lock:
                    self.queries += 1
                if rng.random() < 0.02:
                    connection.close()
            except psycopg.Error as error:
                state = getattr(error, "sqlstate", None)
                with self.lock:
                    if state in DECLARED:
                        self.declared[state] = self.declared.get(state, 0) + 1
                    elif not self.stop.is_set():
                        self.problems.append(f"{state}: {error}")
            except AssertionError as error:
                with self.lock:
                    self.problems.append(f"wrong rows: {error}")

    def one(self, connection, rng, seen):
        """Runs one query of several kinds, and returns the number of rows that there are at
        least."""
        kind = rng.randrange(6)
        if kind == 0:
            count, total = connection.execute("SELECT count(*), sum(number) FROM numbers").fetchone()
            assert count % ROWS == 0 and count >= seen and total == 0, (count, seen, total)
            return count
        if kind == 1:
            id = rng.randrange(ROWS)
            rows = connection.execute("SELECT id, text FROM numbers WHERE id = %s", (id,)).fetchall()
            assert rows == [(id, f"text {id % 100}")], rows
        elif kind == 2:
            rows = connection.execute("SELECT text, count(*) FROM numbers GROUP BY text").fetchall()
            assert len(rows) == 100 and len({count for _, count in rows}) == 1, rows[:3]
        elif kind == 3:
            with connection.cursor().copy("COPY (SELECT number FROM numbers) TO STDOUT") as copied:
                total = sum(int(row[0]) for row in copied.rows())
            assert total == 0, total
        elif kind == 4:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                first = connection.execute("SELECT count(*) FROM numbers").fetchone()
                again = connection.execute("SELECT count(*) FROM numbers").fetchone()
            assert first == again, (first, again)
        else:
            rows = connection.execute("SELECT id FROM numbers ORDER BY text, id LIMIT 7").fetchall()
            assert rows == [(id * 100,) for id in range(7)], rows
        return seen


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--clients", type=int, default=64)
    arguments.add_argument("--seconds", type=float, default=20)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "numbers")
        create = (
            "CREATE TABLE numbers (id Int64 NOT NULL, number Int64 NOT NULL, text Utf8, PRIMARY KEY (id)) "
            "PARTITION BY HASH(id) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 8)"
        )
        with open(os.path.join(folder, "numbers.sql"), "w") as file:
            file.write(create)
        run(given.program, "create", table, "--ddl", file.name)
        with Server(given.program, table, "--memory", f"{MEMORY}MiB") as server:
            load = Load(given.program, folder, server)
            load.ingest(0)
            before = server.memory()
            work = [load.write, load.measure] + [lambda seed=seed: load.query(seed) for seed in range(given.clients)]
            threads = [threading.Thread(target=task) for task in work]
            for thread in threads:
                thread.start()
            time.sleep(given.seconds)
            load.stop.set()
            for thread in threads:
                thread.join(120)
            assert not any(thread.is_alive() for thread in threads), "a client hangs"
            end = time.monotonic() + 20
            while server.figure("evenkeel_connections") and time.monotonic() < end:
                time.sleep(0.1)
            assert server.figure("evenkeel_connections") == 0, "connections are left over"
            assert server.figure("evenkeel_queries_running") == 0, "queries are left over"
            code = server.stop()
            panics = [line for line in server.log().splitlines() if "panicked" in line]
        print(
            f"{given.clients} clients, {load.queries} queries, {load.changes} changes in {given.seconds:.0f} s; "
            f"memory {before:.0f} MiB at first, {load.peak:.0f} MiB at most; declared errors: {load.declared or 'none'}"
        )
        assert code == 0, f"the server ended with {code}"
        assert not panics, panics
        for problem in load.problems[:10]:
            print(problem)
        assert not load.problems, f"{len(load.problems)} problems"
        assert load.queries > given.clients and load.changes > 0
        assert load.peak < MEMORY + BESIDES, f"{load.peak} MiB"


if __name__ == "__main__":
    sys.exit(main())
