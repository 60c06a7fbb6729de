//! Result values as text for people. Nothing is computed here that a program could not have had as a value.

mod explain;
mod grid;
mod ingest;
mod keys;
mod overview;
mod skew;

pub use explain::scans;
pub use grid::{Layout, bar, batches, count, counted, percent};
pub use ingest::ingest;
pub use keys::keys;
pub use overview::overview;
pub use skew::skew;
