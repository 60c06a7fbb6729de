"""Random exports: rows in DuckDB, and files with the same rows."""

import datetime as dt
import random

import duckdb

EPOCH = dt.datetime(1970, 1, 1)
LAYOUTS = ["shuffled", "shuffled", "by user", "by time", "by group", "backwards"]


def instants(rng, rows):
    """Points in time, in microseconds.

    None comes twice, many are at one instant, at whole hours, or a few days apart.
    """
    kind = rng.choice(["fine", "seconds", "hours", "one", "long"])
    start = 1_700_000_000_000_000 + rng.randrange(10**12)
    spans = {"fine": 10**9, "seconds": 10**10, "hours": 10**12, "one": 1, "long": 10**15}
    grid = {"fine": 1, "seconds": 10**6, "hours": 3600 * 10**6, "one": 1, "long": 10**6}[kind]
    return [(start + rng.randrange(spans[kind])) // grid * grid for _ in range(rows)]


def users(rng, rows):
    keys = rng.choice([1, 2, 7, 50, 500, 5000])
    weights = [1 / rank**rng.choice([0, 1, 1.5]) for rank in range(1, keys + 1)] if rng.random() < 0.5 else None
    names = [rng.choice(["u", "ü", "用户", "a b,c"]) + str(number) for number in range(keys)]
    return rng.choices(names, weights, k=rows)


class Made:
    """A random export: a table `t` in DuckDB, and files with its rows.

    Column `arrived` has the number of each row.
    """

    def __init__(self, seed, folder):
        rng = self.rng = random.Random(seed)
        rows = rng.choice([0, 1, 2, 3, 17, 60, 200, 700, 2000, 2000])
        self.format = rng.choice(["parquet", "parquet", "csv"])
        self.epochs = rng.random() < 0.25
        ids = list(range(rows)) if rng.random() < 0.6 else [rng.randrange(max(rows // 2, 1)) for _ in range(rows)]
        if rng.random() < 0.1 and rows:
            ids[0], ids[-1] = -(2**63), 2**63 - 1
        times = instants(rng, rows)
        columns = {
            "id": ids,
            "user": users(rng, rows),
            "grp": [rng.randrange(rng.choice([1, 3, 20])) for _ in range(rows)],
            "big": [rng.choice([rng.randrange(2**64), rng.randrange(5)]) for _ in range(rows)],
            "ts": times,
            "day": [10_000 + rng.randrange(40) for _ in range(rows)],
            "v": [rng.randrange(4) for _ in range(rows)],
        }
        for name in ("id", "user", "grp", "ts", "day", "v"):
            share = rng.choice([0, 0, 0, 0, 0.05, 0.5, 1.0])
            # A column of a text file that is NULL throughout has no type.
            if share == 1.0 and (self.format == "csv" or name == "ts"):
                share = 0.3
            values = [None if rng.random() < share else value for value in columns[name]]
            # The type of a column of text follows from its values.
            if self.format == "csv" and not any(value is not None for value in values):
                values[:1] = columns[name][:1]
            columns[name] = values
        table = list(zip(*columns.values()))
        order = rng.choice(LAYOUTS)
        by = {"by user": 1, "by time": 4, "by group": 2, "backwards": 4}.get(order)
        if by is not None:
            table.sort(key=lambda row: (row[by] is None, row[by] if row[by] is not None else 0),
                       reverse=order == "backwards")
        # Rows that repeat: some as they are, some with another value.
        if rng.random() < 0.5:
            for row in rng.choices(table, k=len(table) // rng.choice([3, 10])) if table else []:
                again = row if rng.random() < 0.5 else (*row[:-1], 9)
                table.insert(rng.randrange(len(table) + 1), again)
        self.rows = len(table)
        self.names = list(columns)
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'; SET threads = 1")
        self.types = {"id": "BIGINT", "user": "VARCHAR", "grp": "INTEGER", "big": "UBIGINT", "ts": "TIMESTAMP",
                      "day": "DATE", "v": "SMALLINT"}
        self.load(table)
        self.inputs = self.write(table, folder)

    def load(self, table):
        lists = [list(column) for column in zip(*table)] or [[] for _ in self.names]
        raw = {"ts": "BIGINT", "day": "INTEGER"}
        unnested = ", ".join(f'unnest(?::{raw.get(name, kind)}[]) AS "{name}"' for name, kind in self.types.items())
        exact = {"ts": "make_timestamp(ts)", "day": "DATE '1970-01-01' + day"}
        selected = ", ".join(f'{exact.get(name, chr(34) + name + chr(34))} AS "{name}"' for name in self.names)
        self.db.execute(
            f"CREATE TABLE t AS SELECT n AS arrived, {selected} FROM (SELECT unnest(?::BIGINT[]) AS n, {unnested})",
            [list(range(len(table))), *lists],
        )

    def write(self, table, folder):
        pieces = self.rng.choice([1, 1, 2, 4]) if self.rows > 10 else 1
        folder = folder / "export"
        folder.mkdir()
        cuts = [self.rows * piece // pieces for piece in range(pieces + 1)]
        for number, (begin, end) in enumerate(zip(cuts, cuts[1:])):
            path = folder / f"{number}.{self.format}"
            if self.format == "csv":
                self.write_csv(path, table[begin:end])
                continue
            at = "epoch_us(ts) AS ts" if self.epochs else "ts"
            columns = ", ".join(at if name == "ts" else f'"{name}"' for name in self.names)
            group = self.rng.choice([2048, 100_000])
            self.db.execute(
                f"COPY (SELECT {columns} FROM t WHERE arrived >= {begin} AND arrived < {end} ORDER BY arrived) "
                f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {group})"
            )
        return folder

    def write_csv(self, path, rows):
        def cell(name, value):
            if value is None:
                return ""
            if name == "ts":
                at = EPOCH + dt.timedelta(microseconds=value)
                return str(value) if self.epochs else at.isoformat(timespec="microseconds") + "Z"
            if name == "day":
                return str(EPOCH.date() + dt.timedelta(days=value))
            text = str(value)
            return f'"{text}"' if "," in text else text

        lines = [",".join(self.names)]
        lines += [",".join(cell(name, value) for name, value in zip(self.names, row)) for row in rows]
        path.write_text("\n".join(lines) + "\n")

    def options(self):
        """Arguments that say what the files do not."""
        if self.format != "csv":
            return []
        options = ["--type", "big:uint64", "--type", "id:int64"]
        if self.epochs:
            options += ["--timestamp-format", "ts=unix-us", "--type", "ts:timestamp"]
        return options

    def has_time(self):
        return self.format == "csv" or not self.epochs

    def one(self, sql):
        return self.db.execute(sql).fetchone()
