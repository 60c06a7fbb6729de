"""Exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenkeel._report import Report


class Error(Exception):
    """Failure of work. The fields give its place, as far as that is known."""

    #: The problem, and often what to do about it.
    message: str
    #: Name of the input.
    file: str | None
    #: Line of a text file, from 1.
    line: int | None
    #: Row of a columnar file or of a stream, from 1.
    row: int | None
    #: Name of the column.
    column: str | None

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.row = row
        self.column = column


class UsageError(Error, ValueError):
    """Arguments are wrong or do not fit together."""


class ThresholdError(Error):
    """The work is done, and its result meets a condition of ``fail_on``."""

    #: The result, as it is returned otherwise.
    result: Report

    @property
    def crossings(self) -> list[str]:
        """A line for each condition that is met."""
        return self.message.splitlines()


class ForkError(Error, RuntimeError):
    """The process was forked from one that had used evenkeel, and lacks its threads."""
