"""Completions and manual pages, which the program writes about itself."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PROGRAM = os.path.join(os.path.dirname(sys.executable), "evenkeel")


def said(*arguments: str) -> str:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, check=True, text=True).stdout


def test_bash_completes_commands_and_options(tmp_path: pathlib.Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    (tmp_path / "evenkeel.bash").write_text(said("completions", "bash"))

    def completed(*words: str) -> list[str]:
        script = f"""
            source {tmp_path}/evenkeel.bash
            COMP_WORDS=({' '.join(words)}) COMP_CWORD={len(words) - 1}
            _evenkeel evenkeel '{words[-1]}' '{words[-2]}'
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True)
        return done.stdout.split()

    assert completed("evenkeel", "eva") == ["evaluate"]
    assert completed("evenkeel", "ingest", "--delete-") == ["--delete-column"]
    assert set(completed("evenkeel", "skew", "x", "--format", "m")) == {"markdown"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_completions(shell: str, tmp_path: pathlib.Path) -> None:
    script = said("completions", shell)
    assert "evaluate" in script and "delete-column" in script
    if shutil.which(shell) is not None:
        (tmp_path / "completions").write_text(script)
        checked = subprocess.run([shell, "-n", tmp_path / "completions"], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr


def test_there_is_a_page_for_each_command(tmp_path: pathlib.Path) -> None:
    said("man", str(tmp_path / "man1"))
    pages = {page.name for page in (tmp_path / "man1").iterdir()}
    assert {"evenkeel.1", "evenkeel-evaluate.1", "evenkeel-spanner-simulate.1"} <= pages
    if shutil.which("man") is not None:
        for name in ("evenkeel.1", "evenkeel-evaluate.1"):
            environment = {**os.environ, "MANROFFSEQ": "", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
            shown = subprocess.run(
                ["man", "--warnings", "-l", str(tmp_path / "man1" / name)],
                capture_output=True,
                text=True,
                env=environment,
            )
            assert shown.returncode == 0 and not shown.stderr, shown.stderr
            assert "SYNOPSIS" in shown.stdout
    said("man")
