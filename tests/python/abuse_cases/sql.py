"""Queries that are too long, too deep, too large, or wrong."""

from abuse_cases.case import DONE, FAILED, USAGE, Case, written


def sql(bench):
    few = ["--memory", "64MiB", "--timeout", "3s"]

    def query(name, text, codes=(FAILED,), says=None, more=few, **options):
        if len(text) > 50_000:
            return Case(f"sql {name}", ["query", "{in}/t", "-f", "q.sql", *more], codes, setup=written("q.sql", text), says=says, **options)
        return Case(f"sql {name}", ["query", "{in}/t", "-c", text, *more], codes, says=says, **options)

    many = 50_000
    cross = "FROM t a CROSS JOIN t b CROSS JOIN t c"
    limits = ["--memory", "--timeout"]
    for name, text in {
        "additions": "SELECT " + " + ".join(["1"] * many),
        "subtractions of columns": "SELECT " + "-".join(["v"] * many) + " FROM t",
        "alternatives": "SELECT k FROM t WHERE " + " OR ".join(["k = 1"] * many),
        "conjunctions": "SELECT k FROM t WHERE " + " AND ".join(["k = 1"] * many),
        "concatenations": "SELECT " + "||".join(["'a'"] * many),
        "comparisons": "SELECT " + " = ".join(["1"] * many),
        "casts": "SELECT 1" + "::int" * many,
        "negations": "SELECT " + "NOT " * many + "true",
        "minus signs": "SELECT " + "- " * many + "1",
        "tests for NULL": "SELECT 1" + " IS NULL" * many,
        "IS DISTINCT FROM": "SELECT " + " IS DISTINCT FROM ".join(["k"] * many) + " FROM t",
        "likes": "SELECT " + " LIKE ".join(["u"] * many) + " FROM t",
        "subscripts": "SELECT k" + "[1]" * many + " FROM t",
        "unions": " UNION ALL ".join(["SELECT 1"] * many),
        "unions of two columns": " UNION ".join(["SELECT 1, 2"] * many),
        "exceptions": " EXCEPT ".join(["SELECT k FROM t"] * 500),
        "joins": "SELECT 1 FROM t " + "JOIN t USING (k) " * 20_000,
        "tables": "SELECT 1 FROM " + ", ".join(f"t x{i}" for i in range(5_000)),
        "explains": "EXPLAIN " * many + "SELECT 1",
        "CTEs in a chain": "WITH a0 AS (SELECT 1 AS x)" + "".join(f", a{i} AS (SELECT x + 1 AS x FROM a{i - 1})" for i in range(1, 3_000)) + " SELECT * FROM a2999",
    }.items():
        yield query(f"50,000 {name}", text, codes=(FAILED, USAGE, DONE) if name.startswith("CTEs") else (FAILED, USAGE), seconds=20)
    for levels in (30, 1_000, 100_000):
        for name, (left, right) in {
            "casts": ("CAST(", " AS INT)"), "parentheses": ("(", ")"), "functions": ("abs(", ")"), "subqueries": ("(SELECT ", ")"),
            "cases": ("CASE WHEN true THEN ", " END"), "coalesces": ("coalesce(", ", 1)"), "arrays": ("[", "]"), "between": ("(", " BETWEEN 0 AND 5)"),
        }.items():
            yield query(f"{levels} nested {name}", "SELECT " + left * levels + "1" + right * levels, seconds=20)
    doubling = "WITH a0 AS (SELECT 1 AS x)" + "".join(f", a{i} AS (SELECT * FROM a{i - 1} UNION ALL SELECT * FROM a{i - 1})" for i in range(1, 40))
    yield query("CTEs that double", doubling + " SELECT count(*) FROM a39", says=["tables"], seconds=20)
    for name, text in {
        "a cross join": f"SELECT a.k {cross} ORDER BY a.d + b.d + c.d",
        "a cross join without matches": f"SELECT count(*) {cross} WHERE a.v + b.v + c.v < 0",
        "groups of pairs": f"SELECT a.k, b.k, c.k, count(*) {cross} GROUP BY 1, 2, 3",
        "distinct pairs": f"SELECT count(DISTINCT a.k * 3000 + b.k + c.k) {cross}",
        "a window over pairs": f"SELECT sum(a.k) OVER (PARTITION BY a.u ORDER BY c.k) {cross}",
        "an array of all": f"SELECT array_length(array_agg(a.u)) {cross}",
        "a text of all": f"SELECT length(string_agg(a.u, ',')) {cross}",
        "endless recursion": "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "recursion that doubles": "WITH RECURSIVE n AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM n) SELECT length(s) FROM n",
        "recursion that multiplies": "WITH RECURSIVE n AS (SELECT k FROM t UNION ALL SELECT n.k FROM n CROSS JOIN t) SELECT count(*) FROM n",
        "repeat of repeat": "SELECT length(repeat(repeat('x', 1000000), 1000))",
        "repeat of a column": "SELECT sum(length(repeat(u, 1000000))) FROM t",
        "replace by more": "SELECT length(replace(repeat('a', 1000000), 'a', repeat('b', 1000)))",
        "lists of a column": "SELECT sum(array_length(range(0, k * 100000))) FROM t",
        "doubled texts": "SELECT length(s || s) FROM (SELECT s || s AS s FROM (SELECT s || s AS s FROM (SELECT repeat('x', 500000000) AS s) AS a) AS b) AS c",
    }.items():
        # The guard looks at the process now and then; what is allocated in between comes on top.
        yield query(f"limit: {name}", text, says=limits + ["overflow", "the limit for a batch"], memory=1200, seconds=20)
    for name, text in {
        "percentile of 10^12 centroids": "SELECT approx_percentile_cont(k, 0.5, 1000000000000) FROM t",
        "percentile of -1 centroids": "SELECT approx_percentile_cont(k, 0.5, -1) FROM t",
        "percentile 2": "SELECT approx_percentile_cont(k, 2) FROM t",
        "repeat 10^12": "SELECT repeat('x', 1000000000000)",
        "repeat 2^63 - 1": "SELECT repeat(u, 9223372036854775807) FROM t",
        "lpad 10^12": "SELECT lpad('x', 1000000000000)",
        "rpad 2 * 10^9": "SELECT rpad(u, 2000000000) FROM t",
        "range 10^12": "SELECT range(0, 1000000000000)",
        "generate_series 10^12": "SELECT generate_series(0, 1000000000000)",
        "array_repeat 10^12": "SELECT array_repeat(1, 1000000000000)",
        "array_resize 10^12": "SELECT array_resize([1], 1000000000000)",
        "a regex of 10^9": "SELECT count(*) FROM t WHERE regexp_like(u, '(a{1000}){1000}{1000}')",
        "a regex that does not compile": "SELECT regexp_match(u, '(') FROM t",
        "addition overflow": "SELECT 9223372036854775807 + 1",
        "multiplication overflow": "SELECT v * 9223372036854775807 FROM t WHERE v > 1",
        "sum overflow": "SELECT sum(v * 0 + 9223372036854775807) FROM t",
        "unsigned below zero": "SELECT CAST(3 AS BIGINT UNSIGNED) - CAST(5 AS BIGINT UNSIGNED)",
        "an infinite literal": "SELECT 1e999",
        "a literal beyond Uint64": "SELECT 18446744073709551616",
        "a literal of 100,000 digits": "SELECT " + "9" * 100_000,
        "DECIMAL(266, 3)": "SELECT CAST(1 AS DECIMAL(266, 3))",
        "a cast that does not fit": "SELECT CAST(300 AS TINYINT)",
        "a decimal overflow": "SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) * 10",
        "division by zero": "SELECT 1 / 0",
        "an interval beyond": "SELECT INTERVAL '99999999999999 years'",
        "LIMIT -1": "SELECT k FROM t LIMIT -1",
        "LIMIT 2^64": "SELECT k FROM t LIMIT 18446744073709551616",
        "no table": "SELECT * FROM nope",
        "no column": "SELECT nope FROM t",
        "no function": "SELECT nope(1)",
        "two statements": "SELECT 1; SELECT 2",
        "a statement that writes": "COPY t TO '/tmp/x.csv'",
        "an external table": "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
        "a file as a table": "SELECT * FROM '/etc/passwd'",
        "SET": "SET datafusion.execution.target_partitions = 1000000",
        "DROP": "DROP TABLE t",
        "half a statement": "SELECT (((",
        "an open string": "SELECT 'abc",
        "an open comment": "SELECT /* /* /*",
        "binary": "\x01\x02\x7f SELECT",
        "a right-to-left mark": "SELECT \u202e1 FROM \u202et",
        "a word of 100,000 letters": "SELECT " + "a" * 100_000 + " FROM t",
        "a string of 900,000 letters as a number": "SELECT CAST('" + "a" * 900_000 + "' AS INT)",
        "a function of 900,000 letters": "SELECT " + "a" * 900_000 + "(1)",
        "a time beyond the calendar": "SELECT to_timestamp_seconds(9223372036854775807)",
        "a table of 100,000 letters": "SELECT 1 FROM " + "a" * 100_000,
        "text of 2 MB": "SELECT '" + "x" * 2_000_000 + "'",
        "300,000 words": "SELECT " + "a " * 300_000,
    }.items():
        yield query(name, text, codes=(FAILED, USAGE), memory=400, seconds=25)
    for name, text in {
        "LIMIT 2^63 - 1 OFFSET 2^63 - 1": "SELECT k FROM t LIMIT 9223372036854775807 OFFSET 9223372036854775807",
        "ORDER BY LIMIT 10^12": "SELECT k FROM t ORDER BY d LIMIT 1000000000000",
        "ntile 2^63 - 1": "SELECT ntile(9223372036854775807) OVER (ORDER BY k) FROM t",
        "lag 2^63 - 1": "SELECT lag(k, 9223372036854775807) OVER (ORDER BY k) FROM t",
        "a frame of 2^63 - 1": "SELECT sum(v) OVER (ORDER BY k ROWS BETWEEN 9223372036854775807 PRECEDING AND 9223372036854775807 FOLLOWING) FROM t",
        "LIKE with 2,000 wildcards": "SELECT count(*) FROM t WHERE repeat(u, 100) LIKE '" + "%a_" * 2_000 + "'",
        "a list of 10,000 values": "SELECT count(*) FROM t WHERE k IN (" + ",".join(map(str, range(10_000))) + ")",
        "150 alternatives": "SELECT count(*) FROM t WHERE " + " OR ".join(f"k = {i} AND v > {i}" for i in range(150)),
        "500 columns": "SELECT " + ", ".join(f"k + {i} AS c{i}" for i in range(500)) + " FROM t LIMIT 1",
        "rpad negative": "SELECT rpad(u, -5) FROM t",
        "a name with quotes": 'SELECT 1 AS "a""b\n\tc"',
    }.items():
        yield query(name, text, codes=(DONE,), memory=400, more=["--memory", "128MiB", "--timeout", "35s"])
    yield query("a blank text", " " * 1000, codes=(USAGE,))
