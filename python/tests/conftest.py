"""Tables and rows that tests share."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Callable

import pyarrow as pa
import pytest

import evenkeel

PROJECT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def project() -> pathlib.Path:
    """Root of the project, with its data."""
    return PROJECT


def events(rows: int, users: int = 300, seed: int = 1) -> pa.Table:
    """Ad events in arrival order, every user about as often as any other."""
    random.seed(seed)
    start = 1_767_225_600_000_000
    return pa.table(
        {
            "event_timestamp": pa.array(
                [start + n * 1_000_000 + random.randrange(900_000) for n in range(rows)], pa.timestamp("us")
            ),
            "user_id": pa.array([f"u{random.randrange(users):05}" for _ in range(rows)]),
            "campaign_id": pa.array([random.randrange(40) for _ in range(rows)], pa.uint64()),
            "event_type": pa.array([random.choice(["impression", "click"]) for _ in range(rows)]),
        }
    )


@pytest.fixture
def make_events() -> Callable[..., pa.Table]:
    """Makes ad events."""
    return events


@pytest.fixture
def table(tmp_path: pathlib.Path) -> evenkeel.Table:
    """An empty table of ad events."""
    return evenkeel.Table.create(
        tmp_path / "events",
        like=events(100),
        primary_key=["event_timestamp", "user_id", "campaign_id"],
        partition_key="user_id",
        nodes=2,
    )
