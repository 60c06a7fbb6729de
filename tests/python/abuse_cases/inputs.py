"""Damaged and oversized files of rows."""

import gzip
import os

from abuse_cases.case import DONE, FAILED, ROWS, USAGE, Case, written


def inputs(bench):
    names = {"csv": "a.csv", "ndjson": "a.ndjson", "json": "a.json", "parquet": "a.parquet", "csv.gz": "a.csv.gz"}
    for ending, source in names.items():
        with open(os.path.join(bench.inputs, source), "rb") as file:
            data = file.read()
        damaged = []
        for share in (0, 0.001, 0.3, 0.9, 0.999):
            damaged.append((f"truncated to {share}", data[: int(len(data) * share)]))
        for number in range(7):
            at = bench.random.randrange(len(data)) if number else len(data) - 6
            damaged.append((f"flipped at {at}", data[:at] + bytes([data[at] ^ (1 << bench.random.randrange(8))]) + data[at + 1:]))
        damaged.append(("twice", data + data))
        damaged.append(("with NUL bytes in the middle", data[: len(data) // 2] + bytes(5000) + data[len(data) // 2:]))
        for what, bytes_of in damaged:
            file = f"x.{ending}"
            # Whatever is taken of it is one whole ingest: keys may be other ones.
            yield Case(f"input {ending} {what}: ingest", ["ingest", "t", file], setup=written(file, bytes_of), table=True,
                       rows=(ROWS, 2 * ROWS), says=[file, "no rows"])
        for what, bytes_of in damaged[1:8:2]:
            file = f"x.{ending}"
            yield Case(f"input {ending} {what}: evaluate", ["evaluate", file, "--partition-key", "k", "--partitions", "4"],
                       setup=written(file, bytes_of), says=[file, "column", "rows"])
    oversized = {
        "a line of 40 MB": b"k,u,v,d,at\n1," + b"x" * 40_000_000 + b",1,1,2026-01-01\n",
        "a header of 20 MB": b"k" * 20_000_000 + b",u\n1,2\n",
        "5,000 columns": b",".join(b"c%d" % i for i in range(5_000)) + b"\n" + b",".join([b"1"] * 5_000) + b"\n",
        "a quote that never closes": b'k,u,v,d,at\n1,"' + b"x\n" * 10_000_000,
        "only commas": b"," * 1_000_000,
        "only newlines": b"\n" * 5_000_000,
        "a number of 1 MB": b"k,u,v,d,at\n" + b"9" * 1_000_000 + b",u,1,1,2026-01-01\n",
        "invalid UTF-8": b"k,u,v,d,at\n1,\xff\xfe\xfd,1,1,2026-01-01\n",
        "too many fields": b"k,u,v,d,at\n1,2,3,4,2026-01-01,6\n",
        "the same header twice": b"k,k,u,v\n1,2,3,4\n",
    }
    for what, data in oversized.items():
        yield Case(f"input csv {what}: ingest", ["ingest", "t", "x.csv"], codes=(DONE, FAILED) if what in ("only newlines", "a line of 40 MB") else (FAILED, USAGE),
                   setup=written("x.csv", data), table=True, rows=(ROWS, ROWS + 1), memory=1500, says=["x.csv"])
        yield Case(f"input csv {what}: evaluate", ["evaluate", "x.csv", "--partition-key", "k", "--partitions", "4"],
                   codes=(DONE, FAILED, USAGE), setup=written("x.csv", data), memory=1500, says=["x.csv", "column", "'k'"])
    yield Case("input csv 5,000 columns: evaluate without a key", ["evaluate", "x.csv"], codes=(DONE, FAILED),
               setup=written("x.csv", oversized["5,000 columns"]), memory=1500)
    deep = b'{"k":1,"u":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
    yield Case("input ndjson nested 200,000 deep", ["ingest", "t", "x.ndjson"], codes=(DONE, FAILED), setup=written("x.ndjson", deep), table=True,
               rows=ROWS, says=["x.ndjson"])
    yield Case("input json nested 200,000 deep", ["evaluate", "x.json"], codes=(FAILED, USAGE), setup=written("x.json", b"[" * 200_000), says=["x.json"])
    bomb = gzip.compress(bytes(300_000_000), 9)
    yield Case("input gzip of 300 MB of NUL", ["evaluate", "x.csv.gz"], codes=(FAILED, USAGE), setup=written("x.csv.gz", bomb), memory=1500,
               says=["x.csv.gz"])
