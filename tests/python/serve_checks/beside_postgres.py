"""Values of all types, beside PostgreSQL itself."""

import datetime
import decimal

import psycopg
import pyarrow as pa

from serve_checks.checking import check
from server import Server


def values():
    """A table of all types with their extremes, and its columns as PostgreSQL declares them."""
    micros = lambda *values: pa.array(values, pa.timestamp("us"))
    columns = {
        "flag": ("bool", pa.array([True, False, None, True])),
        "i8": ("int2", pa.array([-128, 127, None, 0], pa.int8())),
        "i16": ("int2", pa.array([-(2**15), 2**15 - 1, None, 0], pa.int16())),
        "i32": ("int4", pa.array([-(2**31), 2**31 - 1, None, 0], pa.int32())),
        "i64": ("int8", pa.array([-(2**63), 2**63 - 1, None, 0], pa.int64())),
        "u8": ("int2", pa.array([0, 255, None, 1], pa.uint8())),
        "u16": ("int4", pa.array([0, 65535, None, 1], pa.uint16())),
        "u32": ("int8", pa.array([0, 2**32 - 1, None, 1], pa.uint32())),
        "u64": ("numeric(20,0)", pa.array([0, 2**64 - 1, None, 10**16], pa.uint64())),
        "f32": ("float4", pa.array([1.5e-7, 3.4028234e38, None, -0.0], pa.float32())),
        "f64": ("float8", pa.array([5e-324, 1.7976931348623157e308, None, 0.1 + 0.2])),
        "f64s": ("float8", pa.array([float("nan"), float("inf"), float("-inf"), 1e15])),
        "d35": ("numeric(35,10)", pa.array([decimal.Decimal("-9999999999999999999999999.9999999999"), decimal.Decimal("0.0000000001"), None, decimal.Decimal("10000")], pa.decimal128(35, 10))),
        "d5": ("numeric(5,0)", pa.array([decimal.Decimal(99999), decimal.Decimal(-1), None, decimal.Decimal(0)], pa.decimal128(5, 0))),
        "text": ("text", pa.array(["", "a\tb\nc\\d\re", None, "'\"ü€😀,;\\."])),
        "bytes": ("bytea", pa.array([b"", bytes(range(256)), None, b"\\x"], pa.binary())),
        "day": ("date", pa.array([-719162, 2932896, None, 0], pa.int32()).cast(pa.date32())),
        "at": ("timestamp", micros(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), None, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999))),
        "span": ("interval", pa.array([0, -1, None, 178_200_000_000], pa.duration("us"))),
        "uuid": ("uuid", pa.array([bytes(16), bytes(range(16)), None, b"\xff" * 16], pa.binary(16))),
        "word": ("text", pa.array(["a", "b", None, "a"]).dictionary_encode()),
    }
    return {name: kind for name, (kind, _) in columns.items()}, pa.table({name: data for name, (_, data) in columns.items()})


# Types that exports do not have, computed of those that they have.
COMPUTED = {
    "zoned": ("timestamptz", """arrow_cast(at, 'Timestamp(Microsecond, Some("+00:00"))')"""),
    "clock": ("time", "CAST(at AS time)"),
    "list": ("int8[]", "CASE WHEN flag THEN make_array(i32, NULL, -3) END"),
    "texts": ("text[]", """make_array(text, '', 'null', 'a b', 'q"\\{', word)"""),
    "blobs": ("bytea[]", "make_array(bytes, bytes)"),
    "floats": ("float8[]", "make_array(f64, f64s)"),
    "months": ("interval", "INTERVAL '14 months 3 days 4.5 seconds'"),
    "nothing": ("text", "NULL"),
    "wide": ("numeric(38,10)", "CAST(d35 AS decimal(38, 10))"),
}


def beside_postgres(fixture, postgres):
    """What PostgreSQL reads from a COPY, it writes in the same way."""
    kinds, table = values()
    with Server(fixture.program, f"all={fixture.parquet('all', table)}") as server:
        ours = psycopg.connect(server.url(), autocommit=True)
        theirs = psycopg.connect(postgres, autocommit=True)
        theirs.execute("SET timezone = 'UTC'")
        computed = ", ".join(f"{expression} AS {name}" for name, (_, expression) in COMPUTED.items())
        kinds |= {name: kind for name, (kind, _) in COMPUTED.items()}
        names = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
        query = f'SELECT *, {computed} FROM "all"'
        for options in ["", "(FORMAT csv, HEADER)", "(FORMAT csv, DELIMITER ';', NULL 'NULL', QUOTE '''')", "(FORMAT binary)"]:
            with ours.cursor().copy(f"COPY ({query}) TO STDOUT {options}") as copied:
                written = b"".join(bytes(part) for part in copied)
            theirs.execute("DROP TABLE IF EXISTS copied")
            theirs.execute(f"CREATE TABLE copied ({names})")
            with theirs.cursor().copy(f"COPY copied FROM STDIN {options}") as target:
                target.write(written)
            with theirs.cursor().copy(f"COPY copied TO STDOUT {options}") as copied:
                again = b"".join(bytes(part) for part in copied)
            check(written, again, f"COPY {options}")
        # Each column, in both formats of the protocol, and its type.
        for name, kind in kinds.items():
            for is_binary in (False, True):
                found, expected = (
                    connection.cursor(binary=is_binary).execute(f'SELECT "{name}" FROM {source}')
                    for connection, source in ((ours, f"({query})"), (theirs, "copied"))
                )
                check(found.description[0].type_code, expected.description[0].type_code, name)
                raw = lambda cursor: [cursor.pgresult.get_value(row, 0) for row in range(cursor.pgresult.ntuples)]
                check(raw(found), raw(expected), f"{name}, binary: {is_binary}")
        declared = ours.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'all'::regclass AND attnum > 0 ORDER BY attnum"
        ).fetchall()
        expected = theirs.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'copied'::regclass AND attnum > 0 ORDER BY attnum"
        ).fetchall()
        check(declared, expected[: len(declared)])
