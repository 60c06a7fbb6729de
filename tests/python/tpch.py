#!/usr/bin/env python3
"""Runs the 22 queries of TPC-H on evenkeel tables and in DuckDB, and compares the rows.

usage: tpch.py BINARY [--scale 0.01] [--runs 1] [--memory 4GiB] [--keep FOLDER] [--subqueries 40] [--seed 1]
Needs the Python packages duckdb and tpchgen-cli (PyPI). Each engine reads the same rows: DuckDB
from the Parquet files of the generator, evenkeel from tables partitioned by the keys of orders and
parts. With several runs it prints the median times and their ratio. Random statements with
subqueries above joins follow. Exit code 1 if any rows differ."""
import argparse, csv, datetime, io, math, os, random, shutil, statistics, subprocess, sys, sysconfig, tempfile, time

import duckdb

from tpch_subqueries import statement

TABLES = {
    "lineitem": ("l_orderkey,l_linenumber", "l_orderkey", 16),
    "orders": ("o_orderkey", "o_orderkey", 16),
    "customer": ("c_custkey", "c_custkey", 16),
    "part": ("p_partkey", "p_partkey", 16),
    "partsupp": ("ps_partkey,ps_suppkey", "ps_partkey", 16),
    "supplier": ("s_suppkey", "s_suppkey", 4),
    "nation": ("n_nationkey", "n_nationkey", 1),
    "region": ("r_regionkey", "r_regionkey", 1),
}
REVENUE = "l_extendedprice * (1 - l_discount)"
# The business questions of the specification of TPC-H, with its validation parameters.
QUERIES = {
    1: f"""SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum({REVENUE}),
        sum({REVENUE} * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
      FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
      GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    2: """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
      FROM part JOIN partsupp ON p_partkey = ps_partkey JOIN supplier ON s_suppkey = ps_suppkey
        JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
      WHERE p_size = 15 AND p_type LIKE '%BRASS' AND r_name = 'EUROPE' AND ps_supplycost =
        (SELECT min(ps_supplycost) FROM partsupp JOIN supplier ON s_suppkey = ps_suppkey
           JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
         WHERE ps_partkey = p_partkey AND r_name = 'EUROPE')
      ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    3: f"""SELECT l_orderkey, sum({REVENUE}) AS revenue, o_orderdate, o_shippriority
      FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
      WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
      GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
    4: """SELECT o_orderpriority, count(*) FROM orders
      WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS
        (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
      GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    5: f"""SELECT n_name, sum({REVENUE}) AS revenue
      FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
        JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
      WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
      GROUP BY n_name ORDER BY revenue DESC""",
    6: """SELECT sum(l_extendedprice * l_discount) FROM lineitem
      WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
        AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    7: f"""SELECT supp_nation, cust_nation, l_year, sum(volume) FROM
        (SELECT one.n_name AS supp_nation, other.n_name AS cust_nation,
           extract(year FROM l_shipdate) AS l_year, {REVENUE} AS volume
         FROM supplier JOIN lineitem ON s_suppkey = l_suppkey JOIN orders ON o_orderkey = l_orderkey
           JOIN customer ON c_custkey = o_custkey JOIN nation one ON s_nationkey = one.n_nationkey
           JOIN nation other ON c_nationkey = other.n_nationkey
         WHERE ((one.n_name = 'FRANCE' AND other.n_name = 'GERMANY')
             OR (one.n_name = 'GERMANY' AND other.n_name = 'FRANCE'))
           AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') shipping
      GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    8: f"""SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) FROM
        (SELECT extract(year FROM o_orderdate) AS o_year, CAST({REVENUE} AS DOUBLE) AS volume,
           other.n_name AS nation
         FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
           JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
           JOIN nation one ON c_nationkey = one.n_nationkey JOIN region ON one.n_regionkey = r_regionkey
           JOIN nation other ON s_nationkey = other.n_nationkey
         WHERE r_name = 'AMERICA' AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
           AND p_type = 'ECONOMY ANODIZED STEEL') all_nations
      GROUP BY o_year ORDER BY o_year""",
    9: f"""SELECT nation, o_year, sum(amount) FROM
        (SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
           {REVENUE} - ps_supplycost * l_quantity AS amount
         FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
           JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey
           JOIN orders ON o_orderkey = l_orderkey JOIN nation ON s_nationkey = n_nationkey
         WHERE p_name LIKE '%green%') profit
      GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    10: f"""SELECT c_custkey, c_name, sum({REVENUE}) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
      FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        JOIN nation ON c_nationkey = n_nationkey
      WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'
      GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
      ORDER BY revenue DESC, c_custkey LIMIT 20""",
    11: """SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS worth
      FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
      WHERE n_name = 'GERMANY' GROUP BY ps_partkey
      HAVING CAST(sum(ps_supplycost * ps_availqty) AS DOUBLE) >
        (SELECT CAST(sum(ps_supplycost * ps_availqty) AS DOUBLE) * FRACTION
         FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
         WHERE n_name = 'GERMANY')
      ORDER BY worth DESC, ps_partkey""",
    12: """SELECT l_shipmode,
        sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END),
        sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END)
      FROM orders JOIN lineitem ON o_orderkey = l_orderkey
      WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
        AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
      GROUP BY l_shipmode ORDER BY l_shipmode""",
    13: """SELECT c_count, count(*) AS customers FROM
        (SELECT c_custkey, count(o_orderkey) AS c_count FROM customer
         LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
         GROUP BY c_custkey) c_orders
      GROUP BY c_count ORDER BY customers DESC, c_count DESC""",
    14: f"""SELECT 100.0 * CAST(sum(CASE WHEN p_type LIKE 'PROMO%' THEN {REVENUE} ELSE 0 END) AS DOUBLE)
        / CAST(sum({REVENUE}) AS DOUBLE)
      FROM lineitem JOIN part ON l_partkey = p_partkey
      WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
    15: f"""WITH revenue AS (SELECT l_suppkey AS supplier_no, sum({REVENUE}) AS total FROM lineitem
        WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey)
      SELECT s_suppkey, s_name, s_address, s_phone, total FROM supplier JOIN revenue ON s_suppkey = supplier_no
      WHERE total = (SELECT max(total) FROM revenue) ORDER BY s_suppkey""",
    16: """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS suppliers
      FROM partsupp JOIN part ON p_partkey = ps_partkey
      WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
        AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9) AND ps_suppkey NOT IN
        (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
      GROUP BY p_brand, p_type, p_size ORDER BY suppliers DESC, p_brand, p_type, p_size""",
    17: """SELECT CAST(sum(l_extendedprice) AS DOUBLE) / 7.0 FROM lineitem JOIN part ON p_partkey = l_partkey
      WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND CAST(l_quantity AS DOUBLE) <
        (SELECT 0.2 * avg(CAST(l_quantity AS DOUBLE)) FROM lineitem WHERE l_partkey = p_partkey)""",
    18: """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
      FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
      WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
      GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
      ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
    19: f"""SELECT sum({REVENUE}) FROM lineitem JOIN part ON p_partkey = l_partkey
      WHERE l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON' AND (
        (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
          AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5)
        OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
          AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10)
        OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
          AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15))""",
    20: """SELECT s_name, s_address FROM supplier JOIN nation ON s_nationkey = n_nationkey
      WHERE n_name = 'CANADA' AND s_suppkey IN (SELECT ps_suppkey FROM partsupp
        WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
          AND CAST(ps_availqty AS DOUBLE) > (SELECT 0.5 * CAST(sum(l_quantity) AS DOUBLE) FROM lineitem
            WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
              AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'))
      ORDER BY s_name""",
    21: """SELECT s_name, count(*) AS waits FROM supplier JOIN lineitem late ON s_suppkey = late.l_suppkey
        JOIN orders ON o_orderkey = late.l_orderkey JOIN nation ON s_nationkey = n_nationkey
      WHERE o_orderstatus = 'F' AND late.l_receiptdate > late.l_commitdate AND n_name = 'SAUDI ARABIA'
        AND EXISTS (SELECT 1 FROM lineitem other WHERE other.l_orderkey = late.l_orderkey
          AND other.l_suppkey <> late.l_suppkey)
        AND NOT EXISTS (SELECT 1 FROM lineitem other WHERE other.l_orderkey = late.l_orderkey
          AND other.l_suppkey <> late.l_suppkey AND other.l_receiptdate > other.l_commitdate)
      GROUP BY s_name ORDER BY waits DESC, s_name LIMIT 100""",
    22: """SELECT code, count(*), sum(c_acctbal) FROM
        (SELECT substring(c_phone, 1, 2) AS code, c_acctbal FROM customer
         WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17') AND CAST(c_acctbal AS DOUBLE) >
           (SELECT avg(CAST(c_acctbal AS DOUBLE)) FROM customer WHERE CAST(c_acctbal AS DOUBLE) > 0.0
              AND substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
           AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)) custsale
      GROUP BY code ORDER BY code""",
}
RELATIVE = 1e-6


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def plain(value):
    """A value as both engines can be compared: a number, or text."""
    if value is None or value == "":
        return ""
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()[:10]
    try:
        return float(value)
    except ValueError:
        return str(value)[:10] if str(value)[4:5] == "-" and str(value)[10:11] == "T" else str(value)


def same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=1e-6)
    return one == other


def difference(found, expected):
    if len(found) != len(expected):
        return f"{len(found)} rows, not {len(expected)}"
    for at, (one, other) in enumerate(zip(found, expected)):
        if len(one) != len(other) or not all(map(same, one, other)):
            return f"row {at}: {one}, not {other}"
    return None


def main():
    options = argparse.ArgumentParser()
    options.add_argument("binary")
    options.add_argument("--scale", type=float, default=0.01)
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--memory", default="4GiB")
    options.add_argument("--keep")
    options.add_argument("--subqueries", type=int, default=40)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    folder = options.keep or tempfile.mkdtemp()
    files, tables = os.path.join(folder, "files"), os.path.join(folder, "tables")
    generator = os.path.join(sysconfig.get_path("scripts"), "tpchgen-cli")
    if not os.path.exists(files):
        run([generator, "parquet", "-s", str(options.scale), "--output-dir", files])
        os.makedirs(tables)
        for name, (primary, partition, partitions) in TABLES.items():
            source, place = os.path.join(files, f"{name}.parquet"), os.path.join(tables, name)
            run([options.binary, "create", place, "--like", source, "--primary-key", primary, "--partition-key",
                 partition, "--partitions", str(partitions)])
            run([options.binary, "ingest", place, source])
    duck = duckdb.connect()
    for name in TABLES:
        duck.execute(f"CREATE VIEW {name} AS SELECT * FROM '{files}/{name}.parquet'")
    failed, sums, local = 0, [0.0, 0.0], 0
    for number, text in QUERIES.items():
        sql = text.replace("FRACTION", str(0.0001 / options.scale))
        path = os.path.join(folder, f"q{number}.sql")
        with open(path, "w") as file:
            file.write(sql)
        times = ([], [])
        for _ in range(options.runs):
            began = time.perf_counter()
            expected = [tuple(map(plain, row)) for row in duck.execute(sql).fetchall()]
            times[1].append(time.perf_counter() - began)
            began = time.perf_counter()
            out = run([options.binary, "query", tables, "-f", path, "--format", "csv", "--memory", options.memory])
            times[0].append(time.perf_counter() - began)
        found = [tuple(map(plain, row)) for row in list(csv.reader(io.StringIO(out)))[1:]]
        explained = run([options.binary, "query", tables, "-f", path, "--explain"])
        local += explained.count("within partitions, without a shuffle")
        wrong = difference(found, expected)
        failed += wrong is not None
        own, other = (statistics.median(of) for of in times)
        sums = [sums[0] + own, sums[1] + other]
        print(f"q{number:<2} {len(found):5} rows  {own:8.3f} s  DuckDB {other:8.3f} s  {own / other:6.2f}"
              f"{'' if wrong is None else '  WRONG: ' + wrong}", flush=True)
    print(f"{22 - failed} of 22 right; {sums[0]:.2f} s, DuckDB {sums[1]:.2f} s, ratio {sums[0] / sums[1]:.2f}; "
          f"{local} joins within partitions")
    failed += compare_subqueries(options, tables, duck)
    if not options.keep:
        shutil.rmtree(folder)
    sys.exit(1 if failed or local == 0 else 0)


def compare_subqueries(options, tables, duck):
    """Compares random statements; returns how many gave other rows."""
    dice, failed = random.Random(options.seed), 0
    for _ in range(options.subqueries):
        sql = statement(dice)
        expected = [tuple(map(plain, row)) for row in duck.execute(sql).fetchall()]
        out = run([options.binary, "query", tables, "-c", sql, "--format", "csv", "--memory", options.memory])
        found = [tuple(map(plain, row)) for row in list(csv.reader(io.StringIO(out)))[1:]]
        wrong = difference(found, expected)
        failed += wrong is not None
        if wrong is not None:
            print(f"{sql}\n  WRONG: {wrong}", flush=True)
    print(f"{options.subqueries - failed} of {options.subqueries} random statements with subqueries right")
    return failed


main()
