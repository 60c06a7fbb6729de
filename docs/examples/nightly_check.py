"""A nightly check that fails if the key of a table drifts.

    python nightly_check.py EXPORT BASELINE

evaluates the key of a day's export and compares it with the baseline of an earlier day, which the
first run writes. Exit code 1 if the key has become uneven, or notably different. The program alone
checks the same, with exit code 3, and its JSON is a baseline:

    evenkeel evaluate EXPORT --partition-key user_id --partitions 16 \\
        --baseline BASELINE --fail-on 'max_over_mean>1.5' --fail-on 'drift>0'
"""

import pathlib
import sys

import evenkeel

if len(sys.argv) != 3:
    sys.exit("usage: python nightly_check.py EXPORT BASELINE")
export, baseline = map(pathlib.Path, sys.argv[1:])

try:
    answer = evenkeel.evaluate(
        export,
        partition_keys=["user_id"],
        partitions=16,
        baseline=baseline if baseline.exists() else None,
        fail_on=["max_over_mean>1.5", "drift>0"],
    )
except evenkeel.ThresholdError as met:
    for line in met.crossings:
        print(f"ALERT {line}")
    for drift in met.result.to_dict().get("drift") or []:
        if drift["notable"]:
            print(f"  {drift['subject']}: {drift['figure']} was {drift['before']}, is {drift['now']}")
    sys.exit(1)

key = answer.keys[0]
print(f"HASH({key.partition_key}) is {key.verdict}: max/mean {key.max_over_mean:.2f}")
if not baseline.exists():
    answer.save(baseline)
    print(f"{baseline} is the baseline from now on")
