"""Figures of `evenkeel evaluate` on random exports, each computed once more by DuckDB.

    figures.py EVENKEEL EXPORTS SEED

`run_figures.sh` makes the environment. The hash of a key is that of the bytes that YDB's
documentation gives, by the package xxhash; everything that is counted, DuckDB counts. An export
that fails is kept, and its seed is printed: `figures.py EVENKEEL 1 SEED` runs it alone.
"""

import collections
import json
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from figures_checks.comparison import same
from figures_checks.keys import keys_of
from figures_checks.partition_keys import check_partition_key
from figures_checks.primary_keys import check_primary_key
from figures_checks.random_exports import Made
from figures_checks.times import check_time

EVENKEEL, EXPORTS, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def check(seed, folder):
    made = Made(seed, folder)
    rng = made.rng
    partition, primary = keys_of(made)
    counts = sorted(rng.sample([1, 2, 3, 5, 16, 64, 100, 1000], 3))
    batch = rng.choice([1, 7, 100, 20_000])
    arguments = ["evaluate", made.inputs, "--format", "json", "--batch", batch, *made.options()]
    arguments += ["--partitions", ",".join(map(str, counts))]
    for key in partition:
        arguments += ["--partition-key", ",".join(key)]
    for key in primary:
        arguments += ["--primary-key", ",".join(key)]
    if made.has_time() and rng.random() < 0.5:
        arguments += ["--window", rng.choice(["10m", "1h", "1d"])] if made.rows else []
    run = subprocess.run([EVENKEEL, *map(str, arguments)], capture_output=True, text=True)
    if made.rows == 0:
        assert run.returncode == 1 and len(run.stderr.splitlines()) == 1, f"an empty export: {run.returncode} {run.stderr}"
        return "empty"
    if run.returncode != 0 and "are too short: there would be more than" in run.stderr:
        return "too many windows"
    assert run.returncode == 0, f"{arguments}: exit code {run.returncode}\n{run.stderr}"
    evaluation = json.loads(run.stdout)
    kinds = {column["name"]: column["type"] for column in evaluation["columns"]}
    same(evaluation["rows"], made.rows, "rows")
    same([len(evaluation["candidates"]), len(evaluation["primary_keys"])], [len(partition), len(primary)], "keys")
    check_time(made, evaluation)
    for number, (key, report) in enumerate(zip(partition, evaluation["candidates"])):
        check_partition_key(made, number, key, report, counts, kinds, batch)
    for number, (key, report) in enumerate(zip(primary, evaluation["primary_keys"])):
        check_primary_key(made, number, key, report, kinds)
    return "checked"


def main():
    outcomes, failed = collections.Counter(), 0
    for seed in range(SEED, SEED + EXPORTS):
        folder = Path(tempfile.mkdtemp(prefix=f"figures-{seed}-"))
        try:
            outcomes[check(seed, folder)] += 1
            shutil.rmtree(folder)
        except Exception:
            failed += 1
            print(f"seed {seed}, export in {folder}:\n{traceback.format_exc()}", file=sys.stderr)
            if failed == 20:
                break
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()), f"{failed} failed", sep=", ")
    sys.exit(1 if failed else 0)


main()
