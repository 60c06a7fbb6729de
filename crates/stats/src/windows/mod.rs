//! Time as an axis: rows are counted by window, and windows grow with the export, so that one pass
//! is enough.
//!
//! Windows begin short. When more than 1000 have rows, they are joined into the next usual length,
//! which is a multiple of the one before; at the end they are joined into between 200 and 500, or
//! fewer if rows are few.

mod axis;
mod counts;
mod lengths;
mod moments;
mod range;

pub use crate::windows::axis::{MAX_WINDOWS, NO_WINDOW, TimeAxis, WindowedRows};
pub use crate::windows::counts::{Window, WindowCounts};
pub use crate::windows::moments::{
    Moment, MomentAxis, MomentCounts, MomentRows, Scale, moment_counters, most_moments,
};
pub use crate::windows::range::{LATE_BY, TimeRange, count_late};
