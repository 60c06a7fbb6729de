"""Random tables and statements: what evenkeel answers against DuckDB over the raw rows.

Each round declares a table of random columns and keys, ingests random batches (with rows that come
again, NULL, NaN, infinities and extreme values), and in between adds columns, compacts and cleans.
DuckDB holds the same batches in the order in which they came, and finds the newest row of each key
by itself. Then both answer random statements: every answer has to be the same, row by row.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from differential_rounds.answers import PeerFailed
from differential_rounds.tables import Round


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("server")
    parser.add_argument("--statements", type=int, default=1500)
    parser.add_argument("--each", type=int, default=60, help="statements for each state of a table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--large", type=float, default=0.04, help="share of tables with several row groups")
    parser.add_argument("--richer", type=float, default=0.4, help="share of the statements of richer_statements.py")
    parser.add_argument("--keep-going", action="store_true", help="report every difference")
    options = parser.parse_args()
    server = subprocess.Popen([options.server, "--ignored", "--exact", "sql_server::statements_from_standard_input",
                               "--nocapture"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    started, done, failed, peer_failed, seed = time.time(), 0, 0, 0, options.seed
    with tempfile.TemporaryDirectory() as folder:
        while done < options.statements and time.time() - started < options.seconds:
            this = Round(options, seed, Path(folder), server)
            failures_before = peer_failed
            for _ in range(2):
                if peer_failed > failures_before:
                    break
                this.change()
                for number in range(options.each):
                    sql, ordered = this.statement()
                    try:
                        difference = this.compare(sql, ordered, number == 0)
                    except PeerFailed as error:
                        # Its database is closed after that; the other tables are compared.
                        print(f"seed {seed}: DuckDB fails by itself: {error}", flush=True)
                        peer_failed += 1
                        break
                    done += 1
                    if difference:
                        failed += 1
                        keys = [(c.name, c.kind) for c in this.columns]
                        print(f"seed {seed}: {sql}\n  {keys}\n  {difference}", flush=True)
            seed += 1
            this.duck.close()
            print(f"{done} statements, {failed} failed, {time.time() - started:.0f} s", flush=True)
            subprocess.run(["rm", "-rf", this.table], check=True)
            if failed and not options.keep_going:
                break
    server.stdin.close()
    server.wait()
    print(f"{seed - options.seed} tables, {done} statements in {time.time() - started:.0f} s")
    if peer_failed:
        print(f"{peer_failed} statements that DuckDB could not answer")
    print(f"{done - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
