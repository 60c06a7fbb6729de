"""Damaged and hostile exports of other systems: dumps, their schemas, logs of queries."""

import os

from abuse_cases.case import DONE, FAILED, ROWS, USAGE, Case, written


def exports(bench):
    types = {"k": "INT64", "u": "UTF8", "v": "INT64", "d": "DOUBLE", "at": "TIMESTAMP"}
    scheme = "".join(f'columns {{\n  name: "{name}"\n  type {{ optional_type {{ item {{ type_id: {of} }} }} }}\n}}\n' for name, of in types.items())
    scheme = (scheme + 'primary_key: "k"\npartitioning_settings { partition_by: "k" min_partitions_count: 4 }\nstore_type: STORE_TYPE_COLUMN\n').encode()
    data = "".join(f'{i},"u%20{i % 97}",{i * 7 % 1000},{i / 3},2026-01-{1 + i % 28:02}T00:00:00.000000Z\n' for i in range(ROWS)).encode()

    def dump(**files):
        def setup(folder):
            os.makedirs(os.path.join(folder, "d"))
            for name, content in {"scheme.pb": scheme, "data_00.csv": data, **files}.items():
                if content is not None:
                    written(os.path.join("d", name), content)(folder)
        return setup

    def damaged(content):
        for share in (0, 0.01, 0.5, 0.99):
            yield f"truncated to {share}", content[: int(len(content) * share)]
        for _ in range(6):
            at = bench.random.randrange(len(content))
            yield f"flipped at {at}", content[:at] + bytes([content[at] ^ (1 << bench.random.randrange(8))]) + content[at + 1:]

    says = ["scheme.pb", "data_00.csv", "rows", "column", "'d'"]
    for name, content in {"scheme.pb": scheme, "data_00.csv": data}.items():
        for what, changed in damaged(content):
            yield Case(f"dump {name} {what}: ingest", ["ingest", "t", "d"], (DONE, FAILED, USAGE), setup=dump(**{name: changed}), table=True,
                       rows=(ROWS, 2 * ROWS), says=says)
            yield Case(f"dump {name} {what}: evaluate", ["evaluate", "d"], (DONE, FAILED, USAGE), setup=dump(**{name: changed}), says=says)
    hostile = {
        "nested 100,000 deep": b"a{" * 100_000, "a schema of 17 MB": b"# x\n" * 4_300_000, "a name of 10 MB": b'columns { name: "' + b"x" * 10_000_000 + b'" }',
        "binary": bytes(range(256)) * 100, "100,000 columns": b'columns { name: "c" type { type_id: UTF8 } }\n' * 100_000,
    }
    for what, content in hostile.items():
        yield Case(f"dump scheme.pb {what}", ["evaluate", "d"], (FAILED, USAGE), setup=dump(**{"scheme.pb": content}), memory=700, says=["scheme.pb"])
    yield Case("dump with a line of 70 MB", ["evaluate", "d"], (FAILED, USAGE), setup=dump(**{"data_00.csv": b"1" * 70_000_000}), memory=1500, says=["data_00.csv"])
    yield Case("dump with a gap", ["ingest", "t", "d"], (FAILED, USAGE), setup=dump(**{"data_02.csv": data}), table=True, rows=ROWS, says=["data file 01"])
    yield Case("dump unfinished", ["ingest", "t", "d"], (FAILED, USAGE), setup=dump(incomplete=b""), table=True, rows=ROWS, says=["not finished"])
    corpus = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "fuzz", "corpus")
    for folder, seed, name in [("avro", "snappy", "x.avro"), ("avro", "null", "x.avro"), ("orc", "zlib", "x.orc"), ("orc", "uncompressed", "x.orc"),
                               ("pg_dump", "table", "x.sql")]:
        with open(os.path.join(corpus, folder, seed), "rb") as file:
            content = file.read()
        for what, changed in damaged(content):
            yield Case(f"{folder} {seed} {what}", ["evaluate", name], (DONE, FAILED, USAGE), setup=written(name, changed), says=[name])
    head, tail = b"--\n-- PostgreSQL database dump\n--\n", b"--\n-- PostgreSQL database dump complete\n--\n"
    for what, body in {"a statement of 20 MB": b"CREATE TABLE t (a int DEFAULT '" + b"x" * 20_000_000 + b"');\n", "a row of 70 MB": b"CREATE TABLE t (a text);\n"
                       b"COPY t (a) FROM stdin;\n" + b"x" * 70_000_000 + b"\n\\.\n", "an open body": b"CREATE FUNCTION f() AS $$\n", "an open text": b"SELECT 'x\n",
                       "3,000 tables": b"".join(b"CREATE TABLE t%d (a int);\n" % i for i in range(3000)), "binary": bytes(range(256)) * 1000}.items():
        yield Case(f"pg_dump with {what}", ["evaluate", "x.sql"], (FAILED, USAGE), setup=written("x.sql", head + body + tail), memory=1500, says=["x.sql"])
    avro = b"Obj\x01\x02\x16avro.schema"
    for what, content in {"a schema of 2^60 bytes": avro + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x1f{}", "an endless header": avro + b"\x04{}" + b"\x02" * 20_000_000,
                          "a schema of 100,000 levels": avro + b"\x80\x9a\x0c" + b'{"a":' * 20_000}.items():
        yield Case(f"avro with {what}", ["evaluate", "x.avro"], (FAILED, USAGE), setup=written("x.avro", content), memory=700, says=["x.avro"])
    nested = b'{"a":' * 100 + b'{"$oid":"x"}' + b"}" * 100
    for what, text in {"unknown kinds": b'{"a":{"$what":1}}\n', "wrong values": b'{"a":{"$date":{"$numberLong":"x"}}}\n{"a":{"$oid":7}}\n', "nested": nested + b"\n",
                       "a key of 10 MB": b'{"' + b"k" * 10_000_000 + b'":{"$oid":"x"}}\n'}.items():
        yield Case(f"extended json, {what}", ["evaluate", "x.ndjson"], (DONE, FAILED, USAGE), setup=written("x.ndjson", text), memory=1500, says=["x.ndjson"])
    for what, text in {"quotes": b'a,b\n1,"\\\n', "escapes": b"a,b\n" + b'1,"' + b"\\" * 1_000_001 + b'"\n'}.items():
        yield Case(f"csv with {what}", ["evaluate", "x.csv", "--escape", "\\", "--quoted-empty"], (DONE, FAILED, USAGE), setup=written("x.csv", text), says=["x.csv"])
    for what, text in {"nested": "CREATE TABLE t (a " + "Nullable(" * 100_000, "an open quote": "CREATE TABLE t (a int, b 'x", "nothing": "",
                       "10,000 tables": "CREATE TABLE t (a int);\n" * 10_000, "binary": "\x00\x01" * 1000}.items():
        yield Case(f"ddl of another system, {what}: evaluate", ["evaluate", "{in}/a.csv", "--ddl", "x.sql"], (FAILED, USAGE), setup=written("x.sql", text), says=["x.sql"])
    for what, text in {"garbage": "query,calls\n" + "\"((((,'\",5\n" * 100, "negative runs": "query,calls\nSELECT 1,-5\nSELECT 2,NaN\n",
                       "a statement of 2 MB": "query,calls\nSELECT " + "1+" * 1_000_000 + "1,1\n", "no statements": "a,b\n1,2\n"}.items():
        yield Case(f"query log, {what}", ["evaluate", "{in}/a.csv", "--partition-key", "k", "--partitions", "4", "--queries", "log.csv"], (DONE, FAILED, USAGE),
                   setup=written("log.csv", text), memory=700)
