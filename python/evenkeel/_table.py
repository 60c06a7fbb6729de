"""Tables."""

from __future__ import annotations

import importlib.metadata
import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from evenkeel import _evenkeel
from evenkeel._arguments import is_path, options, pairs, said_in_python
from evenkeel._command import run
from evenkeel._errors import Error, UsageError
from evenkeel._evaluation import Evaluation
from evenkeel._progress import Callback, shown
from evenkeel._report import Record, Report
from evenkeel._result import Result
from evenkeel._sources import Source, arrow, inputs

#: Rows of a frame that its columns are found from.
_SAMPLE = 100_000

#: Advice that is for files.
_OF_FILES = "; --on-error reject writes such rows to a file and ingests the rest"

def _names(columns: str | Iterable[str] | None) -> list[str]:
    """Names of columns; a single string may have several, separated by commas."""
    if columns is None:
        return []
    if isinstance(columns, str):
        return [columns]
    names = list(columns)
    commas = [name for name in names if "," in name]
    if commas:
        raise UsageError(f"the column '{commas[0]}' cannot be in a key, because its name has a comma")
    return names


class Table:
    """A table in a directory or an object store: ``Table("events")``,
    ``Table("s3://bucket/events")``.

    Each query sees the newest version, unless the table was opened at one.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = Table.create(
    ...     folder.name + "/scores",
    ...     columns={"player": "utf8:not-null", "game": "int64:not-null", "points": "int64"},
    ...     primary_key=["player", "game"],
    ...     partition_key="player",
    ...     nodes=1,
    ... )
    >>> import pyarrow
    >>> rows = {"player": ["ada", "bob", "ada"], "game": [1, 1, 2], "points": [10, 20, 30]}
    >>> table.ingest(pyarrow.table(rows)).rows
    3
    >>> table.sql("SELECT player, sum(points) AS points FROM scores GROUP BY player ORDER BY 1").to_pylist()
    [{'player': 'ada', 'points': 40}, {'player': 'bob', 'points': 20}]
    >>> table.version
    1
    """

    def __init__(self, path: str | os.PathLike[str], version: int | None = None) -> None:
        """Opens a table at its newest version, or at ``version`` for good."""
        if version is not None and version < 0:
            raise UsageError(f"there is no version {version}")
        self._path = os.fspath(path)
        with said_in_python():
            self._native = _evenkeel.NativeTable.open(self._path, version)

    def __reduce__(self) -> Any:
        # Another process opens the table anew.
        path = self._path if "://" in self._path else os.path.abspath(self._path)
        return (Table, (path, self._pinned))

    @property
    def _pinned(self) -> int | None:
        return self._native.version if self._native.is_pinned else None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        like: Evaluation | Source | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        ddl: str | None = None,
        primary_key: str | Iterable[str] | None = None,
        partition_key: str | Iterable[str] | None = None,
        nodes: int | None = None,
        partitions: int | None = None,
        placement: str | None = None,
        ttl: str | None = None,
        name: str | None = None,
        **more: Any,
    ) -> Table:
        """Declares a table and opens it.

        Args:
            path: Directory or URL of the new table.
            like: The recommendation of an evaluation; or a file or frame with the same columns,
                which needs ``primary_key``.
            columns: Types of the columns by name, such as ``"uint64"`` or ``"utf8:not-null"``;
                beside ``like``, of the columns whose type is to be another one.
            ddl: A YQL statement.
            primary_key: Columns that identify a row and order the rows of a partition.
            partition_key: Columns of the primary key whose hash is the partition; by default all.
            nodes: Number of nodes, with 4 partitions each.
            partitions: Number of partitions.
            placement: Placement function, ``"ydb"`` by default.
            ttl: Time to live, such as ``"event_timestamp=30d"``.
            name: Name of the table in SQL, by default that of its directory.
            **more: Any other option of ``evenkeel create``.
        """
        with ExitStack() as stack:
            declared = dict(columns or {})
            sample: str | None = None
            temporary: dict[str, str] = {}
            if isinstance(like, Evaluation):
                found = like.recommendation
                if not found.partition_key or not found.primary_key:
                    raise UsageError("the evaluation recommends no table; give primary_key and partition_key")
                primary_key = found.primary_key if primary_key is None else primary_key
                partition_key = found.partition_key if partition_key is None else partition_key
                if nodes is None and partitions is None:
                    partitions = found.partitions
                in_key = {one.strip() for names in _names(primary_key) for one in names.split(",")}
                of_export = {
                    one.name: one.type + (":not-null" if one.name in in_key else "") for one in like.columns
                }
                declared = of_export | declared
            elif like is not None and is_path(like):
                sample = os.fspath(like)
            elif like is not None:
                if isinstance(like, Result) or hasattr(like, "read_next_batch"):
                    raise UsageError("a stream can be read only once; create the table like a table or a frame")
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evenkeel-"))
                sample = os.path.join(folder, "sample.arrow")
                temporary[sample] = "like"
                with said_in_python():
                    _evenkeel.spool(arrow(like), sample, _SAMPLE)
            statement: str | None = None
            if ddl is not None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evenkeel-"))
                statement = os.path.join(folder, "table.sql")
                temporary[statement] = "ddl"
                with open(statement, "w", encoding="utf-8") as file:
                    file.write(ddl)
            given = {
                "like": sample,
                "ddl": statement,
                "columns": pairs(declared, ":"),
                "primary_key": _names(primary_key),
                "partition_key": _names(partition_key),
                "nodes": nodes,
                "partitions": partitions,
                "placement": placement,
                "ttl": ttl,
                "name": name,
                **more,
            }
            arguments = ["create", "--format=json", *options(given), "--", os.fspath(path)]
            created = run(arguments, keywords=given, temporary=temporary)
        table = cls(path)
        for note in created.notes:
            warnings.warn(note, stacklevel=2)
        return table

    @property
    def path(self) -> str:
        """Directory or URL of the table."""
        return self._path

    @property
    def version(self) -> int:
        """Version that was read or written last."""
        return self._native.version

    @property
    def name(self) -> str:
        """Name of the table in SQL; the name of its directory is known too, and ``t``."""
        return self._native.declaration[0]

    @property
    def primary_key(self) -> list[str]:
        """Columns that identify a row and order the rows of a partition."""
        return self._native.declaration[1]

    @property
    def partition_key(self) -> list[str]:
        """Columns whose hash is the partition."""
        return self._native.declaration[2]

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return self._native.declaration[3]

    @property
    def placement(self) -> str:
        """Placement function."""
        return self._native.declaration[4]

    @property
    def columns(self) -> list[Record]:
        """``name``, ``type`` and ``nullable`` of the columns."""
        return [Record(name=n, type=t, nullable=null) for n, t, null in self._native.columns]

    @property
    def ddl(self) -> str:
        """The YQL statement that declares the table."""
        return self._native.ddl()

    def refresh(self) -> Table:
        """Moves to the newest version."""
        with said_in_python():
            self._native.refresh()
        return self

    def sql(
        self,
        query: str,
        params: Mapping[str, object] | None = None,
        *,
        memory: str | int | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Runs a query.

        Args:
            query: SQL. The table is known by its name, by that of its directory, and as ``t``.
            params: Values of parameters, such as ``{"user": "u1"}`` for ``$user``.
            memory: Memory of operators, such as ``"2GiB"``; by default a third of the machine's.
                Beyond it sorting and grouping spill to disk, and a query that needs more fails.
            timeout: Seconds from its planning to the last row that is read.

        Raises:
            UsageError: A parameter is missing or wrong.
            Error: The query cannot be planned or run.
        """
        with said_in_python():
            self._native.refresh()
            given = None if params is None else dict(params)
            size = None if memory is None else str(memory)
            return Result(self._native.sql(query, given, size, timeout))

    def ingest(
        self,
        source: Source | Iterable[Source],
        *,
        mode: str = "upsert",
        deletes: bool = False,
        delete_column: tuple[str, str] | str | None = None,
        memory: str | int = "1GiB",
        compact: bool = True,
        progress: bool | Callback | None = None,
        **more: Any,
    ) -> Report:
        """Adds rows with one commit: all of them, or none if one cannot be taken.

        The report has ``rows``, ``version`` (``None`` if there was nothing to commit),
        ``rows_per_partition``, ``skew`` and other figures; ``notes`` say which columns were left
        out or are NULL.

        Args:
            source: Files, folders, patterns or URLs in any format that ``evenkeel ingest`` reads;
                or rows in memory, which are taken batch by batch. Columns are matched by name and
                cast without loss.
            mode: ``"upsert"``: a row replaces one with the same primary key; ``"insert"``: such a
                row fails the ingest.
            deletes: The rows are primary keys of rows to delete.
            delete_column: Column and value, such as ``("op", "d")``, of rows that delete.
            memory: Memory budget, at least ``"128MiB"``.
            compact: Merge files afterwards if it pays off.
            progress: As for :func:`evenkeel.evaluate`.
            **more: Any other option of ``evenkeel ingest``, for files only.

        Raises:
            Error: A row does not fit; ``row`` or ``line`` and ``column`` say which.
        """
        if isinstance(delete_column, str):
            column, _, value = delete_column.partition("=")
            delete_column = (column, value)
        elif delete_column is not None:
            column, value = delete_column
            delete_column = (column, value)
        self._check_unpinned()
        several = isinstance(source, (list, tuple)) and bool(source) and all(map(is_path, source))
        if is_path(source) or several:
            given = {
                "mode": None if deletes or delete_column else mode,
                "deletes": deletes,
                "delete_column": None if delete_column is None else "=".join(delete_column),
                "memory": memory,
                "compact": "auto" if compact else "off",
                **more,
            }
            with inputs(source) as found:
                arguments = ["ingest", "--format=json", *options(given), "--", self._path, *found.names]
                report = run(arguments, progress=progress, keywords=given)
            self._native.refresh()
            return Report(report.to_dict(), str(report), notes=report.notes)
        if more:
            raise UsageError(f"{', '.join(more)}: only for files; these are rows in memory")
        with shown(progress) as callback, said_in_python():
            try:
                text = self._native.ingest(
                    arrow(source), mode, deletes, delete_column, str(memory), compact, callback
                )
            except Error as error:
                error.message = error.message.replace(_OF_FILES, "")
                raise
            except BaseException:
                # An interrupt may come after the commit.
                with suppress(Exception):
                    self._native.refresh()
                raise
        value = json.loads(text)
        version = "nothing to commit" if value["version"] is None else f"version {value['version']}"
        notes = [note["text"] for note in value["notes"]]
        lines = [f"{value['rows']:,} rows, {version}, {value['seconds']:.1f} s", *notes]
        return Report(value, "\n".join(lines) + "\n")

    def delete(self, condition: str, params: Mapping[str, object] | None = None) -> Report:
        """Deletes the rows that meet a condition of SQL, with one commit; ``rows`` of the report is
        their number. Parameters are those of :meth:`sql`."""
        self._check_unpinned()
        with said_in_python():
            rows, version = self._native.delete(condition, None if params is None else dict(params))
        text = f"version {version}: {rows:,} rows deleted" if version else "no row meets the condition"
        return Report({"version": version, "rows": rows}, text + "\n")

    def _check_unpinned(self) -> None:
        if self._native.is_pinned:
            raise UsageError("this table was opened at a version; open it without one to change it")

    def skew(self) -> Report:
        """How evenly the rows are spread over the partitions, and how even they could be."""
        return self._run("skew", options({"version": self._pinned}))

    def inspect(self) -> Report:
        """Declaration, size, partitions and files."""
        return self._run("inspect", options({"version": self._pinned}))

    def compact(self, *, full: bool = False, progress: bool | Callback | None = None, **more: Any) -> Report:
        """Merges files and drops rows that are replaced, deleted or expired; with ``full`` all of
        them, else those for which it pays off."""
        self._check_unpinned()
        report = self._run("compact", options({"full": full, **more}), progress)
        self._native.refresh()
        return report

    def clean(self, keep: str | None = None, **more: Any) -> Report:
        """Deletes files that no version within ``keep``, such as ``"7d"``, needs."""
        self._check_unpinned()
        return self._run("clean", options({"keep": keep, **more}))

    def check(self, **more: Any) -> Report:
        """Compares every file with its checksum; raises :class:`Error` if one is damaged."""
        return self._run("check", options(more))

    def _run(
        self, command: str, given: Iterable[str] = (), progress: bool | Callback | None = False
    ) -> Report:
        arguments = [command, "--format=json", *given, "--", self._path]
        report: Report = run(arguments, progress=progress)
        return report

    def __datafusion_table_provider__(self, session: Any = None) -> object:
        """The table for ``SessionContext.register_table`` of the ``datafusion`` package, at the
        version that was read last. The package must be of the same major version."""
        ours = _evenkeel.DATAFUSION_MAJOR
        try:
            theirs = importlib.metadata.version("datafusion")
        except importlib.metadata.PackageNotFoundError:
            theirs = ""
        if theirs.split(".")[0] != str(ours):
            found = f"datafusion {theirs}" if theirs else "no datafusion package"
            raise ImportError(
                f"this table needs the datafusion package in version {ours}.*, and {found} is installed: "
                f"pip install 'datafusion=={ours}.*'; Table.sql() needs no such package"
            )
        if session is None:
            raise ImportError("this version of the datafusion package gives no session; upgrade it")
        return self._native.provider(session)

    def __repr__(self) -> str:
        partition_key = ", ".join(self.partition_key)
        primary_key = ", ".join(self.primary_key)
        return (
            f"Table({self._path!r}: version {self.version}, {self.partitions} partitions by "
            f"HASH({partition_key}), PRIMARY KEY ({primary_key}))"
        )
