"""Running a server: its end, its metrics, its health."""

import os
import threading
import time
import urllib.error

import psycopg

from serve_checks.checking import check
from serve_checks.fixture import SLOW
from server import Server


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
