//! Figures of the windows in order of time.

use serde::Serialize;

/// Number of periods to which a timeline is reduced when it has more than twice as many.
const MAX_PERIODS: usize = 240;

/// Figures of consecutive windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Period {
    /// First window, numbered since 1970.
    #[serde(rename = "begin_window")]
    pub begin: i64,
    /// Number of windows.
    pub windows: u64,
    /// Number of rows of the export written.
    pub rows: u64,
    /// Rows in the hottest split of their window.
    pub hottest_rows: u64,
    /// Rows written to hot splits.
    pub hot_rows: u64,
    /// Highest score of a split in a window; 100 is the capacity of a split.
    pub highest_score: f64,
    /// Number of splits at the end.
    pub splits: usize,
    /// Number of splits divided by size.
    pub by_size: u64,
    /// Number of splits divided by load.
    pub by_load: u64,
    /// Number of splits joined.
    pub merges: u64,
    /// Number of splits moved to another server.
    pub moves: u64,
    /// Number of windows with a hot split.
    pub hot_windows: u64,
    /// Number of evenly loaded splits with the same unevenness: 1 / sum of squared shares. Mean
    /// over the windows, weighted by rows.
    pub effective_splits: f64,
    /// Number of servers with at least a tenth of an even share. Mean over the windows, weighted by
    /// rows.
    pub busy_servers: f64,
    /// Like `effective_splits`, for servers.
    pub effective_servers: f64,
}

impl Period {
    /// Adds a later period.
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

    /// Returns the share of the rows that went to the hottest split of their window; 0 without
    /// rows.
    #[must_use]
    pub fn hottest_share(&self) -> f64 {
        if self.rows == 0 { 0.0 } else { self.hottest_rows as f64 / self.rows as f64 }
    }
}

/// Periods with equal numbers of windows, in order of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// Periods in order of time; windows without rows between them may be left out.
    pub periods: Vec<Period>,
    /// Number of windows in a period.
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
        while self.periods.len() > 2 * MAX_PERIODS {
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

    /// Returns the whole timeline as one period.
    pub(crate) fn whole(&self) -> Period {
        let mut periods = self.periods.iter();
        let mut whole = periods.next().copied().unwrap_or_default();
        periods.for_each(|period| whole.extend(period));
        whole
    }
}

/// Duration of hot splits, in windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Relief {
    /// First window with a hot split, numbered since 1970.
    #[serde(rename = "first_hot_window")]
    pub first_hot: Option<i64>,
    /// Number of windows from then until no split was hot any more; `None` if that did not happen.
    #[serde(rename = "relieved_after_windows")]
    pub relieved_after: Option<u64>,
    /// Total number of windows with a hot split.
    pub hot_windows: u64,
    /// Longest time with hot splits throughout, in windows.
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
