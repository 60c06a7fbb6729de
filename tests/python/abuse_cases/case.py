"""A hostile call: its arguments, and what it may do."""

import os

DONE, FAILED, USAGE, THRESHOLD, INTERRUPTED = 0, 1, 2, 3, 130
ROWS = 3000
# A debug build on a busy machine; what must be quick is a fraction of it.
SECONDS = 40
MEMORY_MIB = 700
HUGE = 10**18


class Case:
    """A call: `argv` with {} for the folder of the case, and {in} for that of shared inputs."""

    def __init__(self, name, argv, codes=(DONE, FAILED), **more):
        self.name, self.argv, self.codes = name, argv, set(codes)
        self.setup = more.pop("setup", None)        # called with the folder
        self.says = more.pop("says", None)          # one of these is in the error of a failed call
        self.stdin = more.pop("stdin", None)        # bytes
        self.stdout = more.pop("stdout", None)      # 'closed': the reader has gone; a path
        self.signal = more.pop("signal", None)      # (signal, seconds)
        self.memory = more.pop("memory", MEMORY_MIB)
        self.seconds = more.pop("seconds", SECONDS)
        self.limit_file = more.pop("limit_file", None)   # bytes that a file may have
        self.makes = more.pop("makes", ())          # files that it may leave in its folder
        self.rows = more.pop("rows", None)          # of table t afterwards, or (least, most)
        self.table = more.pop("table", False)       # gets a copy of the table as t
        self.env = more.pop("env", {})
        assert not more, more


def written(name, data):
    """A setup that writes a file."""
    def setup(folder):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
    return setup
