"""The shared inputs of the cases, and how one is run and judged."""

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

from abuse_cases.case import DONE, INTERRUPTED, ROWS, SECONDS, THRESHOLD

# Characters of a line of error.
LINE = 1200


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
