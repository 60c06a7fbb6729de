"""Figures of `evenkeel evaluate` on random exports, each computed once more by DuckDB.

    figures.py EVENKEEL EXPORTS SEED

`run_figures.sh` makes the environment. The hash of a key is that of the bytes that YDB's
documentation gives, by the package xxhash; everything that is counted, DuckDB counts. An export
that fails is kept, and its seed is printed: `figures.py EVENKEEL 1 SEED` runs it alone.
"""

import collections
import datetime as dt
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import duckdb
import xxhash

EVENKEEL, EXPORTS, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
EPOCH = dt.datetime(1970, 1, 1)
BYTES = {"Int8": 1, "Uint8": 1, "Int16": 2, "Uint16": 2, "Date": 2, "Int32": 4, "Uint32": 4, "Date32": 4}
LAYOUTS = ["shuffled", "shuffled", "by user", "by time", "by group", "backwards"]


# The exports


def instants(rng, rows):
    """Points in time, in microseconds: none twice, many at one instant, whole hours, or a few days
    apart."""
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
    """A random export: a table `t` in DuckDB with the number of each row in `arrived`, and files
    with its rows."""

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


# Keys


def keys_of(made):
    rng = made.rng
    parts = ["id", "user", "grp", "big", "day"]
    if made.has_time():
        parts += ["ts", "ts", "date(ts)", "hour(ts)", "trunc(ts, 5m)"]
    else:
        parts += ["ts"]

    def some(most, choices):
        return list(dict.fromkeys(rng.choices(choices, k=rng.randint(1, most))))

    partition = [some(3, parts) for _ in range(3)] + [[rng.choice(["id", "user"])]]
    plain = [part for part in parts if "(" not in part]
    primary = [some(3, plain) for _ in range(2)] + [["id"]]
    unique = lambda keys: [list(key) for key in dict.fromkeys(map(tuple, keys))]
    return unique(partition), unique(primary)


EXPRESSIONS = {
    "date(ts)": "CAST(ts AS DATE)",
    "hour(ts)": "date_trunc('hour', ts)",
    "trunc(ts, 5m)": "time_bucket(INTERVAL '5 minutes', ts, TIMESTAMP '1970-01-01')",
}


def expression(part):
    return EXPRESSIONS.get(part, f'"{part}"')


def key_bytes(value, kind):
    """The bytes that YDB hashes of a value: little-endian numbers, text as it is, of NULL
    nothing."""
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.datetime):
        value = (value - EPOCH) // dt.timedelta(microseconds=1)
    elif isinstance(value, dt.date):
        value = (value - EPOCH.date()).days
    return value.to_bytes(BYTES.get(kind, 8), "little", signed=value < 0)


def partition_of(hashed, partitions):
    return min(hashed // ((2**64 - 1) // partitions), partitions - 1)


class Placed:
    """The rows of a key: table `NAME` with `arrived`, the number of its key, and its partition over
    each number of partitions."""

    def __init__(self, made, name, key, kinds, counts):
        self.made, self.name, self.key = made, name, key
        db = made.db
        parts = ", ".join(f"{expression(part)} AS k{i}" for i, part in enumerate(key))
        names = [f"k{i}" for i in range(len(key))]
        db.execute(f"CREATE TABLE {name}_rows AS SELECT arrived, {parts} FROM t")
        db.execute(
            f"CREATE TABLE {name}_keys AS SELECT row_number() OVER () AS number, * FROM "
            f"(SELECT {', '.join(names)}, count(*) AS n FROM {name}_rows GROUP BY ALL ORDER BY ALL)"
        )
        self.keys = db.execute(f"SELECT * FROM {name}_keys ORDER BY number").fetchall()
        kinds = ["Date" if part == "date(ts)" else "Timestamp" if "(" in part else kinds[part] for part in key]
        self.bytes = [b"".join(map(key_bytes, row[1:-1], kinds)) for row in self.keys]
        hashes = [xxhash.xxh64_intdigest(data) for data in self.bytes]
        columns = ", ".join(f"unnest(?::INTEGER[]) AS p{count}" for count in counts)
        db.execute(
            f"CREATE TABLE {name}_places AS SELECT unnest(?::BIGINT[]) AS number, {columns}",
            [[row[0] for row in self.keys], *([partition_of(h, count) for h in hashes] for count in counts)],
        )
        same = " AND ".join(f"r.{column} IS NOT DISTINCT FROM k.{column}" for column in names)
        db.execute(
            f"CREATE TABLE {name} AS SELECT r.arrived, p.* FROM {name}_rows r JOIN {name}_keys k ON {same} "
            f"JOIN {name}_places p USING (number)"
        )


# Comparison


def same(found, expected, what):
    if isinstance(expected, float) and found is not None:
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9), f"{what}: {found} is not {expected}"
    else:
        assert found == expected, f"{what}: {found} is not {expected}"


def figures(made, source, partitions):
    """Skew of counts per partition; `source` gives a column p for each row."""
    return made.one(
        f"SELECT list(n ORDER BY p), max(n) / avg(n), stddev_pop(n) / avg(n), 1 - avg(n) / max(n), "
        f"sum(n::DOUBLE) * sum(n) / sum(n::DOUBLE * n), count(*) FILTER (n = 0), max(n) / sum(n), min(n) "
        f"FROM (SELECT r.p, count(s.p) AS n FROM range({partitions}) r(p) LEFT JOIN ({source}) s USING (p) GROUP BY r.p)"
    )


def spread_of(values):
    values = sorted(values)
    at = lambda fraction: values[math.floor((len(values) - 1) * fraction + 0.5)]
    return {"min": at(0.0), "p10": at(0.1), "median": values[len(values) // 2], "p90": at(0.9), "max": at(1.0)}


def same_spread(found, values, what):
    for name, expected in spread_of(values).items():
        same(found[name], float(expected), f"{what}, {name}")


def check_partition_key(made, number, key, report, counts, kinds, batch):
    what = f"partition key {key}"
    same(report["partition_key"], key, what)
    placed = Placed(made, f"pk{number}", key, kinds, counts)
    same(report["distinct"]["estimate"], len(placed.keys), f"{what}, distinct")
    same(report["distinct"]["exact"], True, f"{what}, exact")
    nulls = " OR ".join(f"k{i} IS NULL" for i in range(len(key)))
    same(report["null_rows"], made.one(f"SELECT count(*) FROM pk{number}_rows WHERE {nulls}")[0], f"{what}, NULL")
    lengths = [(len(data), row[-1]) for data, row in zip(placed.bytes, placed.keys)]
    same(report["mean_key_bytes"], sum(length * n for length, n in lengths) / made.rows, f"{what}, key bytes")
    same(report["max_key_bytes"], max(length for length, _ in lengths), f"{what}, longest key")
    heaviest = sorted((row[-1] for row in placed.keys), reverse=True)[:10]
    same([hitter["rows"] for hitter in report["heavy_hitters"]], heaviest, f"{what}, heaviest")
    rows_of = collections.Counter()
    for row in placed.keys:
        rows_of[json.dumps([str(v) if isinstance(v, dt.date) and not isinstance(v, dt.datetime) else v
                            for v in row[1:-1]], default=lambda at: None)] += row[-1]
    shown = set()
    for hitter in report["heavy_hitters"]:
        same(hitter["error"], 0, f"{what}, error")
        same(hitter["share"], hitter["rows"] / made.rows, f"{what}, share")
        if not any(part in ("ts", "hour(ts)", "trunc(ts, 5m)") for part in key):
            name = json.dumps(hitter["key"])
            assert name not in shown, f"{what}: {name} is shown twice"
            shown.add(name)
            same(hitter["rows"], rows_of[name], f"{what}, rows of {name}")
    found = {placement["partitions"]: placement for placement in report["placements"]}
    same(sorted(found), sorted(counts), f"{what}, numbers of partitions")
    for count, placement in found.items():
        where = f"{what} over {count}"
        n, over, cv, idle, effective, empty, fullest, least = figures(made, f"SELECT p{count} AS p FROM pk{number}", count)
        same(placement["rows_per_partition"], n, f"{where}, rows")
        same(sum(placement["bytes_per_partition"]) > 0, True, f"{where}, bytes")
        expected = {
            "rows": made.rows, "max_over_mean": float(over), "cv": cv, "idle_fraction": float(idle),
            "effective_partitions": float(effective), "empty_partitions": empty, "share_of_fullest": float(fullest),
            "min": least, "max": max(n), "mean": made.rows / count, "distinct_keys": len(placed.keys),
            "fullest_partition": n.index(max(n)), "heaviest_key_share": heaviest[0] / made.rows,
            "keys_per_partition": len(placed.keys) / count,
            "expected_cv_equal_keys": math.sqrt((count - 1) / len(placed.keys)),
            "expected_cv_weighted": math.sqrt((count - 1) * sum(row[-1] ** 2 for row in placed.keys)) / made.rows,
            "aps_skew": (max(n) - least) / made.rows, "synapse_skew": 1 - least / max(n),
            "redshift_skew_rows": max(n) / least if least else None,
            "greenplum_skccoeff": 100 * cv * math.sqrt(count / (count - 1)) if count > 1 else 0.0,
        }
        for name, value in expected.items():
            same(placement[name], value, f"{where}, {name}")
        if heaviest[0] > (heaviest[1] if len(heaviest) > 1 else 0):
            top = max(placed.keys, key=lambda row: row[-1])[0]
            partition = made.one(f"SELECT p{count} FROM pk{number}_places WHERE number = {top}")[0]
            same(placement["share_of_heaviest_partition"], n[partition] / made.rows, f"{where}, partition of the heaviest")
        check_batches(made, f"pk{number}", count, placement["per_batch"], batch, where)
        if made.has_time() and placement["over_time"]:
            check_windows(made, f"pk{number}", count, placement["over_time"], where)


def check_batches(made, table, count, found, batch, where):
    batches = made.rows // batch
    same(found is None, batches == 0, f"{where}, batches")
    if not batches:
        return
    same((found["batch_rows"], found["batches"]), (batch, batches), f"{where}, batches")
    rows = made.db.execute(
        f"SELECT count(*), max(n) / sum(n) FROM (SELECT arrived // {batch} AS b, p{count}, count(*) AS n FROM {table} "
        f"GROUP BY ALL) WHERE b < {batches} GROUP BY b"
    ).fetchall()
    same_spread(found["partitions_written"], [row[0] for row in rows], f"{where}, partitions of a batch")
    same_spread(found["share_of_fullest"], [float(row[1]) for row in rows], f"{where}, fullest of a batch")


def windows_of(made, table, count, length):
    """Each window of a length with its rows, share of the fullest, effective partitions, and rows
    of the fullest."""
    return made.db.execute(
        f"SELECT w, sum(n), max(n) / sum(n), sum(n::DOUBLE) * sum(n) / sum(n::DOUBLE * n), max(n) FROM "
        f"(SELECT epoch_us(ts) // {length} AS w, p{count}, count(*) AS n FROM {table} JOIN t USING (arrived) "
        f"WHERE ts IS NOT NULL GROUP BY ALL) GROUP BY w"
    ).fetchall()


def same_weighted_spread(found, values, what):
    """Of values with weights: half of the weight is at the median or below it."""
    values, whole = sorted(values), sum(weight for _, weight in values)
    for name, fraction in (("min", 0.0), ("p10", 0.1), ("median", 0.5), ("p90", 0.9), ("max", 1.0)):
        below, expected = 0, values[-1][0]
        for value, weight in values:
            below += weight
            if below >= fraction * whole:
                expected = value
                break
        same(found[name], float(expected), f"{what}, {name}")


def check_windows(made, table, count, found, where):
    length, examined = found["window_micros"], found["examined"]
    shown = windows_of(made, table, count, length)
    same(found["windows"], len(shown), f"{where}, windows of {length}")
    peak_rows = max(window[4] for window in shown)
    same(found["peak"]["rows_per_second_of_fullest"], peak_rows / (length / 1e6), f"{where}, peak")
    if examined["one_in"] != 1:
        return
    # Windows of one moment each are windows of the clock, too: the key has one value of time in
    # each.
    short = examined["window_micros"]
    judged = [window for window in windows_of(made, table, count, short) if window[1] >= max(examined["fewest_rows"], 1)]
    same(found["judged_windows"], len(judged), f"{where}, judged windows of {short}")
    same_weighted_spread(
        found["share_of_fullest"], [(float(window[2]), window[1]) for window in judged], f"{where}, fullest of a window")
    same_weighted_spread(
        found["effective_partitions"], [(window[3], window[1]) for window in judged], f"{where}, effective of a window")
    worst = min(window[3] for window in judged)
    same(found["worst_window"]["effective_partitions"], worst, f"{where}, worst window")


def check_primary_key(made, number, key, report, kinds):
    what = f"primary key {key}"
    same(report["columns"], key, what)
    columns = ", ".join(f'"{part}"' for part in key)
    row = ", ".join(f'"{name}"' for name in made.names)
    distinct, identical = made.one(
        f"SELECT count(*) FILTER (before IS NULL), count(*) FILTER (before = whole) FROM (SELECT whole, "
        f"lag(whole) OVER (PARTITION BY {columns} ORDER BY arrived) AS before FROM "
        f"(SELECT *, hash({row})::VARCHAR || to_json(struct_pack({row}))::VARCHAR AS whole FROM t))"
    )
    nulls = " OR ".join(f'"{part}" IS NULL' for part in key)
    null_rows = made.one(f"SELECT count(*) FROM t WHERE {nulls}")[0]
    expected = {
        "distinct_keys": distinct, "duplicate_rows": made.rows - distinct, "identical_rows": identical,
        "conflicting_rows": made.rows - distinct - identical, "unique": made.rows == distinct, "null_rows": null_rows,
    }
    for name, value in expected.items():
        same(report[name], value, f"{what}, {name}")
    if null_rows:
        return
    # Rows behind a greater key of their partition; `partitioned_by` says which that is.
    count = report["partitions"]
    placed = Placed(made, f"by{number}", report["partitioned_by"], kinds, [count])
    late = made.one(
        f"SELECT count(*) FROM (SELECT rank, max(rank) OVER (PARTITION BY p{count} ORDER BY arrived) AS most FROM "
        f"(SELECT arrived, p{count}, dense_rank() OVER (ORDER BY {columns}) AS rank FROM t JOIN {placed.name} USING (arrived))) "
        "WHERE rank < most"
    )[0]
    same(report["late"]["rows"], late, f"{what}, late rows")
    same(report["in_order_fraction"], 1 - late / made.rows, f"{what}, in order")


def check_time(made, evaluation):
    if not made.has_time():
        return
    first, last, nulls = made.one("SELECT min(epoch_us(ts)), max(epoch_us(ts)), count(*) FILTER (ts IS NULL) FROM t")
    found = evaluation["time_range"]
    same(evaluation["time"], "ts", "time")
    if first is None:
        return
    same((found["earliest_micros"], found["latest_micros"]), (first, last), "range of time")
    same(found["null_rows"], nulls, "rows without a time")
    late = made.one(
        "SELECT " + ", ".join(f"count(*) FILTER (most - e > {by}::BIGINT * 1000000)" for by in (1, 60, 3600, 86400))
        + " FROM (SELECT epoch_us(ts) AS e, max(epoch_us(ts)) OVER (ORDER BY arrived) AS most FROM t WHERE ts IS NOT NULL)"
    )
    same(found["late_rows_by_more_than"], list(late), "late rows")


def check(seed, folder):
    made = Made(seed, folder)
    rng = made.rng
    partition, primary = keys_of(made)
    counts = sorted(rng.sample([1, 2, 3, 5, 16, 64, 100, 1000], 3))
    batch = rng.choice([1, 7, 100, 20_000])
    arguments = ["evaluate", made.inputs, "--format", "json", "--batch", batch, *made.options()]
    arguments += ["--partitions", ",".join(map(str, counts))]
    for key in partition:
        arguments += ["--partition-key", ",".join(key)]
    for key in primary:
        arguments += ["--primary-key", ",".join(key)]
    if made.has_time() and rng.random() < 0.5:
        arguments += ["--window", rng.choice(["10m", "1h", "1d"])] if made.rows else []
    run = subprocess.run([EVENKEEL, *map(str, arguments)], capture_output=True, text=True)
    if made.rows == 0:
        assert run.returncode == 1 and len(run.stderr.splitlines()) == 1, f"an empty export: {run.returncode} {run.stderr}"
        return "empty"
    if run.returncode != 0 and "are too short: there would be more than" in run.stderr:
        return "too many windows"
    assert run.returncode == 0, f"{arguments}: exit code {run.returncode}\n{run.stderr}"
    evaluation = json.loads(run.stdout)
    kinds = {column["name"]: column["type"] for column in evaluation["columns"]}
    same(evaluation["rows"], made.rows, "rows")
    same([len(evaluation["candidates"]), len(evaluation["primary_keys"])], [len(partition), len(primary)], "keys")
    check_time(made, evaluation)
    for number, (key, report) in enumerate(zip(partition, evaluation["candidates"])):
        check_partition_key(made, number, key, report, counts, kinds, batch)
    for number, (key, report) in enumerate(zip(primary, evaluation["primary_keys"])):
        check_primary_key(made, number, key, report, kinds)
    return "checked"


def main():
    outcomes, failed = collections.Counter(), 0
    for seed in range(SEED, SEED + EXPORTS):
        folder = Path(tempfile.mkdtemp(prefix=f"figures-{seed}-"))
        try:
            outcomes[check(seed, folder)] += 1
            shutil.rmtree(folder)
        except Exception:
            failed += 1
            print(f"seed {seed}, export in {folder}:\n{traceback.format_exc()}", file=sys.stderr)
            if failed == 20:
                break
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()), f"{failed} failed", sep=", ")
    sys.exit(1 if failed else 0)


main()
