"""Progress of long work: a line in a terminal, a bar in a notebook."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Called with what is done, its unit, the share that is done (0 to 1, if known) and a message.
Callback = Callable[[int, str, "float | None", str], object]

#: Seconds before anything is shown, and between two changes.
_DELAY = 1.0
_PAUSE = 0.2
_WIDTH = 30


def _line(done: int, unit: str, share: float | None, message: str) -> str:
    bar = "" if share is None else "█" * int(share * _WIDTH) + "░" * (_WIDTH - int(share * _WIDTH))
    part = "" if share is None else f" {share:4.0%} "
    return f"{bar}{part}{done:,} {unit} {message}".rstrip()


class _Display:
    """Shows progress from time to time."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _DELAY

    def __call__(self, done: int, unit: str, share: float | None, message: str) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PAUSE
            self.show(done, unit, share, message)

    def show(self, done: int, unit: str, share: float | None, message: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _Terminal(_Display):
    """A line that is overwritten."""

    _shown = 0

    def show(self, done: int, unit: str, share: float | None, message: str) -> None:
        line = _line(done, unit, share, message)
        sys.stderr.write("\r" + line.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(line)

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()


class _Notebook(_Display):
    """An output that is replaced, and removed in the end."""

    _handle: Any = None

    def show(self, done: int, unit: str, share: float | None, message: str) -> None:
        from IPython.display import HTML, display

        value = "" if share is None else f' value="{share:.3f}"'
        text = html.escape(f"{done:,} {unit} {message}")
        page = HTML(f'<progress max="1"{value} style="width: 20em"></progress> {text}')
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    def close(self) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(""))


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def shown(progress: bool | Callback | None) -> Iterator[Callback | None]:
    """Yields what to call with the progress; ``None`` shows it where somebody can see it."""
    if callable(progress):
        yield progress
        return
    display: _Display | None = None
    if progress is not False:
        if _is_notebook():
            display = _Notebook()
        elif progress or sys.stderr.isatty():
            display = _Terminal()
    try:
        yield display
    finally:
        if display is not None:
            display.close()
