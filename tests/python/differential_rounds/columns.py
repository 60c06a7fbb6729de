"""Columns of random tables: their types, values and literals."""

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
