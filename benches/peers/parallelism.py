#!/usr/bin/env python3
"""How many cores a command could use, measured on a machine with few.

    python3 benches/peers/parallelism.py [--cores 16] [--repeat 3] -- evenkeel ingest TABLE FILES

The command runs as if the machine had that many cores (pretended_cores.c), and so starts as many
threads, unless a quota of its control group allows fewer. Many times a second, the threads that run
or could run are counted. While r threads could run, this machine's c cores do the work of min(r,
c), and n cores would do that of min(r, n); so the time on n cores is the sum of the intervals, each
times min(r, c) / min(r, n). Amdahl's law would take r to be 1 in the serial part and without limit
in the rest; counting threads also finds the parts in which only some threads have work. It assumes
that memory and disk keep up.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time

INTERVAL = 0.004


def running(process):
    """Threads of a process that run or wait for a core; None once it has ended."""
    count = 0
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            try:
                with open(f"/proc/{process}/task/{thread}/stat") as file:
                    count += file.read().rpartition(")")[2].split()[0] == "R"
            except (FileNotFoundError, ProcessLookupError):
                pass
    except (FileNotFoundError, ProcessLookupError):
        return None
    return count


def profile(command, environment):
    """Seconds by the number of threads that could run."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        seconds, last = {}, time.perf_counter()
        while process.poll() is None:
            time.sleep(INTERVAL)
            count = running(process.pid)
            now = time.perf_counter()
            if count is not None:
                seconds[count] = seconds.get(count, 0) + now - last
            last = now
        if process.returncode:
            errors.seek(0)
            raise SystemExit(errors.read().decode())
        return seconds


def on(cores, seconds, here):
    """Time on so many cores. While no thread could run, the disk or a timer is waited for."""
    return sum(time * min(ready, here) / min(ready, cores) if ready else time for ready, time in seconds.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--before", help="a command of the shell to run before each repetition")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    here = len(os.sched_getaffinity(0))
    counts = sorted({1, 2, 4, 8, args.cores, here})
    found = {cores: [] for cores in counts}
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "cores.so")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pretended_cores.c")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        environment = {**os.environ, "LD_PRELOAD": library, "PRETENDED_CORES": str(args.cores)}
        for _ in range(args.repeat):
            if args.before:
                subprocess.run(args.before, shell=True, check=True, stdout=subprocess.DEVNULL)
            seconds = profile(args.command, environment)
            for cores in counts:
                found[cores].append(on(cores, seconds, here))
            shares.append(sum(time for ready, time in seconds.items() if ready < 2) / sum(seconds.values()))
    one = statistics.median(found[1])
    print("| cores | seconds | faster than one |")
    print("|--:|--:|--:|")
    for cores in counts:
        seconds = statistics.median(found[cores])
        print(f"| {cores}{' (measured)' if cores == here else ''} | {seconds:.2f} | {one / seconds:.1f} x |")
    print(f"\nat most one thread could run for {statistics.median(shares):.0%} of the time on {here} cores")


if __name__ == "__main__":
    main()
