"""A table with columns of all types, and random rows of it."""

import datetime as dt
import json
import uuid

from delta_checks.program import evenkeel

EPOCH = dt.datetime(1970, 1, 1)
TYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double", "decimal(22,9)",
    "decimal(5,2)", "decimal(35,0)", "utf8", "string", "json", "jsondocument", "yson", "uuid", "date", "datetime", "timestamp",
    "interval", "date32", "datetime64", "timestamp64", "interval64",
]
TEXTS = ['qu"ote', "it's", "back\\slash", "comma, and\nline", "\ttab", "é", "日本語", "😀🏴‍☠️", "%3D =/?#", "\u0001", " ", "z" * 80, "NULL"]


def value(kind, rng):
    """A random value, often one at an end of the type, as NDJSON has it."""
    near = rng.random() < 0.4
    if kind == "bool":
        return rng.random() < 0.5
    if kind.startswith(("int", "uint")) and not kind.startswith("interval"):
        bits = int("".join(c for c in kind if c.isdigit()))
        # Delta ends where signed integers do.
        low, high = (0, 2 ** min(bits, 63) - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return rng.choice([low, low + 1, high - 1, high]) if near else rng.randint(low, high)
    if kind in ("float", "double"):
        return rng.choice([0.0, -0.5, 1.5, 2.0**100, -(2.0**-100)])
    if kind.startswith("decimal"):
        digits, scale = map(int, kind[8:-1].split(","))
        most = 10**digits - 1
        number = rng.choice([0, 1, -1, most, -most]) if near else rng.randint(-most, most)
        return f"{'-' if number < 0 else ''}{abs(number) // 10**scale}" + (f".{abs(number) % 10**scale:0{scale}}" if scale else "")
    if kind in ("utf8", "string"):
        return rng.choice(TEXTS)
    if kind in ("json", "jsondocument", "yson"):
        return json.dumps({"a": rng.choice(TEXTS)}, ensure_ascii=False)
    if kind == "uuid":
        return str(uuid.UUID(int=rng.getrandbits(128)))
    if kind in ("interval", "interval64"):
        return rng.randint(-(10**12), 10**12)
    late = kind.endswith(("32", "64"))
    low = dt.datetime(1600, 1, 1) if late else EPOCH
    span = int((dt.datetime(2100, 1, 1) - low).total_seconds())
    at = low + dt.timedelta(seconds=rng.randrange(span), microseconds=rng.randrange(10**6))
    if late and near:
        at = EPOCH - dt.timedelta(microseconds=rng.choice([1, 999_999, 1_000_000]))
    if kind.startswith("date") and not kind.startswith("datetime"):
        return at.date().isoformat()
    return at.isoformat(timespec="seconds" if kind.startswith("datetime") else "microseconds")


def name_of(kind):
    return "c_" + kind.replace("(", "_").replace(",", "_").replace(")", "")


def create_with_all_types(folder, partitions=32):
    table = folder / "all"
    columns = [argument for kind in TYPES for argument in ("--column", f"{name_of(kind)}:{kind}")]
    evenkeel("create", table, "--column", "k:int64:not-null", *columns, "--primary-key", "k", "--partitions", partitions)
    return table


def random_rows(keys, rng):
    for k in keys:
        row = {name_of(kind): value(kind, rng) for kind in TYPES if rng.random() < 0.8}
        yield {"k": k, **row}
