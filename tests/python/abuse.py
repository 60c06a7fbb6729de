#!/usr/bin/env python3
"""Hostile calls of the program.

    python3 tests/python/abuse.py BINARY [--seed N] [--only TEXT] [--jobs N] [--list]

Each case is one call (or a few) in a folder of its own with an exit code that is allowed, one clear
line on standard error, bounded time and memory, and nothing left behind: no temporary file, no file
beside those that the case may make, and a table that still opens. Standard library only. The last
line is 'N passed, N failed'; the exit code is 1 if a case failed.
"""

import argparse
import concurrent.futures
import shutil
import subprocess
import sys
import tempfile
import time

from abuse_cases.bench import Bench, Failure, TooSlow
from abuse_cases.ddl import ddl
from abuse_cases.exports import exports
from abuse_cases.inputs import inputs
from abuse_cases.machine import machine
from abuse_cases.options import options
from abuse_cases.sql import sql
from abuse_cases.tables import tables


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only cases whose name has this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    root = tempfile.mkdtemp(prefix="abuse-")
    try:
        bench = Bench(args.binary, root, args.seed)
        bench.prepare()
        cases = [case for kind in (inputs, exports, tables, sql, options, ddl, machine) for case in kind(bench) if args.only in case.name]
        if args.list:
            print("\n".join(case.name for case in cases))
        # The heavy kinds are spread over the run.
        bench.random.shuffle(cases)
        passed, failed, slow, again = 0, [], [], []

        def attempt(case):
            started = time.monotonic()
            try:
                bench.run(case)
                return case, None, time.monotonic() - started
            except TooSlow as error:
                return case, error, time.monotonic() - started
            except (Failure, OSError, subprocess.SubprocessError) as error:
                return case, str(error), time.monotonic() - started

        def report(case, error, took):
            nonlocal passed
            slow.append((took, case.name))
            if error is None:
                passed += 1
            else:
                failed.append((case.name, error))
                print(f"FAILED {case.name}: {error}", flush=True)

        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as workers:
            for case, error, took in workers.map(attempt, cases):
                if isinstance(error, TooSlow):
                    again.append(case)
                else:
                    report(case, error, took)
        # Time is evidence only of a call that had the machine to itself.
        for case in again:
            report(*attempt(case))
        slow.sort(reverse=True)
        print(f"{len(cases)} cases in {time.monotonic() - started:.0f} s; slowest: " + ", ".join(f"{name} {took:.1f} s" for took, name in slow[:5]))
        print(f"{passed} passed, {len(failed)} failed")
        sys.exit(1 if failed else 0)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
