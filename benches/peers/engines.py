"""The work of the comparison, done by DuckDB, ClickHouse (chdb) and Polars.

    engines.py ENGINE WORK DATA OUT CORES

does one piece of work in this process and prints {"seconds": ...} as its last line; preparations
are not timed.
"""

import glob
import json
import os
import shutil
import statistics
import sys
import time

PARTITIONS = 16
ORDER = "event_timestamp, user_id, campaign_id"
KEYS = {
    "date": "event_timestamp::date",
    "hour": "date_trunc('hour', event_timestamp)",
    "campaign_id": "campaign_id",
    "user_id": "user_id",
    "user_id, event_timestamp": "(user_id, event_timestamp)",
}
COUNTS = (16, 32, 64, 128, 256)
QUERY_RUNS = 7


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def timed(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def medians(queries, run):
    """Milliseconds of each query in an engine that is warm: the median of several runs after one
    that is not counted."""
    found = {}
    for name, sql in queries.items():
        run(sql)
        found[name] = statistics.median(timed(lambda sql=sql: run(sql)) for _ in range(QUERY_RUNS)) * 1000
    return found


def queries(interval, now, user):
    """The four queries of the scenario; `interval` writes "one hour before"."""
    hour = f"event_type = 'click' AND event_timestamp > {interval(now)} AND event_timestamp <= {now}"
    return {
        "clicks_of_campaign": f"SELECT count(*) FROM t WHERE campaign_id = 1 AND {hour}",
        "clicks_per_campaign": f"SELECT campaign_id, count(*) AS clicks FROM t WHERE {hour} "
        "GROUP BY campaign_id ORDER BY clicks DESC, campaign_id LIMIT 10",
        "events_of_user": "SELECT event_timestamp, campaign_id, ad_id, event_type, event_id FROM t "
        f"WHERE user_id = '{user}' ORDER BY event_timestamp, campaign_id",
        "events_per_user": "SELECT user_id, count(*) AS events FROM t GROUP BY user_id ORDER BY events DESC, user_id LIMIT 10",
    }


class DuckDb:
    """COPY into one folder per partition, in key order; queries on those files."""

    def __init__(self, cores):
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {cores}")

    def run(self, sql):
        return self.connection.execute(sql).fetchall()

    def ingest(self, data, out, key="user_id, event_timestamp"):
        fresh(out)
        copy = (
            f"COPY (SELECT *, (hash({key}) % {PARTITIONS})::INT AS p FROM '{data}/*.parquet' ORDER BY p, {ORDER}) "
            f"TO '{out}' (FORMAT parquet, PARTITION_BY (p), COMPRESSION zstd, OVERWRITE)"
        )
        return {"seconds": timed(lambda: self.run(copy)), "bytes": stored(out)}

    def ingest_by_user(self, data, out):
        return self.ingest(data, out, "user_id")

    def evaluate(self, data, out):
        def work():
            for key in KEYS.values():
                source = f"FROM '{data}/*.parquet'"
                self.run(f"SELECT count(*), count(DISTINCT {key}) {source}")
                self.run(f"SELECT {key}, count(*) AS n {source} GROUP BY 1 ORDER BY n DESC LIMIT 10")
                for count in COUNTS:
                    self.run(f"SELECT hash({key}) % {count} AS p, count(*) {source} GROUP BY 1")
                self.run(
                    f"SELECT date_trunc('minute', event_timestamp) AS w, hash({key}) % {PARTITIONS} AS p, count(*) {source} GROUP BY 1, 2"
                )

        return {"seconds": timed(work)}

    def query(self, data, out):
        self.run(f"CREATE VIEW t AS SELECT * FROM read_parquet('{out}/*/*.parquet')")
        now = self.run("SELECT max(event_timestamp) FROM t")[0][0]
        user = self.run("SELECT user_id FROM t GROUP BY user_id ORDER BY count(*) DESC, user_id LIMIT 1")[0][0]
        asked = queries(lambda now: f"{now} - INTERVAL 1 HOUR", f"TIMESTAMP '{now}'", user)
        return {"queries": medians(asked, self.run)}


class ClickHouse:
    """INSERT into a MergeTree table of 16 partitions, zstd, in key order."""

    def __init__(self, cores):
        self.cores = cores

    def session(self, out):
        from chdb import session

        opened = session.Session(out)
        opened.query(f"SET max_threads = {self.cores}")
        # Every run answers from the data, not from what a run before it found.
        opened.query("SET use_query_condition_cache = 0")
        return opened

    def create(self, opened, key):
        opened.query("CREATE DATABASE d")
        opened.query(
            "CREATE TABLE d.t (user_id String, event_timestamp DateTime64(6), event_id UInt64, campaign_id UInt64, ad_id UInt64, "
            f"event_type String) ENGINE = MergeTree PARTITION BY cityHash64({key}) % {PARTITIONS} ORDER BY ({ORDER}) "
            "SETTINGS default_compression_codec = 'ZSTD(1)'"
        )

    def insert(self, opened, files):
        opened.query(
            f"INSERT INTO d.t SELECT * FROM file('{files}') SETTINGS max_threads = {self.cores}, max_insert_threads = {self.cores}"
        )

    def bytes(self, opened):
        found = opened.query("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = 't'")
        return int(str(found).strip())

    def ingest(self, data, out, key="user_id, event_timestamp"):
        opened = self.session(fresh(out))
        self.create(opened, key)
        seconds = timed(lambda: self.insert(opened, f"{data}/*.parquet"))
        return {"seconds": seconds, "bytes": self.bytes(opened)}

    def ingest_by_user(self, data, out):
        return self.ingest(data, out, "user_id")

    def merge(self, data, out):
        """One insert for each file, and then all parts of a partition to one."""
        opened = self.session(fresh(out))
        self.create(opened, "user_id, event_timestamp")
        opened.query("SYSTEM STOP MERGES d.t")
        for file in sorted(glob.glob(f"{data}/*.parquet")):
            self.insert(opened, file)
        opened.query("SYSTEM START MERGES d.t")
        return {"seconds": timed(lambda: opened.query("OPTIMIZE TABLE d.t FINAL")), "bytes": self.bytes(opened)}

    def query(self, data, out):
        opened = self.session(out)
        opened.query("USE d")

        def run(sql):
            return str(opened.query(sql, "TSV")).rstrip("\n")

        # As a service that runs has it: nothing is left to merge.
        opened.query("OPTIMIZE TABLE d.t FINAL")
        now = run("SELECT max(event_timestamp) FROM t")
        user = run("SELECT user_id FROM t GROUP BY user_id ORDER BY count(*) DESC, user_id LIMIT 1")
        asked = queries(lambda now: f"{now} - INTERVAL 1 HOUR", f"toDateTime64('{now}', 6)", user)
        return {"queries": medians(asked, run)}


class Polars:
    """One sorted file for each partition, by whichever of two ways is faster."""

    def __init__(self, cores):
        os.environ["POLARS_MAX_THREADS"] = str(cores)

    def ingest(self, data, out):
        import polars

        fresh(out)
        key = polars.struct("user_id", "event_timestamp").hash() % PARTITIONS
        rows = polars.scan_parquet(f"{data}/*.parquet").with_columns(p=key).sort(ORDER.split(", "))
        parts = polars.PartitionBy(out, key="p", include_key=False)

        def work():
            rows.sink_parquet(parts, compression="zstd", compression_level=1, mkdir=True)

        return {"seconds": timed(work), "bytes": stored(out)}


def stored(folder):
    return sum(os.path.getsize(file) for file in glob.glob(f"{folder}/**/*.parquet", recursive=True))


def main():
    engine, work, data, out, cores = sys.argv[1:]
    engines = {"duckdb": DuckDb, "clickhouse": ClickHouse, "polars": Polars}
    result = getattr(engines[engine](int(cores)), work)(data, out)
    # An embedded server may not come down by itself.
    print("\n" + json.dumps(result), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
