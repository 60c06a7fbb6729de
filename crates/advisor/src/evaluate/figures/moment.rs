//! The windows that balance at a time is judged in.
//!
//! A partition takes so much in a second, so no shorter window matters. A window that is too long hides a hot spot that moves within it.
//! So the shortest length from a second on is taken whose windows have enough rows to say something. A key that contains the time has
//! moments besides: all rows of one value of its time, which the other columns of the key alone can spread. Windows are never so long
//! that they hold several of these, as long as rows share them.

use std::borrow::Cow;

use serde::Serialize;

use evenkeel_model::units::Micros;
use evenkeel_stats::windows::{Moment, Scale, Window};

/// Rows that a window needs for each partition to be judged alone. So few are enough, because what chance does to so few rows is taken
/// into account.
const FEWEST_ROWS_PER_PARTITION: u64 = 2;
/// Rows that a window needs at least, to be judged alone.
const FEWEST_ROWS: u64 = 16;
/// Rows are spread over moments, and no moment over partitions, where a row has fewer others in its moment than this. Of one row, more
/// are counted as [`MOST_OTHERS`], so that a few bursts do not stand for all rows.
const FEWEST_OTHERS: f64 = 1.0;
const MOST_OTHERS: f64 = 3.0;

/// How a key contains the time column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeOfKey {
    /// It does not.
    None,
    /// As it is.
    Instant,
    /// Cut to multiples of a length.
    Slice(Micros),
}

impl TimeOfKey {
    /// Of a key with another part.
    pub(crate) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, one) | (one, Self::None) => one,
            (Self::Slice(a), Self::Slice(b)) => Self::Slice(a.min(b)),
            _ => Self::Instant,
        }
    }
}

/// The windows that a balance at a time is known from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Examined {
    /// Their length.
    pub window_micros: Micros,
    /// Whether each has rows of one value of the key's time alone.
    pub one_moment: bool,
    /// Half of the rows are in windows with so many rows or more.
    pub rows_per_window: u64,
    /// Of so many windows one is examined, chosen by a hash of its number.
    pub one_in: u64,
    /// Rows that a window needs to be among them.
    pub fewest_rows: u64,
}

/// Rows that a window needs to be judged alone.
pub(crate) fn enough_rows(partitions: usize) -> u64 {
    FEWEST_ROWS.max(FEWEST_ROWS_PER_PARTITION * partitions as u64)
}

fn rows_of(window: &Window) -> u64 {
    window.rows_per_partition.iter().sum()
}

/// Half of the rows are in windows with so many rows or more.
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

/// Whether each window has rows of one moment of the key: at least half of the rows that are not alone in theirs.
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

/// Whether rows share their moments, where a share of the rows is read.
fn are_shared(windows: &[Window], sample: f64) -> bool {
    let (mut all, mut others) = (0.0, 0.0);
    for rows in windows.iter().map(rows_of) {
        all += rows as f64;
        others += rows as f64 * (rows.saturating_sub(1) as f64 / sample).min(MOST_OTHERS);
    }
    others >= FEWEST_OTHERS * all && all > 0.0
}

/// The windows to judge `partitions` by, and how they were chosen. `shown` are the windows that are shown, of the length `length`;
/// where that was asked for, no others are judged, unless they are moments of the key. `scales` are short windows, the shortest first.
pub(crate) fn examine<'a>(
    scales: impl Iterator<Item = Scale>,
    (shown, length): (&'a [Window], Micros),
    asked: bool,
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
            // Two rows say whether they share a partition.
            fewest_rows: if rows_per_window >= enough || !one_moment { enough } else { 2 },
        }
    };
    let of_shown = describe(shown, length, false, 1);
    let shown_suffice = length >= Micros::SECOND && of_shown.rows_per_window >= enough;
    let mut moments_of_key = None;
    for scale in scales {
        let Scale { length: short, one_in, windows, moments } = scale;
        let one_moment = is_one_moment(time, short, &moments);
        let found = describe(&windows, short, one_moment, one_in);
        let suffices = found.rows_per_window >= enough;
        if one_moment {
            if suffices || are_shared(&windows, sample) {
                moments_of_key = Some((Cow::Owned(windows), found));
            }
            if suffices {
                break;
            }
        } else {
            let shown_are_shorter = shown_suffice && length <= short;
            if asked || moments_of_key.is_some() || shown_are_shorter {
                break;
            }
            if suffices {
                return (Cow::Owned(windows), found);
            }
        }
    }
    moments_of_key.unwrap_or((Cow::Borrowed(shown), of_shown))
}
