"""The work of a shape, done by DuckDB, ClickHouse (chdb), Polars and Apache Paimon (in Rust).

    tables.py ENGINE JOB

does the work that the JSON file JOB describes in this process, and prints the result as JSON in its
last line. Engines are duckdb (its own format), duckdb-parquet (the files of the evenkeel table),
clickhouse (LZ4, its default), clickhouse-zstd, polars (the files of the evenkeel table) and paimon.
"""

import glob
import json
import os
import sys

from engines import stored, timed


class DuckDb:
    """A table in DuckDB's own format, sorted by the primary key."""

    def __init__(self, job):
        import duckdb

        self.job = job
        self.connection = duckdb.connect(job["out"] + ".duckdb")
        self.connection.execute(f"SET threads = {job['cores']}")

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def ingest(self):
        order = ", ".join(self.job["primary_key"])
        self.rows(f"CREATE TABLE t AS SELECT * FROM '{self.job['data']}/*.parquet' ORDER BY {order}")
        self.rows("CHECKPOINT")

    def open(self):
        pass

    def bytes(self):
        return os.path.getsize(self.job["out"] + ".duckdb")


class DuckDbParquet(DuckDb):
    """The Parquet files of the evenkeel table. Its ingest writes such files, one folder per
    partition."""

    def __init__(self, job):
        super().__init__({**job, "out": job["out"] + "-files"})

    def ingest(self):
        key, order = (", ".join(self.job[name]) for name in ("partition_key", "primary_key"))
        self.rows(
            f"COPY (SELECT *, (hash({key}) % {self.job['partitions']})::INT AS p FROM '{self.job['data']}/*.parquet' "
            f"ORDER BY p, {order}) TO '{self.job['out']}' (FORMAT parquet, PARTITION_BY (p), COMPRESSION zstd, OVERWRITE)"
        )

    def open(self):
        files = f"{self.job['table']}/*/*.parquet"
        self.rows(f"CREATE VIEW t AS SELECT * FROM read_parquet('{files}', hive_partitioning = false)")

    def evaluate(self):
        """What `evaluate` measures of five keys of a table of events."""
        source = f"FROM '{self.job['data']}/*.parquet'"
        for key in ["ts::DATE", "date_trunc('hour', ts)", "grp", "k", "(k, ts)"]:
            self.rows(f"SELECT count(*), count(DISTINCT {key}) {source}")
            self.rows(f"SELECT {key}, count(*) AS n {source} GROUP BY 1 ORDER BY n DESC LIMIT 10")
            for count in self.job["counts"]:
                self.rows(f"SELECT hash({key}) % {count} AS p, count(*) {source} GROUP BY 1")
            self.rows(f"SELECT date_trunc('minute', ts) AS w, hash({key}) % 16 AS p, count(*) {source} GROUP BY 1, 2")

    def bytes(self):
        return stored(self.job["out"])


class ClickHouse:
    """A MergeTree table with the same partitions and order."""

    codec = ""

    def __init__(self, job):
        from chdb import session

        self.job = job
        self.session = session.Session(job["out"])
        self.run(f"SET max_threads = {job['cores']}")
        # Every run answers from the data, not from what a run before it found.
        self.run("SET use_query_condition_cache = 0")
        self.run(f"SET schema_inference_make_columns_nullable = {int(job['nullable'])}")

    def run(self, sql):
        return str(self.session.query(sql, "JSONCompactEachRow"))

    def rows(self, sql):
        return [json.loads(line) for line in self.run(literal(sql)).splitlines() if line]

    def ingest(self):
        job = self.job
        engine = "ReplacingMergeTree" if job["updates"] else "MergeTree"
        key = ", ".join(job["partition_key"])
        settings = ["allow_nullable_key = 1", *([f"default_compression_codec = '{self.codec}'"] if self.codec else [])]
        self.run("CREATE DATABASE d")
        self.run(
            f"CREATE TABLE d.t ENGINE = {engine} PARTITION BY cityHash64({key}) % {job['partitions']} "
            f"ORDER BY ({', '.join(job['primary_key'])}) SETTINGS {', '.join(settings)} "
            f"AS SELECT * FROM file('{job['data']}/*.parquet') LIMIT 0"
        )
        if job["updates"]:
            self.run("SYSTEM STOP MERGES d.t")
        limits = f"SETTINGS max_threads = {job['cores']}, max_insert_threads = {job['cores']}, max_partitions_per_insert_block = 0"
        for files in [f"{job['data']}/*.parquet", *([f"{job['data']}/updates/*.parquet"] if job["updates"] else [])]:
            self.run(f"INSERT INTO d.t SELECT * FROM file('{files}') {limits}")

    def open(self):
        self.run("USE d")
        if self.job["updates"]:
            self.run("SET final = 1")
        else:
            # As a service that runs has it: nothing is left to merge.
            self.run("OPTIMIZE TABLE d.t FINAL")

    def bytes(self):
        return int(json.loads(self.run("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = 't'"))[0])


class ClickHouseZstd(ClickHouse):
    codec = "ZSTD(1)"


class Polars:
    """The Parquet files of the evenkeel table. Its ingest writes one sorted file per partition."""

    def __init__(self, job):
        os.environ["POLARS_MAX_THREADS"] = str(job["cores"])
        import polars

        self.polars, self.job = polars, job

    def ingest(self):
        polars, job = self.polars, self.job
        os.makedirs(job["out"], exist_ok=True)
        key = polars.struct(*job["partition_key"]).hash() % job["partitions"]
        rows = polars.scan_parquet(f"{job['data']}/*.parquet").with_columns(p=key).sort(job["primary_key"])
        parts = polars.PartitionBy(job["out"], key="p", include_key=False)
        rows.sink_parquet(parts, compression="zstd", compression_level=1, mkdir=True)

    def open(self):
        rows = self.polars.scan_parquet(f"{self.job['table']}/partition=*/*.parquet", hive_partitioning=False)
        self.context = self.polars.SQLContext(t=rows)

    def rows(self, sql):
        return self.context.execute(sql, eager=True).rows()

    def bytes(self):
        return stored(self.job["out"])


class Paimon:
    """A table of Apache Paimon with a bucket per partition and the same primary key; it merges when
    it reads."""

    TYPES = {"int64": "BIGINT", "string": "STRING", "double": "DOUBLE", "timestamp[us]": "TIMESTAMP(6)"}

    def __init__(self, job):
        from pypaimon_rust.datafusion import SQLContext

        self.job = job
        os.makedirs(job["out"], exist_ok=True)
        self.context = SQLContext()
        self.context.register_catalog("peers", {"warehouse": job["out"]})
        self.context.set_current_catalog("peers")
        self.context.sql("CREATE DATABASE IF NOT EXISTS d")
        self.context.set_current_database("d")

    def ingest(self):
        from pyarrow import parquet

        job = self.job
        files = sorted(glob.glob(f"{job['data']}/*.parquet")) + sorted(glob.glob(f"{job['data']}/updates/*.parquet"))
        key = job["primary_key"]
        columns = [
            f"{field.name} {self.TYPES[str(field.type)]}{' NOT NULL' if field.name in key else ''}"
            for field in parquet.read_schema(files[0])
        ]
        options = f"'bucket' = '{job['partitions']}', 'bucket-key' = '{','.join(job['partition_key'])}', 'file.format' = 'parquet'"
        self.context.sql(f"CREATE TABLE t ({', '.join(columns)}, PRIMARY KEY ({', '.join(key)})) WITH ({options})")
        for number, file in enumerate(files):
            self.context.register_batch(f"rows{number}", parquet.read_table(file).combine_chunks().to_batches()[0])
            self.context.sql(f"INSERT INTO t SELECT * FROM rows{number}")

    def open(self):
        pass

    def rows(self, sql):
        batches = self.context.sql(sql)
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    def bytes(self):
        return stored(self.job["out"])


def literal(sql):
    """Points in time as ClickHouse writes them."""
    pieces = sql.split("TIMESTAMP '")
    return pieces[0] + "".join(
        "toDateTime64('" + piece.split("'", 1)[0] + "', 6, 'UTC')" + piece.split("'", 1)[1] for piece in pieces[1:]
    )


def queries(engine, job):
    engine.open()
    found = {}
    for name, sql in job["queries"].items():
        try:
            rows = engine.rows(sql)
        except Exception as error:
            found[name] = {"error": str(error).splitlines()[0][:200]}
            continue
        times = sorted(timed(lambda sql=sql: engine.rows(sql)) for _ in range(job["runs"]))
        found[name] = {"ms": times[len(times) // 2] * 1000, "rows": [[str(value) for value in row] for row in rows]}
    return {"queries": found}


def main():
    name, job = sys.argv[1:]
    job = json.load(open(job))
    kinds = {
        "duckdb": DuckDb,
        "duckdb-parquet": DuckDbParquet,
        "clickhouse": ClickHouse,
        "clickhouse-zstd": ClickHouseZstd,
        "polars": Polars,
        "paimon": Paimon,
    }
    engine = kinds[name](job)
    if job["work"] == "evaluate":
        result = {"seconds": timed(engine.evaluate)}
    elif job["work"] == "ingest":
        seconds = timed(engine.ingest)
        result = {"seconds": seconds, "bytes": engine.bytes()}
    else:
        result = queries(engine, job)
    # An embedded server may not come down by itself.
    print("\n" + json.dumps(result), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
