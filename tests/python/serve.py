#!/usr/bin/env python3
"""Uses `evenkeel serve` with the clients that people have, beside PostgreSQL itself.

usage: serve.py PROGRAM
"""

import asyncio
import datetime
import decimal
import glob
import os
import pathlib
import re
import shutil
import socket
import ssl
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error

import adbc_driver_postgresql.dbapi as adbc
import asyncpg
import duckdb
import duckdb_extension_postgres_scanner
import pgserver
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy
import trustme

from server import Server

HERE = pathlib.Path(__file__).parent
RECORDED = HERE.parent / "data" / "postgres-clients"
UTC = datetime.timezone.utc
SLOW = "SELECT count(*) FROM events a, events b, events c WHERE a.cost + b.cost + c.cost = -7"
checks = 0


def check(found, expected=True, about=""):
    global checks
    checks += 1
    assert found == expected, f"{about}\nfound    {found!r}\nexpected {expected!r}"


def refused(code, work, about=""):
    """Checks that work fails with a code of PostgreSQL; returns the error."""
    try:
        work()
    except psycopg.Error as error:
        check(error.sqlstate, code, f"{about} {error}")
        return error
    raise AssertionError(f"{about} is not refused")


class Fixture:
    """Tables on disk."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.events = os.path.join(folder, "ads", "events")
        columns = ["id:Uint64:not-null", "at:Timestamp:not-null", "user:Utf8:not-null", "kind:Utf8", "cost:Decimal(12,2)"]
        arguments = [argument for column in columns for argument in ("--column", column)]
        self.run("create", self.events, *arguments, "--primary-key", "at,user,id", "--partition-key", "user", "--partitions", "8")
        users = os.path.join(folder, "ads", "users")
        self.run("create", users, "--column", "user:Utf8:not-null", "--column", "country:Utf8", "--primary-key", "user", "--partitions", "8")
        for batch in range(3):
            self.ingest(batch)
        names = pa.table({"user": [f"u{n}" for n in range(10)], "country": ["de", None] * 5})
        self.run("ingest", users, self.parquet("users", names))

    def run(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def parquet(self, name, table):
        path = os.path.join(self.folder, f"{name}.parquet")
        pq.write_table(table, path)
        return path

    def ingest(self, batch, rows=1000):
        ids = range(batch * rows, (batch + 1) * rows)
        start = datetime.datetime(2026, 1, 1)
        table = pa.table(
            {
                "id": pa.array([2**64 - 1 if id == 0 else id for id in ids], pa.uint64()),
                "at": pa.array([start + datetime.timedelta(seconds=id) for id in ids], pa.timestamp("us")),
                "user": [f"u{id % 10}" for id in ids],
                "kind": [None if id % 7 == 0 else "click" if id % 3 == 0 else "view" for id in ids],
                "cost": pa.array([decimal.Decimal(id) / 100 for id in ids], pa.decimal128(12, 2)),
            }
        )
        self.run("ingest", self.events, self.parquet(f"events-{batch}", table))


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


def psql(fixture, server):
    binary = pathlib.Path(pgserver.__file__).parent / "pginstall" / "bin" / "psql"

    def run(*commands):
        arguments = [part for command in commands for part in ("-c", command)]
        done = subprocess.run([binary, "-X", "-w", server.url(), *arguments], capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    listed = run("\\d")
    check("public | events" in listed and "public | users" in listed, about=listed)
    described = run("\\d events")
    for part in ["user   | text", "id     | numeric(20,0)", "not null", '"events_pkey" PRIMARY KEY, btree (at, "user", id)']:
        check(part in described, about=described)
    check("evenkeel" in run("\\l"))
    check("PARTITION BY HASH (user), 8 partitions" in run("\\dt+"))
    for command in ["\\d+ events", "\\di+", "\\dn+", "\\du", "\\dp", "\\df", "\\dT", "\\dx", "\\l+", "\\dv", "\\d sys.partition_stats", "\\conninfo"]:
        check("ERROR" in run(command), False, f"{command}: {run(command)}")
    several = run("SELECT count(*) FROM events; SELECT 1/0; SELECT 'never'")
    check("3000" in several and "division by zero" in several.lower() or "Divide by zero" in several, about=several)
    check("never" in several, False)
    place = run("SELECT id,\n  nothing FROM events")
    check(re.search(r"LINE 2: +nothing FROM events\n +\^", place) is not None, about=place)


def drivers(fixture, server):
    connection = psycopg.connect(server.url(), autocommit=True)
    one = lambda sql, *values, **more: connection.execute(sql, values or None, **more).fetchone()
    check(one("SELECT count(*) FROM events"), (3000,))
    check(one("SELECT id FROM events ORDER BY id DESC LIMIT 1"), (decimal.Decimal(2**64 - 1),))
    check(one("SELECT count(*) FROM events WHERE id = %s", 2**64 - 1), (1,))
    check(one("SELECT count(*) FROM events WHERE id = %s", -1), (0,))
    check(one("SELECT count(*) FROM events WHERE user = %s AND at < %s", "u3", datetime.datetime(2026, 1, 1, 0, 10)), (60,))
    check(one("SELECT count(*) FROM events WHERE id = ANY(%s)", [1, 2, 2999]), (3,))
    check(one("SELECT count(*) FROM events WHERE id <> ALL(%s)", [1, 2]), (2998,))
    check(one("SELECT count(*) FROM events WHERE user = ANY(%s)", []), (0,))
    numbers = [decimal.Decimal(2**64 - 1), decimal.Decimal(7), decimal.Decimal("0.5")]
    for format in ("%s", "%b", "%t"):
        check(one(f"SELECT count(*) FROM events WHERE id = ANY({format})", numbers), (2,), format)
        check(one(f"SELECT count(*) FROM events WHERE cost = ANY({format})", numbers), (2,), format)
    check(one("SELECT '\\x00ff'::bytea"), (b"\0\xff",))
    check(one("WITH events AS (SELECT * FROM events WHERE user = 'u1') SELECT count(*), lower('X') FROM events"), (300, "x"))
    check(one("SELECT sum(cost) FROM events WHERE cost <= %s", decimal.Decimal("0.02")), (decimal.Decimal("0.03"),))
    check(one("SELECT %s::bigint + 1, %s, %s::date", 41, None, datetime.date(2024, 2, 29)), (42, None, datetime.date(2024, 2, 29)))
    check(one("SELECT kind FROM events WHERE kind IS NULL OR kind = %s LIMIT 1", None), (None,))
    check(one("SELECT count(*) AS n, max(at) FROM events", binary=True), (3000, datetime.datetime(2026, 1, 1, 0, 49, 59)))
    names = [column.name for column in connection.execute("SELECT count(*), 1, user, cost + 1 FROM events GROUP BY 3, 4").description]
    check(names, ["count", "?column?", "user", "?column?"])
    prepared = connection.cursor()
    for id in range(10):
        prepared.execute("SELECT user FROM events WHERE id = %s", (id + 1,), prepare=True)
        check(prepared.fetchone(), (f"u{(id + 1) % 10}",))
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int", (n,)) for n in range(20)]
    check([cursor.fetchone()[0] for cursor in cursors], list(range(20)))
    with psycopg.connect(server.url()) as other, other.cursor("held") as cursor:
        cursor.execute("SELECT id FROM events WHERE user = %s ORDER BY at", ("u5",))
        check([row[0] for row in cursor.fetchmany(2)], [5, 15])
        check(len(cursor.fetchall()), 298)
    for sql, code in [
        ("SELEC", "42601"),
        ("SELECT nothing FROM events", "42703"),
        ("SELECT * FROM nowhere", "42P01"),
        ("SELECT nothing(1)", "42883"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT 9223372036854775807 + 1", "22003"),
        ("SELECT 'x'::int", "22P02"),
        ("SELECT user, count(*) FROM events", "42803"),
        ("DELETE FROM events", "25006"),
        ("COPY events TO '/tmp/x'", "42501"),
        ("COPY events FROM STDIN", "25006"),
        ("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'", "25006"),
        ("SET datafusion.execution.batch_size = 1", "42704"),
        ("FETCH 1 FROM nothing", "34000"),
        ("SELECT abs(1)" + "\n+1" * 5000, "54001"),
        ("SELECT 1" + "\n+1" * 300_000, "54001"),
        ("SELECT 1" + "\nUNION ALL\nSELECT abs(1)" * 2000, "54001"),
        ("SELECT $3000000000", "54000"),
        ("COPY events TO STDOUT (DELIMITER 'n')", "22023"),
    ]:
        error = refused(code, lambda: connection.execute(sql), sql)
    position = refused("42703", lambda: connection.execute("SELECT id, nothing FROM events")).diag.statement_position
    check(position, "12")

    engine = sqlalchemy.create_engine(server.url().replace("postgresql:", "postgresql+psycopg:"))
    inspector = sqlalchemy.inspect(engine)
    check(inspector.get_table_names(), ["events", "users"])
    check(inspector.get_pk_constraint("events")["constrained_columns"], ["at", "user", "id"])
    check([str(column["type"]) for column in inspector.get_columns("events")], ["NUMERIC(20, 0)", "TIMESTAMP", "TEXT", "TEXT", "NUMERIC(12, 2)"])
    check([column["nullable"] for column in inspector.get_columns("events")], [False, False, False, True, True])
    check("8 partitions" in inspector.get_table_comment("events")["text"])
    tables = sqlalchemy.MetaData()
    events = sqlalchemy.Table("events", tables, autoload_with=engine)
    users = sqlalchemy.Table("users", tables, autoload_with=engine)
    joined = sqlalchemy.select(users.c.country, sqlalchemy.func.count()).join(events, events.c.user == users.c.user)
    with engine.connect() as session:
        found = session.execute(joined.group_by(users.c.country).order_by(users.c.country)).fetchall()
        check([tuple(row) for row in found], [("de", 1500), (None, 1500)])
        literal = sqlalchemy.select(sqlalchemy.func.count()).where(events.c.user.startswith("u1", autoescape=True))
        check(session.execute(literal).scalar(), 300)

    with adbc.connect(server.url()) as session, session.cursor() as cursor:
        cursor.execute("SELECT id, at, user, cost FROM events ORDER BY at LIMIT 2")
        rows = cursor.fetch_arrow_table().to_pylist()
        check((rows[0]["id"], rows[1]["user"], rows[1]["at"]), (str(2**64 - 1), "u1", datetime.datetime(2026, 1, 1, 0, 0, 1)))
        cursor.execute("SELECT count(*) FROM events WHERE user = $1", ("u3",))
        check(cursor.fetchone(), (300,))
        objects = session.adbc_get_objects(depth="columns", table_name_filter="events").read_all().to_pylist()
        check(any(schema["db_schema_tables"] for schema in objects[0]["catalog_db_schemas"]))

    async def asynchronous():
        session = await asyncpg.connect(server.url())
        found = await session.fetch("SELECT id, at FROM events WHERE user = $1 ORDER BY at LIMIT 1", "u7")
        check(tuple(found[0]), (decimal.Decimal(7), datetime.datetime(2026, 1, 1, 0, 0, 7)))
        found = await session.fetchrow("SELECT $1::int + 1, $2::text, $3::timestamp, $4::bool", 4, "007", datetime.datetime(2026, 1, 1), True)
        check(tuple(found), (5, "007", datetime.datetime(2026, 1, 1), True))
        found = await session.fetchrow("SELECT count(*), array_agg(id) FROM events WHERE id = ANY($1::bigint[])", [1, 2])
        check((found[0], sorted(found[1])), (2, [1, 2]))
        check(await session.fetchval("SELECT count(*) FROM events WHERE id = ANY($1)", [decimal.Decimal(1), decimal.Decimal(7)]), 2)
        async with session.transaction():
            check(len([row async for row in session.cursor("SELECT id FROM events", prefetch=100)]), 3000)
        await session.close()

    asyncio.run(asynchronous())

    extension = glob.glob(os.path.join(os.path.dirname(duckdb_extension_postgres_scanner.__file__), "**", "*.duckdb_extension"), recursive=True)
    attached = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    attached.execute(f"LOAD '{extension[0]}'")
    attached.execute(f"ATTACH 'host=127.0.0.1 port={server.port} user=tester dbname=evenkeel' AS served (TYPE postgres, READ_ONLY)")
    check(attached.execute("SELECT count(*), max(id) FROM served.events").fetchone(), (3000, decimal.Decimal(2**64 - 1)))
    found = attached.execute("SELECT u.country, sum(e.cost) FROM served.events e JOIN served.users u USING (user) WHERE e.kind = 'click' GROUP BY 1 ORDER BY 1").fetchall()
    check(found, [tuple(row) for row in connection.execute("SELECT u.country, sum(e.cost) FROM events e JOIN users u ON e.user = u.user WHERE e.kind = 'click' GROUP BY 1 ORDER BY 1").fetchall()])
    jdbc(server)


def jdbc(server):
    """JDBC, if Java and the driver of the system are there."""
    jar = "/usr/share/java/postgresql.jar"
    if not (shutil.which("java") and os.path.exists(jar)):
        print("JDBC is not tried: there is no Java, or no /usr/share/java/postgresql.jar")
        return
    source = HERE / "ServeJdbc.java"
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/evenkeel?user=tester"
    done = subprocess.run(["java", "-cp", jar, source, url], capture_output=True, text=True, timeout=300)
    check(done.returncode, 0, done.stdout + done.stderr)
    check("all checks passed" in done.stdout, about=done.stdout)


def recorded(server):
    """Statements that tools send when they connect."""
    for file in sorted(RECORDED.glob("*.sql")):
        connection = psycopg.connect(server.url(), autocommit=True)
        for sql in re.split(r";\n+", file.read_text()):
            if sql.strip():
                try:
                    psycopg.ClientCursor(connection).execute(sql)
                except psycopg.Error as error:
                    raise AssertionError(f"{file.name}: {error}\n{sql}") from error
                check(True)
    connection = psycopg.connect(server.url(), autocommit=True)
    # As Grafana and Metabase look for tables and their columns.
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
    check(connection.execute(tables).fetchall(), [("events",), ("users",)])
    columns = "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 'events' ORDER BY ordinal_position"
    check(connection.execute(columns).fetchall()[:2], [("id", "numeric", "NO"), ("at", "timestamp without time zone", "NO")])
    version = "SELECT current_setting('server_version_num')::int / 100 AS version"
    check(connection.execute(version).fetchone(), (1600,))
    check(connection.execute("SELECT current_user, session_user").fetchone(), ("tester", "tester"))
    for code, sql in [("0A000", "SELECT set_config('evenkeel.version', '1', false)"), ("22023", "SET evenkeel.version = 'events=1, events=2'"),
                      ("22023", "SET ROLE bob"), ("22003", "SELECT id FROM events WHERE id = 99999999999999999999")]:
        refused(code, lambda: connection.execute(sql), sql)
    # A value that no memory holds ends its query, again and again, and nothing else.
    for sql in ["SELECT range(0, 1000000000000)", "SELECT repeat('x', 2000000000)"] * 2:
        refused("53200", lambda: connection.execute(sql).fetchall(), sql)
        check(connection.execute("SELECT 1").fetchone(), (1,))


def versions(fixture, server):
    connection = psycopg.connect(server.url(), autocommit=True)
    count = lambda: connection.execute("SELECT count(*) FROM events").fetchone()[0]
    repeatable = psycopg.connect(server.url())
    repeatable.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    check(repeatable.execute("SELECT count(*) FROM events").fetchone()[0], 3000)
    fixture.ingest(3)
    check(count(), 4000, "a new version is seen at once")
    check(repeatable.execute("SELECT count(*) FROM events").fetchone()[0], 3000)
    repeatable.commit()
    check(repeatable.execute("SELECT count(*) FROM events").fetchone()[0], 4000)
    connection.execute("SET evenkeel.version = 'events=1'")
    check(count(), 1000)
    check(psycopg.connect(server.url()).execute("SELECT count(*) FROM events").fetchone()[0], 4000, "others see the newest")
    refused("22023", lambda: connection.execute("SET evenkeel.version = 'events=99'"))
    refused("22023", lambda: connection.execute("SET evenkeel.version = 1"))
    refused("42P01", lambda: connection.execute("SET evenkeel.version = 'nothing=1'"))
    check(count(), 1000)
    connection.execute("RESET evenkeel.version")
    check(count(), 4000)


def transactions(server):
    connection = psycopg.connect(server.url(), autocommit=True)
    connection.execute("BEGIN")
    refused("42P01", lambda: connection.execute("SELECT * FROM nothing"))
    refused("25P02", lambda: connection.execute("SELECT 1"))
    connection.execute("ROLLBACK")
    check(connection.execute("SELECT 1").fetchone(), (1,))
    connection.execute("BEGIN")
    connection.execute("SET LOCAL application_name = 'local'")
    connection.execute("SET statement_timeout = '7s'")
    check(connection.execute("SHOW application_name").fetchone(), ("local",))
    connection.execute("COMMIT")
    check(connection.execute("SHOW application_name").fetchone()[0] != "local")
    check(connection.execute("SHOW statement_timeout").fetchone(), ("7s",))
    connection.execute("BEGIN")
    connection.execute("SET statement_timeout = '9s'")
    connection.execute("ROLLBACK")
    check(connection.execute("SHOW statement_timeout").fetchone(), ("7s",))
    connection.execute("BEGIN")
    refused("25001", lambda: connection.execute("DISCARD ALL"))
    connection.execute("ROLLBACK")
    check(connection.execute("SHOW statement_timeout").fetchone(), ("7s",))
    connection.execute("DISCARD ALL")
    check(connection.execute("SHOW statement_timeout").fetchone()[0] != "7s")
    connection.execute("RESET ALL")
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    check(connection.execute("SHOW default_transaction_isolation").fetchone(), ("repeatable read",))
    connection.execute("DECLARE a CURSOR WITH HOLD FOR SELECT id FROM events ORDER BY at")
    check(len(connection.execute("FETCH 3 FROM a").fetchall()), 3)
    check(connection.execute("FETCH 0 FROM a").fetchall(), [])
    check(connection.execute("FETCH NEXT FROM a").fetchone(), (3,))
    check(connection.cursor(binary=True).execute("FETCH 2 FROM a").fetchall(), [(4,), (5,)])
    refused("42P03", lambda: connection.execute("DECLARE a CURSOR FOR SELECT 1"))
    connection.execute("CLOSE a")
    notices = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    connection.execute("SET timezone = 'Asia/Tokyo'")
    check(len(notices), 1)
    check(connection.execute("SHOW timezone").fetchone(), ("UTC",))
    check(connection.execute(" ; -- nothing").statusmessage, None)


def limits(fixture):
    table = fixture.events
    with Server(fixture.program, table, "--max-connections", "3", "--timeout", "2s", "--client-timeout", "2s") as server:
        held = [psycopg.connect(server.url(), autocommit=True) for _ in range(3)]
        refused_one = []
        try:
            psycopg.connect(server.url())
        except psycopg.OperationalError as error:
            refused_one.append(str(error))
        check(len(refused_one) == 1 and "too many connections" in refused_one[0], about=refused_one)
        check(server.figure("evenkeel_connections_refused_total"), 1.0)
        held.pop().close()
        connection = held[0]
        started = time.monotonic()
        refused("57014", lambda: connection.execute(SLOW), "beyond --timeout")
        connection.execute("SET statement_timeout = '300ms'")
        refused("57014", lambda: connection.execute(SLOW), "beyond statement_timeout")
        check(time.monotonic() - started < 30)
        connection.execute("RESET statement_timeout")
        check(connection.execute("SELECT count(*) FROM events").fetchone(), (4000,))
        # A client that takes no rows is disconnected, and nobody else waits for it.
        stuck = raw(server, query="SELECT a.*, b.* FROM events a, events b")
        check(held[1].execute("SELECT count(*) FROM events").fetchone(), (4000,))
        end = time.monotonic() + 30
        while server.figure("evenkeel_connections") > 2 and time.monotonic() < end:
            time.sleep(0.2)
        check(server.figure("evenkeel_connections"), 2.0)
        stuck.close()
        # So is one that is gone while its query runs.
        gone = raw(server, query=SLOW)
        time.sleep(0.5)
        gone.close()
        end = time.monotonic() + 10
        while server.figure("evenkeel_queries_running") > 0 and time.monotonic() < end:
            time.sleep(0.1)
        check(server.figure("evenkeel_queries_running"), 0.0)


    with Server(fixture.program, table, "--memory", "64MiB") as server:
        connection = psycopg.connect(server.url(), autocommit=True)
        large = "SELECT array_agg(a.user || b.user) FROM events a, events b"
        error = refused("53200", lambda: connection.execute(large), "beyond --memory")
        check("--memory" in str(error), about=error)
        check(connection.execute("SELECT count(*) FROM events").fetchone(), (4000,))


def raw(server, query=None):
    """Opens a connection without a driver, and sends a query whose rows nobody reads."""
    stream = socket.create_connection(("127.0.0.1", server.port))
    parameters = b"user\0raw\0database\0evenkeel\0\0"
    stream.sendall(struct.pack(">ii", 8 + len(parameters), 196608) + parameters)
    while b"Z\0\0\0\5I" not in stream.recv(65536):
        pass
    if query:
        stream.sendall(b"Q" + struct.pack(">i", len(query) + 5) + query.encode() + b"\0")
    return stream


def garbage(server):
    """Bytes that are not of the protocol end their connection, and nothing else."""
    for sent in [b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, struct.pack(">ii", 2**31 - 1, 196608), struct.pack(">ii", 8, 196608)]:
        stream = socket.create_connection(("127.0.0.1", server.port))
        stream.settimeout(10)
        stream.sendall(sent)
        stream.shutdown(socket.SHUT_WR)
        while stream.recv(65536):
            pass
        stream.close()
    stream = raw(server)
    stream.settimeout(10)
    stream.sendall(b"Q" + struct.pack(">i", 2**30))
    answer = b""
    while part := stream.recv(65536):
        answer += part
    check(b"08P01" in answer, about=answer)
    # Messages whose counts and texts are wrong.
    for kind, body, code in [(b"B", b"\0\0\0\5", b"08P01"), (b"P", b"\0select 1\0\x7f\xff", b"08P01"), (b"Q", b"select '\xff\xfe'\0", b"22021")]:
        stream = raw(server)
        stream.settimeout(20)
        stream.sendall(kind + struct.pack(">i", len(body) + 4) + body)
        answer = b""
        while part := stream.recv(65536):
            answer += part
        check(code in answer, about=(kind, answer))
    check(psycopg.connect(server.url()).execute("SELECT 1").fetchone(), (1,))


def cancellation(server):
    connection = psycopg.connect(server.url(), autocommit=True)
    timer = threading.Timer(0.5, lambda: connection.cancel_safe(timeout=10))
    timer.start()
    started = time.monotonic()
    refused("57014", lambda: connection.execute(SLOW), "a cancelled query")
    check(time.monotonic() - started < 20)
    timer.join()
    check(connection.execute("SELECT 1").fetchone(), (1,))

    def cancelled():
        for number, _ in enumerate(connection.cursor().stream("SELECT a.* FROM events a, events b, events c")):
            if number == 100:
                connection.cancel_safe(timeout=10)

    refused("57014", cancelled, "a query whose rows are being sent")
    check(connection.execute("SELECT 1").fetchone(), (1,))


def security(fixture):
    folder = fixture.folder
    authority = trustme.CA()
    certificate, key = (os.path.join(folder, name) for name in ("cert.pem", "key.pem"))

    def issue(**more):
        issued = authority.issue_cert("localhost", "127.0.0.1", **more)
        issued.private_key_pem.write_to_path(key)
        os.chmod(key, stat.S_IRUSR | stat.S_IWUSR)
        with open(certificate, "wb") as file:
            file.writelines(blob.bytes() for blob in issued.cert_chain_pems)

    issue()
    root = os.path.join(folder, "root.pem")
    authority.cert_pem.write_to_path(root)
    users = os.path.join(folder, "passwords")
    with open(users, "w") as file:
        file.write("# users of the tests\nada:se:cr\u00e9t\nbob:x\n")
    starts = lambda *more: subprocess.run(
        [fixture.program, "serve", fixture.events, "--listen", "127.0.0.1:0", "--metrics", "none", *more],
        capture_output=True, text=True, timeout=60,
    )
    os.chmod(users, stat.S_IRUSR | stat.S_IRGRP)
    done = starts("--password-file", users)
    check((done.returncode, "chmod 600" in done.stderr), (1, True), done.stderr)
    os.chmod(users, stat.S_IRUSR)
    done = subprocess.run([fixture.program, "serve", fixture.events, "--listen", "0.0.0.0:0"], capture_output=True, text=True, timeout=60)
    check((done.returncode, "--password-file" in done.stderr), (2, True), done.stderr)
    encrypted = ["--tls-cert", certificate, "--tls-key", key]
    os.chmod(key, 0o644)
    done = starts("--password-file", users, *encrypted)
    check((done.returncode, "chmod 600" in done.stderr), (1, True), done.stderr)
    os.chmod(key, 0o640)
    with Server(fixture.program, fixture.events, "--password-file", users, *encrypted) as server:
        url = f"{server.url('ada')}?sslmode=verify-full&sslrootcert={root}"
        connection = psycopg.connect(url, password="se:crét")
        check(connection.pgconn.ssl_in_use)
        check(connection.execute("SELECT current_user").fetchone(), ("ada",))
        for user, password in [("ada", "x"), ("bob", "se:crét"), ("eve", "x"), ("ada", None)]:
            try:
                psycopg.connect(url.replace("ada@", f"{user}@"), password=password, connect_timeout=20)
                raise AssertionError(f"{user} may connect")
            except psycopg.OperationalError as error:
                wrong = "password authentication failed" in str(error) or "no password supplied" in str(error)
                check(wrong, about=error)
        try:
            psycopg.connect(f"{server.url('ada')}?sslmode=disable", password="se:crét")
            raise AssertionError("an unencrypted connection is taken")
        except psycopg.OperationalError as error:
            check("encrypted" in str(error), about=error)
        check(server.figure("evenkeel_logins_failed_total") >= 3)
        # Plain bytes behind the request for encryption, as if they had come through it.
        stream = socket.create_connection(("127.0.0.1", server.port))
        parameters = b"user\0ada\0\0"
        stream.sendall(struct.pack(">ii", 8, 80877103) + struct.pack(">ii", 8 + len(parameters), 196608) + parameters)
        check(stream.recv(1), b"S")
        context = ssl.create_default_context(cafile=root)
        with context.wrap_socket(stream, server_hostname="127.0.0.1") as wrapped:
            wrapped.settimeout(20)
            answer = b""
            while part := wrapped.recv(65536):
                answer += part
        check(b"unencrypted data" in answer and b"SCRAM" not in answer, about=answer)
        check("se:cr" in server.log(), False)
    before = open(key).read()
    issue()
    with open(key, "w") as file:
        file.write(before)
    check(starts(*encrypted).returncode, 1, "a key of another certificate")
    issue(not_after=datetime.datetime(2020, 1, 1, tzinfo=UTC))
    done = starts(*encrypted)
    check((done.returncode, "valid from" in done.stderr), (1, True), done.stderr)
    with open(certificate, "w") as file:
        file.write("no certificate")
    check(starts(*encrypted).returncode, 1)


def end(fixture):
    """A server that is asked to stop lets its queries end."""
    with Server(fixture.program, fixture.events, "--grace", "20s") as server:
        idle = psycopg.connect(server.url(), autocommit=True)
        busy = psycopg.connect(server.url(), autocommit=True)
        found = []
        query = "SELECT count(*) FROM events a, events b WHERE a.user < b.user"
        thread = threading.Thread(target=lambda: found.append(busy.execute(query).fetchone()))
        thread.start()
        end = time.monotonic() + 20
        while not server.figure("evenkeel_queries_running") and not found and time.monotonic() < end:
            time.sleep(0.01)
        check(server.stop(), 0)
        thread.join(20)
        check(found, [(7_200_000,)])
        try:
            idle.execute("SELECT 1")
            raise AssertionError("an idle connection is still open")
        except psycopg.OperationalError as error:
            check(error.sqlstate in (None, "57P01"), about=error)
    with Server(fixture.program, fixture.events, "--grace", "1s") as server:
        busy = psycopg.connect(server.url(), autocommit=True)
        ended = []

        def slow():
            try:
                busy.execute(SLOW)
            except psycopg.Error as error:
                ended.append(error.sqlstate)

        thread = threading.Thread(target=slow)
        thread.start()
        time.sleep(0.5)
        check(server.stop(), 0)
        thread.join(20)
        check(ended, ["57P01"])


def metrics(fixture, server):
    page = server.page("/metrics")
    for part in [
        'evenkeel_table_version{table="events"} 4',
        'evenkeel_table_partitions{table="events"} 8',
        'evenkeel_table_rows{table="events"} 4000',
        'evenkeel_queries_total{outcome="failed"}',
        'evenkeel_query_seconds_bucket{le="+Inf"}',
        "evenkeel_pruned_bytes_total",
    ]:
        check(part in page, about=page)
    check(server.page("/healthz"), "ok\n")
    try:
        server.page("/nothing")
        raise AssertionError("/nothing is there")
    except urllib.error.HTTPError as error:
        check(error.code, 404)
    log = os.path.join(fixture.events, "_log")
    os.rename(log, log + "-gone")
    try:
        server.page("/healthz")
        raise AssertionError("a table that is gone is healthy")
    except urllib.error.HTTPError as error:
        check(error.code, 503)
        check("events" in error.read().decode())
    finally:
        os.rename(log + "-gone", log)
    check(server.page("/healthz"), "ok\n")
    # Queries on other tables go on.
    connection = psycopg.connect(server.url(), autocommit=True)
    users = connection.execute("SELECT count(*) FROM users").fetchone()
    os.rename(log, log + "-gone")
    try:
        check(connection.execute("SELECT count(*) FROM users").fetchone(), users)
        for query in ["SELECT count(*) FROM events", "SELECT 1 FROM users JOIN events ON true LIMIT 1"]:
            try:
                connection.execute(query)
                raise AssertionError(f"a table that is gone answers: {query}")
            except psycopg.Error as error:
                check((error.sqlstate, "events" in str(error)), ("58030", True), error)
    finally:
        os.rename(log + "-gone", log)
    check(connection.execute("SELECT count(*) FROM events").fetchone(), (4000,))


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "ads"))
        fixture = Fixture(program, folder)
        postgres = pgserver.get_server(os.path.join(folder, "postgres"))
        try:
            beside_postgres(fixture, postgres.get_uri())
        finally:
            postgres.cleanup()
        with Server(program, os.path.join(folder, "ads")) as server:
            psql(fixture, server)
            drivers(fixture, server)
            recorded(server)
            versions(fixture, server)
            transactions(server)
            cancellation(server)
            garbage(server)
            metrics(fixture, server)
            panics = [line for line in server.log().splitlines() if "panicked" in line]
            check(panics, [])
        limits(fixture)
        security(fixture)
        end(fixture)
    print(f"{checks} checks with clients of PostgreSQL passed")


if __name__ == "__main__":
    main()
