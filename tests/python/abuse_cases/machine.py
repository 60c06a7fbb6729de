"""What the machine does to a call: signals, closed pipes, full disks, endless files."""

import os
import signal

from abuse_cases.case import DONE, FAILED, INTERRUPTED, MEMORY_MIB, ROWS, USAGE, Case, written


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
        for delay in (0.1, 0.4):
            for what, argv in (("lint", ["lint", "--types", "int64", "--range", "0..40000000", "--partitions", "16"]), ("evaluate", ["evaluate", "{in}/big.csv"]),
                               ("spanner simulate", ["spanner", "simulate", "{in}/big.csv", "--primary-key", "k"])):
                # Each of the 40 million keys takes 24 bytes.
                memory = 1_200 if what == "lint" else MEMORY_MIB
                yield Case(f"{name} after {delay} s: {what}", argv, (DONE, INTERRUPTED, -number) if delay < 0.2 else (DONE, INTERRUPTED), signal=(number, delay), seconds=40, memory=memory)
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
