"""From a frame of pandas to a key, a table and a plot of how even it is.

    python frame_to_table.py [FOLDER]

Needs pandas, pyarrow and matplotlib.
"""

import pathlib
import sys

import matplotlib
import numpy as np
import pandas as pd

import evenkeel

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")

# Orders of a shop: a few customers order much more than others.
random = np.random.default_rng(7)
rows = 50_000
orders = pd.DataFrame(
    {
        "ordered_at": pd.Timestamp("2026-03-01") + pd.to_timedelta(np.arange(rows) * 20, unit="s"),
        "order_id": np.arange(1_000_000, 1_000_000 + rows),
        "customer_id": 5000 * random.power(0.6, rows) // 1,
        "country": random.choice(["DE", "FR", "NL", "PL"], rows, p=[0.7, 0.1, 0.1, 0.1]),
        "amount": random.gamma(2.0, 30.0, rows).round(2),
    }
).astype({"customer_id": "int64"})

# Which key? The answer comes with reasons, and with what the others cost.
answer = evenkeel.evaluate(orders, name="orders")
print(answer)
answer.save(folder / "orders.html")

# A table with the recommended keys, filled from the frame.
table = evenkeel.Table.create(folder / "orders", like=answer)
print(table.ingest(orders))

top = table.sql(
    "SELECT customer_id, count(*) AS orders, sum(amount) AS amount FROM orders "
    "GROUP BY customer_id ORDER BY amount DESC LIMIT 3"
)
print(top.to_pandas())

# How many rows each partition would have, by this key and by the country.
figure, axes = pyplot.subplots(1, 2, sharey=True, figsize=(9, 3))
for axis, key in zip(axes, [table.partition_key, ["country"]]):
    partitions = evenkeel.place(orders[key], partitions=table.partitions)
    counts = np.bincount(np.asarray(partitions), minlength=table.partitions)
    axis.bar(range(table.partitions), counts)
    axis.set_title(f"HASH({', '.join(key)})")
    axis.set_xlabel("partition")
axes[0].set_ylabel("rows")
figure.tight_layout()
figure.savefig(folder / "partitions.png")
print(f"the plot is in {folder / 'partitions.png'}")
