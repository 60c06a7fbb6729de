//! Counting keys: how many there are, how many rows each has, which rows repeat. Exact while it fits in memory or on disk,
//! with a stated error beyond.
//!
//! A key is told from others by a 64-bit identity ([`column_identities`], [`combine`]). Two of n keys share one with a
//! probability of about n^2 / 2^65: 1 in 100,000 for 20 million keys.

mod counter;
mod identity;
mod repeats;
mod reservoir;

pub use counter::{DistinctKeys, HeavyKey, KeyCounter, KeyCounts};
pub use identity::{column_identities, combine, fold, key_identities};
pub use repeats::{RepeatedKey, RepeatedKeys, Repeats, RepeatsError};
pub use reservoir::Reservoir;
