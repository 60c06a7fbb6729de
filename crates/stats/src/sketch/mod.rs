//! Key counts: the number of distinct keys, the rows of each, and repeated rows. Exact while they
//! fit in memory or on disk, with a stated error beyond.
//!
//! Keys are distinguished by a 64-bit identity ([`column_identities`], [`combine`]). Two of n keys
//! share one with a probability of about n^2 / 2^65: 1 in 100,000 for 20 million keys.

mod counter;
mod identity;
mod part_file;
mod repeats;
mod reservoir;

pub use counter::{DistinctKeys, HeavyKey, KeyCounter, KeyCounts};
pub use identity::{column_identities, combine, fold, key_identities};
pub use part_file::{MAX_BYTES_ON_DISK, SpillError};
pub use repeats::{RepeatedKey, RepeatedKeys, Repeats};
pub use reservoir::Reservoir;
