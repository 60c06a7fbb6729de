//! Keeping a stored table in order: cleaning away what nobody needs, and finding what is damaged.

mod check;
mod clean;

pub use check::{CheckScope, DamagedPortion, TableCheck, check};
pub use clean::{CleanError, CleanOptions, CleanReport, clean};
