"""The blocks `pycon` of docs/guide/python.md give the output that they show."""

from __future__ import annotations

import doctest
import pathlib
import re


def test_the_guide(project: pathlib.Path) -> None:
    page = (project / "docs" / "guide" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```pycon\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    # Line numbers of failures are those of the joined blocks.
    text = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(text, {}, "python.md", "python.md", 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
