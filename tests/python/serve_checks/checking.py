"""Checks, and how many of them there were."""

import psycopg

checks = 0


def check(found, expected=True, about=""):
    global checks
    checks += 1
    assert found == expected, f"{about}\nfound    {found!r}\nexpected {expected!r}"


def passed():
    """How many checks there were so far."""
    return checks


def refused(code, work, about=""):
    """Checks that work fails with a code of PostgreSQL; returns the error."""
    try:
        work()
    except psycopg.Error as error:
        check(error.sqlstate, code, f"{about} {error}")
        return error
    raise AssertionError(f"{about} is not refused")
