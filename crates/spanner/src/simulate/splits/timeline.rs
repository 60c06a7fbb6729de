//! What windows were like.

use serde::Serialize;

/// Periods of a timeline, at most.
const MOST_PERIODS: usize = 240;

/// Some windows that follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Period {
    /// Where it begins, in windows since 1970.
    #[serde(rename = "begin_window")]
    pub begin: i64,
    /// How many windows it has.
    pub windows: u64,
    /// Rows that came.
    pub rows: u64,
    /// Of these, rows of the hottest split of each window.
    pub hottest_rows: u64,
    /// Rows that came to hot splits.
    pub hot_rows: u64,
    /// The highest score of a split in a window.
    pub highest_score: f64,
    /// Splits in its end.
    pub splits: usize,
    /// Splits divided by size.
    pub by_size: u64,
    /// Splits divided by load.
    pub by_load: u64,
    /// Splits joined.
    pub merges: u64,
    /// Splits that moved to another server.
    pub moves: u64,
    /// Windows with a hot split.
    pub hot_windows: u64,
    /// Splits with even load that would be as uneven: 1 / sum of squared shares, of the windows by their rows.
    pub effective_splits: f64,
    /// Servers with at least a tenth of an even share, of the windows by their rows.
    pub busy_servers: f64,
    /// As `effective_splits`, of servers.
    pub effective_servers: f64,
}

impl Period {
    /// Adds a later one.
    fn extend(&mut self, later: &Self) {
        let (before, after) = (self.rows as f64, later.rows as f64);
        let both = before + after;
        let mean = |a: f64, b: f64| if both > 0.0 { (a * before + b * after) / both } else { 0.0 };
        self.effective_splits = mean(self.effective_splits, later.effective_splits);
        self.busy_servers = mean(self.busy_servers, later.busy_servers);
        self.effective_servers = mean(self.effective_servers, later.effective_servers);
        self.windows = (later.begin - self.begin).max(0).cast_unsigned() + later.windows;
        self.rows += later.rows;
        self.hottest_rows += later.hottest_rows;
        self.hot_rows += later.hot_rows;
        self.highest_score = self.highest_score.max(later.highest_score);
        self.splits = later.splits;
        self.by_size += later.by_size;
        self.by_load += later.by_load;
        self.merges += later.merges;
        self.moves += later.moves;
        self.hot_windows += later.hot_windows;
    }

    /// Share of the rows that went to the hottest split of their window; 0 without rows.
    #[must_use]
    pub fn hottest_share(&self) -> f64 {
        if self.rows == 0 { 0.0 } else { self.hottest_rows as f64 / self.rows as f64 }
    }
}

/// Periods of equally many windows, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// The periods. Windows without rows between them are left out.
    pub periods: Vec<Period>,
    /// Windows of a period.
    pub windows_of_period: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { periods: Vec::new(), windows_of_period: 1 }
    }
}

impl Timeline {
    /// Adds a window.
    pub(super) fn push(&mut self, window: Period) {
        self.append(window);
        while self.periods.len() > 2 * MOST_PERIODS {
            self.windows_of_period *= 2;
            for period in std::mem::take(&mut self.periods) {
                self.append(period);
            }
        }
    }

    fn append(&mut self, period: Period) {
        let slice = |begin: i64| begin.div_euclid(self.windows_of_period.cast_signed());
        match self.periods.last_mut() {
            Some(last) if slice(last.begin) == slice(period.begin) => last.extend(&period),
            _ => self.periods.push(period),
        }
    }

    /// All of it as one period.
    #[must_use]
    pub fn whole(&self) -> Period {
        let mut periods = self.periods.iter();
        let mut whole = periods.next().copied().unwrap_or_default();
        periods.for_each(|period| whole.extend(period));
        whole
    }
}

/// How long there were hot splits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Relief {
    /// The first window with a hot split, since 1970.
    #[serde(rename = "first_hot_window")]
    pub first_hot: Option<i64>,
    /// Windows from then until none was hot any more; none where that did not come.
    #[serde(rename = "relieved_after_windows")]
    pub relieved_after: Option<u64>,
    /// Windows with a hot split, in all.
    pub hot_windows: u64,
    /// The longest time with a hot split in every window.
    #[serde(rename = "longest_windows")]
    pub longest: u64,
    #[serde(skip)]
    since: Option<i64>,
}

impl Relief {
    pub(super) fn push(&mut self, window: i64, hot: bool) {
        if hot {
            self.hot_windows += 1;
            self.first_hot.get_or_insert(window);
            let since = *self.since.get_or_insert(window);
            self.longest = self.longest.max((window - since).max(0).cast_unsigned() + 1);
        } else if let Some(since) = self.since.take() {
            self.relieved_after.get_or_insert((window - since).max(0).cast_unsigned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_grow_and_nothing_is_lost() {
        let mut timeline = Timeline::default();
        let window = |begin: i64| Period {
            begin,
            windows: 1,
            rows: 10,
            hottest_rows: 4,
            highest_score: begin as f64,
            splits: 3,
            by_load: 1,
            hot_windows: 1,
            effective_splits: 2.0,
            ..Period::default()
        };
        (0..5000).for_each(|begin| timeline.push(window(begin)));
        assert!((100..=480).contains(&timeline.periods.len()), "{}", timeline.periods.len());
        let whole = timeline.whole();
        assert_eq!((whole.windows, whole.rows, whole.by_load, whole.hot_windows), (5000, 50_000, 5000, 5000));
        assert!((whole.hottest_share() - 0.4).abs() < 1e-9 && (whole.effective_splits - 2.0).abs() < 1e-9);
        assert_eq!(whole.highest_score, 4999.0);
    }

    #[test]
    fn relief_is_counted_from_the_first_hot_window() {
        let mut relief = Relief::default();
        for (window, hot) in [(1, false), (2, true), (3, true), (4, false), (5, true), (9, true)] {
            relief.push(window, hot);
        }
        assert_eq!((relief.first_hot, relief.relieved_after), (Some(2), Some(2)));
        assert_eq!((relief.hot_windows, relief.longest), (4, 5));
        let mut never = Relief::default();
        never.push(7, true);
        assert_eq!(never.relieved_after, None);
    }
}
