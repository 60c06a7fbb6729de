"""Parameters and options with wrong values, conditions of deletes, and scripts of the shell."""

import os

from abuse_cases.case import DONE, FAILED, HUGE, ROWS, USAGE, Case, written


def options(bench):
    for value in ("1e999", "-1e999", "18446744073709551616", "abc", "", "1;DROP TABLE t", "nan", "'", "\u0000".replace("\u0000", "%00"), "9" * 10_000, "x" * 100_000):
        for column in ("k", "d", "u", "at"):
            codes = (DONE, FAILED, USAGE) if column == "u" or value in ("nan",) else (FAILED, USAGE, DONE)
            if value in ("1e999", "-1e999") and column in ("k", "d"):
                codes = (USAGE,)
            yield Case(f"param {column} = {value[:20]!r}", ["query", "{in}/t", f"SELECT count(*) FROM t WHERE {column} = $x", "--param", f"x={value}"], codes)
    for params in (["x"], ["=1"], ["x=1", "--param", "x=2"], ["y=1"]):
        yield Case(f"param {params}", ["query", "{in}/t", "SELECT $x", "--param", *params], (USAGE,), says=["parameter", "param"])
    query = ["query", "{in}/t", "SELECT 1"]
    for wrong in (
        ["--memory", "0"], ["--memory", "-1"], ["--memory", "1KiB"], ["--memory", "nan"], ["--memory", "1e400"], ["--memory", "99999999999TB"],
        ["--timeout", "0s"], ["--timeout", "-5s"], ["--timeout", "forever"], ["--timeout", "99999999999999999999d"], ["--timeout", ""],
        ["--rows", "-1"], ["--rows", "99999999999999999999999"], ["--version", "-1"], ["--version", "x"], ["--format", "xml"],
        ["--param"], ["--nope"], ["-f", "nope.sql"], ["-c", "SELECT 2"],
    ):
        yield Case(f"option query {' '.join(wrong)}", query + wrong, (USAGE, FAILED))
    yield Case("option query --version 10^18", query + ["--version", str(HUGE)], (FAILED, USAGE))
    yield Case("option query --rows 10^18", query + ["--rows", str(HUGE)], (DONE,))
    yield Case("option query --output in no folder", query + ["--output", "no/such/folder/x.csv"], (FAILED,), says=["no/such/folder"])
    yield Case("option query --output is a folder", query + ["--output", "x.csv"], (FAILED,), setup=lambda folder: os.mkdir(os.path.join(folder, "x.csv")), says=["x.csv"])
    yield Case("option query --output without a format", query + ["--output", "x"], (USAGE,), says=["x"])
    create = ["create", "t", "--column", "k:int64:not-null", "--primary-key", "k"]
    for wrong in (
        ["--partitions", "0"], ["--partitions", str(HUGE)], ["--partitions", "-1"], ["--nodes", "0"], ["--nodes", str(HUGE)], ["--column", "k:int64"],
        ["--column", "x"], ["--column", ":int64"], ["--column", "x:nope"], ["--column", "x:decimal(99,3)"], ["--column", "x" * 100_000 + ":int64"],
        ["--partition-key", "nope"], ["--partition-key", ""], ["--ttl", "k"], ["--ttl", "k=99999999999999d"], ["--placement", "nope"], ["--ddl", "nope.sql"],
        ["--like", "nope.csv"], ["--primary-key", "k,k"],
    ):
        yield Case(f"option create {' '.join(wrong)[:40]}", create + wrong, (DONE, USAGE, FAILED) if "xxx" in wrong[1] else (USAGE, FAILED))
    many = [part for i in range(3_000) for part in ("--column", f"c{i}:int64")]
    yield Case("option create 3,000 columns", create + many + ["--partitions", "1"], (DONE, USAGE, FAILED))
    evaluate = ["evaluate", "{in}/a.csv"]
    for wrong in (
        ["--partitions", "0"], ["--partitions", str(HUGE), "--partition-key", "k"], ["--nodes", "0"], ["--sample", "0"], ["--sample", "2"], ["--sample", "nan"],
        ["--window", "0s"], ["--window", "99999999999999999d"], ["--memory", "0"], ["--batch", "0"], ["--ingest-rate", "-1"], ["--weights", "nope"],
        ["--time", "nope"], ["--partition-key", "nope"], ["--partition-key", "date(u"], ["--fail-on", "nope"], ["--fail-on", "x>y>z"], ["--queries", "nope"],
        ["--baseline", "nope.json"], ["--html", "no/such/x.html"], ["--delimiter", "ab"], ["--delimiter", ""], ["--timestamp-format", "%"],
        ["--input-format", "nope"], ["--type", "k:nope"], ["--type", "nope:int64"],
    ):
        yield Case(f"option evaluate {' '.join(wrong)}", evaluate + wrong, (USAGE, FAILED))
    for argv in (
        ["place", "--types", "nope", "--partitions", "4", "1"], ["place", "--types", "int64", "--partitions", "0", "1"],
        ["place", "--types", "int64", "--partitions", "4", "99999999999999999999"], ["place", "--types", "int64,int64", "--partitions", "4", "1"],
        ["place", "--types", "utf8", "--partitions", str(HUGE), "x"], ["lint", "--types", "int64", "--partitions", "0"], ["lint", "--partitions", "4"],
        ["lint", "--types", "int64", "--range", "5..1", "--partitions", "4"], ["lint", "--types", "int64", "--range", "0..", "--partitions", "4"],
        ["generate", "ad-events", "--rows", "-1", "--out", "x"], ["generate", "ad-events", "--rows", "abc", "--out", "x"],
        ["spanner", "simulate", "{in}/a.csv"], ["spanner", "simulate", "{in}/a.csv", "--primary-key", "nope"], ["spanner", "simulate", "nope.csv", "--primary-key", "k"],
        ["capacity", "{in}/a.csv", "--partition-key", "nope"], ["spanner", "migrate", "{in}/a.csv"],
        ["skew", "{in}/t", "--version", "99"], ["inspect", "{in}/t", "--version", "99"], ["clean", "{in}/t", "--keep", "-1s"], ["clean", "{in}/t", "--keep", "x"],
        ["compact", "{in}/t", "--max-depth", "0"], ["compact", "{in}/t", "--target", "0"], ["compact", "{in}/t", "--memory", "1B"],
        ["alter", "{in}/t"], ["alter", "{in}/t", "--add-column", "k:int64"], ["alter", "{in}/t", "--add-column", "x:nope"], ["alter", "{in}/t", "--ttl", "nope=1d"],
        ["repartition", "{in}/t"], ["repartition", "{in}/t", "--to", "{in}/t"], ["repartition", "{in}/t", "--to", "x", "--partitions", "0"],
        ["ddl", "{in}/t", "--target", "nope"], ["ingest", "{in}/t"], ["ingest", "{in}/t", "nope.csv"], ["ingest", "{in}/t", "*.nope"],
        ["ingest", "{in}/t", "{in}/a.csv", "--memory", "1B"], ["bench", "queries", "{in}/t"], ["bench", "queries", "{in}/t", "SELECT nope"],
        ["bench", "queries", "{in}/t", "SELECT 1", "--runs", "0"], ["bench", "queries", "{in}/t", "SELECT 1", "--memory", "1B"],
        ["nope"], [], ["query"], ["--nope"],
    ):
        yield Case(f"option {' '.join(argv)[:70]}", argv, (USAGE, FAILED))
    for name, condition in {
        "nothing": "", "a comment": "-- true", "half": "k <", "a statement": "true; DROP TABLE t", "a bracket": "k < 5) OR (true", "no truth": "k",
        "no column": "nope = 1", "no aggregate": "count(*) > 1", "a parameter": "k = $k", "a blob": "k = 1" + " OR k = 1" * 50_000, "brackets": "(" * 50_000,
        "a cross join": "k IN (SELECT a.k FROM t a CROSS JOIN t b CROSS JOIN t c WHERE a.v + b.v + c.v < 0)", "an overflow": "v + 9223372036854775807 > 0",
    }.items():
        yield Case(f"delete by {name}", ["delete", "t", "--where", condition[:100_000], "--memory", "64MiB", "--timeout", "3s"], (USAGE, FAILED), table=True, rows=ROWS, seconds=20)
    for argv in (["t", "/dev/zero"], ["t", "{in}/big.csv", "--delete-column", "nope=1"], ["t", "{in}/a.csv", "--mode", "insert"], ["t", "{in}"]):
        yield Case(f"deletes of {argv[1:]}", ["ingest", *argv, *([] if "nope=1" in argv else ["--deletes"])], (USAGE, FAILED, DONE), table=True, rows=(0, ROWS))
    for name, script in {
        "bytes": bytes(range(256)) * 50, "no end": b"SELECT '" + b"x" * 5_000_000, "one line": b"SELECT 1" + b"+1" * 2_000_000 + b";", "blanks": b" " * 5_000_000,
        "a backslash": b"\\", "no command": b"\\nope\n", "a folder": b"\\i .\n", "endless": b"\\i /dev/zero\n", "no place": b"\\o /no/such/x.csv\nSELECT 1;\n",
        "itself": b"\\i {script}\n", "no version": b"\\version 99\n", "no table": b"\\d nope\n", "a change": b"DELETE FROM t;\n", "a copy": b"COPY t TO 'x.csv';\n",
        "no memory": b"SELECT count(*) FROM t a, t b, t c, t d WHERE a.v + b.v + c.v + d.v < 0;\n",
    }.items():
        yield Case(f"script of {name}", ["sql", "{in}/t", "--memory", "64MiB", "--timeout", "3s"], (USAGE, FAILED, DONE), stdin=script, seconds=20)
    yield Case("script of a script that runs itself", ["sql", "{in}/t"], (USAGE, FAILED), setup=written("loop.sql", "\\i loop.sql\n"), stdin=b"\\i loop.sql\n", seconds=20)
    yield Case("option bench queries --timeout", ["bench", "queries", "{in}/t", "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
                                                   "--timeout", "1s"], (FAILED,), says=["--timeout"], seconds=20)
