"""Figures of a primary key: rows that repeat, and rows out of order."""

from figures_checks.comparison import same
from figures_checks.keys import Placed


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
