#!/usr/bin/env python3
"""Hostile calls of the program:

    python3 tests/python/abuse.py BINARY [--seed N] [--only TEXT] [--jobs N] [--list]

Each case is one call (or a few) in a folder of its own with an exit code that is allowed, one clear
line on standard error, bounded time and memory, and nothing left behind: no temporary file, no file
beside those that the case may make, and a table that still opens. Standard library only. The last
line is 'N passed, N failed'; the exit code is 1 if a case failed.
"""

import argparse
import concurrent.futures
import gzip
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

DONE, FAILED, USAGE, THRESHOLD, INTERRUPTED = 0, 1, 2, 3, 130
ROWS = 3000
# A debug build on a busy machine; what must be quick is a fraction of it.
SECONDS = 40
MEMORY_MIB = 700
LINE = 1200
HUGE = 10**18


class Case:
    """A call: `argv` with {} for the folder of the case, and {in} for the folder of shared
    inputs."""

    def __init__(self, name, argv, codes=(DONE, FAILED), **more):
        self.name, self.argv, self.codes = name, argv, set(codes)
        self.setup = more.pop("setup", None)        # called with the folder
        self.says = more.pop("says", None)          # one of these is in standard error if the call fails
        self.stdin = more.pop("stdin", None)        # bytes
        self.stdout = more.pop("stdout", None)      # 'closed': the reader has gone; a path
        self.signal = more.pop("signal", None)      # (signal, seconds)
        self.memory = more.pop("memory", MEMORY_MIB)
        self.seconds = more.pop("seconds", SECONDS)
        self.limit_file = more.pop("limit_file", None)   # bytes that a file may have
        self.makes = more.pop("makes", ())          # files that it may leave in its folder
        self.rows = more.pop("rows", None)          # rows of table t afterwards: a number, or (at least, at most)
        self.table = more.pop("table", False)       # gets a copy of the table as t
        self.env = more.pop("env", {})
        assert not more, more


class Failure(Exception):
    pass


class TooSlow(Failure):
    pass


class Bench:
    """Shared inputs, and what a case is run with."""

    def __init__(self, binary, root, seed):
        self.binary, self.root = os.path.abspath(binary), root
        self.inputs = os.path.join(root, "in")
        self.random = random.Random(seed)
        os.makedirs(self.inputs)

    def quietly(self, *argv):
        done = subprocess.run([self.binary, *argv], cwd=self.inputs, capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"cannot prepare: {' '.join(argv)}: {done.stderr.decode(errors='replace')}")

    def prepare(self):
        lines = [f"{i},u{i % 97},{i * 7 % 1000},{i / 3},2026-01-{1 + i % 28:02}T0{i % 10}:00:00Z" for i in range(ROWS)]
        csv = "k,u,v,d,at\n" + "\n".join(lines) + "\n"
        with open(os.path.join(self.inputs, "a.csv"), "w") as file:
            file.write(csv)
        columns = ["k:int64:not-null", "u:utf8", "v:int64", "d:double", "at:timestamp"]
        options = [part for column in columns for part in ("--column", column)]
        self.quietly("create", "t", *options, "--primary-key", "k", "--partitions", "3")
        self.quietly("ingest", "t", "a.csv")
        for ending in ("parquet", "ndjson", "json"):
            self.quietly("query", "t", "SELECT * FROM t ORDER BY k", "--output", f"a.{ending}")
        with gzip.open(os.path.join(self.inputs, "a.csv.gz"), "wb", 6) as file:
            file.write(csv.encode())
        with open(os.path.join(self.inputs, "more.csv"), "w") as file:
            file.write("k,u,v,d,at\n" + "".join(f"{i},x,1,0.5,2026-02-01T00:00:00Z\n" for i in range(ROWS, 2 * ROWS)))
        with open(os.path.join(self.inputs, "big.csv"), "w") as file:
            file.write("k,u,v,d,at\n" + "".join(f"{i},user{i * 7919 % 100003},{i},0.5,2026-02-01T00:00:00Z\n" for i in range(200_000)))

    def run(self, case):
        """Runs a case; raises Failure."""
        folder = tempfile.mkdtemp(dir=self.root)
        temporary = os.path.join(folder, ".tmp")
        os.mkdir(temporary)
        try:
            if case.table:
                shutil.copytree(os.path.join(self.inputs, "t"), os.path.join(folder, "t"))
            if case.setup:
                case.setup(folder)
            before = listing(folder)
            self.call(case, folder, temporary)
            left = os.listdir(temporary)
            if left:
                raise Failure(f"left temporary files: {left}")
            new = {name for name in listing(folder) - before if not name.startswith("t" + os.sep)} - set(case.makes)
            if new:
                raise Failure(f"left files: {sorted(new)[:5]}")
            if case.rows is not None:
                self.check_rows(case, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def call(self, case, folder, temporary):
        argv = [part.replace("{in}", self.inputs).replace("{}", folder) for part in case.argv]
        env = {**os.environ, "TMPDIR": temporary, "RUST_BACKTRACE": "0", **case.env}

        def limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if case.limit_file is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (case.limit_file, case.limit_file))

        stdin = subprocess.PIPE if case.stdin is not None else subprocess.DEVNULL
        if case.stdout == "closed":
            reader, stdout = os.pipe()
            os.close(reader)
        elif case.stdout:
            stdout = os.open(case.stdout, os.O_WRONLY)
        else:
            stdout = subprocess.DEVNULL
        started = time.monotonic()
        child = subprocess.Popen([self.binary, *argv], cwd=folder, env=env, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, preexec_fn=limit)
        heard = []
        listener = threading.Thread(target=listen, args=(child.stderr, heard), daemon=True)
        listener.start()
        if stdout not in (subprocess.DEVNULL,):
            os.close(stdout)
        if case.stdin is not None:
            feeder = threading.Thread(target=feed, args=(child.stdin, case.stdin), daemon=True)
            feeder.start()
        timers = [threading.Timer(case.seconds, child.kill)]
        if case.signal:
            number, delay = case.signal
            timers.append(threading.Timer(delay, lambda: child.send_signal(number)))
        for timer in timers:
            timer.daemon = True
            timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        for timer in timers:
            timer.cancel()
        took = time.monotonic() - started
        if child.stdin:
            try:
                child.stdin.close()
            except OSError:
                pass
        listener.join(5)
        text = b"".join(heard).decode(errors="replace")
        code, shown = child.returncode, text[:300].replace("\n", " | ")
        if took >= case.seconds:
            raise TooSlow(f"took longer than {case.seconds} s: {shown}")
        if code not in case.codes:
            raise Failure(f"exit code {code}, not {sorted(case.codes)}: {shown}")
        peak = usage.ru_maxrss / 1024
        if peak > case.memory:
            raise Failure(f"took {peak:.0f} MiB, more than {case.memory}: {shown}")
        check_errors(case, code, text)

    def check_rows(self, case, folder):
        done = subprocess.run(
            [self.binary, "query", "t", "SELECT count(*) AS n FROM t", "--format", "csv"],
            cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS,
        )
        if done.returncode:
            raise Failure(f"the table does not open: {done.stderr.decode(errors='replace')[:300]}")
        rows = int(done.stdout.split()[1])
        least, most = case.rows if isinstance(case.rows, tuple) else (case.rows, case.rows)
        if not least <= rows <= most:
            raise Failure(f"the table has {rows} rows, not {case.rows}")


def check_errors(case, code, text):
    """One line says what is wrong; usage errors of options have a few more."""
    if "panicked" in text or "overflowed its stack" in text:
        raise Failure(f"panicked: {text[:300]}")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("note:", "warning:"))]
    if code == DONE:
        if any(line.startswith("error") for line in lines):
            raise Failure(f"succeeded with an error: {lines[0][:300]}")
        return
    if code in (INTERRUPTED, THRESHOLD) or code < 0 or not case.argv:
        return
    errors = [line for line in lines if line.startswith("error:")]
    if len(errors) != 1:
        raise Failure(f"{len(errors)} lines of error: {text[:300]!r}")
    of_clap = any(line.startswith(("Usage:", "For more information")) for line in lines)
    if len(lines) > 1 and not of_clap:
        raise Failure(f"{len(lines)} lines: {text[:300]!r}")
    if len(errors[0]) > LINE or len(text) > 3 * LINE:
        raise Failure(f"the message has {len(text)} characters: {text[:200]!r}")
    if case.says and not any(part.lower() in text.lower() for part in case.says):
        raise Failure(f"does not name {' or '.join(case.says)}: {errors[0][:300]}")


def listen(pipe, heard):
    kept = 0
    while part := pipe.read(65_536):
        if kept < 100_000:
            heard.append(part)
            kept += len(part)
    pipe.close()


def feed(pipe, data):
    try:
        pipe.write(data)
        pipe.close()
    except OSError:
        pass


def listing(folder):
    found = set()
    for path, folders, files in os.walk(folder):
        for name in files:
            found.add(os.path.relpath(os.path.join(path, name), folder))
        folders[:] = [name for name in folders if name != ".tmp"]
    return {name for name in found if not name.startswith(".tmp")}


def written(name, data):
    """A setup that writes a file."""
    def setup(folder):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
    return setup


# ---- inputs


def inputs(bench):
    names = {"csv": "a.csv", "ndjson": "a.ndjson", "json": "a.json", "parquet": "a.parquet", "csv.gz": "a.csv.gz"}
    for ending, source in names.items():
        with open(os.path.join(bench.inputs, source), "rb") as file:
            data = file.read()
        damaged = []
        for share in (0, 0.001, 0.3, 0.9, 0.999):
            damaged.append((f"truncated to {share}", data[: int(len(data) * share)]))
        for number in range(7):
            at = bench.random.randrange(len(data)) if number else len(data) - 6
            damaged.append((f"flipped at {at}", data[:at] + bytes([data[at] ^ (1 << bench.random.randrange(8))]) + data[at + 1:]))
        damaged.append(("twice", data + data))
        damaged.append(("with NUL bytes in the middle", data[: len(data) // 2] + bytes(5000) + data[len(data) // 2:]))
        for what, bytes_of in damaged:
            file = f"x.{ending}"
            # Whatever is taken of it is one whole ingest: keys may be other ones.
            yield Case(f"input {ending} {what}: ingest", ["ingest", "t", file], setup=written(file, bytes_of), table=True,
                       rows=(ROWS, 2 * ROWS), says=[file, "no rows"])
        for what, bytes_of in damaged[1:8:2]:
            file = f"x.{ending}"
            yield Case(f"input {ending} {what}: evaluate", ["evaluate", file, "--partition-key", "k", "--partitions", "4"],
                       setup=written(file, bytes_of), says=[file, "column", "rows"])
    oversized = {
        "a line of 40 MB": b"k,u,v,d,at\n1," + b"x" * 40_000_000 + b",1,1,2026-01-01\n",
        "a header of 20 MB": b"k" * 20_000_000 + b",u\n1,2\n",
        "5,000 columns": b",".join(b"c%d" % i for i in range(5_000)) + b"\n" + b",".join([b"1"] * 5_000) + b"\n",
        "a quote that never closes": b'k,u,v,d,at\n1,"' + b"x\n" * 10_000_000,
        "only commas": b"," * 1_000_000,
        "only newlines": b"\n" * 5_000_000,
        "a number of 1 MB": b"k,u,v,d,at\n" + b"9" * 1_000_000 + b",u,1,1,2026-01-01\n",
        "invalid UTF-8": b"k,u,v,d,at\n1,\xff\xfe\xfd,1,1,2026-01-01\n",
        "too many fields": b"k,u,v,d,at\n1,2,3,4,2026-01-01,6\n",
        "the same header twice": b"k,k,u,v\n1,2,3,4\n",
    }
    for what, data in oversized.items():
        yield Case(f"input csv {what}: ingest", ["ingest", "t", "x.csv"], codes=(DONE, FAILED) if what in ("only newlines", "a line of 40 MB") else (FAILED, USAGE),
                   setup=written("x.csv", data), table=True, rows=(ROWS, ROWS + 1), memory=1500, says=["x.csv"])
        yield Case(f"input csv {what}: evaluate", ["evaluate", "x.csv", "--partition-key", "k", "--partitions", "4"],
                   codes=(DONE, FAILED, USAGE), setup=written("x.csv", data), memory=1500, says=["x.csv", "column", "'k'"])
    yield Case("input csv 5,000 columns: evaluate without a key", ["evaluate", "x.csv"], codes=(DONE, FAILED),
               setup=written("x.csv", oversized["5,000 columns"]), memory=1500)
    deep = b'{"k":1,"u":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
    yield Case("input ndjson nested 200,000 deep", ["ingest", "t", "x.ndjson"], codes=(DONE, FAILED), setup=written("x.ndjson", deep), table=True,
               rows=ROWS, says=["x.ndjson"])
    yield Case("input json nested 200,000 deep", ["evaluate", "x.json"], codes=(FAILED, USAGE), setup=written("x.json", b"[" * 200_000), says=["x.json"])
    bomb = gzip.compress(bytes(300_000_000), 9)
    yield Case("input gzip of 300 MB of NUL", ["evaluate", "x.csv.gz"], codes=(FAILED, USAGE), setup=written("x.csv.gz", bomb), memory=1500,
               says=["x.csv.gz"])


# ---- exports of other systems


def exports(bench):
    types = {"k": "INT64", "u": "UTF8", "v": "INT64", "d": "DOUBLE", "at": "TIMESTAMP"}
    scheme = "".join(f'columns {{\n  name: "{name}"\n  type {{ optional_type {{ item {{ type_id: {of} }} }} }}\n}}\n' for name, of in types.items())
    scheme = (scheme + 'primary_key: "k"\npartitioning_settings { partition_by: "k" min_partitions_count: 4 }\nstore_type: STORE_TYPE_COLUMN\n').encode()
    data = "".join(f'{i},"u%20{i % 97}",{i * 7 % 1000},{i / 3},2026-01-{1 + i % 28:02}T00:00:00.000000Z\n' for i in range(ROWS)).encode()

    def dump(**files):
        def setup(folder):
            os.makedirs(os.path.join(folder, "d"))
            for name, content in {"scheme.pb": scheme, "data_00.csv": data, **files}.items():
                if content is not None:
                    written(os.path.join("d", name), content)(folder)
        return setup

    def damaged(content):
        for share in (0, 0.01, 0.5, 0.99):
            yield f"truncated to {share}", content[: int(len(content) * share)]
        for _ in range(6):
            at = bench.random.randrange(len(content))
            yield f"flipped at {at}", content[:at] + bytes([content[at] ^ (1 << bench.random.randrange(8))]) + content[at + 1:]

    says = ["scheme.pb", "data_00.csv", "rows", "column", "'d'"]
    for name, content in {"scheme.pb": scheme, "data_00.csv": data}.items():
        for what, changed in damaged(content):
            yield Case(f"dump {name} {what}: ingest", ["ingest", "t", "d"], (DONE, FAILED, USAGE), setup=dump(**{name: changed}), table=True,
                       rows=(ROWS, 2 * ROWS), says=says)
            yield Case(f"dump {name} {what}: evaluate", ["evaluate", "d"], (DONE, FAILED, USAGE), setup=dump(**{name: changed}), says=says)
    hostile = {
        "nested 100,000 deep": b"a{" * 100_000, "a schema of 17 MB": b"# x\n" * 4_300_000, "a name of 10 MB": b'columns { name: "' + b"x" * 10_000_000 + b'" }',
        "binary": bytes(range(256)) * 100, "100,000 columns": b'columns { name: "c" type { type_id: UTF8 } }\n' * 100_000,
    }
    for what, content in hostile.items():
        yield Case(f"dump scheme.pb {what}", ["evaluate", "d"], (FAILED, USAGE), setup=dump(**{"scheme.pb": content}), memory=700, says=["scheme.pb"])
    yield Case("dump with a line of 70 MB", ["evaluate", "d"], (FAILED, USAGE), setup=dump(**{"data_00.csv": b"1" * 70_000_000}), memory=1500, says=["data_00.csv"])
    yield Case("dump with a gap", ["ingest", "t", "d"], (FAILED, USAGE), setup=dump(**{"data_02.csv": data}), table=True, rows=ROWS, says=["data file 01"])
    yield Case("dump unfinished", ["ingest", "t", "d"], (FAILED, USAGE), setup=dump(incomplete=b""), table=True, rows=ROWS, says=["not finished"])
    corpus = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fuzz", "corpus")
    for folder, seed, name in [("avro", "snappy", "x.avro"), ("avro", "null", "x.avro"), ("orc", "zlib", "x.orc"), ("orc", "uncompressed", "x.orc"),
                               ("pg_dump", "table", "x.sql")]:
        with open(os.path.join(corpus, folder, seed), "rb") as file:
            content = file.read()
        for what, changed in damaged(content):
            yield Case(f"{folder} {seed} {what}", ["evaluate", name], (DONE, FAILED, USAGE), setup=written(name, changed), says=[name])
    head, tail = b"--\n-- PostgreSQL database dump\n--\n", b"--\n-- PostgreSQL database dump complete\n--\n"
    for what, body in {"a statement of 20 MB": b"CREATE TABLE t (a int DEFAULT '" + b"x" * 20_000_000 + b"');\n", "a row of 70 MB": b"CREATE TABLE t (a text);\n"
                       b"COPY t (a) FROM stdin;\n" + b"x" * 70_000_000 + b"\n\\.\n", "an open body": b"CREATE FUNCTION f() AS $$\n", "an open text": b"SELECT 'x\n",
                       "3,000 tables": b"".join(b"CREATE TABLE t%d (a int);\n" % i for i in range(3000)), "binary": bytes(range(256)) * 1000}.items():
        yield Case(f"pg_dump with {what}", ["evaluate", "x.sql"], (FAILED, USAGE), setup=written("x.sql", head + body + tail), memory=1500, says=["x.sql"])
    avro = b"Obj\x01\x02\x16avro.schema"
    for what, content in {"a schema of 2^60 bytes": avro + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x1f{}", "an endless header": avro + b"\x04{}" + b"\x02" * 20_000_000,
                          "a schema of 100,000 levels": avro + b"\x80\x9a\x0c" + b'{"a":' * 20_000}.items():
        yield Case(f"avro with {what}", ["evaluate", "x.avro"], (FAILED, USAGE), setup=written("x.avro", content), memory=700, says=["x.avro"])
    nested = b'{"a":' * 100 + b'{"$oid":"x"}' + b"}" * 100
    for what, text in {"unknown kinds": b'{"a":{"$what":1}}\n', "wrong values": b'{"a":{"$date":{"$numberLong":"x"}}}\n{"a":{"$oid":7}}\n', "nested": nested + b"\n",
                       "a key of 10 MB": b'{"' + b"k" * 10_000_000 + b'":{"$oid":"x"}}\n'}.items():
        yield Case(f"extended json, {what}", ["evaluate", "x.ndjson"], (DONE, FAILED, USAGE), setup=written("x.ndjson", text), memory=1500, says=["x.ndjson"])
    for what, text in {"quotes": b'a,b\n1,"\\\n', "escapes": b"a,b\n" + b'1,"' + b"\\" * 1_000_001 + b'"\n'}.items():
        yield Case(f"csv with {what}", ["evaluate", "x.csv", "--escape", "\\", "--quoted-empty"], (DONE, FAILED, USAGE), setup=written("x.csv", text), says=["x.csv"])
    for what, text in {"nested": "CREATE TABLE t (a " + "Nullable(" * 100_000, "an open quote": "CREATE TABLE t (a int, b 'x", "nothing": "",
                       "10,000 tables": "CREATE TABLE t (a int);\n" * 10_000, "binary": "\x00\x01" * 1000}.items():
        yield Case(f"ddl of another system, {what}: evaluate", ["evaluate", "{in}/a.csv", "--ddl", "x.sql"], (FAILED, USAGE), setup=written("x.sql", text), says=["x.sql"])
    for what, text in {"garbage": "query,calls\n" + "\"((((,'\",5\n" * 100, "negative runs": "query,calls\nSELECT 1,-5\nSELECT 2,NaN\n",
                       "a statement of 2 MB": "query,calls\nSELECT " + "1+" * 1_000_000 + "1,1\n", "no statements": "a,b\n1,2\n"}.items():
        yield Case(f"query log, {what}", ["evaluate", "{in}/a.csv", "--partition-key", "k", "--partitions", "4", "--queries", "log.csv"], (DONE, FAILED, USAGE),
                   setup=written("log.csv", text), memory=700)


# ---- tables


def tables(bench):
    table = os.path.join(bench.inputs, "t")
    files = sorted(os.path.relpath(os.path.join(path, name), table) for path, _, names in os.walk(table) for name in names)

    def damage(file, how):
        def setup(folder):
            path = os.path.join(folder, "t", file)
            with open(path, "rb") as source:
                data = source.read()
            os.chmod(path, 0o644)
            if how == "removed":
                os.remove(path)
            elif how == "a folder":
                os.remove(path)
                os.mkdir(path)
            else:
                middle = len(data) // 2
                content = {
                    "empty": b"",
                    "halved": data[:middle],
                    "flipped": data[:middle] + bytes([data[middle] ^ 0x20]) + data[middle + 1:] if data else b"",
                    "of other bytes": b"\x00\xff" * 5000,
                }[how]
                with open(path, "wb") as target:
                    target.write(content)
        return setup

    for file in files:
        for how in ("empty", "halved", "flipped", "removed", "of other bytes", "a folder"):
            name = f"table {file} {how}"
            yield Case(f"{name}: query", ["query", "t", "SELECT sum(v), max(u), count(d) FROM t"], setup=damage(file, how), table=True)
            if how in ("halved", "flipped", "removed"):
                yield Case(f"{name}: check", ["check", "t"], setup=damage(file, how), table=True)
        yield Case(f"table {file} halved: ingest", ["ingest", "t", "{in}/more.csv"], setup=damage(file, "halved"), table=True)
        yield Case(f"table {file} flipped: compact", ["compact", "t", "--full"], setup=damage(file, "flipped"), table=True)
    for what, setup in {
        "nothing": None,
        "a file": written("t", b"x"),
        "an empty folder": lambda folder: os.mkdir(os.path.join(folder, "t")),
    }.items():
        for command in (["query", "t", "SELECT 1"], ["inspect", "t"], ["ingest", "t", "{in}/a.csv"], ["compact", "t"], ["clean", "t"], ["check", "t"]):
            yield Case(f"table is {what}: {command[0]}", command, codes=(FAILED, USAGE), setup=setup, says=["t"])


# ---- SQL


def sql(bench):
    few = ["--memory", "64MiB", "--timeout", "3s"]

    def query(name, text, codes=(FAILED,), says=None, more=few, **options):
        if len(text) > 50_000:
            return Case(f"sql {name}", ["query", "{in}/t", "-f", "q.sql", *more], codes, setup=written("q.sql", text), says=says, **options)
        return Case(f"sql {name}", ["query", "{in}/t", "-c", text, *more], codes, says=says, **options)

    many = 50_000
    cross = "FROM t a CROSS JOIN t b CROSS JOIN t c"
    limits = ["--memory", "--timeout"]
    for name, text in {
        "additions": "SELECT " + " + ".join(["1"] * many),
        "subtractions of columns": "SELECT " + "-".join(["v"] * many) + " FROM t",
        "alternatives": "SELECT k FROM t WHERE " + " OR ".join(["k = 1"] * many),
        "conjunctions": "SELECT k FROM t WHERE " + " AND ".join(["k = 1"] * many),
        "concatenations": "SELECT " + "||".join(["'a'"] * many),
        "comparisons": "SELECT " + " = ".join(["1"] * many),
        "casts": "SELECT 1" + "::int" * many,
        "negations": "SELECT " + "NOT " * many + "true",
        "minus signs": "SELECT " + "- " * many + "1",
        "tests for NULL": "SELECT 1" + " IS NULL" * many,
        "IS DISTINCT FROM": "SELECT " + " IS DISTINCT FROM ".join(["k"] * many) + " FROM t",
        "likes": "SELECT " + " LIKE ".join(["u"] * many) + " FROM t",
        "subscripts": "SELECT k" + "[1]" * many + " FROM t",
        "unions": " UNION ALL ".join(["SELECT 1"] * many),
        "unions of two columns": " UNION ".join(["SELECT 1, 2"] * many),
        "exceptions": " EXCEPT ".join(["SELECT k FROM t"] * 500),
        "joins": "SELECT 1 FROM t " + "JOIN t USING (k) " * 20_000,
        "tables": "SELECT 1 FROM " + ", ".join(f"t x{i}" for i in range(5_000)),
        "explains": "EXPLAIN " * many + "SELECT 1",
        "CTEs in a chain": "WITH a0 AS (SELECT 1 AS x)" + "".join(f", a{i} AS (SELECT x + 1 AS x FROM a{i - 1})" for i in range(1, 3_000)) + " SELECT * FROM a2999",
    }.items():
        yield query(f"50,000 {name}", text, codes=(FAILED, USAGE, DONE) if name.startswith("CTEs") else (FAILED, USAGE), seconds=20)
    for levels in (30, 1_000, 100_000):
        for name, (left, right) in {
            "casts": ("CAST(", " AS INT)"), "parentheses": ("(", ")"), "functions": ("abs(", ")"), "subqueries": ("(SELECT ", ")"),
            "cases": ("CASE WHEN true THEN ", " END"), "coalesces": ("coalesce(", ", 1)"), "arrays": ("[", "]"), "between": ("(", " BETWEEN 0 AND 5)"),
        }.items():
            yield query(f"{levels} nested {name}", "SELECT " + left * levels + "1" + right * levels, seconds=20)
    doubling = "WITH a0 AS (SELECT 1 AS x)" + "".join(f", a{i} AS (SELECT * FROM a{i - 1} UNION ALL SELECT * FROM a{i - 1})" for i in range(1, 40))
    yield query("CTEs that double", doubling + " SELECT count(*) FROM a39", says=["tables"], seconds=20)
    for name, text in {
        "a cross join": f"SELECT a.k {cross} ORDER BY a.d + b.d + c.d",
        "a cross join without matches": f"SELECT count(*) {cross} WHERE a.v + b.v + c.v < 0",
        "groups of pairs": f"SELECT a.k, b.k, c.k, count(*) {cross} GROUP BY 1, 2, 3",
        "distinct pairs": f"SELECT count(DISTINCT a.k * 3000 + b.k + c.k) {cross}",
        "a window over pairs": f"SELECT sum(a.k) OVER (PARTITION BY a.u ORDER BY c.k) {cross}",
        "an array of all": f"SELECT array_length(array_agg(a.u)) {cross}",
        "a text of all": f"SELECT length(string_agg(a.u, ',')) {cross}",
        "endless recursion": "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "recursion that doubles": "WITH RECURSIVE n AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM n) SELECT length(s) FROM n",
        "recursion that multiplies": "WITH RECURSIVE n AS (SELECT k FROM t UNION ALL SELECT n.k FROM n CROSS JOIN t) SELECT count(*) FROM n",
        "repeat of repeat": "SELECT length(repeat(repeat('x', 1000000), 1000))",
        "repeat of a column": "SELECT sum(length(repeat(u, 1000000))) FROM t",
        "replace by more": "SELECT length(replace(repeat('a', 1000000), 'a', repeat('b', 1000)))",
        "lists of a column": "SELECT sum(array_length(range(0, k * 100000))) FROM t",
        "doubled texts": "SELECT length(s || s) FROM (SELECT s || s AS s FROM (SELECT s || s AS s FROM (SELECT repeat('x', 500000000) AS s) AS a) AS b) AS c",
    }.items():
        # The guard looks at the process now and then; what is allocated in between comes on top.
        yield query(f"limit: {name}", text, says=limits + ["overflow", "the limit for a batch"], memory=1200, seconds=20)
    for name, text in {
        "percentile of 10^12 centroids": "SELECT approx_percentile_cont(k, 0.5, 1000000000000) FROM t",
        "percentile of -1 centroids": "SELECT approx_percentile_cont(k, 0.5, -1) FROM t",
        "percentile 2": "SELECT approx_percentile_cont(k, 2) FROM t",
        "repeat 10^12": "SELECT repeat('x', 1000000000000)",
        "repeat 2^63 - 1": "SELECT repeat(u, 9223372036854775807) FROM t",
        "lpad 10^12": "SELECT lpad('x', 1000000000000)",
        "rpad 2 * 10^9": "SELECT rpad(u, 2000000000) FROM t",
        "range 10^12": "SELECT range(0, 1000000000000)",
        "generate_series 10^12": "SELECT generate_series(0, 1000000000000)",
        "array_repeat 10^12": "SELECT array_repeat(1, 1000000000000)",
        "array_resize 10^12": "SELECT array_resize([1], 1000000000000)",
        "a regex of 10^9": "SELECT count(*) FROM t WHERE regexp_like(u, '(a{1000}){1000}{1000}')",
        "a regex that does not compile": "SELECT regexp_match(u, '(') FROM t",
        "addition overflow": "SELECT 9223372036854775807 + 1",
        "multiplication overflow": "SELECT v * 9223372036854775807 FROM t WHERE v > 1",
        "sum overflow": "SELECT sum(v * 0 + 9223372036854775807) FROM t",
        "unsigned below zero": "SELECT CAST(3 AS BIGINT UNSIGNED) - CAST(5 AS BIGINT UNSIGNED)",
        "an infinite literal": "SELECT 1e999",
        "a literal beyond Uint64": "SELECT 18446744073709551616",
        "a literal of 100,000 digits": "SELECT " + "9" * 100_000,
        "DECIMAL(266, 3)": "SELECT CAST(1 AS DECIMAL(266, 3))",
        "a cast that does not fit": "SELECT CAST(300 AS TINYINT)",
        "a decimal overflow": "SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) * 10",
        "division by zero": "SELECT 1 / 0",
        "an interval beyond": "SELECT INTERVAL '99999999999999 years'",
        "LIMIT -1": "SELECT k FROM t LIMIT -1",
        "LIMIT 2^64": "SELECT k FROM t LIMIT 18446744073709551616",
        "no table": "SELECT * FROM nope",
        "no column": "SELECT nope FROM t",
        "no function": "SELECT nope(1)",
        "two statements": "SELECT 1; SELECT 2",
        "a statement that writes": "COPY t TO '/tmp/x.csv'",
        "an external table": "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
        "a file as a table": "SELECT * FROM '/etc/passwd'",
        "SET": "SET datafusion.execution.target_partitions = 1000000",
        "DROP": "DROP TABLE t",
        "half a statement": "SELECT (((",
        "an open string": "SELECT 'abc",
        "an open comment": "SELECT /* /* /*",
        "binary": "\x01\x02\x7f SELECT",
        "a right-to-left mark": "SELECT \u202e1 FROM \u202et",
        "a word of 100,000 letters": "SELECT " + "a" * 100_000 + " FROM t",
        "a string of 900,000 letters as a number": "SELECT CAST('" + "a" * 900_000 + "' AS INT)",
        "a function of 900,000 letters": "SELECT " + "a" * 900_000 + "(1)",
        "a time beyond the calendar": "SELECT to_timestamp_seconds(9223372036854775807)",
        "a table of 100,000 letters": "SELECT 1 FROM " + "a" * 100_000,
        "text of 2 MB": "SELECT '" + "x" * 2_000_000 + "'",
        "300,000 words": "SELECT " + "a " * 300_000,
    }.items():
        yield query(name, text, codes=(FAILED, USAGE), memory=400, seconds=25)
    for name, text in {
        "LIMIT 2^63 - 1 OFFSET 2^63 - 1": "SELECT k FROM t LIMIT 9223372036854775807 OFFSET 9223372036854775807",
        "ORDER BY LIMIT 10^12": "SELECT k FROM t ORDER BY d LIMIT 1000000000000",
        "ntile 2^63 - 1": "SELECT ntile(9223372036854775807) OVER (ORDER BY k) FROM t",
        "lag 2^63 - 1": "SELECT lag(k, 9223372036854775807) OVER (ORDER BY k) FROM t",
        "a frame of 2^63 - 1": "SELECT sum(v) OVER (ORDER BY k ROWS BETWEEN 9223372036854775807 PRECEDING AND 9223372036854775807 FOLLOWING) FROM t",
        "LIKE with 2,000 wildcards": "SELECT count(*) FROM t WHERE repeat(u, 100) LIKE '" + "%a_" * 2_000 + "'",
        "a list of 10,000 values": "SELECT count(*) FROM t WHERE k IN (" + ",".join(map(str, range(10_000))) + ")",
        "150 alternatives": "SELECT count(*) FROM t WHERE " + " OR ".join(f"k = {i} AND v > {i}" for i in range(150)),
        "500 columns": "SELECT " + ", ".join(f"k + {i} AS c{i}" for i in range(500)) + " FROM t LIMIT 1",
        "rpad negative": "SELECT rpad(u, -5) FROM t",
        "a name with quotes": 'SELECT 1 AS "a""b\n\tc"',
    }.items():
        yield query(name, text, codes=(DONE,), memory=400, more=["--memory", "128MiB", "--timeout", "35s"])
    yield query("a blank text", " " * 1000, codes=(USAGE,))


# ---- parameters, options


def options(bench):
    for value in ("1e999", "-1e999", "18446744073709551616", "abc", "", "1;DROP TABLE t", "nan", "'", "\u0000".replace("\u0000", "%00"), "9" * 10_000, "x" * 100_000):
        for column in ("k", "d", "u", "at"):
            codes = (DONE, FAILED, USAGE) if column == "u" or value in ("nan",) else (FAILED, USAGE, DONE)
            if value in ("1e999", "-1e999") and column in ("k", "d"):
                codes = (USAGE,)
            yield Case(f"param {column} = {value[:20]!r}", ["query", "{in}/t", f"SELECT count(*) FROM t WHERE {column} = $x", "--param", f"x={value}"], codes)
    for params in (["x"], ["=1"], ["x=1", "--param", "x=2"], ["y=1"]):
        yield Case(f"param {params}", ["query", "{in}/t", "SELECT $x", "--param", *params], (USAGE,), says=["parameter", "param"])
    query = ["query", "{in}/t", "SELECT 1"]
    for wrong in (
        ["--memory", "0"], ["--memory", "-1"], ["--memory", "1KiB"], ["--memory", "nan"], ["--memory", "1e400"], ["--memory", "99999999999TB"],
        ["--timeout", "0s"], ["--timeout", "-5s"], ["--timeout", "forever"], ["--timeout", "99999999999999999999d"], ["--timeout", ""],
        ["--rows", "-1"], ["--rows", "99999999999999999999999"], ["--version", "-1"], ["--version", "x"], ["--format", "xml"],
        ["--param"], ["--nope"], ["-f", "nope.sql"], ["-c", "SELECT 2"],
    ):
        yield Case(f"option query {' '.join(wrong)}", query + wrong, (USAGE, FAILED))
    yield Case("option query --version 10^18", query + ["--version", str(HUGE)], (FAILED, USAGE))
    yield Case("option query --rows 10^18", query + ["--rows", str(HUGE)], (DONE,))
    yield Case("option query --output in no folder", query + ["--output", "no/such/folder/x.csv"], (FAILED,), says=["no/such/folder"])
    yield Case("option query --output is a folder", query + ["--output", "x.csv"], (FAILED,), setup=lambda folder: os.mkdir(os.path.join(folder, "x.csv")), says=["x.csv"])
    yield Case("option query --output without a format", query + ["--output", "x"], (USAGE,), says=["x"])
    create = ["create", "t", "--column", "k:int64:not-null", "--primary-key", "k"]
    for wrong in (
        ["--partitions", "0"], ["--partitions", str(HUGE)], ["--partitions", "-1"], ["--nodes", "0"], ["--nodes", str(HUGE)], ["--column", "k:int64"],
        ["--column", "x"], ["--column", ":int64"], ["--column", "x:nope"], ["--column", "x:decimal(99,3)"], ["--column", "x" * 100_000 + ":int64"],
        ["--partition-key", "nope"], ["--partition-key", ""], ["--ttl", "k"], ["--ttl", "k=99999999999999d"], ["--placement", "nope"], ["--ddl", "nope.sql"],
        ["--like", "nope.csv"], ["--primary-key", "k,k"],
    ):
        yield Case(f"option create {' '.join(wrong)[:40]}", create + wrong, (DONE, USAGE, FAILED) if "xxx" in wrong[1] else (USAGE, FAILED))
    many = [part for i in range(3_000) for part in ("--column", f"c{i}:int64")]
    yield Case("option create 3,000 columns", create + many + ["--partitions", "1"], (DONE, USAGE, FAILED))
    evaluate = ["evaluate", "{in}/a.csv"]
    for wrong in (
        ["--partitions", "0"], ["--partitions", str(HUGE), "--partition-key", "k"], ["--nodes", "0"], ["--sample", "0"], ["--sample", "2"], ["--sample", "nan"],
        ["--window", "0s"], ["--window", "99999999999999999d"], ["--memory", "0"], ["--batch", "0"], ["--ingest-rate", "-1"], ["--weights", "nope"],
        ["--time", "nope"], ["--partition-key", "nope"], ["--partition-key", "date(u"], ["--fail-on", "nope"], ["--fail-on", "x>y>z"], ["--queries", "nope"],
        ["--baseline", "nope.json"], ["--html", "no/such/x.html"], ["--delimiter", "ab"], ["--delimiter", ""], ["--timestamp-format", "%"],
        ["--input-format", "nope"], ["--type", "k:nope"], ["--type", "nope:int64"],
    ):
        yield Case(f"option evaluate {' '.join(wrong)}", evaluate + wrong, (USAGE, FAILED))
    for argv in (
        ["place", "--types", "nope", "--partitions", "4", "1"], ["place", "--types", "int64", "--partitions", "0", "1"],
        ["place", "--types", "int64", "--partitions", "4", "99999999999999999999"], ["place", "--types", "int64,int64", "--partitions", "4", "1"],
        ["place", "--types", "utf8", "--partitions", str(HUGE), "x"], ["lint", "--types", "int64", "--partitions", "0"], ["lint", "--partitions", "4"],
        ["lint", "--types", "int64", "--range", "5..1", "--partitions", "4"], ["lint", "--types", "int64", "--range", "0..", "--partitions", "4"],
        ["generate", "ad-events", "--rows", "-1", "--out", "x"], ["generate", "ad-events", "--rows", "abc", "--out", "x"],
        ["spanner", "simulate", "{in}/a.csv"], ["spanner", "simulate", "{in}/a.csv", "--primary-key", "nope"], ["spanner", "simulate", "nope.csv", "--primary-key", "k"],
        ["capacity", "{in}/a.csv", "--partition-key", "nope"], ["spanner", "migrate", "{in}/a.csv"],
        ["skew", "{in}/t", "--version", "99"], ["inspect", "{in}/t", "--version", "99"], ["clean", "{in}/t", "--keep", "-1s"], ["clean", "{in}/t", "--keep", "x"],
        ["compact", "{in}/t", "--max-depth", "0"], ["compact", "{in}/t", "--target", "0"], ["compact", "{in}/t", "--memory", "1B"],
        ["alter", "{in}/t"], ["alter", "{in}/t", "--add-column", "k:int64"], ["alter", "{in}/t", "--add-column", "x:nope"], ["alter", "{in}/t", "--ttl", "nope=1d"],
        ["repartition", "{in}/t"], ["repartition", "{in}/t", "--to", "{in}/t"], ["repartition", "{in}/t", "--to", "x", "--partitions", "0"],
        ["ddl", "{in}/t", "--target", "nope"], ["ingest", "{in}/t"], ["ingest", "{in}/t", "nope.csv"], ["ingest", "{in}/t", "*.nope"],
        ["ingest", "{in}/t", "{in}/a.csv", "--memory", "1B"], ["bench", "queries", "{in}/t"], ["bench", "queries", "{in}/t", "SELECT nope"],
        ["bench", "queries", "{in}/t", "SELECT 1", "--runs", "0"], ["bench", "queries", "{in}/t", "SELECT 1", "--memory", "1B"],
        ["nope"], [], ["query"], ["--nope"],
    ):
        yield Case(f"option {' '.join(argv)[:70]}", argv, (USAGE, FAILED))
    for name, condition in {
        "nothing": "", "a comment": "-- true", "half": "k <", "a statement": "true; DROP TABLE t", "a bracket": "k < 5) OR (true", "no truth": "k",
        "no column": "nope = 1", "no aggregate": "count(*) > 1", "a parameter": "k = $k", "a blob": "k = 1" + " OR k = 1" * 50_000, "brackets": "(" * 50_000,
        "a cross join": "k IN (SELECT a.k FROM t a CROSS JOIN t b CROSS JOIN t c WHERE a.v + b.v + c.v < 0)", "an overflow": "v + 9223372036854775807 > 0",
    }.items():
        yield Case(f"delete by {name}", ["delete", "t", "--where", condition[:100_000], "--memory", "64MiB", "--timeout", "3s"], (USAGE, FAILED), table=True, rows=ROWS, seconds=20)
    for argv in (["t", "/dev/zero"], ["t", "{in}/big.csv", "--delete-column", "nope=1"], ["t", "{in}/a.csv", "--mode", "insert"], ["t", "{in}"]):
        yield Case(f"deletes of {argv[1:]}", ["ingest", *argv, *([] if "nope=1" in argv else ["--deletes"])], (USAGE, FAILED, DONE), table=True, rows=(0, ROWS))
    for name, script in {
        "bytes": bytes(range(256)) * 50, "no end": b"SELECT '" + b"x" * 5_000_000, "one line": b"SELECT 1" + b"+1" * 2_000_000 + b";", "blanks": b" " * 5_000_000,
        "a backslash": b"\\", "no command": b"\\nope\n", "a folder": b"\\i .\n", "endless": b"\\i /dev/zero\n", "no place": b"\\o /no/such/x.csv\nSELECT 1;\n",
        "itself": b"\\i {script}\n", "no version": b"\\version 99\n", "no table": b"\\d nope\n", "a change": b"DELETE FROM t;\n", "a copy": b"COPY t TO 'x.csv';\n",
        "no memory": b"SELECT count(*) FROM t a, t b, t c, t d WHERE a.v + b.v + c.v + d.v < 0;\n",
    }.items():
        yield Case(f"script of {name}", ["sql", "{in}/t", "--memory", "64MiB", "--timeout", "3s"], (USAGE, FAILED, DONE), stdin=script, seconds=20)
    yield Case("script of a script that runs itself", ["sql", "{in}/t"], (USAGE, FAILED), setup=written("loop.sql", "\\i loop.sql\n"), stdin=b"\\i loop.sql\n", seconds=20)
    yield Case("option bench queries --timeout", ["bench", "queries", "{in}/t", "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
                                                   "--timeout", "1s"], (FAILED,), says=["--timeout"], seconds=20)


# ---- DDL


def ddl(bench):
    table = "CREATE TABLE x (k Int64 NOT NULL, v Utf8, PRIMARY KEY (k)) PARTITION BY HASH(k) WITH (STORE = COLUMN)"
    texts = {
        "empty": "", "blanks": " " * 1_000_000, "a word": "CREATE", "a query": "SELECT 1", "a comment": "-- nothing", "half": table[:40],
        "without a key": "CREATE TABLE x (k Int64 NOT NULL) WITH (STORE = COLUMN)", "an unknown type": table.replace("Utf8", "Nope"),
        "an unknown key": table.replace("KEY (k)", "KEY (nope)"), "a repeated column": table.replace("v Utf8", "k Utf8"),
        "a store of rows": table.replace("COLUMN", "ROW"), "0 partitions": table.replace("= COLUMN", "= COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 0"),
        "10^30 partitions": table.replace("= COLUMN", "= COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 1" + "0" * 30),
        "-1 partitions": table.replace("= COLUMN", "= COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = -1"),
        "a name of 100,000 letters": table.replace("TABLE x", "TABLE " + "x" * 100_000), "a column of 100,000 letters": table.replace("v Utf8", "v" * 100_000 + " Utf8"),
        "100,000 parentheses": "CREATE TABLE x (" + "(" * 100_000, "an open string": table + " '", "an open comment": "/*" * 50_000,
        "NUL bytes": table.replace("v ", "\0 "), "binary": "\x01\x02\x03\x7f" * 1000, "two tables": table + "; " + table, "a type of a type": table.replace("Utf8", "Utf8(((5)))"),
        "Decimal(99,99)": table.replace("Utf8", "Decimal(99,99)"), "50,000 columns": table.replace("v Utf8", ", ".join(f"c{i} Utf8" for i in range(50_000))),
        "a TTL of 10^30 days": table.replace("= COLUMN", "= COLUMN, TTL = Interval('P1" + "0" * 30 + "D') ON k"),
        "other quotes": table.replace("v Utf8", "`v` Utf8, \"w\" Utf8"), "a number as a name": table.replace("TABLE x", "TABLE 1"),
    }
    # YDB would refuse some of these names; here they are names.
    may = {"other quotes", "50,000 columns", "a number as a name", "a name of 100,000 letters", "a column of 100,000 letters", "a TTL of 10^30 days"}
    for name, text in texts.items():
        codes = (DONE, FAILED, USAGE) if name in may else (FAILED, USAGE)
        yield Case(f"ddl {name}: create", ["create", "t", "--ddl", "x.sql", "--partitions", "2"] if "partitions" not in name else ["create", "t", "--ddl", "x.sql"],
                   codes, setup=written("x.sql", text), memory=600, seconds=25)
    spanner = {
        "an unknown type": "CREATE TABLE x (k NOPE NOT NULL) PRIMARY KEY (k)", "no key": "CREATE TABLE x (k INT64 NOT NULL)", "half": "CREATE TABLE x (k INT64",
        "no parent": "CREATE TABLE x (k INT64 NOT NULL) PRIMARY KEY (k), INTERLEAVE IN PARENT nope ON DELETE CASCADE", "100,000 parentheses": "CREATE TABLE x " + "(" * 100_000,
        "binary": "\x01\x02" * 1000, "a key of no column": "CREATE TABLE x (k INT64 NOT NULL) PRIMARY KEY (nope)", "empty": "",
    }
    for name, text in spanner.items():
        yield Case(f"ddl spanner {name}: simulate", ["spanner", "simulate", "{in}/a.csv", "--ddl", "x.sql"], (FAILED, USAGE), setup=written("x.sql", text), seconds=25)


# ---- signals, pipes, disks, endless files


def machine(bench):
    long = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    busy = "SELECT count(*) FROM t a CROSS JOIN t b CROSS JOIN t c WHERE a.v + b.v + c.v < 0"
    for name, number in (("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM)):
        for delay in (0.15, 0.6):
            for what, text in (("recursion", long), ("a cross join", busy)):
                yield Case(f"{name} after {delay} s: query of {what}", ["query", "{in}/t", text], (INTERRUPTED,), signal=(number, delay), seconds=15)
        for delay in (0.05, 0.3, 0.8, 1.5):
            yield Case(f"{name} after {delay} s: ingest", ["ingest", "t", "{in}/big.csv"], (DONE, INTERRUPTED, -number), signal=(number, delay), table=True, rows=(ROWS, 200_000))
        for delay in (0.05, 0.3):
            yield Case(f"{name} after {delay} s: delete", ["delete", "t", "--where", "k >= 0"], (DONE, INTERRUPTED, -number), signal=(number, delay), table=True, rows=(0, ROWS))
            yield Case(f"{name} after {delay} s: compact", ["compact", "t", "--full"], (DONE, INTERRUPTED, -number), signal=(number, delay), table=True, rows=ROWS)
        yield Case(f"{name} after 0.3 s: query --output", ["query", "{in}/t", "SELECT a.k FROM t a CROSS JOIN t b", "--output", "x.csv"], (DONE, INTERRUPTED),
                   signal=(number, 0.3), makes=("x.csv",), seconds=35)
        yield Case(f"{name} after 0.2 s: ingest of standard input", ["ingest", "t", "-", "--input-format", "csv"], (DONE, FAILED, INTERRUPTED, -number),
                   stdin=b"k,u,v,d,at\n" + b"1,2,3,4,2026-01-01\n" * 200_000, signal=(number, 0.2), table=True, rows=(ROWS, ROWS + 1))
    for argv in (["query", "{in}/t", "SELECT * FROM t"], ["query", "{in}/t", "SELECT * FROM t", "--format", "csv"], ["query", "{in}/t", "SELECT * FROM t", "--format", "parquet"],
                 ["inspect", "{in}/t"], ["evaluate", "{in}/a.csv", "--partition-key", "k", "--partitions", "4"], ["ddl", "{in}/t"], ["--help"], ["check", "{in}/t"],
                 ["generate", "ad-events", "--help"]):
        yield Case(f"closed pipe: {' '.join(argv)[:50]}", argv, (DONE, FAILED), stdout="closed")
    if os.path.exists("/dev/full"):
        for argv in (["query", "{in}/t", "SELECT * FROM t"], ["query", "{in}/t", "SELECT * FROM t", "--format", "csv"], ["query", "{in}/t", "SELECT * FROM t", "--format", "ndjson"],
                     ["inspect", "{in}/t"], ["ddl", "{in}/t"], ["evaluate", "{in}/a.csv", "--partition-key", "k", "--partitions", "4", "--format", "json"]):
            yield Case(f"full device: {' '.join(argv)[:60]}", argv, (FAILED,), stdout="/dev/full", says=["space"])
    else:
        print("skipped: output to a full device (there is no /dev/full)")
    # Files stop growing, as on a full disk; a file system of its own would need root.
    for size in (0, 500, 20_000, 200_000):
        yield Case(f"files of at most {size} bytes: ingest", ["ingest", "t", "{in}/big.csv"], (FAILED,), limit_file=size, table=True, rows=ROWS)
        yield Case(f"files of at most {size} bytes: query --output", ["query", "{in}/t", "SELECT a.* FROM t a JOIN t b ON a.v = b.v", "--output", "x.csv"], (FAILED,) if size < 200_000 else (DONE, FAILED),
                   limit_file=size, makes=("x.csv",) if size >= 200_000 else (), says=["x.csv"])
    for size in (0, 200):
        yield Case(f"files of at most {size} bytes: delete", ["delete", "t", "--where", "k >= 0"], (FAILED, DONE), limit_file=size, table=True, rows=(0, ROWS))
        yield Case(f"files of at most {size} bytes: compact", ["compact", "t", "--full"], (FAILED, DONE), limit_file=size, table=True, rows=ROWS)
        yield Case(f"files of at most {size} bytes: create", ["create", "x", "--column", "k:int64:not-null", "--primary-key", "k", "--partitions", "2"], (FAILED,),
                   limit_file=size)
    yield Case("files of at most 4096 bytes: a query that spills", ["query", "{in}/t", "SELECT a.k, b.k FROM t a CROSS JOIN t b ORDER BY b.d, a.d", "--memory", "16MiB", "--timeout", "8s"],
               (FAILED,), limit_file=4096, seconds=25)
    endless = [path for path in ("/dev/zero", "/dev/urandom", "/dev/null", "/proc/self/mem", "/proc/self/environ", "/dev/stdin") if os.path.exists(path)]
    for path in endless + ["."]:
        codes = (FAILED, USAGE)
        yield Case(f"{path}: query -f", ["query", "{in}/t", "-f", path], codes, memory=400, seconds=15)
        yield Case(f"{path}: create --ddl", ["create", "x", "--ddl", path], codes, memory=400, seconds=15)
        yield Case(f"{path}: bench queries -f", ["bench", "queries", "{in}/t", "-f", path], codes, memory=400, seconds=15)
        yield Case(f"{path}: evaluate --queries", ["evaluate", "{in}/a.csv", "--queries", path], (DONE, *codes), memory=400, seconds=15)
        yield Case(f"{path}: evaluate --baseline", ["evaluate", "{in}/a.csv", "--baseline", path], codes, memory=400, seconds=15)
        yield Case(f"{path}: ingest", ["ingest", "t", path, "--input-format", "csv"], (DONE, FAILED, USAGE), table=True, rows=ROWS, memory=1500, seconds=25)
    for command in (["query", "{in}/t", "-f", "pipe"], ["create", "x", "--ddl", "pipe"]):
        yield Case(f"a pipe nobody writes to: {command[0]}", command + (["--timeout", "2s"] if command[0] == "query" else []), (FAILED, USAGE, INTERRUPTED),
                   setup=lambda folder: os.mkfifo(os.path.join(folder, "pipe")), signal=(signal.SIGINT, 7), seconds=12)
    if os.geteuid() == 0:
        print("skipped: files without the permission to read (root reads them)")
    else:
        def locked(folder):
            written("x.csv", b"k,u\n1,2\n")(folder)
            os.chmod(os.path.join(folder, "x.csv"), 0)
        for command in (["ingest", "t", "x.csv"], ["evaluate", "x.csv"], ["query", "t", "-f", "x.csv"]):
            yield Case(f"a file that may not be read: {command[0]}", command, (FAILED, USAGE), setup=locked, table=True, rows=ROWS, says=["x.csv"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only cases whose name has this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    root = tempfile.mkdtemp(prefix="abuse-")
    try:
        bench = Bench(args.binary, root, args.seed)
        bench.prepare()
        cases = [case for kind in (inputs, exports, tables, sql, options, ddl, machine) for case in kind(bench) if args.only in case.name]
        if args.list:
            print("\n".join(case.name for case in cases))
        # The heavy kinds are spread over the run.
        bench.random.shuffle(cases)
        passed, failed, slow, again = 0, [], [], []

        def attempt(case):
            started = time.monotonic()
            try:
                bench.run(case)
                return case, None, time.monotonic() - started
            except TooSlow as error:
                return case, error, time.monotonic() - started
            except (Failure, OSError, subprocess.SubprocessError) as error:
                return case, str(error), time.monotonic() - started

        def report(case, error, took):
            nonlocal passed
            slow.append((took, case.name))
            if error is None:
                passed += 1
            else:
                failed.append((case.name, error))
                print(f"FAILED {case.name}: {error}", flush=True)

        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as workers:
            for case, error, took in workers.map(attempt, cases):
                if isinstance(error, TooSlow):
                    again.append(case)
                else:
                    report(case, error, took)
        # Time is evidence only of a call that had the machine to itself.
        for case in again:
            report(*attempt(case))
        slow.sort(reverse=True)
        print(f"{len(cases)} cases in {time.monotonic() - started:.0f} s; slowest: " + ", ".join(f"{name} {took:.1f} s" for took, name in slow[:5]))
        print(f"{passed} passed, {len(failed)} failed")
        sys.exit(1 if failed else 0)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
