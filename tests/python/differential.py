"""Random tables and statements: what evenkeel answers against DuckDB over the raw rows.

Each round declares a table of random columns and keys, ingests random batches (with rows that come
again, NULL, NaN, infinities and extreme values), and in between adds columns, compacts and cleans.
DuckDB holds the same batches in the order in which they came, and finds the newest row of each key
by itself. Then both answer random statements: every answer has to be the same, row by row.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from richer_statements import RicherStatements

# name in YQL, name in DuckDB, whether it may be in a key
TYPES = {
    "int64": ("BIGINT", True),
    "int32": ("INTEGER", True),
    "uint32": ("UINTEGER", True),
    "uint64": ("UBIGINT", True),
    "utf8": ("VARCHAR", True),
    "string": ("BLOB", True),
    "timestamp": ("TIMESTAMP", True),
    "timestamp64": ("TIMESTAMP", True),
    "date": ("DATE", True),
    "double": ("DOUBLE", False),
    "bool": ("BOOLEAN", False),
    "decimal(18,4)": ("DECIMAL(18,4)", False),
}
EXTREMES = {
    "int64": ["-9223372036854775808", "9223372036854775807", "0", "-1"],
    "int32": ["-2147483648", "2147483647", "0"],
    "uint32": ["0", "4294967295"],
    "uint64": ["0", "9223372036854775807", "18446744073709551615"],
    "utf8": ["''", "'a'", "'zzzz'", "'Ä'", "'u'", "'%'", "'日本'"],
    "string": ["''::BLOB", "'\\x00'::BLOB", "'\\xFF\\xFF'::BLOB"],
    "timestamp": ["TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '2100-12-31 23:59:59.999999'"],
    "timestamp64": ["TIMESTAMP '1500-01-01 00:00:00'", "TIMESTAMP '3000-06-01 12:00:00.000001'",
                    "TIMESTAMP '1969-12-31 23:59:59.999999'"],
    "date": ["DATE '1970-01-01'", "DATE '2100-01-01'"],
    "double": ["'NaN'::DOUBLE", "'Infinity'::DOUBLE", "'-Infinity'::DOUBLE", "0.0", "'-0.0'::DOUBLE", "1e300", "-1e300"],
    "bool": ["true", "false"],
    "decimal(18,4)": ["0", "CAST('99999999999999.9999' AS DECIMAL(18,4))", "CAST('-99999999999999.9999' AS DECIMAL(18,4))",
                      "CAST('0.0001' AS DECIMAL(18,4))"],
}


class Column:
    def __init__(self, name, kind, nullable):
        self.name, self.kind, self.nullable = name, kind, nullable
        self.duck, self.may_be_key = TYPES[kind]
        self.spread = 10
        self.extremes = 0.03
        self.nulls = 0.1 if nullable else 0

    def expression(self, rng):
        """A DuckDB expression over `i`, the number of the row, of the values of the column."""
        n, salt = self.spread, rng.randrange(1 << 30)
        number = f"(hash(i + {salt}) % {n})::BIGINT"
        if rng.random() < 0.3:
            number = f"((i + {salt % 1000}) % {n})::BIGINT"
        values = {
            "int64": f"{number} - {n // 3}", "int32": f"({number} - {n // 3})::INTEGER",
            "uint32": f"{number}::UINTEGER", "uint64": f"{number}::UBIGINT",
            "utf8": f"'u' || {number}", "string": f"('s' || {number})::BLOB",
            "timestamp": f"TIMESTAMP '2024-01-01 00:00:00' + to_microseconds({number} * 1000001)",
            "timestamp64": f"TIMESTAMP '1960-01-01 00:00:00' + to_microseconds({number} * 86400000001)",
            "date": f"DATE '2020-01-01' + {number}::INTEGER",
            "double": f"({number} - {n // 2}) * 0.25", "bool": f"{number} % 2 = 0",
            "decimal(18,4)": f"(({number} - {n // 2}) * 0.0125)::DECIMAL(18,4)",
        }
        value = values[self.kind]
        roll = f"(hash(i * 31 + {salt}) % 1000)"
        cases = []
        if self.nulls:
            cases.append(f"WHEN {roll} < {int(self.nulls * 1000)} THEN NULL")
        if self.extremes:
            few = EXTREMES[self.kind]
            for k, extreme in enumerate(few):
                low = 500 + k * max(1, int(self.extremes * 1000 / len(few)))
                cases.append(f"WHEN {roll} = {low} THEN ({extreme})::{self.duck}")
        return f"(CASE {' '.join(cases)} ELSE ({value})::{self.duck} END)::{self.duck}" if cases else f"({value})::{self.duck}"

    def literal(self, rng):
        n = self.spread
        if rng.random() < 0.12:
            text = rng.choice(EXTREMES[self.kind])
            return text.replace("::DOUBLE", "::double")
        k = rng.randrange(-2, n + 2)
        return {
            "int64": str(k - n // 3), "int32": str(k - n // 3), "uint32": str(abs(k)), "uint64": str(abs(k)),
            "utf8": f"'u{k}'", "string": f"'s{k}'",
            "timestamp": f"TIMESTAMP '2024-01-01 00:{k // 60 % 60:02}:{k % 60:02}.00000{k % 10}'",
            "timestamp64": f"TIMESTAMP '{1960 + k % 60}-0{1 + k % 9}-0{1 + k % 7} 00:00:0{k % 10}'",
            "date": f"DATE '20{20 + k % 3}-0{1 + k % 9}-1{k % 10}'",
            "double": repr((k - n // 2) * 0.25), "bool": rng.choice(["true", "false"]),
            "decimal(18,4)": f"CAST({(k - n // 2) * 0.0125:.4f} AS DECIMAL(18,4))",
        }[self.kind]


class Round(RicherStatements):
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

    # Statements

    def predicate(self, depth=0, prefix=""):
        rng = self.rng
        roll = rng.random()
        if depth < 2 and roll < 0.25:
            op = rng.choice(["AND", "OR"])
            return f"({self.predicate(depth + 1, prefix)} {op} {self.predicate(depth + 1, prefix)})"
        if depth < 2 and roll < 0.35:
            return f"NOT ({self.predicate(depth + 1, prefix)})"
        column = rng.choice(self.keys) if rng.random() < 0.4 else rng.choice(self.columns)
        name, literal = prefix + column.name, lambda: self.typed(column, column.literal(rng))
        roll = rng.random()
        if column.kind == "bool":
            return rng.choice([name, f"{name} IS NULL", f"{name} = {literal()}", f"{name} IS NOT TRUE"])
        if roll < 0.1:
            return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
        if roll < 0.13:
            return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {literal()}"
        if depth < 2 and roll < 0.16:
            inner = [self.predicate(depth + 1, prefix) for _ in range(3)]
            return f"CASE WHEN {inner[0]} THEN {inner[1]} ELSE {inner[2]} END"
        if roll < 0.27:
            return f"{name} {rng.choice(['', 'NOT '])}BETWEEN {literal()} AND {literal()}"
        if roll < 0.44:
            values = ", ".join("NULL" if rng.random() < 0.04 else literal() for _ in range(rng.randrange(1, 6)))
            return f"{name} {rng.choice(['', 'NOT '])}IN ({values})"
        if column.kind == "utf8" and roll < 0.54:
            return f"{name} {rng.choice(['', 'NOT '])}LIKE {rng.choice(['$u1%$', '$%3$', '$u_$', '$%$'])}".replace("$", "'")
        other = rng.choice([c for c in self.columns if c.kind == column.kind])
        right = prefix + other.name if roll > 0.92 else literal()
        return f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {right}"

    @staticmethod
    def typed(column, literal):
        """A literal of bytes: the one thing that both write differently."""
        return f"@{literal}@" if column.kind == "string" else literal

    def order(self, prefix="", columns=None):
        """A total order; both engines are told where NULLs go."""
        rng = self.rng
        columns = columns or self.columns
        lead = rng.sample(columns, min(len(columns), rng.randrange(0, 3))) if rng.random() < 0.6 else []
        whole = lead + [c for c in self.keys if c not in lead]
        down = rng.random() < 0.25
        def direction(column):
            if column in lead:
                return rng.choice(["", " DESC"]) + rng.choice([" NULLS FIRST", " NULLS LAST"])
            return (" DESC" if down else "") + " NULLS LAST"
        return ", ".join(f"{prefix}{c.name}{direction(c)}" for c in whole)

    def limit(self, most=8192):
        rng = self.rng
        text = f" LIMIT {rng.choice([n for n in (0, 1, 2, 5, 10, 100, 1000, 8192) if n <= most])}"
        return text + (f" OFFSET {rng.choice([1, 3, 100, 2000])}" if rng.random() < 0.3 else "")

    def names(self, count=None, columns=None):
        columns = columns or self.columns
        count = min(len(columns), count or self.rng.randrange(1, len(columns) + 1))
        picked = self.rng.sample(columns, count)
        return [c.name for c in picked]

    def where(self, prefix=""):
        return f" WHERE {self.predicate(0, prefix)}" if self.rng.random() < 0.7 else ""

    def limited(self, columns, most=8192):
        return f"(SELECT {', '.join(columns)} FROM t{self.where()} ORDER BY {self.order()}{self.limit(most)})"

    def aggregate(self, column, prefix=""):
        name, kind = prefix + column.name, column.kind
        choices = [f"count({name})", f"count(DISTINCT {name})"]
        if kind not in ("bool", "string"):
            choices += [f"min({name})", f"max({name})"]
        if kind in ("int32", "uint32"):
            choices += [f"CAST(sum({name}) AS BIGINT)"]
        return self.rng.choice(choices)

    def statement(self):
        rng = self.rng
        if rng.random() < self.options.richer:
            return self.richer()
        kind = rng.randrange(18)
        if kind >= 13:
            return [self.joined, self.joined, self.with_subqueries, self.with_subqueries, self.shifted][kind - 13]()
        if kind <= 2:
            return f"SELECT {', '.join(self.names())} FROM t{self.where()} ORDER BY {self.order()}{self.limit()}", True
        if kind == 3:
            key = self.keys[0].name
            return f"SELECT {key} FROM t{self.where()} ORDER BY {key}{self.limit()}", True
        if kind == 4:
            aggregates = ", ".join(["count(*)"] + [f"{self.aggregate(rng.choice(self.columns))} AS g{i}" for i in range(3)])
            return f"SELECT {aggregates} FROM t{self.where()}", True
        if kind == 5:
            group = self.names(rng.randrange(1, 3))
            ordered = ", ".join(f"{name} NULLS LAST" for name in group)
            having = rng.choice(["", " HAVING count(*) > 1"])
            return (f"SELECT {', '.join(group)}, count(*), {self.aggregate(rng.choice(self.columns))} AS g FROM t{self.where()} "
                    f"GROUP BY {', '.join(group)}{having} ORDER BY {ordered}{self.limit()}"), True
        if kind == 6:
            key = rng.choice(self.keys).name
            columns = ", ".join(f"b.{name}" for name in self.names(1)) + "".join(f", a.{c.name}" for c in self.keys)
            outer = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
            # A key of few values joins each row with many: with large sides the rows are only
            # counted.
            counted = rng.random() < 0.5
            most = 1000 if counted else 100
            join = (f"{self.limited([c.name for c in self.keys], most)} a {outer} "
                    f"{self.limited([c.name for c in self.columns], most)} b ON a.{key} = b.{key}")
            return f"SELECT {'count(*), count(a.' + key + '), count(b.' + key + ')' if counted else columns} FROM {join}", False
        if kind == 7:
            column = rng.choice(self.columns).name
            negated = rng.choice(["", "NOT "]) if column in {c.name for c in self.keys} else ""
            return (f"SELECT {', '.join(self.names())} FROM t WHERE {column} {negated}IN {self.limited([column])} "
                    f"ORDER BY {self.order()}{self.limit()}"), True
        if kind == 8:
            columns = self.names(rng.randrange(1, 3))
            op = rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
            return f"SELECT * FROM {self.limited(columns)} {op} SELECT * FROM {self.limited(columns)}", False
        if kind == 9:
            part = rng.choice(self.columns).name
            window = rng.choice(["row_number()", "rank()", "dense_rank()", "count(*)"])
            return (f"SELECT * FROM (SELECT {', '.join(c.name for c in self.keys)}, {window} OVER "
                    f"(PARTITION BY {part} ORDER BY {self.order(columns=self.keys)}) AS n FROM t{self.where()}) "
                    f"WHERE n <= {rng.choice([1, 2, 5])}{''}"), False
        if kind == 10:
            columns = self.names(rng.randrange(1, 3))
            ordered = ", ".join(f"{name} {rng.choice(['', 'DESC '])}NULLS {rng.choice(['FIRST', 'LAST'])}" for name in columns)
            return f"SELECT DISTINCT {', '.join(columns)} FROM t{self.where()} ORDER BY {ordered}{self.limit()}", True
        if kind == 11:
            shown = [f"{self.predicate()} AS p{i}" for i in range(rng.randrange(1, 4))]
            names = ", ".join([c.name for c in self.keys] + shown)
            if rng.random() < 0.3:
                return f"SELECT * FROM (SELECT {names} FROM t) WHERE p0 ORDER BY {self.order(columns=self.keys)}{self.limit()}", True
            return f"SELECT {names} FROM t{self.where()} ORDER BY {self.order()}{self.limit()}", True
        column = rng.choice([c for c in self.columns if c.kind not in ("bool",)])
        inner = [c.name for c in self.columns]
        return f"SELECT count(*), min({column.name}), max({column.name}) FROM {self.limited(inner)} x{self.where()}" \
            if column.kind != "string" else f"SELECT count(*), count({column.name}) FROM {self.limited(inner)} x", True

    def compared(self, prefixes):
        """A condition on one or two of the joined tables, which all have the same columns."""
        rng = self.rng
        first, second = rng.choice(prefixes), rng.choice(prefixes)
        if rng.random() < 0.3:
            return self.predicate(1, first)
        column = rng.choice(self.columns)
        other = rng.choice([c for c in self.columns if c.kind == column.kind])
        left, right = first + column.name, second + other.name
        form = rng.choice(["{0} IS NULL OR {0} {2} {1}", "{0} {2} {1}", "{0} IS DISTINCT FROM {1}",
                           "{1} IS NULL OR {0} IS NULL", "coalesce({0}, {1}) {2} {1}"])
        return form.format(left, right, rng.choice(["<", ">=", "<>"]))

    def joined(self):
        """Two or three tables joined on the primary key or, if one has few rows, on part of it."""
        rng = self.rng
        names = [c.name for c in self.columns]
        tables = ["a.", "b.", "c."][:rng.randrange(2, 4)]
        sides = [rng.choice(["t", f"(SELECT * FROM t{self.where()})", self.limited(names, 100)]) for _ in tables]
        source = f"{sides[0]} a"
        for i in range(1, len(tables)):
            kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            left = rng.choice(tables[:i])
            columns = self.keys if not sides[i].endswith(")") or "LIMIT" not in sides[i] else self.keys[:1]
            on = " AND ".join(f"{left}{c.name} = {tables[i]}{c.name}" for c in columns)
            if kind != "FULL JOIN" and rng.random() < 0.25:
                on += f" AND ({self.compared([left, tables[i]])})"
            source += f" {kind} {sides[i]} {tables[i][0]} ON {on}"
        where = "".join(f" {word} ({self.compared(tables)})" for word in ["WHERE", "AND"][:rng.randrange(3)])
        if rng.random() < 0.5:
            figures = [self.aggregate(rng.choice(self.columns), rng.choice(tables)) for _ in range(3)]
            return f"SELECT count(*), {', '.join(f'{figure} AS g{i}' for i, figure in enumerate(figures))} FROM {source}{where}", True
        picked = [table + c.name for table in tables for c in self.keys]
        picked += [rng.choice(tables) + name for name in self.names(1)]
        rng.shuffle(picked)
        shown = ", ".join(f"{name} AS g{i}" for i, name in enumerate(picked))
        order = ", ".join(f"{name}{rng.choice(['', ' DESC'])} NULLS LAST" for name in picked)
        return f"SELECT {shown} FROM {source}{where} ORDER BY {order}{self.limit()}", True

    def subquery(self, column, returns_rows):
        """A query that returns one column of the kind of the given one, or rows, and may depend on
        table a."""
        rng = self.rng
        item = rng.choice([c for c in self.columns if c.kind == column.kind]).name
        same = rng.choice(self.columns).name
        where = f"WHERE {rng.choice(['true', f's.{same} = a.{same}'])} AND {self.predicate(1, 's.')}"
        forms = [f"SELECT s.{item} FROM t s {where}"] * 4 + [f"SELECT DISTINCT s.{item} FROM t s {where}"]
        if column.kind not in ("bool", "string", "double"):
            forms.append(f"SELECT max(s.{item}) FROM t s {where}")
        if returns_rows:
            forms += [f"SELECT count(*) FROM t s {where}", f"SELECT 1 FROM t s {where} OFFSET {rng.randrange(3)}",
                      f"SELECT count(*) FROM t s {where} HAVING count(*) > {rng.randrange(3)}",
                      f"SELECT 1 FROM t s {where} GROUP BY ROLLUP (s.{item})"]
        return rng.choice(forms)

    def condition(self, depth=0):
        rng = self.rng
        roll = rng.random()
        if depth < 2 and roll < 0.4:
            return f"({self.condition(depth + 1)} {rng.choice(['AND', 'OR', 'OR'])} {self.condition(depth + 1)})"
        if depth < 2 and roll < 0.6:
            wrapper = rng.choice(["NOT ({})", "({}) IS NULL", "({}) IS NOT TRUE", "coalesce({}, true)"])
            return wrapper.format(self.condition(depth + 1))
        column = rng.choice(self.columns)
        if roll < 0.8:
            value = f"a.{column.name}" if rng.random() < 0.8 else self.typed(column, column.literal(rng))
            return f"{value} {rng.choice(['', 'NOT '])}IN ({self.subquery(column, False)})"
        if roll < 0.9:
            return f"{rng.choice(['', 'NOT '])}EXISTS ({self.subquery(column, True)})"
        return self.predicate(1, "a.")

    def with_subqueries(self):
        keys = ", ".join(f"a.{c.name}" for c in self.keys)
        order = ", ".join(f"a.{c.name} NULLS LAST" for c in self.keys)
        side = self.rng.choice(["t", f"(SELECT * FROM t{self.where()})"])
        return f"SELECT {keys} FROM {side} a WHERE {self.condition()} ORDER BY {order}{self.limit()}", True

    def shifted(self):
        """LEAD and LAG, with and without NULLs, and casts that lose something."""
        rng = self.rng
        keys = ", ".join(c.name for c in self.keys)
        order = ", ".join(f"{c.name} NULLS LAST" for c in self.keys)
        down = ", ".join(f"{c.name} DESC NULLS FIRST" for c in self.keys)
        column = rng.choice(self.columns)
        call = f"{rng.choice(['lead', 'lag'])}({column.name}, {rng.choice([-2, 0, 1, 2, 3])}"
        nulls = rng.random() < 0.5
        over = f" OVER ({rng.choice(['', f'PARTITION BY {rng.choice(self.columns).name} '])}ORDER BY {rng.choice([order, down])})"
        value = f"{call}#IGNORE NULLS#){over}" if nulls else f"{call}){over}"
        kinds = {"timestamp": ["TIME", "DATE"], "decimal(18,4)": ["DECIMAL(16, 2)"], "uint32": ["SMALLINT"],
                 "int64": ["SMALLINT"], "int32": ["SMALLINT", "BOOLEAN"], "uint64": ["BIGINT"]}
        casts = [(c.name, to) for c in self.columns for to in kinds.get(c.kind, [])]
        where = self.where()
        if casts and rng.random() < 0.6:
            name, to = rng.choice(casts)
            bound = {"TIME": "TIME '00:00:30'", "DATE": "DATE '2021-06-01'", "BOOLEAN": "true"}.get(to, str(rng.choice([0, 1, 7, 250])))
            test = f"TRY_CAST({name} AS {to}) {rng.choice(['<', '>=', '=', '<>', 'IS DISTINCT FROM'])} {bound}"
            where = f" WHERE {rng.choice(['', 'NOT '])}({test})"
            if rng.random() < 0.5:
                return f"SELECT count(*) FROM (SELECT *, {test} AS p FROM t) WHERE p IS {rng.choice(['', 'NOT '])}NULL OR p", True
        return f"SELECT {keys}, {value} AS g FROM t{where} ORDER BY {order}{self.limit()}", True

    @staticmethod
    def for_duckdb(sql):
        sql = sql.replace("#IGNORE NULLS#)", " IGNORE NULLS)")
        return sql.replace("@'", "'").replace("'@", "'::BLOB").replace("::BLOB::BLOB", "::BLOB").replace("BLOB@", "BLOB").replace("@", "")

    def for_evenkeel(self, sql):
        """Bytes are hexadecimal literals, and IGNORE NULLS stands behind the call."""
        sql = sql.replace("#IGNORE NULLS#)", ") IGNORE NULLS")
        while "@" in sql:
            before, literal, after = sql.split("@", 2)
            raw = self.duck.execute(f"SELECT ({literal if 'BLOB' in literal else literal + '::BLOB'})").fetchone()[0]
            sql = f"{before}X'{raw.hex()}'{after}"
        return sql

    def compare(self, sql, ordered, reopen):
        theirs, ours = self.for_duckdb(sql), self.for_evenkeel(sql)
        request = {"table": str(self.table), "sql": ours, "reopen": reopen,
                   "cores": self.rng.choice([1, 2, 3, 8]), "batch_rows": self.rng.choice([64, 1000, 8192])}
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        answer = None
        for line in self.server.stdout:
            at = line.find("ANSWER ")
            if at >= 0:
                answer = json.loads(line[at + 7:])
                break
        if answer is None:
            raise AssertionError(f"round {self.seed}: the server died of: {sql}")
        try:
            expected = [[value_of(value) for value in row] for row in self.duck.execute(theirs).fetchall()]
        except (duckdb.InternalException, duckdb.FatalException) as error:
            raise PeerFailed(f"{theirs}: {str(error).splitlines()[0]}") from error
        except duckdb.Error as error:
            raise AssertionError(f"round {self.seed}: DuckDB refuses {theirs}: {error}") from error
        if "error" in answer:
            return f"error: {answer['error']}"
        # Which of two equal zeros stands for a group is free.
        found = [["0.0" if value == "-0.0" else value for value in row] for row in answer["rows"]]
        if not ordered:
            key = lambda row: [(value is None, value or "") for value in row]
            found, expected = sorted(found, key=key), sorted(expected, key=key)
        if found != expected:
            at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
            return f"{len(found)} rows, from {at} on {found[at:at + 3]}\n  instead of {len(expected)}, {expected[at:at + 3]}"
        return None


class PeerFailed(Exception):
    """DuckDB failed with an internal error."""


def value_of(value):
    """A value of DuckDB as the server writes it."""
    import datetime
    import decimal
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return rust_float(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, datetime.datetime):
        delta = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        return str((delta.days * 86400 + delta.seconds) * 10**6 + delta.microseconds)
    if isinstance(value, datetime.date):
        return str((value - datetime.date(1970, 1, 1)).days)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    return str(value)


def rust_float(value):
    if value == 0:
        return "0.0"
    if 1e-4 <= abs(value) < 1e16:
        return f"{value!r}"
    mantissa, exponent = f"{value!r}".split("e") if "e" in f"{value!r}" else (f"{value:e}".split("e"))
    mantissa = mantissa[:-2] if mantissa.endswith(".0") else mantissa
    return f"{mantissa}e{int(exponent)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("server")
    parser.add_argument("--statements", type=int, default=1500)
    parser.add_argument("--each", type=int, default=60, help="statements for each state of a table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--large", type=float, default=0.04, help="share of tables with several row groups")
    parser.add_argument("--richer", type=float, default=0.4, help="share of the statements of richer_statements.py")
    parser.add_argument("--keep-going", action="store_true", help="report every difference")
    options = parser.parse_args()
    server = subprocess.Popen([options.server, "--ignored", "--exact", "sql_server::statements_from_standard_input",
                               "--nocapture"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    started, done, failed, peer_failed, seed = time.time(), 0, 0, 0, options.seed
    with tempfile.TemporaryDirectory() as folder:
        while done < options.statements and time.time() - started < options.seconds:
            this = Round(options, seed, Path(folder), server)
            failures_before = peer_failed
            for _ in range(2):
                if peer_failed > failures_before:
                    break
                this.change()
                for number in range(options.each):
                    sql, ordered = this.statement()
                    try:
                        difference = this.compare(sql, ordered, number == 0)
                    except PeerFailed as error:
                        # Its database is closed after that; the other tables are compared.
                        print(f"seed {seed}: DuckDB fails by itself: {error}", flush=True)
                        peer_failed += 1
                        break
                    done += 1
                    if difference:
                        failed += 1
                        keys = [(c.name, c.kind) for c in this.columns]
                        print(f"seed {seed}: {sql}\n  {keys}\n  {difference}", flush=True)
            seed += 1
            this.duck.close()
            print(f"{done} statements, {failed} failed, {time.time() - started:.0f} s", flush=True)
            subprocess.run(["rm", "-rf", this.table], check=True)
            if failed and not options.keep_going:
                break
    server.stdin.close()
    server.wait()
    print(f"{seed - options.seed} tables, {done} statements in {time.time() - started:.0f} s")
    if peer_failed:
        print(f"{peer_failed} statements that DuckDB could not answer")
    print(f"{done - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
