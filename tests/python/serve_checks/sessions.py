"""What a session may rely on: versions of tables, transactions, settings, cursors, cancelling."""

import threading
import time

import psycopg

from serve_checks.checking import check, refused
from serve_checks.fixture import SLOW


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


def activity(server):
    url = server.url("ada")
    watcher = psycopg.connect(url, autocommit=True, application_name="watcher")
    worker = psycopg.connect(url, application_name="worker")
    columns = "state, query, query_start >= backend_start, xact_start IS NULL, client_addr, client_port > 0"
    row = lambda connection=watcher: connection.execute(
        f"SELECT {columns} FROM pg_stat_activity WHERE application_name = 'worker' AND usename = 'ada'"
    ).fetchone()
    check(row(), ("idle", "", None, True, "127.0.0.1", True))
    worker.execute("SELECT %s::int", (7,))
    check(row(), ("idle in transaction", "SELECT $1::int", True, False, "127.0.0.1", True))
    refused("42P01", lambda: worker.execute("SELECT * FROM nothing"))
    check(row()[0], "idle in transaction (aborted)")
    worker.rollback()
    check(row(), ("idle", "ROLLBACK", True, True, "127.0.0.1", True))
    timer = threading.Thread(target=lambda: refused("57014", lambda: worker.execute(SLOW)))
    timer.start()
    until = time.monotonic() + 30
    while row()[:2] != ("active", SLOW) and time.monotonic() < until:
        time.sleep(0.02)
    check(row()[:2], ("active", SLOW))
    worker.cancel_safe(timeout=10)
    timer.join()
    worker.rollback()
    own = "SELECT pid = pg_backend_pid(), state, query LIKE 'SELECT pid%' FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    check(watcher.execute(own).fetchall(), [(True, "active", True)])
    # Another user sees who is connected, and no statement.
    other = psycopg.connect(server.url("bob"), autocommit=True)
    check(row(other), (None, "<insufficient privilege>", None, True, None, None))
    worker.close()
    until = time.monotonic() + 30
    while row() and time.monotonic() < until:
        time.sleep(0.02)
    check(row(), None, "a closed connection is gone")
