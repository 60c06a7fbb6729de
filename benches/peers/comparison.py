"""Runs workloads with evenkeel and its peers, compares their rows, and reports ratios of times."""

import csv
import glob
import io
import json
import math
import os
import re
import shutil
import statistics

from engines import fresh, stored

MIB = 1 << 20
OWN = "evenkeel"
PEERS = ["duckdb", "duckdb-parquet", "clickhouse", "clickhouse-zstd", "polars"]
# Engines that return the newest row of each key from files that are not merged.
MERGE_ON_READ = ["clickhouse", "clickhouse-zstd", "paimon"]
TARGETS = {"ingest": 0.6, "queries": 0.8, "point and range reads": 0.5, "merge on read": 0.5, "evaluate": 0.1}
READS = {
    "range", "rows of a key", "wide rows", "lines of an order", "orders in a range", "a flight", "a day", "views of a user"
}
COUNTS = (16, 32, 64, 128, 256)


class Comparison:
    """All workloads; `bench` runs processes and says lines."""

    def __init__(self, bench):
        self.bench = bench
        self.figures = []
        self.wrong = []

    def run(self, workloads):
        import duckdb

        for workload in workloads:
            folder = fresh(os.path.join(self.bench.work, "shape"))
            data = fresh(os.path.join(folder, "data"))
            duck = duckdb.connect()
            duck.execute(f"SET threads = {len(self.bench.cores)}")
            workload.make(duck, data, os.path.dirname(self.bench.python))
            fill_in_key(duck, workload, data)
            duck.close()
            self.workload(workload, folder, data)
            shutil.rmtree(folder)
        self.summary()

    def workload(self, workload, folder, data):
        say = self.bench.say
        say(f"\n### {workload.name}: {workload.rows:,} rows, {workload.partitions} partitions")
        ingests = self.ingests(workload, folder, data)
        say(f"\n| | evenkeel | {' | '.join(peers_of(workload))} | of the fastest |")
        say("|---|" + "--:|" * (len(peers_of(workload)) + 2))
        self.report(workload, "ingest", ingests, "s")
        self.sizes(workload, "memory of ingest", ingests)
        self.sizes(workload, "bytes written", ingests, "bytes")
        if not workload.updates:
            self.bench.process([self.bench.evenkeel, "compact", self.table(folder), "--full"])
            # Others read every file that they find, those that are merged included.
            self.bench.process([self.bench.evenkeel, "clean", self.table(folder), "--keep", "0s"])
        answers = self.queries(workload, folder, data)
        for name in workload.queries:
            times = {}
            for engine, found in answers.items():
                answer = found["queries"].get(name, {})
                if "error" in answer:
                    say(f"<!-- {engine}: {name}: {answer['error']} -->")
                elif answer:
                    times[engine] = {"seconds": answer["ms"] / 1000}
            self.compare(workload, name, answers)
            self.report(workload, name, times, "ms")
        self.sizes(workload, "memory of queries", answers)
        if workload.evaluates:
            self.evaluate(workload, folder, data)

    def table(self, folder):
        return os.path.join(folder, OWN)

    def job(self, workload, folder, data, engine, work):
        path = os.path.join(folder, f"{engine}-{work}.json")
        job = {
            "work": work,
            "data": data,
            "table": self.table(folder),
            "out": os.path.join(folder, engine),
            "cores": len(self.bench.cores),
            "primary_key": workload.primary_key,
            "partition_key": workload.partition_key,
            "partitions": workload.partitions,
            "nullable": workload.nullable,
            "updates": workload.updates,
            "queries": {
                name: sql for name, sql in workload.queries.items() if name not in workload.without.get(engine, ())
            },
            "runs": self.bench.args.query_runs,
            "counts": COUNTS,
        }
        with open(path, "w") as file:
            json.dump(job, file)
        command = [self.bench.python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables.py"), engine, path]
        return self.bench.process(command)[0]

    # Ingest

    def ingests(self, workload, folder, data):
        engines = peers_of(workload)
        found = {OWN: []}
        for _ in range(self.bench.args.runs):
            found[OWN].append(self.own_ingest(workload, folder, data))
            for engine in engines:
                for old in glob.glob(os.path.join(folder, engine + "*")):
                    shutil.rmtree(old) if os.path.isdir(old) else os.remove(old)
                found.setdefault(engine, []).append(self.job(workload, folder, data, engine, "ingest"))
        medians = {}
        for engine, runs in found.items():
            seconds = statistics.median(run["seconds"] for run in runs)
            medians[engine] = {**runs[-1], "seconds": seconds, "memory": max(run["memory"] for run in runs)}
        return medians

    def own_ingest(self, workload, folder, data):
        table = self.table(folder)
        shutil.rmtree(table, ignore_errors=True)
        first = sorted(glob.glob(f"{data}/*.parquet"))[0]
        keys = ["--primary-key", ",".join(workload.primary_key), "--partition-key", ",".join(workload.partition_key)]
        create = ["create", table, "--like", first, *keys, "--partitions", str(workload.partitions)]
        self.bench.process([self.bench.evenkeel, *create])
        result = {"seconds": 0.0, "memory": 0}
        for source in [f"{data}/*.parquet", *([f"{data}/updates/*.parquet"] if workload.updates else [])]:
            files = sorted(glob.glob(source))
            run = self.bench.measured([self.bench.evenkeel, "ingest", table, *files, "--compact", "off", "--format", "json"])
            result["seconds"] += run["seconds"]
            result["memory"] = max(result["memory"], run["memory"])
        return {**result, "bytes": stored(table)}

    # Queries

    def queries(self, workload, folder, data):
        found = {OWN: self.own_queries(workload, folder)}
        for engine in peers_of(workload):
            found[engine] = self.job(workload, folder, data, engine, "query")
        return found

    def own_queries(self, workload, folder):
        table, files = self.table(folder), fresh(os.path.join(folder, "sql"))
        command = [self.bench.evenkeel, "bench", "queries", table, "--runs", str(self.bench.args.query_runs), "--format", "json"]
        answers = {}
        for at, (name, sql) in enumerate(workload.queries.items()):
            path = os.path.join(files, f"{at}.sql")
            with open(path, "w") as file:
                file.write(sql)
            command += ["-f", path]
            text = self.bench.process([self.bench.evenkeel, "query", table, "-f", path, "--format", "csv"])[1]
            answers[name] = {"rows": list(csv.reader(io.StringIO(text)))[1:]}
        result, text = self.bench.process(command)
        for name, figures in zip(workload.queries, json.loads(text)):
            answers[name]["ms"] = figures["median_millis"]
        return {"queries": answers, "memory": result["memory"]}

    def compare(self, workload, name, answers):
        """Says which engines return other rows than evenkeel."""
        own = answers[OWN]["queries"][name]["rows"]
        for engine, found in answers.items():
            rows = found["queries"].get(name, {}).get("rows")
            if rows is not None and not same_rows(own, rows):
                self.wrong.append(f"{workload.name}, {name}: {engine} returns other rows")
                self.bench.say(f"<!-- {self.wrong[-1]}: {own[:3]} and {rows[:3]} -->")

    # Evaluation

    def evaluate(self, workload, folder, data):
        keys = ["date(ts)", "hour(ts)", "grp", "k", "k,ts"]
        command = [self.bench.evenkeel, "evaluate", data, "--time", "ts", "--partitions", ",".join(map(str, COUNTS)), "--window", "1m"]
        for key in keys:
            command += ["--partition-key", key]
        named = self.bench.measured([*command, "--no-primary-keys", "--format", "json"])
        found = {OWN: named, "duckdb": self.job(workload, folder, data, "duckdb-parquet", "evaluate")}
        self.report(workload, "evaluate", found, "s")
        self.sizes(workload, "memory of evaluate", found)
        plain = self.bench.process([self.bench.evenkeel, "evaluate", data, "--format", "json"])[0]
        ratio = plain["process_seconds"] / named["process_seconds"]
        self.bench.say(
            f"\n`evaluate` without options: {plain['process_seconds']:.2f} s, {ratio:.1f} x that of the named keys, "
            f"{plain['memory'] / MIB:,.0f} MiB"
        )
        self.figures.append({
            "workload": workload.name, "what": "evaluate without options", "ratio": ratio, "memory": plain["memory"],
        })
        if self.bench.args.floor != "none":
            decoding = named["seconds"] / self.bench.floor_of("decode", data=data)["seconds"]
            self.bench.say(f"\n`evaluate` takes {decoding:.1f} x the time of decoding")
            self.figures.append({"workload": workload.name, "what": "evaluate, by decoding", "ratio": decoding})

    # Reporting

    def report(self, workload, what, found, unit):
        times = {engine: run["seconds"] for engine, run in found.items()}
        peers = [seconds for engine, seconds in times.items() if engine != OWN]
        ratio = times[OWN] / min(peers) if peers else None
        factor = 1 if unit == "s" else 1000
        cells = [f"{times[engine] * factor:.{2 if unit == 's' else 1}f}" if engine in times else "" for engine in [OWN, *peers_of(workload)]]
        self.bench.say(f"| {what}, {unit} | {' | '.join(cells)} | {'' if ratio is None else f'{ratio:.2f} x'} |")
        self.figures.append({"workload": workload.name, "what": what, "times": times, "ratio": ratio, "updates": workload.updates})

    def sizes(self, workload, what, found, figure="memory"):
        sizes = {engine: run[figure] for engine, run in found.items()}
        peers = {engine: size for engine, size in sizes.items() if engine != OWN}
        ratio = sizes[OWN] / min(peers.values()) if peers else None
        cells = [f"{sizes[engine] / MIB:,.0f}" if engine in sizes else "" for engine in [OWN, *peers_of(workload)]]
        self.bench.say(f"| {what}, MiB | {' | '.join(cells)} | {'' if ratio is None else f'{ratio:.2f} x'} |")
        self.figures.append({"workload": workload.name, "what": what, figure: sizes, "ratio": ratio})

    def summary(self):
        say = self.bench.say
        groups = {}
        for figure in self.figures:
            if figure["ratio"] is None or "times" not in figure:
                continue
            groups.setdefault(group_of(figure), []).append(figure)
        say("\n### All shapes, as multiples of the fastest peer\n")
        say("| | measurements | geometric mean | target | above 1.3 |")
        say("|---|--:|--:|--:|---|")
        for group, figures in groups.items():
            mean = math.exp(statistics.fmean(math.log(figure["ratio"]) for figure in figures))
            above = [f"{f['workload']}: {f['what']} {f['ratio']:.2f}" for f in figures if f["ratio"] > 1.3]
            say(f"| {group} | {len(figures)} | {mean:.2f} x | {TARGETS[group]:.2f} x | {'; '.join(above)} |")
        say("\n" + ("All engines returned the same rows." if not self.wrong else "\n".join(f"- {line}" for line in self.wrong)))


def peers_of(workload):
    return MERGE_ON_READ if workload.updates else PEERS


def fill_in_key(duck, workload, data):
    if any("{key}" in sql for sql in workload.queries.values()):
        key = duck.execute(f"SELECT min({workload.key}) FROM '{data}/*.parquet'").fetchone()[0]
        key = f"'{key}'" if isinstance(key, str) else str(key)
        workload.queries = {name: sql.replace("{key}", key) for name, sql in workload.queries.items()}


def group_of(figure):
    what = figure["what"]
    if what in ("ingest", "evaluate"):
        return what
    if figure["updates"]:
        return "merge on read"
    return "point and range reads" if what in READS else "queries"


def plain(value):
    """A value as all engines can be compared: a number, a time in seconds or text."""
    text = "" if value is None or value in ("None", "NULL") else str(value)
    if re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?", text):
        return re.sub(r"(\.\d*?)0*$", r"\1", text.replace("T", " ").replace("Z", "").replace("+00:00", "")).rstrip(".")
    try:
        return float(text)
    except ValueError:
        return text


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


def same_rows(ours, theirs):
    if len(ours) != len(theirs):
        return False
    pairs = ((map(plain, a), map(plain, b)) for a, b in zip(ours, theirs))
    return all(len(a) == len(b) and all(map(same, x, y)) for (a, b), (x, y) in zip(zip(ours, theirs), pairs))
