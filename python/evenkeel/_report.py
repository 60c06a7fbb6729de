"""Results of commands."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any


class Record(dict[str, Any]):
    """A dictionary whose values are also attributes, at every depth."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no '{name}'; there are: {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


def record(value: Any) -> Any:
    """Turns the dictionaries in a JSON value into records."""
    if isinstance(value, dict):
        return Record((name, record(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return [record(inner) for inner in value]
    return value


class Records(list[Record]):
    """Rows with the same fields, shown as a table."""

    def _headings(self) -> list[str]:
        return list(self[0]) if self else []

    def _cells(self) -> list[list[str]]:
        return [[_cell(value) for value in row.values()] for row in self]

    def __repr__(self) -> str:
        headings, cells = self._headings(), self._cells()
        widths = [max(map(len, column)) for column in zip(headings, *cells)]
        aligned = [any(isinstance(row[name], (int, float)) for row in self) for name in headings]

        def line(texts: Sequence[str]) -> str:
            padded = zip(texts, widths, aligned)
            return "  ".join(t.rjust(w) if right else t.ljust(w) for t, w, right in padded).rstrip()

        return "\n".join([line(headings), *map(line, cells)])

    def _repr_html_(self) -> str:
        def row(tag: str, texts: Iterable[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(t)}</{tag}>" for t in texts) + "</tr>"

        body = "".join(row("td", cells) for cells in self._cells())
        return f"<table><thead>{row('th', self._headings())}</thead><tbody>{body}</tbody></table>"

    def to_pandas(self) -> Any:
        """The rows as a data frame of pandas."""
        import pandas

        return pandas.DataFrame([dict(row) for row in self])

    def to_polars(self) -> Any:
        """The rows as a data frame of Polars."""
        import polars

        return polars.DataFrame([dict(row) for row in self])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


class Report:
    """The result of a command: figures, the text that the program prints, and notes."""

    #: Notes on the inputs and the result, one sentence each.
    notes: list[str]

    def __init__(
        self,
        value: Mapping[str, Any] | list[Any],
        text: str,
        page: str | None = None,
        fragment: str | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        self._value = record(value)
        self._text = text
        self._page = page
        self._fragment = fragment
        own = value.get("notes", []) if isinstance(value, Mapping) else []
        self.notes = list(dict.fromkeys([*notes, *(note["text"] for note in own)]))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(self._value, dict) and name in self._value:
            return self._value[name]
        raise AttributeError(f"there is no '{name}' in this report")

    def __getitem__(self, name: Any) -> Any:
        return self._value[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(self._value if isinstance(self._value, dict) else ())]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        return self._fragment or f"<pre>{html.escape(self._text)}</pre>"

    def to_dict(self) -> Any:
        """All figures, as the program prints them with ``--format json``."""
        return json.loads(json.dumps(self._value))

    def to_html(self) -> str:
        """The report as a page of HTML that needs no network."""
        if self._page is None:
            text = html.escape(self._text)
            return f'<!doctype html>\n<meta charset="utf-8">\n<pre>{text}</pre>\n'
        return self._page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report: as HTML if the name ends so, as JSON otherwise."""
        name = os.fspath(path)
        is_html = name.lower().endswith((".html", ".htm"))
        text = self.to_html() if is_html else json.dumps(self._value, indent=2) + "\n"
        part = f"{name}.part"
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, name)
