"""The examples in docs/examples run, and say what they should."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq


def run(project: pathlib.Path, example: str, *arguments: object, code: int = 0) -> str:
    program = [sys.executable, str(project / "docs" / "examples" / example), *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_from_a_frame_to_a_key_a_table_and_a_plot(project: pathlib.Path, tmp_path: pathlib.Path) -> None:
    said = run(project, "frame_to_table.py", tmp_path)
    assert "PARTITION BY HASH(customer_id)" in said or "PARTITION BY HASH(order_id)" in said, said
    assert "50,000 rows" in said
    assert (tmp_path / "partitions.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "orders.html").read_text().startswith("<!doctype html>")


def test_the_ad_events_scenario(project: pathlib.Path, tmp_path: pathlib.Path) -> None:
    said = run(project, "ad_events.py", tmp_path)
    assert "batch 3: 20,000 rows" in said and "clicks per campaign in the last hour" in said
    assert (tmp_path / "ad_events").is_dir()


def test_the_nightly_check_fails_when_the_key_drifts(project: pathlib.Path, tmp_path: pathlib.Path) -> None:
    def export(name: str, users: int) -> pathlib.Path:
        rows = 20_000
        at = pa.array([1_767_225_600_000_000 + n * 4_000_000 for n in range(rows)], pa.timestamp("us"))
        heavy = [f"u{n * 7919 % users}" for n in range(rows)]
        pq.write_table(pa.table({"at": at, "user_id": heavy}), tmp_path / name)
        return tmp_path / name

    baseline = tmp_path / "baseline.json"
    monday, tuesday = export("monday.parquet", 5000), export("tuesday.parquet", 5000)
    assert "is the baseline" in run(project, "nightly_check.py", monday, baseline)
    assert "is even" in run(project, "nightly_check.py", tuesday, baseline)
    said = run(project, "nightly_check.py", export("wednesday.parquet", 3), baseline, code=1)
    assert said.startswith("ALERT") and "max_over_mean" in said
    run(project, "nightly_check.py", code=1)
