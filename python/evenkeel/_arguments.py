"""Arguments of commands, from keywords."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeGuard

from evenkeel._errors import Error, UsageError

#: Keywords whose option has another name: most are plural here, since they take several values.
OPTIONS = {
    "columns": "column",
    "joins": "join",
    "params": "param",
    "partition_keys": "partition-key",
    "placements": "placement",
    "primary_keys": "primary-key",
    "roles": "role",
    "types": "type",
}

_EXPRESSION = re.compile(r"(date|hour|trunc)\(.*\)", re.IGNORECASE)
_OPTION = re.compile(r"(?<![\w'-])--([a-z][a-z-]*[a-z])")
_COMMAND = re.compile(r"('evenkeel [^']*')")


def is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a source is the name of files rather than data."""
    return isinstance(source, (str, os.PathLike))


def key(columns: str | Iterable[str]) -> str:
    """Columns of a key as text: ``"a,b"``. A single string is taken as it is."""
    if isinstance(columns, str):
        return columns

    def quoted(name: str) -> str:
        plain = not re.search(r'[(),"\s]', name) or _EXPRESSION.fullmatch(name)
        return name if plain else '"' + name.replace('"', '""') + '"'

    return ",".join(quoted(name) for name in columns)


def keys(candidates: str | Iterable[str | Iterable[str]] | None) -> list[str]:
    """Candidates for a key as texts."""
    if candidates is None:
        return []
    if isinstance(candidates, str):
        return [candidates]
    return [key(candidate) for candidate in candidates]


def pairs(values: Mapping[str, object] | None, sign: str) -> list[str]:
    """``{"user_id": "uint64"}`` as ``["user_id:uint64"]``."""
    if values is not None and not isinstance(values, Mapping):
        raise UsageError(f"a mapping of names to values is expected, not {type(values).__name__}")
    return [f"{name}{sign}{_text(value)}" for name, value in (values or {}).items()]


def _text(value: object) -> str:
    if value is None:
        raise UsageError("None is no value of an option")
    if isinstance(value, bool):
        return str(value).lower()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def options(given: Mapping[str, Any]) -> list[str]:
    """Keywords as options: ``nodes=[4, 16]`` becomes ``--nodes=4 --nodes=16``."""
    arguments = []
    for keyword, value in given.items():
        option = "--" + OPTIONS.get(keyword, keyword).replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(option)
            continue
        if isinstance(value, Mapping):
            value = pairs(value, ":" if keyword in ("columns", "types") else "=")
        several = isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike))
        arguments += [f"{option}={_text(one)}" for one in (value if several else [value])]
    return arguments


def in_words_of_python(error: Error, keywords: Iterable[str] = ()) -> None:
    """Names keywords in an error instead of the options of the program. Commands stay as they
    are."""
    by_option = {OPTIONS.get(keyword, keyword.replace("_", "-")): keyword for keyword in keywords}

    def keyword(found: re.Match[str]) -> str:
        option = found.group(1)
        return by_option.get(option, option.replace("-", "_"))

    unknown = re.fullmatch(r"unexpected argument '--([a-z-]+)' found.*", error.message)
    if unknown and isinstance(error, UsageError):
        option = unknown.group(1)
        error.message = f"there is no argument '{by_option.get(option, option.replace('-', '_'))}'"
    else:
        parts = _COMMAND.split(error.message)
        parts[::2] = [_OPTION.sub(keyword, text) for text in parts[::2]]
        error.message = "".join(parts)
    error.args = (error.message,)


@contextmanager
def said_in_python() -> Iterator[None]:
    """Names keywords instead of options in an error that passes."""
    try:
        yield
    except Error as error:
        in_words_of_python(error)
        raise
