"""Processes: the interpreter's lock, Ctrl-C, threads, forks, memory, the program."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pyarrow as pa
import pytest

import evenkeel

#: Billions of pairs, of which none is a row.
SLOW = (
    "SELECT count(*) FROM events a JOIN events b ON a.campaign_id + b.campaign_id > 1000 "
    "JOIN events c ON a.campaign_id * c.campaign_id > 10000"
)


def python(code: str, *arguments: str, **options: object) -> subprocess.Popen:
    """Starts an interpreter in a process of its own."""
    program = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_other_threads_go_on_while_work_runs(table: evenkeel.Table, make_events) -> None:
    table.ingest(make_events(100_000))
    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count, daemon=True)
    counter.start()
    started = time.monotonic()
    with pytest.raises(evenkeel.Error, match="took longer"):
        table.sql(SLOW, timeout=1.0).to_arrow()
    waited = time.monotonic() - started
    done.set()
    counter.join()
    assert turns > 50 * waited, (turns, waited)


def test_threads_share_a_table(table: evenkeel.Table, make_events) -> None:
    pieces = [make_events(300, seed=n).append_column("n", pa.array([n] * 300)) for n in range(8)]

    def ingest(piece: pa.Table) -> int:
        return table.ingest(piece, compact=False).version

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(ingest, pieces))
        assert len(set(versions)) == 8
        counts = list(pool.map(lambda _: table.sql("SELECT count(*) AS n FROM t").to_pylist()[0]["n"], range(8)))
    distinct = pa.concat_tables(piece.select(table.primary_key) for piece in pieces).group_by(table.primary_key)
    assert set(counts) == {distinct.aggregate([]).num_rows}


INTERRUPTED = """
    import sys, time, evenkeel, numpy, pyarrow
    def read(rows):
        # The other library's own error comes first.
        try:
            pyarrow.table(rows)
        except pyarrow.ArrowInvalid:
            time.sleep(10)
    table = evenkeel.Table(sys.argv[1])
    print("ready", flush=True)
    try:
        {work}
    except KeyboardInterrupt:
        print("interrupted", table.refresh().version, flush=True)
"""

WORKS = {
    "a query": 'table.sql(sys.argv[2]).to_arrow()',
    "a query that another library reads": 'read(table.sql(sys.argv[2]))',
    "an ingest": (
        "batch = table.sql('SELECT * FROM t').to_arrow().to_batches()[0]; "
        "table.ingest(pyarrow.RecordBatchReader.from_batches(batch.schema, iter(lambda: batch, None)))"
    ),
    "an ingest of one large batch": (
        "n = 8_000_000; at = numpy.arange(n).astype('datetime64[us]'); "
        "user = pyarrow.array(['u']).take(pyarrow.array(numpy.zeros(n, int))); "
        "table.ingest(pyarrow.table({'event_timestamp': at, 'user_id': user, 'campaign_id': numpy.arange(n) % 9}))"
    ),
}


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
def test_ctrl_c_ends_work_and_nothing_is_committed(work: str, table: evenkeel.Table, make_events) -> None:
    table.ingest(make_events(100_000))
    process = python(INTERRUPTED.format(work=work), table.path, SLOW)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    said, failed = process.communicate(timeout=30)
    assert process.returncode == 0, failed
    assert said == f"interrupted {table.refresh().version}\n", failed
    assert table.check().to_dict()


def test_a_forked_process_is_refused_and_a_fresh_one_works(table: evenkeel.Table) -> None:
    child = os.fork()
    if child == 0:
        try:
            table.sql("SELECT 1")
        except evenkeel.ForkError:
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    # If nothing was used before the fork, the child has threads of its own.
    process = python(
        """
        import os, sys, evenkeel
        child = os.fork()
        rows = evenkeel.Table(sys.argv[1]).sql("SELECT 1 AS x").to_pylist()
        if child == 0:
            os._exit(0 if rows == [{"x": 1}] else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        table.path,
    )
    _, failed = process.communicate(timeout=60)
    assert process.returncode == 0, failed


def test_ten_million_rows_without_a_copy(tmp_path: pathlib.Path) -> None:
    """The process grows by the rows once, however many libraries look at them."""
    process = python(
        """
        import sys, duckdb, evenkeel, polars, pyarrow as pa
        rows = 10_000_000

        def resident():
            status = open("/proc/self/status").read()
            return int(status.split("RssAnon:")[1].split()[0]) * 1024

        table = evenkeel.Table.create(sys.argv[1], columns={"k": "int64:not-null", "v": "double"},
                                      primary_key="k", partitions=4)
        step = 1_000_000
        def batches():
            for n in range(0, rows, step):
                k = pa.array(range(n, n + step), pa.int64())
                yield pa.record_batch({"k": k, "v": k.cast(pa.float64())})
        schema = pa.schema({"k": pa.int64(), "v": pa.float64()})
        table.ingest(pa.RecordBatchReader.from_batches(schema, batches()), memory="256MiB")
        before = resident()
        result = table.sql("SELECT k, v FROM t").to_arrow()
        grown = resident() - before
        assert result.num_rows == rows
        frame = polars.from_arrow(result, rechunk=False)
        [(total,)] = duckdb.sql("SELECT sum(k) FROM result").fetchall()
        after = resident() - before
        assert frame.height == rows and total == frame["k"].sum() == rows * (rows - 1) // 2
        print(result.nbytes, grown, after)
        """,
        str(tmp_path / "t"),
    )
    said, failed = process.communicate(timeout=600)
    assert process.returncode == 0, failed
    size, grown, after = map(int, said.split())
    assert grown < 1.5 * size, f"{grown} bytes for {size} bytes of rows"
    assert after < 1.8 * size, f"{after} bytes for {size} bytes of rows"


def test_the_program_is_part_of_the_package(tmp_path: pathlib.Path) -> None:
    program = os.path.join(os.path.dirname(sys.executable), "evenkeel")
    demo = subprocess.run([program, "demo", "--rows", "2000"], capture_output=True, text=True, timeout=120)
    assert demo.returncode == 0 and "verdict" in demo.stdout, demo.stderr
    version = subprocess.run([program, "--version"], capture_output=True, text=True)
    assert version.stdout.split() == ["evenkeel", evenkeel.__version__]
    wrong = subprocess.run([program, "ingest"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "Usage" in wrong.stderr
    missing = subprocess.run([program, "skew", str(tmp_path / "absent")], capture_output=True, text=True)
    assert missing.returncode == 1 and missing.stderr.startswith("error:")
    closed = subprocess.run(f"{program} demo --rows 2000 | head -1", shell=True, capture_output=True, text=True)
    assert "error" not in closed.stderr and "Traceback" not in closed.stderr


def test_ctrl_c_ends_the_program_as_usual(table: evenkeel.Table, make_events) -> None:
    table.ingest(make_events(100_000))
    program = os.path.join(os.path.dirname(sys.executable), "evenkeel")
    process = subprocess.Popen([program, "query", table.path, SLOW], stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, failed = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in failed


def test_a_result_that_was_not_read_to_its_end_says_so(table: evenkeel.Table, make_events) -> None:
    table.ingest(make_events(100_000))
    result = table.sql(SLOW)
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        result.to_arrow()
    with pytest.raises(evenkeel.UsageError, match="not read to their end; run the query again"):
        result.to_arrow()
    # Of several threads, one gets all rows and the others an error.
    result = table.sql("SELECT * FROM events ORDER BY user_id")

    def read(_: int) -> int:
        try:
            return result.to_arrow().num_rows
        except evenkeel.UsageError:
            return -1

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(read, range(4))) == [-1, -1, -1, 100_000]


@pytest.mark.parametrize("work", ["table.ingest(reader)", "evenkeel.evaluate(reader)"])
def test_the_interpreter_ends_while_rows_are_read(work: str, table: evenkeel.Table) -> None:
    process = python(
        """
        import sys, threading, time, evenkeel, pyarrow as pa
        table = evenkeel.Table(sys.argv[1])
        empty = table.sql("SELECT * FROM t").to_arrow()
        def batches():
            while True:
                time.sleep(0.01)
                yield pa.record_batch([pa.nulls(0, field.type) for field in empty.schema], empty.schema)
        reader = pa.RecordBatchReader.from_batches(empty.schema, batches())
        threading.Thread(target=lambda: eval(sys.argv[2]), daemon=True).start()
        time.sleep(0.5)
        """,
        table.path,
        work,
    )
    _, failed = process.communicate(timeout=60)
    assert process.returncode == 0, failed


def test_rows_of_a_query_end_with_a_fork(table: evenkeel.Table, make_events) -> None:
    table.ingest(make_events(1000))
    reader = pa.RecordBatchReader.from_stream(table.sql("SELECT * FROM events"))
    child = os.fork()
    if child == 0:
        try:
            reader.read_all()
        except pa.ArrowInvalid:
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert reader.read_all().num_rows == 1000


def test_a_table_goes_to_another_process(table: evenkeel.Table, make_events) -> None:
    import pickle

    table.ingest(make_events(100))
    copy = pickle.loads(pickle.dumps(table))
    assert copy.version == table.version and not copy._native.is_pinned
    pinned = pickle.loads(pickle.dumps(evenkeel.Table(table.path, version=0)))
    assert pinned.version == 0 and pinned._native.is_pinned
