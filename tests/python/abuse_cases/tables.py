"""Tables whose files are damaged, missing or no tables at all."""

import os

from abuse_cases.case import FAILED, USAGE, Case, written


def tables(bench):
    table = os.path.join(bench.inputs, "t")
    files = sorted(os.path.relpath(os.path.join(path, name), table) for path, _, names in os.walk(table) for name in names)

    def damage(file, how):
        def setup(folder):
            path = os.path.join(folder, "t", file)
            with open(path, "rb") as source:
                data = source.read()
            os.chmod(path, 0o644)
            if how == "removed":
                os.remove(path)
            elif how == "a folder":
                os.remove(path)
                os.mkdir(path)
            else:
                middle = len(data) // 2
                content = {
                    "empty": b"",
                    "halved": data[:middle],
                    "flipped": data[:middle] + bytes([data[middle] ^ 0x20]) + data[middle + 1:] if data else b"",
                    "of other bytes": b"\x00\xff" * 5000,
                }[how]
                with open(path, "wb") as target:
                    target.write(content)
        return setup

    for file in files:
        for how in ("empty", "halved", "flipped", "removed", "of other bytes", "a folder"):
            name = f"table {file} {how}"
            yield Case(f"{name}: query", ["query", "t", "SELECT sum(v), max(u), count(d) FROM t"], setup=damage(file, how), table=True)
            if how in ("halved", "flipped", "removed"):
                yield Case(f"{name}: check", ["check", "t"], setup=damage(file, how), table=True)
        yield Case(f"table {file} halved: ingest", ["ingest", "t", "{in}/more.csv"], setup=damage(file, "halved"), table=True)
        yield Case(f"table {file} flipped: compact", ["compact", "t", "--full"], setup=damage(file, "flipped"), table=True)
    for what, setup in {
        "nothing": None,
        "a file": written("t", b"x"),
        "an empty folder": lambda folder: os.mkdir(os.path.join(folder, "t")),
    }.items():
        for command in (["query", "t", "SELECT 1"], ["inspect", "t"], ["ingest", "t", "{in}/a.csv"], ["compact", "t"], ["clean", "t"], ["check", "t"]):
            yield Case(f"table is {what}: {command[0]}", command, codes=(FAILED, USAGE), setup=setup, says=["t"])
