"""Commands of the program, run in this process."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evenkeel import _evenkeel
from evenkeel._arguments import in_words_of_python
from evenkeel._errors import Error, ThresholdError
from evenkeel._progress import Callback, shown
from evenkeel._report import Report

#: Report of a command as the native part gives it.
_Parts = tuple[str, str, "str | None", "str | None", "list[str]"]


def run(
    arguments: Sequence[str],
    *,
    progress: bool | Callback | None = False,
    temporary: Mapping[str, str] | None = None,
    keywords: Iterable[str] = (),
    kind: Callable[..., Report] = Report,
) -> Any:
    """Runs a command of the program and returns its result, which says the names of tables instead
    of those of the ``temporary`` files that have their rows."""

    def named(text: str, spelled: Callable[[str], str] = str) -> str:
        for file, table in (temporary or {}).items():
            text = text.replace(spelled(file), spelled(table))
        return text

    def report(parts: _Parts) -> Report:
        value, text, page, fragment, notes = parts
        return kind(
            json.loads(named(value, lambda path: json.dumps(path)[1:-1])),
            named(text),
            page and named(page, html.escape),
            fragment and named(fragment, html.escape),
            [named(note) for note in notes],
        )

    with shown(progress) as callback:
        try:
            return report(_evenkeel.run(list(arguments), callback))
        except Error as error:
            error.message = named(error.message)
            error.file = error.file and named(error.file)
            in_words_of_python(error, keywords)
            if isinstance(error, ThresholdError):
                error.result = report(error._report)  # type: ignore[attr-defined]
            raise
