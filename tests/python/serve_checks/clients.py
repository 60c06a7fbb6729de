"""Clients that people have: psql, drivers of Python, SQLAlchemy, ADBC, DuckDB, JDBC, and tools."""

import asyncio
import datetime
import decimal
import glob
import os
import pathlib
import re
import shutil
import subprocess

import adbc_driver_postgresql.dbapi as adbc
import asyncpg
import duckdb
import duckdb_extension_postgres_scanner
import pgserver
import psycopg
import sqlalchemy

from serve_checks.checking import check, refused

HERE = pathlib.Path(__file__).parents[1]
RECORDED = HERE.parent / "data" / "postgres-clients"


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
        refused(code, lambda: connection.execute(sql), sql)
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
