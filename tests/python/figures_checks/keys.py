"""Random keys, and the partitions that their hashes give."""

import datetime as dt

import xxhash

from figures_checks.random_exports import EPOCH

BYTES = {"Int8": 1, "Uint8": 1, "Int16": 2, "Uint16": 2, "Date": 2, "Int32": 4, "Uint32": 4, "Date32": 4}


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
    """The bytes that YDB hashes of a value: numbers little-endian, text as it is, NULL as none."""
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
    """The rows of a key.

    Table `NAME` has `arrived`, the number of the key, and the partition over each number of
    partitions.
    """

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
