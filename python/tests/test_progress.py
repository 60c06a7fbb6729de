"""Progress in a terminal and in a notebook."""

from __future__ import annotations

import sys
import types

import pytest

from evenkeel import _progress


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows progress at once."""
    monkeypatch.setattr(_progress, "_DELAY", 0.0)
    monkeypatch.setattr(_progress, "_PAUSE", 0.0)


def test_a_terminal_has_a_line_that_is_removed(at_once: None, capsys: pytest.CaptureFixture[str]) -> None:
    with _progress.shown(True) as callback:
        callback(1500, "rows", 0.5, "monday.csv (1 of 2)")
        callback(2000, "rows", None, "")
    shown = capsys.readouterr().err.split("\r")
    assert "█" * 15 + "░" * 15 + "  50% 1,500 rows monday.csv (1 of 2)" in shown
    assert any(line.startswith("2,000 rows") for line in shown) and shown[-1] == ""


def test_short_work_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with _progress.shown(True) as callback:
        callback(1, "rows", 0.5, "")
    with _progress.shown(None) as callback:
        assert callback is None, "nobody looks"
    with _progress.shown(False) as callback:
        assert callback is None
    assert capsys.readouterr().err == ""


def test_a_notebook_has_a_bar_that_is_removed(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []

    class Handle:
        def update(self, page: str) -> None:
            pages.append(page)

    def display(page: str, display_id: bool) -> Handle:
        assert display_id
        pages.append(page)
        return Handle()

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = type("ZMQInteractiveShell", (), {})
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.HTML, ipython.display.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    with _progress.shown(None) as callback:
        callback(10, "rows", 0.25, "<a>")
        callback(20, "rows", 0.5, "")
    assert 'value="0.250"' in pages[0] and "10 rows &lt;a&gt;" in pages[0]
    assert 'value="0.500"' in pages[1] and pages[-1] == ""
