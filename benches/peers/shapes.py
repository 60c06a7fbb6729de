"""Tables of many shapes, made by DuckDB, and the statements that are run on each.

A shape differs from the plain one in one respect, so that a ratio that stands out names its cause.
Statements are written in the SQL that evenkeel, DuckDB, ClickHouse and Polars share, and order
their rows completely, so that results can be compared row by row.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass, field

START = "TIMESTAMP '2026-01-01 00:00:00'"
# One row per SPACING microseconds.
SPACING = 50_000
FILES = 8


@dataclass
class Workload:
    """Rows in Parquet files, the keys of their table, and statements on it."""

    name: str
    primary_key: list
    partition_key: list
    # Statements by name; {key} stands for the smallest value of the column `key`.
    queries: dict
    partitions: int = 16
    rows: int = 0
    # Whether columns hold NULL.
    nullable: bool = False
    # Files with later versions of some rows; they are ingested after the others and not merged.
    updates: bool = False
    # Makes the files in a folder: called with DuckDB's connection, the folder and the folder of tools.
    make: object = None
    # Whether keys are evaluated, too: the table has the columns of a shape.
    evaluates: bool = False
    key: str = "k"
    # Statements that engines cannot run, by engine: {"polars": {"name"}}.
    without: dict = field(default_factory=dict)


def number(salt, below):
    """A number that looks random and is the same in every run."""
    return f"(hash(i * 1000003 + {salt}) % {below})::BIGINT"


def zipf(salt, distinct):
    """Like `number`, with frequencies of 1/rank: the inverse of the logarithm distributes ranks
    so."""
    return f"floor(pow({distinct}, (hash(i * 1000003 + {salt}) % 1000000007) / 1000000007.0))::BIGINT"


def text(value, width):
    """Text of a number: a hexadecimal hash, as long as `width`."""
    pieces = " || ".join(f"md5(({value})::VARCHAR || '{part}')" for part in range((width + 31) // 32))
    return f"left({pieces}, {width})"


@dataclass
class Shape:
    rows_of: float = 1.0
    distinct: int = 100_000
    zipf: bool = False
    # Type of the key: int, uuid, or a number for text of that width.
    key: object = 8
    note: int = 40
    columns: int = 6
    # Order of arrival: sorted, nearly (one row in a hundred is late) or shuffled.
    arrival: str = "nearly"
    partitions: int = 16
    updates: bool = False


SHAPES = {
    "plain": Shape(),
    "20 keys": Shape(distinct=20),
    "10^6 keys": Shape(distinct=1_000_000),
    "10^7 keys": Shape(distinct=10_000_000),
    "10^6 keys, Zipf": Shape(distinct=1_000_000, zipf=True),
    "integer keys": Shape(distinct=1_000_000, key="int"),
    "UUID keys": Shape(distinct=1_000_000, key="uuid"),
    "keys of 40 bytes": Shape(distinct=1_000_000, key=40),
    "texts of 8 bytes": Shape(note=8),
    "texts of 400 bytes": Shape(note=400, rows_of=0.25),
    "20 columns": Shape(columns=20, rows_of=0.5),
    "100 columns": Shape(columns=100, rows_of=0.125),
    "sorted arrival": Shape(arrival="sorted"),
    "shuffled arrival": Shape(arrival="shuffled"),
    "64 partitions": Shape(partitions=64),
    "256 partitions": Shape(partitions=256),
    "merge on read": Shape(updates=True),
}


def columns(shape):
    key = (zipf if shape.zipf else number)(1, shape.distinct)
    if shape.key == "uuid":
        plain = f"md5(({key})::VARCHAR)"
        dashed = ", '-', ".join(f"substr(h, {at}, {size})" for at, size in [(1, 8), (9, 4), (13, 4), (17, 4), (21, 12)])
        key = f"(SELECT concat({dashed}) FROM (SELECT {plain} AS h))"
    elif shape.key != "int":
        key = text(key, shape.key)
    made = {
        "ts": f"({START} + to_microseconds(i * {SPACING}))::TIMESTAMP",
        "k": key,
        "id": "i::BIGINT",
        "grp": f"'group ' || {number(2, 20)}",
        "note": text(number(3, 50_000), shape.note),
        "m": number(4, 1000),
    }
    for extra in range(len(made), shape.columns):
        made[f"c{extra}"] = [
            number(extra, 1_000_000),
            f"{number(extra, 100_000)} / 100.0",
            f"'value ' || {number(extra, 500)}",
        ][extra % 3]
    return made


def make_shape(shape, rows):
    """A function that writes the files of a shape."""

    def make(duck, folder, tools):
        duck.execute("SET preserve_insertion_order = true")
        order = {
            "sorted": "i",
            "nearly": "i + CASE WHEN hash(i) % 100 = 0 THEN hash(i + 5) % 200000 ELSE 0 END",
            "shuffled": "hash(i)",
        }[shape.arrival]
        select = ", ".join(f"{made} AS {name}" for name, made in columns(shape).items())
        duck.execute(f"CREATE OR REPLACE TEMP TABLE made AS SELECT {select}, {order} AS o FROM range({rows}) r(i) ORDER BY o")
        for file in range(FILES):
            low, high = rows * file // FILES, rows * (file + 1) // FILES
            duck.execute(
                f"COPY (SELECT * EXCLUDE o FROM made WHERE rowid >= {low} AND rowid < {high} ORDER BY rowid) "
                f"TO '{folder}/{file:02}.parquet' (FORMAT parquet, COMPRESSION snappy)"
            )
        if shape.updates:
            # A tenth of the rows once more, with another measure.
            os.makedirs(f"{folder}/updates")
            duck.execute(
                f"COPY (SELECT * EXCLUDE o REPLACE (m + 1000 AS m) FROM made WHERE hash(id) % 10 = 0 ORDER BY rowid) "
                f"TO '{folder}/updates/00.parquet' (FORMAT parquet, COMPRESSION snappy)"
            )

    return make


def moment(rows, share):
    """The time after so much of the rows, as a literal."""
    seconds = int(rows * share) * SPACING / 1e6
    hours, rest = divmod(int(seconds), 3600)
    days, hours = divmod(hours, 24)
    return f"TIMESTAMP '2026-{1 + days // 28:02}-{1 + days % 28:02} {hours:02}:{rest // 60:02}:{rest % 60:02}'"


def shape_queries(shape, rows):
    half, late, one, other = (moment(rows, share) for share in (0.5, 0.98, 0.4, 0.401))
    queries = {
        "three filters": f"SELECT sum(m) AS total, count(*) AS n FROM t WHERE m >= 100 AND m < 300 "
        f"AND grp IN ('group 1', 'group 5', 'group 9') AND ts < {half}",
        "sum by key": "SELECT k, count(*) AS n, sum(m) AS total FROM t GROUP BY k ORDER BY n DESC, k LIMIT 10",
        "sum by group": "SELECT grp, count(*) AS n, sum(m) AS total, max(ts) AS last FROM t GROUP BY grp ORDER BY grp",
        "count by text": "SELECT note, count(*) AS n FROM t GROUP BY note ORDER BY n DESC, note LIMIT 10",
        "last hours by group": f"SELECT grp, count(*) AS n FROM t WHERE ts >= {late} GROUP BY grp ORDER BY grp",
        "distinct keys": "SELECT count(DISTINCT k) AS n FROM t",
        "largest": "SELECT id, m FROM t ORDER BY m DESC, id LIMIT 100",
        "part of a text": "SELECT count(*) AS n FROM t WHERE note LIKE '%7f3%'",
        "range": f"SELECT count(*) AS n, sum(m) AS total FROM t WHERE ts >= {one} AND ts < {other}",
        "rows of a key": "SELECT id, m FROM t WHERE k = {key} ORDER BY id LIMIT 1000",
    }
    if shape.columns > 6:
        queries["wide rows"] = f"SELECT * FROM t WHERE ts >= {one} AND ts < {other} ORDER BY ts, k, id"
        queries["measures"] = "SELECT sum(c6) AS a, max(c7) AS b, count(DISTINCT c8) AS c, sum(c9) AS d FROM t"
    return queries


def shapes(rows):
    for name, shape in SHAPES.items():
        count = int(rows * shape.rows_of)
        yield Workload(
            name=name,
            primary_key=["ts", "k", "id"],
            partition_key=["k"],
            partitions=shape.partitions,
            queries=shape_queries(shape, count),
            rows=count,
            updates=shape.updates,
            make=make_shape(shape, count),
            evaluates=not shape.updates,
        )
    yield lineitem(1)
    yield flights(10)
    yield hits(rows)


def lineitem(scale):
    """The largest table of TPC-H."""

    def make(duck, folder, tools):
        command = [os.path.join(tools, "tpchgen-cli"), "parquet", "-s", str(scale), "--tables", "lineitem"]
        subprocess.run([*command, "--output-dir", f"{folder}/made"], check=True, capture_output=True)
        made = f"{folder}/made/lineitem.parquet"
        rows = duck.execute(f"SELECT count(*) FROM '{made}'").fetchone()[0]
        for file in range(FILES):
            limit = f"LIMIT {rows // FILES + 1} OFFSET {file * (rows // FILES + 1)}"
            duck.execute(f"COPY (SELECT * FROM '{made}' {limit}) TO '{folder}/{file:02}.parquet' (FORMAT parquet)")
        shutil.rmtree(f"{folder}/made")

    price = "l_extendedprice * (1 - l_discount)"
    return Workload(
        name=f"TPC-H lineitem, SF {scale}",
        primary_key=["l_orderkey", "l_linenumber"],
        partition_key=["l_orderkey"],
        rows=int(6_001_215 * scale),
        make=make,
        queries={
            "q1": f"SELECT l_returnflag, l_linestatus, sum(l_quantity) AS q, sum(l_extendedprice) AS p, sum({price}) AS d, "
            f"sum({price} * (1 + l_tax)) AS c, count(*) AS n FROM t WHERE l_shipdate <= DATE '1998-09-02' "
            "GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
            "q6": "SELECT sum(l_extendedprice * l_discount) AS revenue FROM t WHERE l_shipdate >= DATE '1994-01-01' "
            "AND l_shipdate < DATE '1995-01-01' AND l_discount >= 0.05 AND l_discount <= 0.07 AND l_quantity < 24",
            "count by comment": "SELECT l_comment, count(*) AS n FROM t GROUP BY l_comment ORDER BY n DESC, l_comment LIMIT 10",
            "sum by order": "SELECT l_orderkey, sum(l_quantity) AS q FROM t GROUP BY l_orderkey ORDER BY q DESC, l_orderkey LIMIT 10",
            "sum by part": "SELECT l_partkey, sum(l_quantity) AS q FROM t GROUP BY l_partkey ORDER BY q DESC, l_partkey LIMIT 10",
            "by mode": "SELECT l_shipmode, l_shipinstruct, count(*) AS n FROM t WHERE l_receiptdate > l_commitdate "
            "GROUP BY l_shipmode, l_shipinstruct ORDER BY l_shipmode, l_shipinstruct",
            "lines of an order": "SELECT l_linenumber, l_partkey, l_comment FROM t WHERE l_orderkey = 100007 ORDER BY l_linenumber",
            "orders in a range": "SELECT count(*) AS n, sum(l_quantity) AS q FROM t WHERE l_orderkey >= 100000 AND l_orderkey < 110000",
            "distinct parts": "SELECT count(DISTINCT l_partkey) AS n FROM t",
            "part of a comment": "SELECT count(*) AS n FROM t WHERE l_comment LIKE '%special%'",
            "latest": "SELECT l_orderkey, l_linenumber, l_receiptdate FROM t "
            "ORDER BY l_receiptdate DESC, l_orderkey, l_linenumber LIMIT 20",
        },
        # Its SQL does not know dates as literals.
        without={"polars": {"q1", "q6"}},
    )


def flights(repeat):
    """The flights of the repository, in as many years, with their NULLs."""

    def make(duck, folder, tools):
        source = os.path.join(os.path.dirname(__file__), "..", "..", "data", "nycflights13-flights.parquet")
        for year in range(repeat):
            duck.execute(
                f"COPY (SELECT * REPLACE (year + {year} AS year, (time_hour AT TIME ZONE 'UTC') + INTERVAL {year} YEAR AS time_hour) "
                f"FROM '{source}') TO '{folder}/{year:02}.parquet' (FORMAT parquet)"
            )

    return Workload(
        name="flights",
        primary_key=["time_hour", "carrier", "flight"],
        partition_key=["carrier", "flight"],
        rows=336_776 * repeat,
        nullable=True,
        make=make,
        queries={
            "delay by carrier": "SELECT carrier, count(*) AS n, sum(dep_delay) AS d, max(arr_delay) AS worst FROM t GROUP BY carrier ORDER BY carrier",
            "delay by route": "SELECT origin, dest, count(*) AS n, sum(arr_delay) AS d FROM t GROUP BY origin, dest ORDER BY n DESC, origin, dest LIMIT 20",
            "cancelled by month": "SELECT month, count(*) AS n FROM t WHERE dep_time IS NULL GROUP BY month ORDER BY month",
            "late and long": "SELECT count(*) AS n, sum(distance) AS miles FROM t WHERE dep_delay > 30 AND distance > 1000 AND origin = 'JFK' AND hour >= 12",
            "planes": "SELECT tailnum, count(*) AS n FROM t GROUP BY tailnum ORDER BY n DESC, tailnum LIMIT 10",
            "distinct planes": "SELECT count(DISTINCT tailnum) AS n FROM t",
            "a flight": "SELECT time_hour, dep_delay FROM t WHERE carrier = 'UA' AND flight = 1545 ORDER BY time_hour",
            "a day": "SELECT count(*) AS n, sum(air_time) AS minutes FROM t WHERE time_hour >= TIMESTAMP '2016-07-04 00:00:00' "
            "AND time_hour < TIMESTAMP '2016-07-05 00:00:00'",
            "latest": "SELECT carrier, flight, dep_delay FROM t WHERE dep_delay IS NOT NULL ORDER BY dep_delay DESC, carrier, flight, time_hour LIMIT 20",
        },
    )


def hits(rows):
    """A wide table of page views: frequent and rare addresses, columns that are nearly always empty
    or zero."""

    def some(share, value, other):
        return f"CASE WHEN hash(i * 1000003 + {len(value)}) % 1000 < {int(share * 1000)} THEN {value} ELSE {other} END"

    page = zipf(11, 200_000)
    made = {
        "ts": f"({START} + to_microseconds(i * {SPACING}))::TIMESTAMP",
        "user_id": f"hash({zipf(12, 500_000)})::UBIGINT",
        "view_id": "i::BIGINT",
        "site": zipf(13, 2_000),
        "url": f"'https://example.org/' || left(md5(({page})::VARCHAR), 8) || '/' || repeat('section-', (({page}) % 7)::INT) || ({page})::VARCHAR",
        "title": f"'Page ' || ({page})::VARCHAR || repeat(' about things', (({page}) % 4)::INT)",
        "referrer": some(0.6, f"'https://search.example/?q=' || ({zipf(14, 50_000)})::VARCHAR", "''"),
        "phrase": some(0.15, f"'how to ' || ({zipf(15, 80_000)})::VARCHAR", "''"),
        "engine": some(0.15, number(16, 30), "0"),
        "campaign": some(0.04, number(17, 60), "0"),
        "region": zipf(18, 5_000),
        "width": f"[1366, 1920, 1280, 390, 414, 0][1 + ({number(19, 6)})]::BIGINT",
        "phone": some(0.05, f"'phone ' || {number(20, 150)}", "''"),
        "refresh": some(0.1, "1", "0"),
        "ip": number(21, 4_000_000_000),
    }
    for extra in range(len(made), 60):
        made[f"x{extra}"] = some(0.5, number(extra, 100), "0") if extra % 3 else f"'code ' || {number(extra, 40)}"

    def make(duck, folder, tools):
        select = ", ".join(f"{value} AS {name}" for name, value in made.items())
        for file in range(FILES):
            duck.execute(
                f"COPY (SELECT {select} FROM range({rows * file // FILES}, {rows * (file + 1) // FILES}) r(i)) "
                f"TO '{folder}/{file:02}.parquet' (FORMAT parquet)"
            )

    def top(columns, what="count(*) AS n", where="", by="n"):
        where = f" WHERE {where}" if where else ""
        return f"SELECT {columns}, {what} FROM t{where} GROUP BY {columns} ORDER BY {by} DESC, {columns} LIMIT 10"

    day = "ts >= TIMESTAMP '2026-01-01 06:00:00' AND ts < TIMESTAMP '2026-01-01 12:00:00'"
    return Workload(
        name="page views, 60 columns",
        primary_key=["ts", "user_id", "view_id"],
        partition_key=["user_id"],
        rows=rows,
        key="user_id",
        make=make,
        queries={
            "rows": "SELECT count(*) AS n FROM t",
            "of campaigns": "SELECT count(*) AS n FROM t WHERE campaign <> 0",
            "sums": "SELECT sum(campaign) AS a, count(*) AS n, sum(width) AS w FROM t",
            "distinct users": "SELECT count(DISTINCT user_id) AS n FROM t",
            "distinct phrases": "SELECT count(DISTINCT phrase) AS n FROM t",
            "first and last": "SELECT min(ts) AS a, max(ts) AS b FROM t",
            "campaigns": top("campaign", where="campaign <> 0"),
            "users by region": top("region", "count(DISTINCT user_id) AS n"),
            "figures by region": top("region", "sum(campaign) AS a, count(*) AS n, sum(width) AS w"),
            "phones": top("phone", "count(DISTINCT user_id) AS n", "phone <> ''"),
            "phrases": top("phrase", where="phrase <> ''"),
            "users of phrases": top("phrase", "count(DISTINCT user_id) AS n", "phrase <> ''"),
            "phrases by engine": top("engine, phrase", where="phrase <> ''"),
            "users": top("user_id"),
            "phrases of users": top("user_id, phrase"),
            "views of a user": "SELECT ts, url FROM t WHERE user_id = {key} ORDER BY ts, view_id LIMIT 100",
            "addresses with a word": "SELECT count(*) AS n FROM t WHERE url LIKE '%section-section%'",
            "phrases with a word": top("phrase", "min(url) AS a, count(*) AS n", "url LIKE '%section-section%' AND phrase <> ''"),
            "newest of a word": "SELECT * FROM t WHERE url LIKE '%section-7%' ORDER BY ts, view_id LIMIT 10",
            "early phrases": "SELECT phrase, ts FROM t WHERE phrase <> '' ORDER BY ts, view_id LIMIT 10",
            "phrases in order": "SELECT phrase, view_id FROM t WHERE phrase <> '' ORDER BY phrase, view_id LIMIT 10",
            "views by address": top("ip, engine", "count(*) AS n, sum(refresh) AS r, sum(width) AS w", "phrase <> ''"),
            "urls": top("url"),
            "urls of a site": top("url", where=f"site = 1 AND {day} AND refresh = 0"),
            "titles of a site": top("title", where=f"site = 1 AND {day} AND refresh = 0"),
            "sources of a site": top("engine, campaign, referrer, url", where=f"site = 1 AND {day}"),
        },
    )
