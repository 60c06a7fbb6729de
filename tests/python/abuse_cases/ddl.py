"""Statements that create tables, cut, damaged, or of sizes nobody expects."""

from abuse_cases.case import DONE, FAILED, USAGE, Case, written


def ddl(bench):
    table = "CREATE TABLE x (k Int64 NOT NULL, v Utf8, PRIMARY KEY (k)) PARTITION BY HASH(k) WITH (STORE = COLUMN)"
    texts = {
        "empty": "", "blanks": " " * 1_000_000, "a word": "CREATE", "a query": "SELECT 1", "a comment": "-- nothing", "half": table[:40],
        "without a key": "CREATE TABLE x (k Int64 NOT NULL) WITH (STORE = COLUMN)", "an unknown type": table.replace("Utf8", "Nope"),
        "an unknown key": table.replace("KEY (k)", "KEY (nope)"), "a repeated column": table.replace("v Utf8", "k Utf8"),
        "a store of rows": table.replace("COLUMN", "ROW"), "0 partitions": table.replace("= COLUMN", "= COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 0"),
        "10^30 partitions": table.replace("= COLUMN", "= COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 1" + "0" * 30),
        "-1 partitions": table.replace("= COLUMN", "= COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = -1"),
        "a name of 100,000 letters": table.replace("TABLE x", "TABLE " + "x" * 100_000), "a column of 100,000 letters": table.replace("v Utf8", "v" * 100_000 + " Utf8"),
        "100,000 parentheses": "CREATE TABLE x (" + "(" * 100_000, "an open string": table + " '", "an open comment": "/*" * 50_000,
        "NUL bytes": table.replace("v ", "\0 "), "binary": "\x01\x02\x03\x7f" * 1000, "two tables": table + "; " + table, "a type of a type": table.replace("Utf8", "Utf8(((5)))"),
        "Decimal(99,99)": table.replace("Utf8", "Decimal(99,99)"), "50,000 columns": table.replace("v Utf8", ", ".join(f"c{i} Utf8" for i in range(50_000))),
        "a TTL of 10^30 days": table.replace("= COLUMN", "= COLUMN, TTL = Interval('P1" + "0" * 30 + "D') ON k"),
        "other quotes": table.replace("v Utf8", "`v` Utf8, \"w\" Utf8"), "a number as a name": table.replace("TABLE x", "TABLE 1"),
    }
    # YDB would refuse some of these names; here they are names.
    may = {"other quotes", "50,000 columns", "a number as a name", "a name of 100,000 letters", "a column of 100,000 letters", "a TTL of 10^30 days"}
    for name, text in texts.items():
        codes = (DONE, FAILED, USAGE) if name in may else (FAILED, USAGE)
        yield Case(f"ddl {name}: create", ["create", "t", "--ddl", "x.sql", "--partitions", "2"] if "partitions" not in name else ["create", "t", "--ddl", "x.sql"],
                   codes, setup=written("x.sql", text), memory=600, seconds=25)
    spanner = {
        "an unknown type": "CREATE TABLE x (k NOPE NOT NULL) PRIMARY KEY (k)", "no key": "CREATE TABLE x (k INT64 NOT NULL)", "half": "CREATE TABLE x (k INT64",
        "no parent": "CREATE TABLE x (k INT64 NOT NULL) PRIMARY KEY (k), INTERLEAVE IN PARENT nope ON DELETE CASCADE", "100,000 parentheses": "CREATE TABLE x " + "(" * 100_000,
        "binary": "\x01\x02" * 1000, "a key of no column": "CREATE TABLE x (k INT64 NOT NULL) PRIMARY KEY (nope)", "empty": "",
    }
    for name, text in spanner.items():
        yield Case(f"ddl spanner {name}: simulate", ["spanner", "simulate", "{in}/a.csv", "--ddl", "x.sql"], (FAILED, USAGE), setup=written("x.sql", text), seconds=25)
