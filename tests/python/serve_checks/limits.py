"""Limits of connections, time and memory, and bytes that are not of the protocol."""

import socket
import struct
import time

import psycopg

from serve_checks.checking import check, refused
from serve_checks.fixture import SLOW
from server import Server


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
