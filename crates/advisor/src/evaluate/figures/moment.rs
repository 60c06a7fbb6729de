//! Windows in which the balance at any moment is judged.
//!
//! The capacity of a partition is a rate per second, so windows shorter than a second do not
//! matter. A window that is too long hides a hot spot that moves within it. Therefore the shortest
//! length from one second up is used whose windows have enough rows to be meaningful. A key that
//! contains the time also has moments: all rows with one value of its time, which only the other
//! columns of the key can spread. If rows share moments, windows are never long enough to hold
//! several of them. If even the displayed windows have too few rows, and their length was not
//! requested, longer ones are judged, as long as several remain.

use std::borrow::Cow;

use serde::Serialize;

use evenkeel_model::units::Micros;
use evenkeel_stats::throughput::enough_rows;
use evenkeel_stats::windows::{Moment, Scale, Window};

/// If a row shares its moment with fewer other rows than this on average, rows are spread over
/// moments, and no moment over partitions. For one row, more than [`MAX_OTHERS`] count as that, so
/// that a few bursts do not represent all rows.
const MIN_OTHERS: f64 = 1.0;
const MAX_OTHERS: f64 = 3.0;
/// Minimum number of longer windows in place of displayed ones with too few rows.
const MIN_LONGER: usize = 4;

/// Form in which a key contains the time column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeOfKey {
    /// The key does not contain the time column.
    None,
    /// The key contains the time column unchanged.
    Instant,
    /// The key contains the time column truncated to multiples of a length.
    Slice(Micros),
}

impl TimeOfKey {
    /// Combines the forms of two parts of a key.
    pub(crate) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, one) | (one, Self::None) => one,
            (Self::Slice(a), Self::Slice(b)) => Self::Slice(a.min(b)),
            _ => Self::Instant,
        }
    }
}

/// Windows from which the balance at any moment is computed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Examined {
    /// Length of a window.
    pub window_micros: Micros,
    /// Whether each window has rows of only one value of the key's time.
    pub one_moment: bool,
    /// Median window size over rows: half of the rows are in windows with at least this many rows.
    pub rows_per_window: u64,
    /// One in this many windows is examined, chosen by a hash of its number.
    pub one_in: u64,
    /// Minimum number of rows that a window needs to be judged.
    pub fewest_rows: u64,
}

fn rows_of(window: &Window) -> u64 {
    window.rows_per_partition.iter().sum()
}

/// Returns the median window size over rows: half of the rows are in windows with at least this
/// many rows.
fn rows_of_half(windows: &[Window]) -> u64 {
    let mut rows: Vec<u64> = windows.iter().map(rows_of).collect();
    rows.sort_unstable();
    let all: u64 = rows.iter().sum();
    let mut below = 0;
    let middle = rows.iter().find(|rows| {
        below += **rows;
        2 * below >= all
    });
    middle.copied().unwrap_or(0)
}

/// Whether each window has rows of one moment of the key. For times that are not truncated, at
/// least half of the rows that share a window must do so.
fn is_one_moment(time: TimeOfKey, length: Micros, moments: &[Moment]) -> bool {
    match time {
        TimeOfKey::None => false,
        TimeOfKey::Slice(slice) => slice.get() % length.get() == 0,
        TimeOfKey::Instant => {
            let shared = moments.iter().filter(|moment| moment.rows > 1);
            let (all, mixed) = shared.fold((0, 0), |(all, mixed), moment| {
                (all + moment.rows, mixed + if moment.mixed { moment.rows } else { 0 })
            });
            all > 0 && 2 * mixed <= all
        }
    }
}

/// Whether rows share their moments, if the share `sample` of the rows was drawn.
fn are_shared(windows: &[Window], sample: f64) -> bool {
    let (mut all, mut others) = (0.0, 0.0);
    for rows in windows.iter().map(rows_of) {
        all += rows as f64;
        others += rows as f64 * (rows.saturating_sub(1) as f64 / sample).min(MAX_OTHERS);
    }
    others >= MIN_OTHERS * all && all > 0.0
}

/// Chooses the windows to judge `partitions` by, and describes the choice. `shown` are the
/// displayed windows, of length `length`. If that length was requested, no others are judged,
/// unless they are moments of the key. `scales` are short windows, the shortest first.
pub(crate) fn examine<'a>(
    scales: impl Iterator<Item = Scale>,
    (shown, length): (&'a [Window], Micros),
    is_requested: bool,
    time: TimeOfKey,
    partitions: usize,
    sample: f64,
) -> (Cow<'a, [Window]>, Examined) {
    let enough = enough_rows(partitions);
    let describe = |windows: &[Window], window_micros, one_moment, one_in| {
        let rows_per_window = rows_of_half(windows);
        Examined {
            window_micros,
            one_moment,
            rows_per_window,
            one_in,
            // Two rows are enough to see whether they share a partition.
            fewest_rows: if rows_per_window >= enough || !one_moment { enough } else { 2 },
        }
    };
    let of_shown = describe(shown, length, false, 1);
    let shown_suffice = length >= Micros::SECOND && of_shown.rows_per_window >= enough;
    let mut moments_of_key = None;
    for scale in scales {
        let Scale { length: short, one_in, windows, moments } = scale;
        let one_moment = is_one_moment(time, short, &moments);
        let examined = describe(&windows, short, one_moment, one_in);
        let suffices = examined.rows_per_window >= enough;
        if one_moment {
            if suffices || are_shared(&windows, sample) {
                moments_of_key = Some((Cow::Owned(windows), examined));
            }
            if suffices {
                break;
            }
        } else {
            let shown_are_shorter = shown_suffice && length <= short;
            if is_requested || moments_of_key.is_some() || shown_are_shorter {
                break;
            }
            if suffices {
                return (Cow::Owned(windows), examined);
            }
        }
    }
    if let Some(examined) = moments_of_key {
        return examined;
    }
    // Longer windows are less precise than shorter ones, but better than no judgement.
    if !is_requested && shown.iter().all(|window| rows_of(window) < enough) {
        let longer = (1..i64::BITS - 1).map(|doubled| 1i64 << doubled);
        let longer = longer.map_while(|times| {
            let joined = joined(shown, times, length);
            (joined.len() >= MIN_LONGER).then_some((times, joined))
        });
        for (times, joined) in longer {
            let examined = describe(&joined, Micros::new(length.get().saturating_mul(times)), false, 1);
            if examined.rows_per_window >= enough {
                return (Cow::Owned(joined), examined);
            }
        }
    }
    (Cow::Borrowed(shown), of_shown)
}

/// Joins windows of one length to windows that are `times` as long.
fn joined(windows: &[Window], times: i64, length: Micros) -> Vec<Window> {
    let together = windows.chunk_by(|a, b| a.number.div_euclid(times) == b.number.div_euclid(times));
    let join = |together: &[Window]| {
        let first = together.first()?;
        let number = first.number.div_euclid(times);
        let mut rows_per_partition = vec![0; first.rows_per_partition.len()];
        for window in together {
            rows_per_partition
                .iter_mut()
                .zip(&window.rows_per_partition)
                .for_each(|(sum, rows)| *sum += rows);
        }
        let start_micros = number.saturating_mul(times).saturating_mul(length.get());
        Some(Window { number, start_micros, rows_per_partition })
    };
    together.filter_map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTITIONS: usize = 16;

    /// `count` windows of a minute with `rows` rows each, all in one partition; every ten windows
    /// the partition changes.
    fn windows(count: i64, rows: u64) -> Vec<Window> {
        let window = |at: i64| {
            let mut rows_per_partition = vec![0; PARTITIONS];
            if let Some(partition) = rows_per_partition.get_mut((at / 10) as usize % PARTITIONS) {
                *partition = rows;
            }
            let number = 1_000 + at;
            Window { number, start_micros: number * Micros::MINUTE.get(), rows_per_partition }
        };
        (0..count).map(window).collect()
    }

    fn examined(windows: &[Window], is_requested: bool) -> (Vec<Window>, Examined) {
        let shown = (windows, Micros::MINUTE);
        let (examined_windows, examined) =
            examine(std::iter::empty(), shown, is_requested, TimeOfKey::None, PARTITIONS, 1.0);
        (examined_windows.into_owned(), examined)
    }

    #[test]
    fn thin_windows_are_lengthened_until_they_have_enough_rows() {
        let thin = windows(640, 3);
        let (longer, how) = examined(&thin, false);
        assert!(how.rows_per_window >= enough_rows(PARTITIONS) && longer.len() >= MIN_LONGER);
        assert_eq!(how.window_micros.get() % Micros::MINUTE.get(), 0);
        let rows = |windows: &[Window]| windows.iter().map(rows_of).sum::<u64>();
        assert_eq!(rows(&longer), rows(&thin), "no row is lost");
        for window in &longer {
            assert_eq!(window.start_micros, window.number * how.window_micros.get());
        }
        // Windows of a given length, or with enough rows, are not changed.
        assert_eq!(examined(&thin, true).1.window_micros, Micros::MINUTE);
        assert_eq!(examined(&windows(20, 100), false).1.window_micros, Micros::MINUTE);
        // Too few rows in all for several windows.
        assert_eq!(examined(&windows(6, 3), false).1.window_micros, Micros::MINUTE);
    }
}
