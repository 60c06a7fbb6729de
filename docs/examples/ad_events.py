"""The ad-events scenario: compare partition keys, ingest in batches, ask the usual questions.

    python ad_events.py [FOLDER]

Needs pandas and pyarrow.
"""

import pathlib
import subprocess
import sys
import tempfile

import pyarrow.parquet

import evenkeel

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

# The program generates events of an ad network, in arrival order.
program = [sys.executable, "-m", "evenkeel", "generate", "ad-events"]
subprocess.run([*program, "--rows", "60000", "--out", folder / "exports"], check=True)

# Four keys under the scenario's own statements.
answer = evenkeel.evaluate(
    folder / "exports",
    partition_keys=["event_timestamp", "campaign_id", "user_id", ("user_id", "event_timestamp")],
    primary_keys=[("event_timestamp", "user_id", "campaign_id")],
    nodes=4,
    queries={
        "clicks_per_campaign": "SELECT campaign_id, count(*) FROM t WHERE event_type = 'click' "
        "AND event_timestamp >= TIMESTAMP '2026-01-01T10:00:00Z' GROUP BY campaign_id",
        "events_of_user": "SELECT * FROM t WHERE user_id = $user",
    },
)
print(answer.keys)

file = next((folder / "exports").glob("*.parquet"))
table = evenkeel.Table.create(
    folder / "ad_events",
    like=file,
    primary_key=["event_timestamp", "user_id", "campaign_id"],
    partition_key="user_id",
    nodes=4,
)
for number, batch in enumerate(pyarrow.parquet.ParquetFile(file).iter_batches(20_000), 1):
    report = table.ingest(batch)
    print(f"batch {number}: {report.rows:,} rows, max/mean {report.skew.max_over_mean:.2f}")

last_hour = """
    SELECT campaign_id, count(*) AS clicks FROM ad_events
    WHERE event_type = 'click'
      AND event_timestamp > (SELECT max(event_timestamp) FROM ad_events) - INTERVAL '1' HOUR
    GROUP BY campaign_id ORDER BY clicks DESC, campaign_id LIMIT 5
"""
print("clicks per campaign in the last hour")
print(table.sql(last_hour).to_pandas())

per_user = "SELECT user_id, count(*) AS events FROM ad_events GROUP BY user_id ORDER BY events DESC LIMIT 5"
print("events per user")
print(table.sql(per_user).to_pandas())
print(table.skew())
