"""Evaluations: the same answer from any source, and its forms."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import evenkeel


def figures(answer: evenkeel.Evaluation) -> dict:
    """All figures but those of the file itself."""
    value = answer.to_dict()
    for field in ("seconds", "inputs", "input_bytes", "considered_from"):
        value.pop(field, None)
    value["recommendation"].pop("commands")
    return value


def test_every_source_gives_the_figures_of_the_file(make_events, tmp_path: pathlib.Path) -> None:
    rows = make_events(20_000)
    pq.write_table(rows, tmp_path / "visits.parquet")
    of_file = figures(evenkeel.evaluate(tmp_path / "visits.parquet", nodes=[4, 16]))
    relation = duckdb.connect().from_arrow(rows)
    pandas = rows.to_pandas()
    pandas.index = [f"r{n}" for n in range(len(pandas))]  # an index without a name is no column
    categories = pandas.astype({"event_type": "category"})
    sources = {
        "table": rows,
        "reader": pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=999)),
        "dataset": ds.dataset(rows),
        "pandas": pandas,
        "categories": categories,
        "polars": pl.DataFrame(rows),
        "lazy": pl.DataFrame(rows).lazy(),
        "duckdb": relation,
        "list of paths": [str(tmp_path / "visits.parquet")],
    }
    for name, source in sources.items():
        found = figures(evenkeel.evaluate(source, name="visits", nodes=[4, 16]))
        assert found["rows"] == 20_000, name
        assert found["recommendation"] == of_file["recommendation"], name
        assert found["candidates"] == of_file["candidates"], name
        assert found["primary_keys"] == of_file["primary_keys"], name
        assert found["findings"] == of_file["findings"], name


def test_the_answer_comes_first_and_has_every_form(make_events, tmp_path: pathlib.Path) -> None:
    answer = evenkeel.evaluate(make_events(50_000, users=3000), name="visits")
    assert answer.recommendation.partition_key == ["user_id"]
    text = str(answer)
    assert "PARTITION BY HASH(user_id)" in text.split("ALTERNATIVES")[0]
    # Nothing of the temporary file or of the shell is left.
    assert tempfile_free(text) and "--verbose" not in text and "evenkeel create" not in text
    assert "Table.create('TABLE', like=ANSWER)" in text
    assert answer.recommendation.commands == [] and "evenkeel create" not in answer.to_html()
    assert tempfile_free(json.dumps(answer.to_dict())) and tempfile_free(answer.to_html())
    keys = answer.keys
    assert keys[0].partition_key == "user_id" and keys[0].distinct == 3000 and keys[0].verdict == "even"
    assert "partition_key" in repr(keys) and "<table>" in keys._repr_html_()
    assert list(keys.to_pandas().columns) == list(keys.to_polars().columns)
    page = answer._repr_html_()
    assert page.startswith('<div class="evenkeel">') and 'class="heat"' in page and "<body" not in page
    answer.save(tmp_path / "answer.html")
    assert (tmp_path / "answer.html").read_text().startswith("<!doctype html>")
    answer.save(tmp_path / "answer.json")
    assert json.loads((tmp_path / "answer.json").read_text()) == answer.to_dict()
    assert not list(tmp_path.glob("*.part"))


def tempfile_free(text: str) -> bool:
    return "/tmp/" not in text and "evenkeel-" not in text and "\\/tmp" not in text


def test_it_is_the_answer_of_the_program(project: pathlib.Path) -> None:
    file = project / "data" / "nycflights13-flights.parquet"
    answer = evenkeel.evaluate(file, partition_keys=["tailnum", ("origin", "dest")], partitions=12)
    program = [sys.executable, "-m", "evenkeel", "evaluate", str(file), "--format", "json"]
    program += ["--partition-key", "tailnum", "--partition-key", "origin,dest", "--partitions", "12"]
    printed = json.loads(subprocess.run(program, capture_output=True, check=True).stdout)
    for value in (printed, of_python := answer.to_dict()):
        value.pop("seconds")
    assert printed == of_python


def test_comparison_finds_the_key_that_drifts(make_events, tmp_path: pathlib.Path) -> None:
    monday, tuesday = make_events(5000), make_events(5000, users=3)
    before = evenkeel.evaluate(monday, "user_id", nodes=4)
    now = evenkeel.evaluate(tuesday, "user_id", nodes=4)
    assert [drift for drift in before.compare(before) if drift.notable] == []
    drifts = [drift.figure for drift in now.compare(before) if drift.notable]
    assert any("max_over_mean" in figure for figure in drifts), drifts
    before.save(tmp_path / "monday.json")
    assert now.compare(tmp_path / "monday.json") == now.compare(before)
    assert evenkeel.evaluate(tuesday, "user_id", nodes=4, baseline=before).drift


def test_a_threshold_that_is_met_raises_with_the_result(make_events) -> None:
    with pytest.raises(evenkeel.ThresholdError) as met:
        evenkeel.evaluate(make_events(3000), "event_type", nodes=4, fail_on="max_over_mean>1.2")
    assert isinstance(met.value.result, evenkeel.Evaluation)
    assert met.value.result.keys[0].distinct == 2
    assert any("max_over_mean" in line for line in met.value.crossings)
    with pytest.raises(evenkeel.ThresholdError) as met:
        evenkeel.evaluate(make_events(3000), "event_type", nodes=4, fail_on=["max_over_mean>1.2", "rows>5"])
    assert len(met.value.crossings) >= 2 and "\\n" not in str(met.value)
    evenkeel.evaluate(make_events(3000), "user_id", nodes=4, fail_on=["max_over_mean>3", "rows<5"])


def test_statements_decide_between_keys(make_events, tmp_path: pathlib.Path) -> None:
    rows = make_events(5000)
    by_user = "SELECT count(*) FROM t WHERE user_id = $user"
    for queries in ([by_user], {"by_user": by_user}, by_user):
        answer = evenkeel.evaluate(rows, "user_id", nodes=4, queries=queries)
        assert answer.statements[0].fan_out[0].partitions_read == 1, queries
    (tmp_path / "by_user.sql").write_text(by_user)
    answer = evenkeel.evaluate(rows, "user_id", nodes=4, queries=tmp_path)
    assert answer.statements[0].statement.startswith("by_user")


def test_several_tables_are_judged_with_their_joins() -> None:
    orders = pa.table({"order_id": range(2000), "customer_id": [n % 400 for n in range(2000)]})
    lines = pa.table({"order_id": [n // 3 for n in range(6000)], "line": [n % 3 for n in range(6000)]})
    both = evenkeel.evaluate({"orders": orders, "lines": lines}, joins="orders.order_id=lines.order_id")
    assert isinstance(both, evenkeel.JoinEvaluation)
    assert both.tables["lines"].recommendation.primary_key == ["order_id", "line"]
    assert both.joins and "order_id" in str(both)


def test_columns_that_are_left_out_are_noted() -> None:
    answer = evenkeel.evaluate(pa.table({"id": range(500), "l": [[n] for n in range(500)]}))
    assert any("column 'l' of type List" in note for note in answer.notes)


def test_masked_values_stay_out_of_every_form() -> None:
    secret = "alice.secret@example.com"
    rows = pa.table({"who": [secret] * 900 + [f"u{n}" for n in range(100)], "n": range(1000)})
    answer = evenkeel.evaluate(rows, "who", nodes=2, mask_values=True)
    for form in (str(answer), json.dumps(answer.to_dict()), answer.to_html(), answer._repr_html_()):
        assert secret not in form


def test_empty_frames_and_odd_names() -> None:
    with pytest.raises(evenkeel.Error, match="no rows"):
        evenkeel.evaluate(pa.table({"a": pa.array([], pa.int64())}))
    rows = pa.table({'price (EUR), "net"': range(500), "a b": [n % 50 for n in range(500)]})
    answer = evenkeel.evaluate(rows, [('price (EUR), "net"', "a b")], nodes=2)
    assert answer.keys[0].partition_key == 'price (EUR), "net", a b'


def test_wrong_arguments_are_named_as_in_python(make_events, tmp_path: pathlib.Path) -> None:
    rows = make_events(200)
    with pytest.raises(evenkeel.UsageError, match="user"):
        evenkeel.evaluate(rows, "usr_id")
    with pytest.raises(evenkeel.UsageError, match="there is no argument 'colour'"):
        evenkeel.evaluate(rows, colour="red")
    with pytest.raises(ValueError, match="sample"):
        evenkeel.evaluate(rows, sample=7)
    with pytest.raises(evenkeel.UsageError, match="Arrow stream"):
        evenkeel.evaluate(42)
    with pytest.raises(evenkeel.Error) as missing:
        evenkeel.evaluate(tmp_path / "absent.csv")
    assert missing.value.file == str(tmp_path / "absent.csv")


def test_an_error_has_the_place_of_the_row(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "ids.csv"
    file.write_text("id,n\n" + "".join(f"{n},{n}\n" for n in range(3000)) + "x7,1\n")
    with pytest.raises(evenkeel.Error) as unreadable:
        evenkeel.evaluate(file, types={"id": "uint64"})
    error = unreadable.value
    assert (error.file, error.line, error.column) == (str(file), 3002, "id")
    assert "types" in str(error) or "on_error" in str(error)


def test_temporary_files_are_gone(make_events) -> None:
    import tempfile

    before = set(os.listdir(tempfile.gettempdir()))
    evenkeel.evaluate(make_events(1000), nodes=2)
    with pytest.raises(evenkeel.UsageError):
        evenkeel.evaluate(make_events(1000), "absent")
    left = {name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("evenkeel-")}
    assert not left


def test_progress_is_reported_and_may_stop_the_work(make_events) -> None:
    rows = make_events(200_000)
    seen: list[int] = []
    evenkeel.evaluate(rows, progress=lambda done, unit, share, message: seen.append(done))
    assert seen == sorted(seen)

    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        for _ in range(20):
            evenkeel.evaluate(rows, progress=stop)


def test_types_of_pandas_without_arrow_are_read() -> None:
    rows = pd.DataFrame(
        {
            "id": pd.Series(range(1000), dtype="Int64"),
            "when": pd.date_range("2026-01-01", periods=1000, freq="min", tz="Europe/Berlin"),
            "what": [f"x{n % 7}" for n in range(1000)],
        }
    )
    answer = evenkeel.evaluate(rows, nodes=2)
    assert answer.recommendation.primary_key == ["id"]
    assert answer.time == "when"


def test_views_change_no_figure(project: pathlib.Path) -> None:
    rows = pq.read_table(project / "data" / "nycflights13-flights.parquet")
    keys = ["tailnum", ("carrier", "flight"), "dest"]
    expected = figures(evenkeel.evaluate(rows, keys, primary_keys=[("time_hour", "carrier", "flight")], nodes=2))
    views = pl.DataFrame(rows)
    found = figures(evenkeel.evaluate(views, keys, primary_keys=[("time_hour", "carrier", "flight")], nodes=2))
    assert found["recommendation"] == expected["recommendation"] and found["roles"] == expected["roles"]


def test_names_of_tables_and_statements_are_checked(make_events, tmp_path: pathlib.Path) -> None:
    rows = make_events(200)
    with pytest.raises(evenkeel.UsageError, match="must differ"):
        evenkeel.evaluate({"a b": rows, "a_b": rows})
    with pytest.raises(evenkeel.UsageError, match="no tables"):
        evenkeel.evaluate({})
    for queries in ({"../x": "SELECT 1"}, {"": "SELECT 1"}, []):
        with pytest.raises(evenkeel.UsageError, match="queries"):
            evenkeel.evaluate(rows, queries=queries)
    with pytest.raises(evenkeel.UsageError, match="mapping"):
        evenkeel.evaluate(rows, types="user_id:utf8")


def test_profiles_add_up_without_their_rows(make_events, tmp_path: pathlib.Path) -> None:
    for day in (1, 2):
        evenkeel.evaluate(make_events(2000, seed=day), "user_id", save=tmp_path / f"{day}.ek")
    both = evenkeel.evaluate(None, merge=[tmp_path / "1.ek", tmp_path / "2.ek"])
    assert both.rows == 4000


def test_tables_of_a_mapping_have_its_names(tmp_path: pathlib.Path) -> None:
    orders = pa.table({"order_id": range(2000), "customer_id": [n % 400 for n in range(2000)]})
    lines = pa.table({"order_id": [n // 3 for n in range(6000)], "line": [n % 3 for n in range(6000)]})
    pq.write_table(orders, tmp_path / "x1.parquet")
    join = "orders.order_id=lines.order_id"
    both = evenkeel.evaluate({"orders": tmp_path / "x1.parquet", "lines": lines}, joins=join)
    assert list(both.tables) == ["orders", "lines"]
    assert "evenkeel create" not in str(both) and "--verbose" not in str(both) and "/tmp" not in str(both)
    assert both.tables["lines"].recommendation.commands == []
    both.save(tmp_path / "both.html")
    page = (tmp_path / "both.html").read_text()
    assert page.startswith("<!doctype html>") and "<h2>lines</h2>" in page and "HASH(order_id)" in page
