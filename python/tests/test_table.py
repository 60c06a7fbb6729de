"""Tables: ingests, queries, versions, changes, errors."""

from __future__ import annotations

import pathlib

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import evenkeel


def test_frames_of_every_library_go_in_and_come_out(table: evenkeel.Table, make_events) -> None:
    rows = make_events(3000)
    count = "SELECT count(*) AS n FROM events"
    pieces = [rows.slice(n * 500, 500) for n in range(6)]
    connection = duckdb.connect()
    sources = [
        pieces[0],
        pieces[1].to_pandas(),
        pl.DataFrame(pieces[2]),
        connection.from_arrow(pieces[3]),
        pa.RecordBatchReader.from_batches(rows.schema, pieces[4].to_batches()),
        pieces[5].to_batches()[0],
    ]
    for number, source in enumerate(sources, 1):
        report = table.ingest(source)
        assert report.rows == 500 and report.rows_per_partition and sum(report.rows_per_partition) == 500
        assert table.sql(count).to_pylist() == [{"n": 500 * number}]
    by_user = "SELECT user_id, count(*) AS n FROM events GROUP BY user_id ORDER BY user_id"
    expected = duckdb.sql("SELECT user_id, count(*) AS n FROM rows GROUP BY user_id ORDER BY user_id").fetchall()
    assert [tuple(row.values()) for row in table.sql(by_user).to_pylist()] == expected
    assert list(table.sql(by_user).to_pandas().itertuples(index=False, name=None)) == expected
    assert table.sql(by_user).to_polars().rows() == expected
    result = table.sql(by_user)  # found by DuckDB under the name of the variable
    assert connection.sql("SELECT * FROM result").fetchall() == expected


def test_the_result_of_a_query_can_be_ingested(table: evenkeel.Table, make_events, tmp_path: pathlib.Path) -> None:
    table.ingest(make_events(2000))
    copy = evenkeel.Table.create(
        tmp_path / "copy", like=make_events(10), primary_key=table.primary_key, partition_key="campaign_id", nodes=1
    )
    assert copy.ingest(table.sql("SELECT * FROM events")).rows == 2000
    everything = "SELECT * FROM t ORDER BY event_timestamp, user_id, campaign_id"
    assert copy.sql(everything).to_arrow() == table.sql(everything).to_arrow()


def test_an_evaluation_becomes_a_table(make_events, tmp_path: pathlib.Path) -> None:
    rows = make_events(5000)
    answer = evenkeel.evaluate(rows, name="visits", nodes=4)
    table = evenkeel.Table.create(tmp_path / "visits", like=answer)
    assert table.partition_key == answer.recommendation.partition_key
    assert table.primary_key == answer.recommendation.primary_key
    assert table.partitions == answer.recommendation.partitions
    table.ingest(rows, compact=False)
    skew = table.skew()
    key = [one for one in answer.candidates if one.partition_key == table.partition_key][0]
    same = [placement for placement in key.placements if placement.partitions == table.partitions][0]
    assert skew.rows_per_partition == same.rows_per_partition
    assert "PARTITION BY HASH" in table.ddl and table.name == "visits"


def test_later_rows_replace_and_versions_stay(tmp_path: pathlib.Path) -> None:
    table = evenkeel.Table.create(
        tmp_path / "t", columns={"k": "int64:not-null", "v": "utf8"}, primary_key="k", partitions=2
    )
    table.ingest(pa.table({"k": [1, 2], "v": ["a", "b"]}), compact=False)
    first = table.version
    table.ingest(pa.table({"k": [2, 3], "v": ["B", "c"]}), compact=False)
    query = "SELECT k, v FROM t ORDER BY k"
    assert table.sql(query).to_pylist() == [{"k": 1, "v": "a"}, {"k": 2, "v": "B"}, {"k": 3, "v": "c"}]
    old = evenkeel.Table(table.path, version=first)
    assert old.sql(query).to_pylist() == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    # Another handle sees each commit with its next query.
    other = evenkeel.Table(table.path)
    table.ingest(pa.table({"k": [1]}), deletes=True)
    changes = pa.table({"k": [2, 4], "v": ["x", "d"], "op": ["d", "u"]})
    table.ingest(changes, delete_column=("op", "d"))
    assert [row["k"] for row in other.sql(query).to_pylist()] == [3, 4]
    assert table.delete("v = $v", {"v": "d"}).rows == 1
    assert [row["k"] for row in other.sql(query).to_pylist()] == [3]
    assert old.sql(query).to_pylist() == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    assert table.compact(full=True).to_dict()
    assert [row["k"] for row in other.sql(query).to_pylist()] == [3]
    with pytest.raises(evenkeel.Error):
        table.ingest(pa.table({"k": [3], "v": ["again"]}), mode="insert")
    assert table.check().to_dict() and table.inspect().to_dict()
    table.clean(keep="0s")


def test_files_and_folders_are_ingested(table: evenkeel.Table, make_events, tmp_path: pathlib.Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    rows = make_events(1000)
    pyarrow.parquet.write_table(rows.slice(0, 600), tmp_path / "a.parquet")
    pyarrow.csv.write_csv(rows.slice(600), tmp_path / "b.csv")
    report = table.ingest([tmp_path / "a.parquet", tmp_path / "b.csv"])
    assert report.rows == 1000 and table.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 1000}]
    again = table.ingest(tmp_path / "a.parquet")
    assert again.version is None, again
    assert table.ingest(tmp_path / "a.parquet", again=True).version == table.version


def test_a_row_that_does_not_fit_is_named_and_nothing_is_committed(tmp_path: pathlib.Path) -> None:
    table = evenkeel.Table.create(
        tmp_path / "t", columns={"k": "int64:not-null", "n": "uint8"}, primary_key="k", partitions=2
    )
    for rows, row, column in [
        (pa.table({"k": [1, 2, 3], "n": [1, 300, 3]}), 2, "n"),
        (pa.table({"k": [1, None], "n": [1, 2]}), 2, "k"),
    ]:
        with pytest.raises(evenkeel.Error) as refused:
            table.ingest(rows)
        assert (refused.value.row, refused.value.column) == (row, column)
        assert "Nothing was committed" in refused.value.message
    assert table.version == 0 and table.sql("SELECT * FROM t").to_pylist() == []
    with pytest.raises(evenkeel.Error, match="none of the expected columns|no column 'k'"):
        table.ingest(pa.table({"x": [1]}))
    with pytest.raises(evenkeel.UsageError, match="again"):
        table.ingest(pa.table({"k": [1]}), again=True)
    with pytest.raises(evenkeel.UsageError, match="upsert"):
        table.ingest(pa.table({"k": [1]}), mode="replace")


def test_a_source_that_fails_commits_nothing(table: evenkeel.Table, make_events) -> None:
    rows = make_events(2000)

    def batches():
        yield from rows.slice(0, 1000).to_batches()
        raise OSError("the network is down")

    reader = pa.RecordBatchReader.from_batches(rows.schema, batches())
    with pytest.raises(evenkeel.Error, match="the network is down"):
        table.ingest(reader)
    assert table.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 0}]


def test_empty_frames(table: evenkeel.Table, make_events) -> None:
    assert table.ingest(make_events(0)).rows == 0
    frame = table.sql("SELECT user_id, campaign_id FROM events").to_pandas()
    assert list(frame.columns) == ["user_id", "campaign_id"] and len(frame) == 0
    assert table.sql("SELECT user_id FROM events").to_polars().schema["user_id"] == pl.String


def test_failed_queries_raise_and_results_are_read_once(table: evenkeel.Table, make_events) -> None:
    table.ingest(make_events(1000))
    with pytest.raises(evenkeel.Error, match="colour"):
        table.sql("SELECT colour FROM events")
    with pytest.raises(evenkeel.Error, match="took longer"):
        pairs = "WITH n AS (SELECT unnest(range(1, 40000)) AS v) SELECT count(*) FROM n a JOIN n b ON a.v + b.v < 0"
        table.sql(pairs, timeout=0.2).to_arrow()
    with pytest.raises(evenkeel.UsageError, match="too small"):
        table.sql("SELECT 1", memory="1MiB")
    with pytest.raises(evenkeel.UsageError, match="much"):
        table.sql("SELECT 1", memory="much")
    result = table.sql("SELECT user_id FROM events")
    shown = repr(result)
    assert "user_id" in shown and "first 20 rows" in shown and "<pre>" in result._repr_html_()
    assert result.to_arrow().num_rows == 1000, "what was shown is still there"
    with pytest.raises(evenkeel.UsageError, match="run the query again"):
        result.to_arrow()
    assert "have been read" in repr(result)
    # An error in the middle of the rows reaches the library that reads them.
    late = table.sql("SELECT 1000 / (campaign_id - campaign_id) AS x FROM events")
    with pytest.raises(Exception, match="(?i)divide by zero"):
        pa.table(late)


def test_opening_what_is_no_table(tmp_path: pathlib.Path, table: evenkeel.Table) -> None:
    with pytest.raises(evenkeel.Error):
        evenkeel.Table(tmp_path / "absent")
    with pytest.raises(evenkeel.Error):
        evenkeel.Table(table.path, version=99)
    with pytest.raises(evenkeel.UsageError):
        evenkeel.Table.create(tmp_path / "x", columns={"k": "colour"}, primary_key="k")
    with pytest.raises(evenkeel.Error):
        evenkeel.Table.create(table.path, columns={"k": "int64:not-null"}, primary_key="k")


def scores(path: pathlib.Path) -> evenkeel.Table:
    return evenkeel.Table.create(
        path / "scores", columns={"k": "int64:not-null", "v": "utf8"}, primary_key="k", partitions=2
    )


def test_a_batch_of_another_schema_commits_nothing(tmp_path: pathlib.Path) -> None:
    table = scores(tmp_path)
    good = pa.record_batch({"k": [1, 2], "v": ["a", "b"]})

    def batches():
        yield good
        yield pa.record_batch({"k": [3]})

    with pytest.raises(evenkeel.Error, match="source"):
        table.ingest(pa.RecordBatchReader.from_batches(good.schema, batches()))
    assert table.refresh().version == 0


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_that_is_not_utf8_is_refused(kind: pa.DataType, tmp_path: pathlib.Path) -> None:
    table = scores(tmp_path)
    binary = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    values = pa.array([b"fine", b"ok\xff, and more than twelve bytes"], binary[kind])
    broken = pa.Array.from_buffers(kind, 2, values.buffers())
    with pytest.raises(evenkeel.Error, match="not UTF-8") as refused:
        table.ingest(pa.table({"k": [1, 2], "v": broken}))
    assert (refused.value.row, refused.value.column) == (2, "v")
    assert table.refresh().version == 0
    with pytest.raises(evenkeel.UsageError, match="not UTF-8"):
        evenkeel.place(broken, "utf8")
    with pytest.raises(evenkeel.Error, match="not UTF-8"):
        evenkeel.evaluate(pa.table({"v": broken}))


def test_parameters_of_delete_are_values(tmp_path: pathlib.Path) -> None:
    table = scores(tmp_path)
    table.ingest(pa.table({"k": [1, 2], "v": ["None", "x"]}))
    assert table.delete("v = $p", {"p": None}).rows == 0
    assert table.delete("v = $p", {"p": "None"}).rows == 1
    assert table.sql("SELECT k FROM t").to_pylist() == [{"k": 2}]
    with pytest.raises(evenkeel.Error):
        table.delete("no_such_column = 1")


def test_columns_that_do_not_fit_are_noted(tmp_path: pathlib.Path) -> None:
    table = scores(tmp_path)
    report = table.ingest(pa.table({"k": [1], "V": ["x"]}))
    assert report.notes == [
        "columns that the table does not have were left out: V",
        "columns that the input does not have are NULL: v",
    ]
    with pytest.warns(UserWarning, match="column 'l' of type List.*left out"):
        evenkeel.Table.create(
            tmp_path / "t", like=pa.table({"k": [1], "l": [[1, 2]]}), primary_key="k", partitions=2
        )


def test_a_table_at_a_version_is_read_and_not_changed(tmp_path: pathlib.Path) -> None:
    table = scores(tmp_path)
    table.ingest(pa.table({"k": [1], "v": ["a"]}), compact=False)
    table.ingest(pa.table({"k": [2], "v": ["b"]}), compact=False)
    old = evenkeel.Table(table.path, version=1)
    assert sum(old.skew()["rows_per_partition"]) == 1
    for change in (
        lambda: old.ingest(pa.table({"k": [3], "v": ["c"]})),
        lambda: old.delete("k = 1"),
        lambda: old.compact(),
        lambda: old.clean(keep="0s"),
    ):
        with pytest.raises(evenkeel.UsageError, match="opened at a version"):
            change()


def test_keys_with_odd_names(tmp_path: pathlib.Path) -> None:
    rows = pa.table({"user id": [f"u{n % 900}" for n in range(5000)], "at (UTC)": range(5000)})
    answer = evenkeel.evaluate(rows, nodes=2)
    table = evenkeel.Table.create(tmp_path / "t", like=answer)
    assert table.partition_key == answer.recommendation.partition_key == ["user id"]
    assert table.ingest(rows).rows == 5000
    with pytest.raises(evenkeel.UsageError, match="comma"):
        evenkeel.Table.create(tmp_path / "u", columns={"a,b": "int64:not-null"}, primary_key=["a,b"])


def test_lists_of_texts_go_to_pandas(tmp_path: pathlib.Path) -> None:
    table = scores(tmp_path)
    table.ingest(pa.table({"k": [1, 2], "v": ["a", "b"]}))
    frame = table.sql("SELECT array_agg(v ORDER BY v) AS all FROM t").to_pandas()
    assert list(frame["all"][0]) == ["a", "b"]
