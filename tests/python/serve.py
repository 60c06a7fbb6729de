#!/usr/bin/env python3
"""Uses `evenkeel serve` with the clients that people have, beside PostgreSQL itself.

usage: serve.py PROGRAM
"""

import os
import sys
import tempfile

import pgserver

from serve_checks.beside_postgres import beside_postgres
from serve_checks.checking import check, passed
from serve_checks.clients import drivers, psql, recorded
from serve_checks.fixture import Fixture
from serve_checks.limits import garbage, limits
from serve_checks.operation import end, metrics
from serve_checks.security import security
from serve_checks.sessions import activity, cancellation, transactions, versions
from server import Server


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
            activity(server)
            garbage(server)
            metrics(fixture, server)
            panics = [line for line in server.log().splitlines() if "panicked" in line]
            check(panics, [])
        limits(fixture)
        security(fixture)
        end(fixture)
    print(f"{passed()} checks with clients of PostgreSQL passed")


if __name__ == "__main__":
    main()
