"""Figures of a partition key: its skew, heaviest keys, and partitions of each batch."""

import collections
import datetime as dt
import json
import math

from figures_checks.comparison import same, same_spread
from figures_checks.keys import Placed
from figures_checks.times import check_windows


def figures(made, source, partitions):
    """Skew of counts per partition; `source` gives a column p for each row."""
    return made.one(
        f"SELECT list(n ORDER BY p), max(n) / avg(n), stddev_pop(n) / avg(n), 1 - avg(n) / max(n), "
        f"sum(n::DOUBLE) * sum(n) / sum(n::DOUBLE * n), count(*) FILTER (n = 0), max(n) / sum(n), min(n) "
        f"FROM (SELECT r.p, count(s.p) AS n FROM range({partitions}) r(p) LEFT JOIN ({source}) s USING (p) GROUP BY r.p)"
    )


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
