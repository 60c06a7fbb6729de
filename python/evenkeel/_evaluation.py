"""Evaluation of keys."""

from __future__ import annotations

import html
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from evenkeel import _evenkeel
from evenkeel._arguments import is_path, key, keys, options, pairs
from evenkeel._command import run
from evenkeel._errors import UsageError
from evenkeel._progress import Callback
from evenkeel._report import Record, Records, Report, record
from evenkeel._sources import Source, inputs


class Evaluation(Report):
    """The answer to the question which keys suit an export, and every figure behind it.

    Printing it shows the answer on one screen; a notebook shows it with pictures. All figures of
    ``evenkeel evaluate --format json`` are attributes, such as ``rows`` and ``roles``.
    """

    @property
    def recommendation(self) -> Record:
        """Recommended keys: ``partition_key``, ``primary_key``, ``partitions``, ``reasons``,
        ``alternatives``, ``ddl`` and ``makeshift`` (whether nothing really suits)."""
        found: Record = self._value["recommendation"]
        return found

    @property
    def findings(self) -> Records:
        """Problems, warnings and notes: ``severity`` (problem, warning or note), ``code``,
        ``subject``, ``message`` and ``advice``."""
        fields = ("severity", "code", "subject", "message", "advice")
        found = self._value["findings"]
        return Records(Record((field, one[field]) for field in fields) for one in found)

    @property
    def keys(self) -> Records:
        """Figures of the partition keys over the recommended number of partitions, the best
        first."""
        partitions = self.recommendation.partitions
        candidates = {tuple(one.partition_key): one for one in self._value["candidates"]}
        rows = Records()
        for ranked in self._value["ranking"]:
            candidate = candidates.get(tuple(ranked.partition_key))
            if candidate is None:
                continue
            same = [p for p in candidate.placements if p.partitions == partitions]
            placement = (same or candidate.placements)[0]
            time, heavy = placement.get("over_time"), candidate.heavy_hitters
            rows.append(
                Record(
                    partition_key=", ".join(ranked.partition_key),
                    distinct=candidate.distinct.estimate,
                    heaviest_share=heavy[0].share if heavy else None,
                    max_over_mean=placement.max_over_mean,
                    effective_partitions=placement.effective_partitions,
                    busy_at_a_time=time.lasting_effective_partitions.median if time else None,
                    sustained_bytes_per_second=placement.capacity.sustained,
                    partitions_read=ranked.mean_partitions_read,
                    verdict=placement.verdict,
                )
            )
        return rows

    def compare(self, other: Evaluation | str | os.PathLike[str]) -> Records:
        """Lists figures of this evaluation that differ from those of an earlier one, or of a file
        that :meth:`save` wrote: ``subject``, ``figure``, ``before``, ``now`` and ``notable``."""
        drifts = _evenkeel.compare(_json_of(other), json.dumps(self._value))
        return Records(record(json.loads(drifts)))

    def _forget_commands(self) -> None:
        """Removes commands that name files, for rows that are in none."""
        found = self._value["recommendation"]
        self._text = self._in_python(self._text)
        if self._page is not None:
            commands = html.escape("\n".join(found.commands)).replace("&#x27;", "&#39;")
            self._page = self._page.replace(f"<pre>{commands}</pre>\n", "")
        found["commands"] = []

    def __str__(self) -> str:
        return self._in_python(super().__str__())

    def __repr__(self) -> str:
        return str(self).rstrip("\n")

    def _in_python(self, text: str) -> str:
        """The answer with the next steps in Python instead of the shell."""
        commands = set(self._value.get("recommendation", {}).get("commands", ()))
        lines = [line for line in text.splitlines() if line not in commands]
        if lines and lines[-1].startswith("All keys, figures, findings and roles:"):
            while len(lines) > 1 and not lines[-2]:
                del lines[-2]
            lines[-1] = "All figures: .keys, .findings, .to_dict(); .save('report.html') has the pictures"
            if commands:
                lines[-1:] = ["", "evenkeel.Table.create('TABLE', like=ANSWER)", "", lines[-1]]
        return "\n".join(lines) + "\n"


class JoinEvaluation(Report):
    """Evaluations of several tables, and of the joins between them."""

    def _forget_commands(self) -> None:
        """Removes commands that name files, for rows that are in none."""
        commands = {line for one in self._value["tables"] for line in one.recommendation.commands}
        shell = "All keys, figures, findings and roles:"
        lines = self._text.splitlines()
        kept = [line for line in lines if line not in commands and not line.startswith(shell)]
        self._text = "\n".join(kept).rstrip() + "\n"
        for one in self._value["tables"]:
            one.recommendation["commands"] = []

    @property
    def tables(self) -> dict[str, Evaluation]:
        """The evaluation of each table, by its name."""
        return {one.table: Evaluation(one, _summary(one)) for one in self._value["tables"]}

    @property
    def joins(self) -> list[Record]:
        """The joins, and what they take to stay within a partition."""
        found: list[Record] = self._value["joins"]
        return found

    @property
    def findings(self) -> Records:
        """Problems, warnings and notes of the joins."""
        return Records(self._value["join_findings"])


def _summary(value: Record) -> str:
    found = value.recommendation
    partition_key, primary_key = ", ".join(found.partition_key), ", ".join(found.primary_key)
    keys = f"PARTITION BY HASH({partition_key}), PRIMARY KEY ({primary_key})"
    reasons = "".join(f"- {reason}\n" for reason in found.reasons)
    return f"{value.table}: {keys}, {found.partitions} partitions\n{reasons}"


def _result(of_files: bool, value: Any, *parts: Any) -> Evaluation | JoinEvaluation:
    kind = JoinEvaluation if "join_findings" in value else Evaluation
    result: Evaluation | JoinEvaluation = kind(value, *parts)
    if not of_files:
        result._forget_commands()
    return result


def _json_of(other: Evaluation | str | os.PathLike[str]) -> str:
    if isinstance(other, Report):
        return json.dumps(other.to_dict())
    with open(other, encoding="utf-8") as file:
        return file.read()


def evaluate(
    source: Source | Iterable[Source] | Mapping[str, Source] | None,
    partition_keys: str | Iterable[str | Iterable[str]] | None = None,
    primary_keys: str | Iterable[str | Iterable[str]] | None = None,
    *,
    nodes: int | Iterable[int] = 4,
    partitions: int | Iterable[int] | None = None,
    queries: str | os.PathLike[str] | Iterable[str] | Mapping[str, str] | None = None,
    params: Mapping[str, object] | None = None,
    current: str | Iterable[str] | None = None,
    roles: Mapping[str, str] | None = None,
    not_key: str | Iterable[str] | None = None,
    types: Mapping[str, str] | None = None,
    time: str | None = None,
    target: str | None = None,
    name: str | None = None,
    joins: str | Iterable[str] | None = None,
    sample: float | None = None,
    memory: str | int | None = None,
    mask_values: bool = False,
    fail_on: str | Iterable[str] | None = None,
    baseline: Evaluation | str | os.PathLike[str] | None = None,
    progress: bool | Callback | None = None,
    **more: Any,
) -> Evaluation | JoinEvaluation:
    """Finds the partition key, primary key and number of partitions that suit an export.

    Args:
        source: Files, folders, patterns or URLs in any format that ``evenkeel evaluate`` reads; or
            rows in memory: anything with ``__arrow_c_stream__``, such as frames of pandas and
            Polars, relations of DuckDB and tables of pyarrow, and datasets of pyarrow. Rows in
            memory are written to a temporary file first, since they are read more than once. A
            mapping such as ``{"orders": ..., "lines": ...}`` has several tables to be joined, of
            which a :class:`JoinEvaluation` is returned. ``None`` with ``merge=[...]`` has no rows
            but those of saved profiles (``save=``).
        partition_keys: Candidates to judge, each a column or a sequence of columns, or an
            expression such as ``"date(at)"``. By default they are found from the data.
        primary_keys: The same for the primary key.
        nodes: Number of nodes, or several to try; a table gets 4 partitions per node.
        partitions: Numbers of partitions to try, instead of ``nodes``.
        queries: Statements that the table is to serve: a file, a folder or a query log, or the
            statements themselves, as a sequence or by name.
        params: Values of parameters of these statements.
        current: Partition key that the table has now, judged beside the others.
        roles: Roles of columns, such as ``{"user_id": "entity"}``, if the found ones are wrong.
        not_key: Columns that must not be in a key.
        types: Types of columns, such as ``{"user_id": "uint64"}``.
        time: Column along which to look for hotspots.
        target: System to write the statements for, and whose placement counts: ``"ydb"``,
            ``"clickhouse"``, ``"citus"`` and others.
        name: Name of the table in the statements.
        joins: Columns by which two tables are joined: ``"orders.id=lines.order_id"``.
        sample: Share of the rows to read, such as 0.01.
        memory: Memory budget, such as ``"2GiB"`` or a number of bytes.
        mask_values: Replace values of keys by numbers everywhere.
        fail_on: Conditions such as ``"max_over_mean>1.2"`` or ``"problems>0"``, which raise
            :class:`ThresholdError` if they are met.
        baseline: Earlier evaluation; ``drift`` of the result then has the differences.
        progress: ``True``, ``False`` or a function of what is done, its unit, the share and a
            message. By default, progress is shown in terminals and notebooks.
        **more: Any other option of ``evenkeel evaluate``, with underscores: ``delimiter=";"``.

    Raises:
        UsageError: An argument is wrong.
        Error: The rows cannot be read.
        ThresholdError: A condition of ``fail_on`` is met.

    >>> rows = {"user_id": [f"u{i % 500}" for i in range(5000)], "n": list(range(5000))}
    >>> import pyarrow
    >>> answer = evaluate(pyarrow.table(rows), name="visits")
    >>> answer.recommendation.partition_key
    ['user_id']
    >>> answer.rows
    5000
    """
    # What is counted as in a profile has its numbers of partitions.
    merges = "merge" in more or "like" in more
    if isinstance(source, Mapping) and name is not None:
        raise UsageError("name is for one table; a mapping names its tables itself")
    with ExitStack() as stack:
        temporary = None

        def folder() -> str:
            nonlocal temporary
            if temporary is None:
                temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="evenkeel-"))
            return temporary

        given: dict[str, Any] = {
            "partition_keys": keys(partition_keys),
            "primary_keys": keys(primary_keys),
            "nodes": nodes if partitions is None and not merges else None,
            "partitions": partitions,
            "queries": _statements(queries, folder),
            "params": pairs(params, "="),
            "current": None if current is None else key(current),
            "roles": pairs(roles, "="),
            "not_key": not_key,
            "types": pairs(types, ":"),
            "time": time,
            "target": target,
            "name": name,
            "joins": joins,
            "sample": sample,
            "memory": memory,
            "mask_values": mask_values,
            "fail_on": fail_on,
            "baseline": _baseline(baseline, folder),
            **more,
        }
        found = stack.enter_context(inputs(source, name or "table"))
        arguments = ["evaluate", "--format=json", *options(given), "--", *found.names]
        result: Evaluation | JoinEvaluation = run(
            arguments,
            progress=progress,
            keywords=given,
            temporary=found.temporary,
            kind=partial(_result, not found.temporary),
        )
        return result


def _statements(queries: Any, folder: Any) -> str | None:
    if queries is None or is_path(queries):
        if isinstance(queries, str) and len(queries.split()) > 1 and not os.path.exists(queries):
            queries = [queries]
        else:
            return None if queries is None else os.fspath(queries)
    named = queries if isinstance(queries, Mapping) else {f"q{n}": q for n, q in enumerate(queries, 1)}
    if not named:
        raise UsageError("queries has no statement")
    statements = os.path.join(folder(), "queries")
    os.mkdir(statements)
    for name, sql in named.items():
        if not re.fullmatch(r"[\w-][\w .-]*", name):
            raise UsageError(f"queries: '{name}' is no name; take letters, digits, blanks and underscores")
        with open(os.path.join(statements, f"{name}.sql"), "w", encoding="utf-8") as file:
            file.write(sql)
    return statements


def _baseline(baseline: Any, folder: Any) -> str | None:
    if isinstance(baseline, Report):
        path = os.path.join(folder(), "baseline.json")
        baseline.save(path)
        return path
    return None if baseline is None else os.fspath(baseline)
