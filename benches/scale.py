"""Clusters of 1, 2 and 4 executors on one machine, beside the same work without a cluster.

    python3 benches/scale.py target/release/evenkeel [ROWS] [RUNS]

The program is built with '--features cloud,cluster'. Prints medians of wall-clock seconds as
Markdown. All executors share the cores of the machine: what is measured is what the cluster costs,
not what more machines give.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

binary = os.path.abspath(sys.argv[1])
rows = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 3


def run(*arguments):
    began = time.monotonic()
    done = subprocess.run([binary, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stderr}")
    return time.monotonic() - began, done.stdout


def start(*arguments):
    process = subprocess.Popen([binary, "cluster", *arguments], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().split()


def cluster(executors, cores):
    scheduler, line = start("scheduler", "--listen", "127.0.0.1:0")
    url = line[-1]
    others = [start("executor", "--scheduler", url, "--cores", str(cores))[0] for _ in range(executors)]
    return url, [scheduler, *others]


def stop(processes):
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()


def cpu_seconds(process):
    """User and system time of a process and its threads so far."""
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tree_bytes(folder):
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(place, name))
            except OSError:
                pass
    return total


def shuffle_cost(work, exports):
    """Bytes that an ingest shuffles, and the CPU time that it takes more than one without a
    cluster."""
    scheduler, line = start("scheduler", "--listen", "127.0.0.1:0")
    folder = f"{work}/shuffled"
    executor = start("executor", "--scheduler", line[-1], "--cores", "2", "--work-dir", folder)[0]
    for name in ["alone", "together"]:
        run("create", f"{work}/{name}", "--ddl", "data/ad_events.sql")
    before = os.times()
    run("ingest", f"{work}/alone", exports, "--compact", "off")
    after = os.times()
    alone = after.children_user + after.children_system - before.children_user - before.children_system
    ingest = subprocess.Popen(
        [binary, "ingest", f"{work}/together", exports, "--compact", "off", "--cluster", line[-1]], stdout=subprocess.DEVNULL
    )
    most = 0
    while ingest.poll() is None:
        most = max(most, tree_bytes(folder))
        time.sleep(0.02)
    together = cpu_seconds(executor) + cpu_seconds(scheduler)
    stop([scheduler, executor])
    return most, alone, together


QUERIES = {
    "count by campaign (map, small shuffle)": "SELECT campaign_id, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC LIMIT 5",
    "events per user (large shuffle)": "SELECT user_id, count(*) AS n FROM t GROUP BY 1 ORDER BY n DESC, 1 LIMIT 5",
    "by the partition key (no shuffle)": "SELECT max(n) FROM (SELECT user_id, event_timestamp, count(*) AS n FROM t GROUP BY 1, 2)",
}
SHAPES = {"none": None, "1 executor x 2 cores": (1, 2), "2 x 1": (2, 1), "4 x 1": (4, 1)}

with tempfile.TemporaryDirectory() as work:
    exports = f"{work}/exports"
    run("generate", "ad-events", "--rows", str(rows), "--rows-per-file", str(rows // 20), "--out", exports)
    table = f"{work}/table"
    run("create", table, "--ddl", "data/ad_events.sql")
    run("ingest", table, exports, "--compact", "off")
    times = {}
    for number in range(runs):
        for shape, size in SHAPES.items():
            url, processes = cluster(*size) if size else (None, [])
            where = ["--cluster", url] if url else []
            into = f"{work}/into-{number}-{shape.split()[0]}-{len(shape)}"
            run("create", into, "--ddl", "data/ad_events.sql")
            seconds, _ = run("ingest", into, exports, "--compact", "off", *where)
            times.setdefault("ingest", {}).setdefault(shape, []).append(seconds)
            subprocess.run(["rm", "-rf", into])
            keys = ["user_id", "campaign_id", "user_id,event_timestamp"]
            seconds, _ = run(
                "evaluate", exports, "--no-primary-keys", *[f"--partition-key={key}" for key in keys], *where, "--format", "json"
            )
            times.setdefault("evaluate 3 partition keys", {}).setdefault(shape, []).append(seconds)
            for name, sql in QUERIES.items():
                seconds, _ = run("query", table, sql, *where)
                times.setdefault(name, {}).setdefault(shape, []).append(seconds)
            stop(processes)
    print(f"\n{rows:,} ad events, medians of {runs} runs, seconds\n")
    print("| | " + " | ".join(SHAPES) + " |")
    print("|---|" + "--:|" * len(SHAPES))
    for work_name, shapes in times.items():
        print(f"| {work_name} | " + " | ".join(f"{statistics.median(shapes[shape]):.2f}" for shape in SHAPES) + " |")
    shuffled, alone, together = shuffle_cost(work, exports)
    print(f"\ningest: {shuffled / 1e6:,.0f} MB shuffled ({shuffled / rows:.0f} bytes a row), {alone:.1f} s of CPU alone, ", end="")
    print(f"{together:.1f} s on a cluster: {(together - alone) * 1e9 / max(shuffled, 1):.1f} ns more for each byte shuffled")
    print(json.dumps(times), file=sys.stderr)
