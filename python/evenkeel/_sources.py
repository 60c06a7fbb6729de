"""Sources of rows: files by name, and anything that hands over an Arrow stream."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Union

from evenkeel import _evenkeel
from evenkeel._arguments import is_path
from evenkeel._errors import UsageError

#: Files, folders, patterns or URLs; or a frame, table or reader with an Arrow stream.
Source = Union[str, "os.PathLike[str]", Any]


@dataclass(frozen=True)
class Inputs:
    """Inputs as a command takes them."""

    #: Names of files.
    names: list[str]
    #: Names of tables by those of the temporary files with their rows.
    temporary: Mapping[str, str] = field(default_factory=dict)


def arrow(source: Any) -> Any:
    """Returns an object that hands over its rows by the Arrow C data interface."""
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return source
    if hasattr(source, "scanner"):
        # A dataset of pyarrow.
        return source.scanner().to_reader()
    if hasattr(source, "to_reader"):
        return source.to_reader()
    if hasattr(source, "fetch_record_batch"):
        # A relation of an older DuckDB.
        return source.fetch_record_batch()
    if hasattr(source, "collect"):
        # A lazy frame of Polars.
        return arrow(source.collect())
    kind = type(source).__name__
    raise UsageError(
        f"a source of type {kind} is neither the name of a file nor something with an Arrow stream, "
        "such as a frame of pandas or Polars, a table of pyarrow or a relation of DuckDB"
    )


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name) or "table"


def _named_file(folder: str, table: str, path: str) -> str:
    """Gives a file the name of its table, since tables are named after their files."""
    if not os.path.isfile(path):
        raise UsageError(f"{path} is not a file; name tables by the names of their folders, in a list")
    endings = os.path.basename(path).split(".")[1:]
    link = os.path.join(folder, ".".join([_file_name(table), *endings]))
    os.symlink(os.path.abspath(path), link)
    return link


@contextmanager
def inputs(
    source: Source | Iterable[Source] | Mapping[str, Source] | None, name: str = "table"
) -> Iterator[Inputs]:
    """Yields the names of the inputs; rows in memory are in temporary files meanwhile, so that they
    can be read more than once. A mapping has several tables by name."""
    if source is None:
        yield Inputs([])
        return
    if is_path(source):
        yield Inputs([os.fspath(source)])
        return
    if isinstance(source, (list, tuple)) and source and all(map(is_path, source)):
        yield Inputs([os.fspath(one) for one in source])
        return
    tables = list(source.items()) if isinstance(source, Mapping) else [(name, source)]
    with tempfile.TemporaryDirectory(prefix="evenkeel-") as folder:
        names, temporary = [], {}
        files = [_file_name(table) for table, _ in tables]
        if not files:
            raise UsageError("there are no tables")
        if len(set(files)) < len(files):
            raise UsageError(
                f"the names of tables ({', '.join(table for table, _ in tables)}) must differ in their "
                "letters, digits and underscores"
            )
        for table, rows in tables:
            if is_path(rows):
                names.append(_named_file(folder, table, os.fspath(rows)))
                temporary[names[-1]] = table
                continue
            file = os.path.join(folder, f"{_file_name(table)}.arrow")
            _evenkeel.spool(arrow(rows), file)
            names.append(file)
            temporary[file] = table
        yield Inputs(names, temporary)
