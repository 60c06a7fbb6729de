#!/usr/bin/env python3
"""Uses `evenkeel sql` as people do: through a terminal.

usage: shell.py PROGRAM
"""

import fcntl
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time

# What the editor prints before it reads a line, and when it has one.
READS = re.escape("\x1b[?2004h")
HAS_READ = re.escape("\x1b[?2004l")
SLOW = "SELECT sum(a.id * b.id * c.id * d.user) FROM t a, t b, t c, t d"


class Shell:
    """A shell in a terminal of its own."""

    def __init__(self, program, home, *places, **variables):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(home)
            environment = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm", "PAGER": "cat"}
            os.execve(program, [program, "sql", *places], environment | variables)
        self.pid = pid
        self.text = ""
        # Wide enough for every line.
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
        self.read_to(READS)

    def read_to(self, pattern, seconds=60):
        """Returns what is printed up to a pattern."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.text)
            if found:
                before, self.text = self.text[: found.end()], self.text[found.end() :]
                return before
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {pattern!r} within {seconds} s in {self.text[-2000:]!r}")
            try:
                more = os.read(self.terminal, 65536)
            except OSError:
                more = b""
            if not more:
                raise AssertionError(f"ended without {pattern!r}: {self.text[-2000:]!r}")
            self.text += more.decode("utf-8", "replace")

    def send(self, keys):
        os.write(self.terminal, keys.encode())

    def run(self, *lines):
        """Types lines and returns what the last one prints, without colours and movements of the
        cursor."""
        for line in lines:
            self.send(line + "\r")
            self.read_to(HAS_READ)
            printed = self.read_to(READS)
        return plain(printed)

    def cancel(self, statement, after, message):
        """Types a statement and, some seconds later, Ctrl-C."""
        self.send(statement + "\r")
        time.sleep(after)
        self.send("\x03")
        self.read_to(message, 10)
        self.read_to(READS)

    def leave(self, keys="\x04"):
        """Leaves the shell and returns its exit code."""
        self.send(keys)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status)


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


@check
def statements_end_with_a_semicolon_and_errors_do_not_end_the_shell(program, home):
    shell = Shell(program, home, "events")
    assert "300" in shell.run("SELECT count(*)\rFROM t;")
    assert "error: there is no table 'nothing'" in shell.run("SELECT * FROM nothing;")
    assert "there is no command" in shell.run("\\nothing")
    assert "write \\i FILE" in shell.run("\\i")
    assert "1  2" in shell.run("SELECT 1 AS a, 2 AS b;")
    for part in ["PRIMARY KEY", "partition", "Int64"]:
        assert part.lower() in shell.run("\\d events").lower(), part
    assert "max / mean" in shell.run("\\skew")
    assert shell.leave() == 0


@check
def names_are_completed_and_words_have_colours(program, home):
    shell = Shell(program, home, "events")
    printed = shell.run("SELECT count(*) AS n FROM eve\t WHERE use\t = 1;")
    assert "\n 30\n" in printed, printed
    shell.send("SELECT 1;\r")
    assert "\x1b[1;34mSELECT\x1b[0m" in shell.read_to(HAS_READ)
    shell.read_to(READS)
    assert shell.leave() == 0
    shell = Shell(program, home, "events", NO_COLOR="1")
    shell.send("SELECT 1;\r")
    assert "\x1b[1;34m" not in shell.read_to(HAS_READ)
    shell.read_to(READS)
    assert shell.leave("\\q\r") == 0


@check
def ctrl_c_cancels_a_query_and_not_the_shell(program, home):
    shell = Shell(program, home, "events")
    for _ in range(3):
        shell.cancel(SLOW + ";", 0.5, "error: the query was cancelled")
    # At the prompt it clears the line.
    shell.send("SELECT wrong")
    shell.send("\x03")
    shell.read_to(READS)
    assert "300" in shell.run("SELECT count(*) FROM t;")
    assert shell.leave() == 0


@check
def a_join_that_does_not_yield_keeps_no_later_query_waiting(program, home):
    shell = Shell(program, home, "events")
    shell.cancel("SELECT count(*) FROM t a, t b, t c, t d WHERE a.id * b.id * c.id * d.id = 7;", 1.5, "cancelled")
    assert "300" in shell.run("SELECT count(*) FROM t;")
    assert shell.leave() == 0


@check
def keys_that_come_at_once_are_all_read(program, home):
    shell = Shell(program, home, "events")
    shell.send("SELECT 1 AS a;\rSELECT 2 AS b;\rSELECT 39 + 3 AS c;\r")
    shell.read_to("42", 20)
    shell.read_to(READS)
    # A command on a line of its own gives an unfinished statement up.
    assert "is ignored" in shell.run("SELECT 'not\r\\timing")
    assert shell.leave() == 0


@check
def results_replace_nothing_that_is_read(program, home):
    shell = Shell(program, home, "events", "more=more.csv")
    assert "is a file of the export more" in shell.run("\\o more.csv")
    assert "lies in the table" in shell.run("\\o events/_log/x.json")
    assert "give it with \\set x VALUE" in shell.run("SELECT $x + 1;")
    assert "returns no column" in shell.run("FROM t LIMIT 2;")
    assert shell.leave() == 0


@check
def ctrl_c_ends_a_script(program, home):
    with open(os.path.join(home, "slow.sql"), "w") as file:
        file.write(f"SELECT 1;\n{SLOW};\nSELECT 2;")
    with open(os.path.join(home, "slow.sql")) as script:
        done = subprocess.Popen([program, "sql", "events"], stdin=script, cwd=home, stdout=subprocess.PIPE)
    time.sleep(2)
    done.send_signal(signal.SIGINT)
    out, _ = done.communicate(timeout=30)
    assert done.returncode == 130 and b"2" not in out, (done.returncode, out)
    # In a file that is included, it ends the file.
    shell = Shell(program, home, "events")
    shell.send("\\i slow.sql\r")
    shell.read_to("1 row")
    time.sleep(0.5)
    shell.send("\x03")
    assert "2" not in plain(shell.read_to("error: the query was cancelled", 10))
    shell.read_to(READS)
    assert shell.leave() == 0


@check
def a_query_of_more_than_a_second_shows_its_progress(program, home):
    shell = Shell(program, home, "events")
    shell.send(SLOW + ";\r")
    shell.read_to("rows read", 20)
    shell.send("\x03")
    shell.read_to("cancelled")
    shell.read_to(READS)
    assert shell.leave() == 0


@check
def what_is_typed_is_kept_for_the_next_time_except_secrets(program, home):
    shell = Shell(program, home, "events")
    shell.run("SELECT 40 + 2\rAS answer;")
    shell.run("\\set password hunter2")
    shell.run("SELECT 'https://me:pw@host/x';")
    assert shell.leave() == 0
    path = os.path.join(home, ".local/state/evenkeel/history")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    kept = open(path).read()
    assert "answer" in kept and "hunter2" not in kept and "pw@" not in kept, kept
    shell = Shell(program, home, "events")
    assert "\n     42\n" in shell.run("\x1b[A")
    assert shell.leave() == 0
    os.chmod(path, 0o644)
    shell = Shell(program, home, "events")
    assert shell.leave() == 0
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    before = os.stat(path).st_size
    shell = Shell(program, home, "events", EVENKEEL_HISTORY="")
    shell.run("SELECT 1;")
    assert shell.leave() == 0
    assert os.stat(path).st_size == before


@check
def watching_and_refreshing_see_new_rows_and_versions_old_ones(program, home):
    shell = Shell(program, home, "events")
    shell.run("SELECT count(*) AS n FROM t;")
    shell.send("\\watch 0.2\r")
    shell.read_to("every 0.2 s")
    shell.read_to("300")
    ingest(program, home, 300, 350)
    shell.read_to("350", 20)
    shell.send("\x03")
    shell.read_to(READS)
    assert "350" in shell.run("SELECT count(*) FROM t;")
    ingest(program, home, 350, 360)
    # Until told otherwise, all queries see the same rows.
    assert "350" in shell.run("SELECT count(*) FROM t;")
    shell.run("\\refresh")
    assert "360" in shell.run("SELECT count(*) FROM t;")
    shell.send("\\version 1\r")
    shell.read_to("evenkeel@1> ")
    assert "300" in shell.run("SELECT count(*) FROM t;")
    assert "error: " in shell.run("\\version 99")
    assert "300" in shell.run("SELECT count(*) FROM t;")
    shell.run("\\version newest")
    assert "360" in shell.run("SELECT count(*) FROM t;")
    assert shell.leave() == 0


@check
def results_go_to_files_a_pager_and_lines(program, home):
    shell = Shell(program, home, "events")
    shell.run("\\rows 2")
    assert "(2 of " in shell.run("SELECT id FROM t WHERE id < 20 ORDER BY id;")
    printed = shell.run("\\last")
    assert "(20 rows)" in printed and "\n 19\n" in printed, printed
    assert "-- row 1 --" in shell.run("\\x on", "SELECT 1 AS a;")
    shell.run("\\x off")
    shell.run("\\o out.csv", "SELECT 1 AS a;", "SELECT 2 AS b;", "\\o")
    assert open(os.path.join(home, "out.csv")).read() == "a\n1\nb\n2\n"
    shell.run("\\o out.parquet", "SELECT id FROM t;", "\\o")
    assert open(os.path.join(home, "out.parquet"), "rb").read(4) == b"PAR1"
    assert "name a file that ends with" in shell.run("\\o out.xyz")
    open(os.path.join(home, "in.sql"), "w").write("\\set n 5\nSELECT count(*) AS few FROM t WHERE id < $n;")
    assert "\n   5\n" in shell.run("\\i in.sql")
    assert "scan of events" in shell.run("\\explain")
    assert re.search(r"\n0\.\d+ s\n", shell.run("\\timing on", "SELECT 1;"))
    assert shell.leave() == 0


@check
def a_signal_leaves_the_terminal_as_it_was(program, home):
    shell = Shell(program, home, "events")
    # The prompt reads single keys.
    assert not termios.tcgetattr(shell.terminal)[3] & termios.ICANON
    os.kill(shell.pid, signal.SIGTERM)
    _, status = os.waitpid(shell.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert termios.tcgetattr(shell.terminal)[3] & termios.ICANON


@check
def a_script_ends_with_its_first_error(program, home):
    def script(text, *places):
        done = subprocess.run(
            [program, "sql", *(places or ["events"])], input=text, cwd=home, capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    code, out, _ = script("\\format csv\nSELECT 1 AS a;\n-- done; nothing\nSELECT\n2 AS b")
    assert (code, out) == (0, "results are shown as csv\na\n1\nb\n2\n"), out
    code, out, error = script("SELECT 1;\nSELECT * FROM absent;\nSELECT 2;")
    assert code == 1 and "2" not in out and "absent" in error, (code, out, error)
    code, _, error = script("SELECT 1;", "-")
    assert code == 2 and "standard input contains the statements" in error
    code, out, error = script("SELECT count(*) FROM more JOIN events ON events.id = more.id;", "events", "more=more.csv")
    assert code == 0 and " 3\n" in out, (out, error)
    with open(os.path.join(home, "loop.sql"), "w") as file:
        file.write("SELECT 1;\n\\i loop.sql\n")
    code, _, error = script("\\i loop.sql\n")
    assert code == 1 and "does a file run itself" in error and "loop.sql, line 2" in error, error
    code, out, error = script("\ufeffSELECT $$a;b$$ AS x;")
    assert code == 0 and "a;b" in out, error
    code, _, error = script("DROP TABLE events;")
    assert code == 1 and error.startswith("error: "), error


def ingest(program, home, begin, end):
    with open(os.path.join(home, f"rows-{begin}.csv"), "w") as file:
        file.write("id,user\n" + "".join(f"{row},{row % 10}\n" for row in range(begin, end)))
    command = [program, "ingest", "events", f"rows-{begin}.csv"]
    subprocess.run(command, cwd=home, check=True, capture_output=True)


def main():
    program = os.path.abspath(sys.argv[1])
    chosen = sys.argv[2:]
    failed = 0
    for function in CHECKS:
        if chosen and function.__name__ not in chosen:
            continue
        with tempfile.TemporaryDirectory() as home:
            create = "create events --column id:int64:not-null --column user:int64:not-null --primary-key id --partition-key id --partitions 4"
            subprocess.run([program, *create.split()], cwd=home, check=True, capture_output=True)
            ingest(program, home, 0, 300)
            with open(os.path.join(home, "more.csv"), "w") as file:
                file.write("id,name\n1,a\n2,b\n3,c\n999,d\n")
            try:
                function(program, home)
                print(f"ok    {function.__name__}")
            except AssertionError as error:
                failed += 1
                print(f"FAIL  {function.__name__}: {error}")
    print(f"{len(chosen or CHECKS) - failed} of {len(chosen or CHECKS)} passed")
    sys.exit(1 if failed else 0)


main()
