"""Figures over time: windows of a partition key, and the times of an export."""

from figures_checks.comparison import same, same_weighted_spread


def windows_of(made, table, count, length):
    """Each window of a length.

    With its rows, share of the fullest, effective partitions, and rows of the fullest.
    """
    return made.db.execute(
        f"SELECT w, sum(n), max(n) / sum(n), sum(n::DOUBLE) * sum(n) / sum(n::DOUBLE * n), max(n) FROM "
        f"(SELECT epoch_us(ts) // {length} AS w, p{count}, count(*) AS n FROM {table} JOIN t USING (arrived) "
        f"WHERE ts IS NOT NULL GROUP BY ALL) GROUP BY w"
    ).fetchall()


def check_windows(made, table, count, found, where):
    length, examined = found["window_micros"], found["examined"]
    shown = windows_of(made, table, count, length)
    same(found["windows"], len(shown), f"{where}, windows of {length}")
    peak_rows = max(window[4] for window in shown)
    same(found["peak"]["rows_per_second_of_fullest"], peak_rows / (length / 1e6), f"{where}, peak")
    if examined["one_in"] != 1:
        return
    # Windows of one moment each are windows of the clock, too: the key has one value of time in
    # each.
    short = examined["window_micros"]
    judged = [window for window in windows_of(made, table, count, short) if window[1] >= max(examined["fewest_rows"], 1)]
    same(found["judged_windows"], len(judged), f"{where}, judged windows of {short}")
    same_weighted_spread(
        found["share_of_fullest"], [(float(window[2]), window[1]) for window in judged], f"{where}, fullest of a window")
    same_weighted_spread(
        found["effective_partitions"], [(window[3], window[1]) for window in judged], f"{where}, effective of a window")
    worst = min(window[3] for window in judged)
    same(found["worst_window"]["effective_partitions"], worst, f"{where}, worst window")


def check_time(made, evaluation):
    if not made.has_time():
        return
    first, last, nulls = made.one("SELECT min(epoch_us(ts)), max(epoch_us(ts)), count(*) FILTER (ts IS NULL) FROM t")
    found = evaluation["time_range"]
    same(evaluation["time"], "ts", "time")
    if first is None:
        return
    same((found["earliest_micros"], found["latest_micros"]), (first, last), "range of time")
    same(found["null_rows"], nulls, "rows without a time")
    late = made.one(
        "SELECT " + ", ".join(f"count(*) FILTER (most - e > {by}::BIGINT * 1000000)" for by in (1, 60, 3600, 86400))
        + " FROM (SELECT epoch_us(ts) AS e, max(epoch_us(ts)) OVER (ORDER BY arrived) AS most FROM t WHERE ts IS NOT NULL)"
    )
    same(found["late_rows_by_more_than"], list(late), "late rows")
