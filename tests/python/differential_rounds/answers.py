"""One statement in the SQL of both engines, and their answers beside each other."""

import datetime
import decimal
import json
import math
import re

import duckdb


class PeerFailed(Exception):
    """DuckDB failed with an internal error."""


class Answers:
    """The answers of the server and of DuckDB to the statements of a round."""

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
        # DuckDB 2.0 leaves out the limit of an outer join whose other side is empty, as with NOT IN (NULL).
        limit = re.search(r"\bLIMIT (\d+)$", theirs)
        if limit and len(expected) > int(limit[1]):
            raise PeerFailed(f"{theirs}: returns {len(expected)} rows")
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


def value_of(value):
    """A value of DuckDB as the server writes it."""
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
