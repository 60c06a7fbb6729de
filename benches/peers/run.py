#!/usr/bin/env python3
"""evenkeel beside DuckDB, ClickHouse, Polars and Paimon: the same rows, the same cores, in turn.

    python3 benches/peers/run.py [--rows 20000000] [--runs 5] [--cores 2] [--work DIR] [--only ingest,evaluate,...] [--large ROWS]

Needs cargo and Python with venv; the other engines are installed into DIR, at the versions of
requirements.txt. Every piece of work runs in a process of its own, engines alternating, RUNS times.
Printed are medians, ratios and the peak memory of processes, as Markdown; all figures go to
DIR/results.json.

The part `shapes` runs tables of many shapes (shapes.py), and compares the rows of all engines:

    python3 benches/peers/run.py --only shapes [--shapes "plain;20 keys"] [--shape-rows 4000000]
"""

import argparse
import functools
import glob
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
import venv
from datetime import date

from engines import stored

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DDL = os.path.join(ROOT, "data", "ad_events.sql")
QUERIES = ["clicks_of_campaign", "clicks_per_campaign", "events_of_user", "events_per_user"]
MIB = 1 << 20


class Bench:
    def __init__(self, args):
        self.args = args
        self.work = os.path.abspath(args.work)
        os.makedirs(self.work, exist_ok=True)
        self.data = os.path.join(self.work, f"data-{args.rows}")
        self.cores = sorted(os.sched_getaffinity(0))[: args.cores]
        self.lines = []
        self.results = {}

    def path(self, name):
        return os.path.join(self.work, name)

    # Setting up

    def set_up(self):
        python = self.path("venv/bin/python")
        if not os.path.exists(python):
            venv.create(self.path("venv"), with_pip=True)
        wanted = os.path.join(HERE, "requirements.txt")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", wanted], check=True)
        self.python = python
        release = ["build", "--release", "--locked", "--bin", "evenkeel"]
        self.evenkeel = self.args.evenkeel or self.build(release, "evenkeel")
        events = set(self.args.only.split(",")) - {"shapes"}
        if events and not glob.glob(f"{self.data}/*.parquet"):
            command = [self.evenkeel, "generate", "ad-events", "--rows", str(self.args.rows), "--out", self.data]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def build(self, command, name):
        built = subprocess.run(
            ["cargo", *command, "--message-format", "json-render-diagnostics"], cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
        messages = [json.loads(line) for line in built.stdout.splitlines()]
        found = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == name]
        return found[-1]

    # Running

    def process(self, command, cores=None):
        """Runs a command on the cores; gives its last line of output as JSON where it is that, its
        seconds and its peak memory."""
        cores = cores or self.cores
        with open(self.path("output"), "w+") as output:
            started = time.perf_counter()
            child = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, preexec_fn=lambda: os.sched_setaffinity(0, cores)
            )
            _, status, usage = os.wait4(child.pid, 0)
            seconds = time.perf_counter() - started
            child.returncode = status
            output.seek(0)
            text = output.read()
        if status != 0:
            sys.exit(f"{' '.join(command)} failed:\n{text}")
        result = {"seconds": seconds, "process_seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss * 1024}
        last = text.strip().splitlines()[-1] if text.strip() else ""
        if last.startswith("{"):
            # What an engine measured itself leaves out its start.
            result.update(json.loads(last))
        return result, text

    def measured(self, command, cores=None):
        """A command that prints its result as JSON: its own seconds, as those of the other engines,
        and those of the whole process."""
        result, text = self.process(command, cores)
        return {**result, "seconds": json.loads(text)["seconds"]}

    def peer(self, engine, work, out, cores=None):
        command = [self.python, os.path.join(HERE, "engines.py"), engine, work, self.data, self.path(out)]
        return self.process([*command, str(len(cores or self.cores))], cores)[0]

    @functools.cached_property
    def floor(self):
        return self.args.floor or self.build(["bench", "--locked", "--bench", "floor", "--no-run"], "floor")

    def floor_of(self, work, cores=None, data=None):
        files = sorted(glob.glob(f"{data or self.data}/*.parquet"))
        out = self.path("floor")
        shutil.rmtree(out, ignore_errors=True)
        result = self.process([self.floor, work, str(len(cores or self.cores)), out, *files], cores)[0]
        return {**result, "bytes": stored(out)}

    def create(self, table, key=None):
        shutil.rmtree(table, ignore_errors=True)
        sql = open(DDL).read()
        if key:
            sql = sql.replace("HASH(user_id, event_timestamp)", f"HASH({key})")
        with open(self.path("table.sql"), "w") as file:
            file.write(sql)
        self.process([self.evenkeel, "create", table, "--ddl", self.path("table.sql"), "--partitions", "16"])

    def ingest(self, out, key=None, data=None, cores=None):
        table = self.path(out)
        self.create(table, key)
        command = [self.evenkeel, "ingest", table, data or self.data, "--compact", "off", "--format", "json"]
        return {**self.measured(command, cores), "bytes": stored(table)}

    def evaluate(self, cores=None):
        keys = ["date(event_timestamp)", "hour(event_timestamp)", "campaign_id", "user_id", "user_id,event_timestamp"]
        command = [self.evenkeel, "evaluate", self.data, "--time", "event_timestamp", "--partitions", "16,32,64,128,256",
                   "--window", "1m"]
        for key in keys:
            command += ["--partition-key", key]
        return self.measured([*command, "--no-primary-keys", "--format", "json"], cores)

    def in_turn(self, contenders, runs=None):
        """Runs each contender in turn, so that a machine that slows down slows all of them."""
        found = {name: [] for name in contenders}
        for _ in range(runs or self.args.runs):
            for name, work in contenders.items():
                found[name].append(work())
        return found

    # Reporting

    def say(self, line=""):
        print(line, flush=True)
        self.lines.append(line)

    def table(self, title, found, targets=None, figure="seconds", unit="s", digits=2):
        """One row per contender: its median, the ratio of evenkeel to it run by run, memory and
        bytes."""
        self.results[title] = found
        self.say(f"\n### {title}\n")
        self.say(f"| | median {unit} | least | most | peak memory | bytes written | evenkeel takes | target |")
        self.say("|---|--:|--:|--:|--:|--:|--:|--:|")
        ours = [run[figure] for run in found["evenkeel"]]
        for name, runs in found.items():
            values = [run[figure] for run in runs]
            memory = max((run.get("memory", 0) for run in runs), default=0)
            stored_bytes = runs[-1].get("bytes")
            ratio = statistics.median(a / b for a, b in zip(ours, values))
            target = (targets or {}).get(name)
            self.say(
                f"| {name} | {statistics.median(values):.{digits}f} | {min(values):.{digits}f} | {max(values):.{digits}f} "
                f"| {memory / MIB:,.0f} MiB | {f'{stored_bytes / MIB:,.1f} MiB' if stored_bytes else ''} "
                f"| {'' if name == 'evenkeel' else f'{ratio:.2f} x'} | {f'{target:.2f} x' if target else ''} |"
            )

    # The pieces of work

    def run_ingest(self):
        found = self.in_turn({
            "evenkeel": lambda: self.ingest("evenkeel"),
            "DuckDB": lambda: self.peer("duckdb", "ingest", "duckdb"),
            "ClickHouse": lambda: self.peer("clickhouse", "ingest", "clickhouse"),
            "Polars": lambda: self.peer("polars", "ingest", "polars"),
            "floor": lambda: self.floor_of("encode"),
            "floor, encodings of portions": lambda: self.floor_of("portions"),
        })
        targets = {"DuckDB": 0.30, "ClickHouse": 0.80, "Polars": 0.60, "floor": 1.30}
        self.table("Ingest: zstd, 16 partitions, sorted, committed", found, targets)
        ratio = found["evenkeel"][-1]["bytes"] / found["DuckDB"][-1]["bytes"]
        self.say(f"\nbytes on disk: {ratio:.2f} x DuckDB (target 1.15 x)")

    def run_evaluate(self):
        found = self.in_turn({
            "evenkeel": self.evaluate,
            "DuckDB": lambda: self.peer("duckdb", "evaluate", "duckdb-evaluate"),
            "floor: decoding": lambda: self.floor_of("decode"),
        })
        targets = {"DuckDB": 0.10, "floor: decoding": 3.0}
        self.table("Evaluate: 5 keys, 5 numbers of partitions, distinct, heavy values, per minute", found, targets)

    def run_merge(self):
        files = sorted(glob.glob(f"{self.data}/*.parquet"))
        table = self.path("merge")

        def ours():
            self.create(table)
            for file in files:
                self.process([self.evenkeel, "ingest", table, file, "--compact", "off"])
            before = set(glob.glob(f"{table}/**/*.parquet", recursive=True))
            merged = self.measured([self.evenkeel, "compact", table, "--full", "--format", "json"])
            made = set(glob.glob(f"{table}/**/*.parquet", recursive=True)) - before
            return {**merged, "bytes": sum(os.path.getsize(file) for file in made)}

        found = self.in_turn({
            "evenkeel": ours,
            "ClickHouse": lambda: self.peer("clickhouse", "merge", "clickhouse-merge"),
        }, min(self.args.runs, 3))
        self.table(f"Merge {len(files)} inserts to one sorted portion per partition", found, {"ClickHouse": 0.50})

    def run_query(self):
        for key, work, title in [
            ("user_id, event_timestamp", "ingest", "HASH(user_id, event_timestamp)"),
            ("user_id", "ingest_by_user", "HASH(user_id)"),
        ]:
            self.ingest("query", key)
            self.process([self.evenkeel, "compact", self.path("query"), "--full"])
            self.peer("duckdb", work, "query-duckdb")
            self.peer("clickhouse", work, "query-clickhouse")
            found = self.in_turn({
                "evenkeel": self.ask,
                "DuckDB": lambda: self.peer("duckdb", "query", "query-duckdb"),
                "ClickHouse": lambda: self.peer("clickhouse", "query", "query-clickhouse"),
            })
            self.results[f"queries {title}"] = found
            self.say(f"\n### Queries, warm, in process: {title}\n")
            self.say("| median ms | evenkeel | DuckDB | ClickHouse | of DuckDB | of ClickHouse | target |")
            self.say("|---|--:|--:|--:|--:|--:|--:|")
            for query in QUERIES:
                times = {name: [run["queries"][query] for run in runs] for name, runs in found.items()}
                middle = {name: statistics.median(values) for name, values in times.items()}
                of = {
                    name: statistics.median(a / b for a, b in zip(times["evenkeel"], times[name]))
                    for name in ("DuckDB", "ClickHouse")
                }
                target = "0.80 x the faster"
                if query == "events_per_user":
                    target = "1.00 x DuckDB" + (" and ClickHouse" if key == "user_id" else "")
                self.say(
                    f"| {query} | {middle['evenkeel']:.1f} | {middle['DuckDB']:.1f} | {middle['ClickHouse']:.1f} "
                    f"| {of['DuckDB']:.2f} x | {of['ClickHouse']:.2f} x | {target} |"
                )

    def ask(self):
        table = self.path("query")
        top = "SELECT user_id FROM t GROUP BY user_id ORDER BY count(*) DESC, user_id LIMIT 1"
        user = self.process([self.evenkeel, "query", table, top, "--format", "csv"])[1].split()[-1]
        command = [self.evenkeel, "bench", "queries", table, "--runs", "7", "--format", "json"]
        for query in QUERIES:
            command += ["-f", os.path.join(ROOT, "queries", f"{query}.sql")]
        result, text = self.process([*command, "--param", "campaign=1", "--param", f"user={user}"])
        medians = [query["median_millis"] for query in json.loads(text)]
        return {"queries": dict(zip(QUERIES, medians)), "memory": result["memory"]}

    def run_cores(self):
        one, two = self.cores[:1], self.cores[:2]
        self.say("\n### From one core to two\n")
        self.say("| | 1 core, s | 2 cores, s | faster | target |")
        self.say("|---|--:|--:|--:|--:|")
        for title, work in [
            ("ingest", lambda cores: self.ingest("cores", cores=cores)),
            ("evaluate", self.evaluate),
            ("floor of ingest", lambda cores: self.floor_of("encode", cores)),
        ]:
            found = self.in_turn({"one": lambda: work(one), "two": lambda: work(two)})
            self.results[f"cores {title}"] = found
            seconds = {name: [run["seconds"] for run in runs] for name, runs in found.items()}
            faster = statistics.median(a / b for a, b in zip(seconds["one"], seconds["two"]))
            target = "" if title.startswith("floor") else "1.80 x"
            self.say(
                f"| {title} | {statistics.median(seconds['one']):.2f} | {statistics.median(seconds['two']):.2f} "
                f"| {faster:.2f} x | {target} |"
            )

    def run_large(self):
        large = self.path(f"data-{self.args.large}")
        if not glob.glob(f"{large}/*.parquet"):
            command = [self.evenkeel, "generate", "ad-events", "--rows", str(self.args.large), "--out", large]
            self.process([*command, "--rows-per-file", "1000000"])
        found = self.in_turn({
            "few": lambda: self.ingest("large"),
            "many": lambda: self.ingest("large", data=large),
        }, 3)
        self.results["large"] = found
        rate = {
            name: statistics.median(rows / run["seconds"] for run in found[name])
            for name, rows in [("few", self.args.rows), ("many", self.args.large)]
        }
        memory = {name: max(run["memory"] for run in runs) / MIB for name, runs in found.items()}
        self.say("\n### Ten times the rows\n")
        self.say(
            f"{self.args.rows:,} rows: {rate['few']:,.0f} rows/s, {memory['few']:,.0f} MiB; "
            f"{self.args.large:,} rows: {rate['many']:,.0f} rows/s ({rate['many'] / rate['few']:.2f} x), {memory['many']:,.0f} MiB "
            "(target: within 10 %, at most 1,024 MiB)"
        )

    def run_shapes(self):
        # Packages of the virtual environment, in which this process does not run.
        sys.path[:0] = glob.glob(self.path("venv/lib/python*/site-packages"))
        import comparison
        import shapes

        wanted = self.args.shapes.split(";") if self.args.shapes else None
        chosen = [work for work in shapes.shapes(self.args.shape_rows) if not wanted or work.name in wanted]
        compared = comparison.Comparison(self)
        compared.run(chosen)
        self.results["shapes"] = compared.figures

    def run(self):
        self.set_up()
        versions = " ".join(open(os.path.join(HERE, "requirements.txt")).read().split())
        self.say(f"{date.today()}, {processor()}, {len(self.cores)} cores, {self.args.rows:,} ad events, {self.args.runs} runs; {versions}")
        for part in self.args.only.split(","):
            getattr(self, f"run_{part}")()
            with open(self.path("results.json"), "w") as file:
                json.dump(self.results, file, indent=1)
            with open(self.path("results.md"), "w") as file:
                file.write("\n".join(self.lines) + "\n")


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--large", type=int, default=200_000_000, help="rows of the part 'large'")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--work", default=os.path.join(ROOT, "target", "peers"), help="where data and tables go")
    parser.add_argument("--only", default="ingest,evaluate,merge,query,cores,large,shapes")
    parser.add_argument("--shape-rows", type=int, default=4_000_000, help="rows of most tables of the part 'shapes'")
    parser.add_argument("--shapes", help="names of shapes, separated by semicolons [default: all]")
    parser.add_argument("--query-runs", type=int, default=5, help="runs of each query in one process of the part 'shapes'")
    parser.add_argument("--evenkeel", help="a built program, instead of building it")
    parser.add_argument("--floor", help="a built floor, instead of building it; none in 'shapes': no comparison with decoding")
    Bench(parser.parse_args()).run()


if __name__ == "__main__":
    main()
