"""Files that real systems write, read by evenkeel: every row and value must be that of the table
they were written from.

    exports.py EVENKEEL

`run_targets.sh` makes the environment. PostgreSQL writes COPY text, COPY CSV and pg_dump,
ClickHouse all its text formats, Avro, ORC and Parquet, pyarrow ORC of each compression, and
fastavro the files of Spanner's export. DuckDB holds the truth and compares: each file is ingested
into a table like it, and the rows of the table are exported and subtracted from the truth, in both
directions.
"""

import base64
import datetime
import decimal
import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import chdb.session
import duckdb
import fastavro
import pgserver
import pyarrow
import pyarrow.orc

EVENKEEL = sys.argv[1]
ROWS = 30_000
# Texts that formats escape, and texts that look like NULL, an end mark or a header.
UGLY = ["plain", "", "a\tb", "line\nbreak", "back\\slash", "\\N", "\\.", "quote\"d", "it's", "a,b", "null", "NULL", " pad ", "é€😀", "\r", "x\\n",
        "'", "\"\"", "{\"$oid\":\"x\"}", "%2C+", "\\"]
COLUMNS = {
    "id": "BIGINT", "big": "UBIGINT", "small": "INTEGER", "real8": "DOUBLE", "price": "DECIMAL(18,4)", "flag": "BOOLEAN",
    "name": "VARCHAR", "maybe": "VARCHAR", "day": "DATE", "at": "TIMESTAMP", "tag": "UUID",
}


def truth(db):
    ugly = ", ".join("'" + text.replace("'", "''") + "'" for text in UGLY)
    db.execute(f"""CREATE TABLE t AS SELECT i AS id, (i * 307445734561::UBIGINT)::UBIGINT AS big,
        (CASE WHEN i % 7 = 0 THEN NULL ELSE (i % 1000) - 500 END)::INTEGER AS small, (i / 8)::DOUBLE AS real8,
        ((i % 100000) / 100)::DECIMAL(18,4) AS price, i % 3 = 0 AS flag, [{ugly}][1 + i % {len(UGLY)}] || (CASE WHEN i % 2 = 0 THEN '' ELSE i::VARCHAR END) AS name,
        CASE WHEN i % 5 = 0 THEN NULL ELSE [{ugly}][1 + (i * 3) % {len(UGLY)}] END AS maybe,
        DATE '2020-01-01' + (i % 3000)::INTEGER AS day, TIMESTAMP '2026-01-01' + i * INTERVAL '1.000001' SECOND AS at,
        md5(i::VARCHAR)::UUID AS tag FROM range({ROWS}) AS r(i)""")


def run(*arguments, ok=True):
    found = subprocess.run([EVENKEEL, *map(str, arguments)], capture_output=True, text=True)
    assert not ok or found.returncode == 0, f"{' '.join(map(str, arguments))}\n{found.stderr}"
    return found


def check(db, folder, name, path, *options, skip=(), primary_key="id", like=True):
    """Ingests a file into a table like it, and compares the rows with the truth."""
    table, out = folder / f"table_{name}", folder / f"{name}.out.parquet"
    reading = [str(option) for option in options]
    if like:
        # `create` reads no statement of another system: the types are those that evaluate prints
        # with it.
        run("create", table, "--like", path, "--primary-key", primary_key, *reading)
    else:
        columns = [f"--column={column}:{TYPES[kind]}{':not-null' if column == 'id' else ''}" for column, kind in COLUMNS.items() if column not in skip]
        run("create", table, "--primary-key", primary_key, *columns)
    run("ingest", table, path, *reading)
    compared = [column for column in COLUMNS if column not in skip]
    chosen = ", ".join(f'"{column}"' for column in compared)
    run("query", table, "-c", f"SELECT {chosen} FROM \"{json.loads(run('inspect', table, '--format', 'json').stdout)['name']}\"", "--output", out)
    read = ", ".join(f'CAST("{column}" AS {COLUMNS[column]}) AS "{column}"' for column in compared)
    difference = f"(SELECT {chosen} FROM t EXCEPT ALL SELECT {read} FROM '{out}')"
    surplus = f"(SELECT {read} FROM '{out}' EXCEPT ALL SELECT {chosen} FROM t)"
    missing = db.execute(f"SELECT * FROM {difference} LIMIT 3").fetchall()
    extra = db.execute(f"SELECT * FROM {surplus} LIMIT 3").fetchall()
    assert not missing and not extra, f"{name}: rows of the truth that are missing: {missing}\nrows that are not in the truth: {extra}"
    evaluated = json.loads(run("evaluate", path, "--format", "json", "--partition-key", "id", *reading).stdout)
    assert evaluated["rows"] == ROWS, f"{name}: {evaluated['rows']} rows"
    print(f"{name}: {ROWS} rows agree")


TYPES = {"BIGINT": "int64", "UBIGINT": "uint64", "INTEGER": "int32", "DOUBLE": "double", "DECIMAL(18,4)": "decimal(18,4)", "BOOLEAN": "bool",
         "VARCHAR": "utf8", "DATE": "date", "TIMESTAMP": "timestamp", "UUID": "utf8"}


def postgres(db, folder):
    server = pgserver.get_server(str(folder / "pg"), cleanup_mode="stop")
    sql = lambda text: server.psql("\\set ON_ERROR_STOP on\n" + text)
    columns = ("id bigint PRIMARY KEY, big numeric(20,0), small integer, real8 double precision, price numeric(18,4), flag boolean, name text, "
               "maybe text, day date, at timestamp, tag uuid")
    db.execute(f"COPY (SELECT * REPLACE (coalesce(maybe, '\x01') AS maybe) FROM t) TO '{folder}/pg.csv' (HEADER false, FORCE_QUOTE (name, maybe))")
    sql(f"CREATE TABLE t ({columns}); \\copy t FROM '{folder}/pg.csv' (FORMAT csv)\nUPDATE t SET maybe = NULL WHERE maybe = E'\\x01';")
    sql("CREATE TABLE parted (LIKE t) PARTITION BY RANGE (id); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10000);"
        "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10000) TO (99999999); INSERT INTO parted SELECT * FROM t;"
        "CREATE TABLE empty (a int, \"odd, name\" text);")
    declared = folder / "pg.sql"
    declared.write_text(f"CREATE TABLE public.t ({columns});")
    for name, options in [("text", ""), ("text_header", "HEADER"), ("csv", "FORMAT csv, HEADER"), ("csv_plain", "FORMAT csv"),
                          ("csv_forced", "FORMAT csv, HEADER, FORCE_QUOTE *")]:
        path = folder / f"pg_{name}.{'csv' if 'csv' in name else 'tsv'}"
        sql(f"\\copy t TO '{path}' ({options})" if options else f"\\copy t TO '{path}'")
        reading = ["--ddl", declared] + (["--quoted-empty"] if "csv" in name else ["--input-format", "tsv"])
        check(db, folder, f"postgresql_{name}", path, *reading, like=False)
    dump = folder / "dump.sql"
    binary = Path(pgserver.__file__).parent / "pginstall" / "bin" / "pg_dump"
    dump.write_bytes(subprocess.run([binary, server.get_uri()], capture_output=True, check=True).stdout)
    several = run("evaluate", dump, ok=False)
    assert "public.t" in several.stderr and "public.parted" in several.stderr and "parted_1" not in several.stderr, several.stderr
    check(db, folder, "pg_dump", dump, "--table", "public.t")
    check(db, folder, "pg_dump_parts", dump, "--table", "parted")
    packed = folder / "dump.sql.gz"
    packed.write_bytes(gzip.compress(dump.read_bytes()))
    check(db, folder, "pg_dump_gz", packed, "--table", "t")
    judged = run("evaluate", dump, "--table", "t", "--format", "json")
    assert "PRIMARY KEY (id)" in judged.stderr, judged.stderr
    assert ["id"] in [key["columns"] for key in json.loads(judged.stdout)["primary_keys"]]
    cut = folder / "cut.sql"
    cut.write_bytes(dump.read_bytes()[: dump.read_bytes().index(b"COPY public.t ") + 200_000])
    assert "is cut off" in run("evaluate", cut, "--table", "t", ok=False).stderr
    inserts = folder / "inserts.sql"
    inserts.write_bytes(subprocess.run([binary, "--inserts", server.get_uri()], capture_output=True, check=True).stdout)
    assert "--inserts" in run("evaluate", inserts, "--table", "t", ok=False).stderr
    for form, sign in [("c", "custom format"), ("d", "directory format")]:
        subprocess.run([binary, "-F", form, "-f", folder / f"dump_{form}", server.get_uri()], check=True)
        assert sign in run("evaluate", folder / f"dump_{form}", ok=False).stderr, form


def clickhouse(db, folder):
    session = chdb.session.Session(str(folder / "chdb"))
    db.execute(f"COPY (SELECT * REPLACE (tag::VARCHAR AS tag) FROM t) TO '{folder}/ch.parquet'")
    session.query("CREATE DATABASE d ENGINE = Atomic")
    columns = ("id Int64, big UInt64, small Nullable(Int32), real8 Float64, price Decimal(18,4), flag Bool, name String, maybe Nullable(String), "
               "day Date, at DateTime64(6, 'UTC'), tag UUID")
    session.query(f"CREATE TABLE d.t ({columns}) ENGINE = MergeTree ORDER BY id")
    session.query(f"INSERT INTO d.t SELECT * FROM file('{folder}/ch.parquet', Parquet)")
    statement = folder / "ch.sql"
    statement.write_text(f"CREATE TABLE d.t ({columns}) ENGINE = MergeTree ORDER BY id")

    def write(name, form, select="*", **settings):
        path = folder / f"ch_{name}"
        text = ", ".join(f"{key} = {value}" for key, value in settings.items())
        session.query(f"INSERT INTO FUNCTION file('{path}', '{form}') SELECT {select} FROM d.t ORDER BY id" + (f" SETTINGS {text}" if text else ""))
        return path

    typed = {"like": False}
    quoted = ["--quoted-empty", "--null-value", "\\N"]
    check(db, folder, "clickhouse_tsv_types", write("types.tsv", "TSVWithNamesAndTypes"), "--input-format", "tsv")
    check(db, folder, "clickhouse_csv_types", write("types.csv", "CSVWithNamesAndTypes"), *quoted)
    for name, form in [("names.tsv", "TSVWithNames"), ("plain.tsv", "TSV"), ("names.csv", "CSVWithNames"), ("plain.csv", "CSV")]:
        spelling = quoted if form.startswith("CSV") else ["--input-format", "tsv"]
        check(db, folder, f"clickhouse_{form}", write(name, form), "--ddl", statement, *spelling, **typed)
    for quoted in (0, 1):
        path = write(f"quoted_{quoted}.ndjson", "JSONEachRow", output_format_json_quote_64bit_integers=quoted)
        evaluated = json.loads(run("evaluate", path, "--format", "json", "--partition-key", "id,big").stdout)
        types = {column["name"]: column["type"] for column in evaluated["columns"]}
        assert (types["id"], types["big"]) == ("Int64", "Int64"), types
        check(db, folder, f"clickhouse_json_{quoted}", path, **typed)
    for codec in ("null", "deflate", "snappy", "zstd"):
        path = write(f"{codec}.avro", "Avro", "* EXCEPT big", output_format_avro_codec=f"'{codec}'", output_format_avro_sync_interval=16384)
        check(db, folder, f"clickhouse_avro_{codec}", path, skip=("big",))
    check(db, folder, "clickhouse_orc", write("t.orc", "ORC", "* EXCEPT (tag, big)"), skip=("tag", "big"))
    check(db, folder, "clickhouse_parquet", write("t.parquet", "Parquet", "* EXCEPT tag"), skip=("tag",))
    check(db, folder, "clickhouse_arrow", write("t.arrow", "ArrowStream", "* EXCEPT tag"), skip=("tag",))
    for form in ("Native", "RowBinaryWithNamesAndTypes", "JSON", "PrettyCompact"):
        assert run("evaluate", write(f"refused.{form}", form, "id, name"), ok=False).returncode == 1, form


def orc(db, folder):
    table = db.execute("SELECT * EXCLUDE (tag, big) FROM t").to_arrow_table()
    for compression in ("uncompressed", "zlib", "snappy", "lz4", "zstd"):
        path = folder / f"{compression}.orc"
        pyarrow.orc.write_table(table, path, compression=compression, stripe_size=1 << 20)
        check(db, folder, f"orc_{compression}", path, skip=("tag", "big"))


def spanner(db, folder):
    """The export of a parent and its children, as Dataflow writes it, in three files each."""
    export = folder / "spanner"
    export.mkdir()
    rows = db.execute("SELECT * FROM t").fetchall()
    names = list(COLUMNS)
    sql = {"BIGINT": ("long", "INT64"), "UBIGINT": ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}, "NUMERIC"),
           "INTEGER": ("long", "INT64"), "DOUBLE": ("double", "FLOAT64"),
           "DECIMAL(18,4)": ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}, "NUMERIC"), "BOOLEAN": ("boolean", "BOOL"),
           "VARCHAR": ("string", "STRING(MAX)"), "DATE": ("string", "DATE"), "TIMESTAMP": ("string", "TIMESTAMP"),
           "UUID": ({"type": "string", "logicalType": "uuid"}, "UUID")}

    def field(name):
        avro, declared = sql[COLUMNS[name]]
        return {"name": name, "type": avro if name == "id" else ["null", avro], "sqlType": declared}

    shard = {"name": "shard", "type": "null", "sqlType": "INT64", "notNull": "true", "stored": "true",
             "generationExpression": "MOD(FARM_FINGERPRINT(CAST(id AS STRING)), 16)"}
    schema = {"type": "record", "name": "Events", "namespace": "spannerexport", "fields": [shard] + [field(name) for name in names],
              "googleStorage": "CloudSpanner", "spannerPrimaryKey": "`shard` ASC,`id` ASC", "spannerParent": "", "spannerPrimaryKey_0": "`shard` ASC",
              "spannerPrimaryKey_1": "`id` ASC", "googleFormatVersion": "1.0.0", "spannerIndex_0": "CREATE INDEX `ByName` ON `Events`(`name` ASC)"}

    def value(name, cell):
        if isinstance(cell, datetime.datetime):
            return cell.isoformat(timespec="microseconds") + "Z"
        if isinstance(cell, datetime.date):
            return cell.isoformat()
        if COLUMNS[name] == "UUID":
            return str(cell)
        if COLUMNS[name] == "UBIGINT":
            return decimal.Decimal(cell)
        return cell

    records = [{"shard": None, **{name: value(name, cell) for name, cell in zip(names, row)}} for row in rows]
    files = []
    for part in range(3):
        name = f"Events.avro-{part:05}-of-00003"
        with open(export / name, "wb") as file:
            fastavro.writer(file, schema, records[part::3], codec="snappy" if part else "deflate", sync_interval=16_000)
        files.append({"name": name, "md5": base64.b64encode(hashlib.md5((export / name).read_bytes()).digest()).decode()})
    (export / "Events-manifest.json").write_text(json.dumps({"files": files}))
    empty = {**schema, "name": "Nothing", "fields": [field("id")], "spannerPrimaryKey": "`id` ASC", "spannerPrimaryKey_0": "`id` ASC"}
    empty.pop("spannerPrimaryKey_1"), empty.pop("spannerIndex_0")
    with open(export / "Nothing.avro-00000-of-00001", "wb") as file:
        fastavro.writer(file, empty, [])
    (export / "Nothing-manifest.json").write_text(json.dumps({"files": [{"name": "Nothing.avro-00000-of-00001"}]}))
    tables = [{"name": name, "manifestFile": f"{name}-manifest.json"} for name in ("Events", "Nothing")]
    (export / "spanner-export.json").write_text(json.dumps({"tables": tables, "changeStreams": [], "sequences": []}))
    listed = run("evaluate", export, ok=False).stderr
    assert "Events" in listed and "Nothing" in listed, listed
    check(db, folder, "spanner_avro", export, "--table", "Events", primary_key="shard,id")
    simulated = json.loads(run("spanner", "simulate", export, "--table", "Events", "--format", "json").stdout)
    assert simulated["rows"] == ROWS, simulated["rows"]
    whole = files[1]["name"]
    content = (export / whole).read_bytes()
    for what, damaged, sign in [
        ("cut", content[:-20], "checksum"), ("flipped", content[:5000] + bytes([content[5000] ^ 1]) + content[5001:], "checksum"),
    ]:
        (export / whole).write_bytes(damaged)
        found = run("evaluate", export, "--table", "Events", ok=False)
        assert found.returncode == 1 and sign in found.stderr, f"{what}: {found.stderr}"
        alone = run("evaluate", export / whole, ok=False)
        assert alone.returncode == 1, f"{what}: {alone.stdout}"
    (export / whole).unlink()
    assert "missing" in run("evaluate", export, "--table", "Events", ok=False).stderr
    print("spanner_avro: damaged and missing files are refused")


SYSTEMS = [postgres, clickhouse, orc, spanner]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        db = duckdb.connect()
        truth(db)
        for system in SYSTEMS:
            system(db, folder)


main()
