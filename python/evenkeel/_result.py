"""Rows of queries."""

from __future__ import annotations

import html
from typing import Any

from evenkeel import _evenkeel
from evenkeel._arguments import said_in_python

#: Rows of a result that are shown.
_SHOWN = 20


def _without_views(arrow: Any, pyarrow: Any) -> Any:
    """Replaces views in a type of Arrow, also within lists and structs."""
    types = pyarrow.types
    if types.is_string_view(arrow):
        return pyarrow.large_string()
    if types.is_binary_view(arrow):
        return pyarrow.large_binary()
    if types.is_list(arrow):
        return pyarrow.list_(arrow.value_field.with_type(_without_views(arrow.value_type, pyarrow)))
    if types.is_struct(arrow):
        return pyarrow.struct([field.with_type(_without_views(field.type, pyarrow)) for field in arrow])
    return arrow


class Result:
    """The rows of a query: an Arrow stream, which can be read once.

    Anything that reads Arrow streams takes it without a copy: ``pyarrow.table(result)``,
    ``polars.DataFrame(result)``, ``duckdb.sql("SELECT ... FROM result")``.
    """

    def __init__(self, rows: _evenkeel.Rows) -> None:
        self._rows = rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._rows.columns

    def __arrow_c_schema__(self) -> object:
        return self._rows.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """All rows as a table of pyarrow."""
        import pyarrow

        with said_in_python():
            self._rows.collect()
        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """All rows as a data frame of pandas."""
        import pyarrow

        table = self.to_arrow()
        # pandas converts texts, but not views of them.
        fields = [field.with_type(_without_views(field.type, pyarrow)) for field in table.schema]
        return table.cast(pyarrow.schema(fields)).to_pandas()

    def to_polars(self) -> Any:
        """All rows as a data frame of Polars."""
        import polars

        with said_in_python():
            self._rows.collect()
        return polars.DataFrame(self)

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as dictionaries; needs pyarrow."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def __repr__(self) -> str:
        with said_in_python():
            text, more = self._rows.preview(_SHOWN)
        return (text + (f"(the first {_SHOWN} rows)" if more else "")).rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"
