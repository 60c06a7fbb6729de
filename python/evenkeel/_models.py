"""Placement of keys, and the models of capacity and of Spanner's range splits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from evenkeel import _evenkeel
from evenkeel._arguments import key as columns_of_key
from evenkeel._arguments import keys, options, pairs
from evenkeel._command import run
from evenkeel._errors import UsageError
from evenkeel._progress import Callback
from evenkeel._report import Records, Report
from evenkeel._sources import Source, inputs


def _run(
    command: list[str],
    source: Source | Iterable[Source] | Mapping[str, Source],
    given: Mapping[str, Any],
    progress: bool | Callback | None,
    name: str = "table",
) -> Report:
    with inputs(source, name) as found:
        arguments = [*command, "--format=json", *options(given), "--", *found.names]
        report: Report = run(
            arguments, progress=progress, keywords=given, temporary=found.temporary
        )
        return report


def place(
    values: Any,
    types: str | Iterable[str] | None = None,
    partitions: int = 64,
    placement: str = "ydb",
    *,
    hashes: bool = False,
) -> Any:
    """Computes the partition of each key, exactly as the system does.

    Args:
        values: Values of a key of one column, or its columns in hash order: an Arrow array, a
            column of a frame, or a sequence of Python values; a list or tuple of such columns; or a
            mapping or frame, all of whose columns are the key.
        types: YQL types of the columns, such as ``"uint64"``; by default those of the arrays. The
            width of a type changes the hash.
        partitions: Number of partitions.
        placement: ``"ydb"``, or the function of another system; :func:`placements` lists them.
        hashes: Return the hashes instead of the partitions.

    Returns:
        An array of numpy, or an Arrow array if there is no numpy.

    Raises:
        UsageError: A value does not fit its type; ``row`` says which.

    >>> place([0, 42], "uint64", partitions=64).tolist()
    [13, 45]
    >>> place(["abc"], "utf8", partitions=12).tolist()
    [3]
    """
    if isinstance(types, Mapping):
        raise UsageError("types are those of the columns in their order, not a mapping")
    given = [types] if isinstance(types, str) else None if types is None else list(types)
    placed = _evenkeel.place(_columns(values), given, partitions, placement, hashes)
    try:
        import numpy
    except ImportError:
        return placed
    return numpy.asarray(placed)


def _is_arrow(values: Any) -> bool:
    return hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")


def _array(values: Any) -> Any:
    if _is_arrow(values):
        return values
    if isinstance(values, (str, bytes)):
        raise UsageError("values are an array or a sequence, not a single value")
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, TypeError) as error:
        raise UsageError(f"values of different types or of none that Arrow has: {error}") from None


def _columns(values: Any) -> list[tuple[str, Any]]:
    if hasattr(values, "collect") and not _is_arrow(values):
        # A lazy frame of Polars.
        values = values.collect()
    if isinstance(values, Mapping):
        return [(str(name), _array(column)) for name, column in values.items()]

    def is_column(one: Any) -> bool:
        return _is_arrow(one) or isinstance(one, (list, tuple))

    if isinstance(values, (list, tuple)) and values and all(map(is_column, values)):
        return [(f"column {n}", _array(column)) for n, column in enumerate(values, 1)]
    # The columns of a frame are those of the key.
    return [("values", _array(values))]


def placements() -> Records:
    """The placement functions: their names, and how far each is verified."""
    report: Report = run(["place", "--list", "--format=json"])
    return Records(report[:])


def lint(
    source: Source | Iterable[Source],
    *,
    key: str | Iterable[str],
    partitions: int,
    progress: bool | Callback | None = None,
    **more: Any,
) -> Report:
    """Checks whether a placement function spreads the distinct keys of an export as a perfect hash
    would. ``more`` are options of ``evenkeel lint``; a problem raises :class:`ThresholdError`."""
    given = {"key": columns_of_key(key), "partitions": partitions, **more}
    return _run(["lint"], source, given, progress)


def capacity(
    source: Source | Iterable[Source],
    *,
    partition_keys: str | Iterable[str | Iterable[str]] | None = None,
    progress: bool | Callback | None = None,
    **more: Any,
) -> Report:
    """Replays an export against nodes of limited capacity: backlogs, delays, and how many nodes it
    takes. ``more`` are options of ``evenkeel capacity``.

    >>> import pyarrow
    >>> at = pyarrow.array(range(0, 5000), "timestamp[s]")
    >>> rows = pyarrow.table({"at": at, "user_id": [f"u{n % 700}" for n in range(5000)]})
    >>> capacity(rows, partition_keys="user_id").rows
    5000
    """
    return _run(["capacity"], source, {"partition_keys": keys(partition_keys), **more}, progress)


class spanner:
    """The models of Spanner: range splits, migrations of keys, and statements."""

    @staticmethod
    def simulate(
        source: Source | Iterable[Source], *, progress: bool | Callback | None = None, **more: Any
    ) -> Report:
        """Replays an export on range splits, for several designs of the primary key. ``more`` are
        options of ``evenkeel spanner simulate``."""
        return _run(["spanner", "simulate"], source, more, progress)

    @staticmethod
    def migrate(
        source: Source | Iterable[Source], *, progress: bool | Callback | None = None, **more: Any
    ) -> Report:
        """Plans the migration of sequential keys. ``more`` are options of ``evenkeel spanner
        migrate``."""
        return _run(["spanner", "migrate"], source, more, progress)

    @staticmethod
    def access_log(*, progress: bool | Callback | None = None, **more: Any) -> Report:
        """Simulates the access log of Spanner's guide under each of its strategies, with generated
        rows. ``more`` are options of ``evenkeel spanner access-log``, such as ``rows=100_000``."""
        arguments = ["spanner", "access-log", "--format=json", *options(more)]
        report: Report = run(arguments, progress=progress, keywords=more)
        return report

    @staticmethod
    def ddl(*arguments: str | os.PathLike[str], params: Mapping[str, object] | None = None, **more: Any) -> str:
        """Statements that create a table in Spanner. The arguments are those of ``evenkeel spanner
        ddl``."""
        given = {"params": pairs(params, "="), **more}
        report: Report = run(["spanner", "ddl", *options(given), "--", *(os.fspath(one) for one in arguments)])
        return str(report)
