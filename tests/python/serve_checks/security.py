"""Passwords, certificates and keys."""

import datetime
import os
import socket
import ssl
import stat
import struct
import subprocess

import psycopg
import trustme

from serve_checks.checking import check
from server import Server

UTC = datetime.timezone.utc


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
