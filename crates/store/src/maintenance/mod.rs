//! Maintenance of a stored table: cleaning up unneeded files, and finding damaged ones.

mod check;
mod clean;

pub use check::{CheckScope, DamagedPortion, TableCheck, check};
pub use clean::{CleanError, CleanOptions, CleanReport, clean};
