"""The program ``evenkeel``, the same as the one that is built without Python."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Runs the program with the arguments of this process."""
    from evenkeel import _evenkeel

    # Ctrl-C is the program's own to handle, not Python's.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = _evenkeel.main(["evenkeel", *sys.argv[1:]])
    # Abandoned work must not delay the exit.
    os._exit(code)
