//! The model of a key space that splits by size and by load.
//!
//! ```text
//! Database         the key spaces of a table and its indexes, the servers, the clock
//!   KeySpace       half-open splits in key order, without gaps
//!     Split        rows, bytes, a sample of its keys; while warm, a sample of the window's keys
//! Timeline         figures of each window
//! HeatMap          keys against time
//! ```
//!
//! The public facts about Spanner are the order of keys, that splits are half-open, that they
//! divide at about 8 GiB and by load, that a score of 50 is warm and 100 hot, and that a moving
//! hotspot cannot be isolated. The rest is a parameter of [`ModelParameters`]. The choice of a
//! boundary when splitting by load follows the published heuristic of CockroachDB: take a sample of
//! the keys, divide at its balance point, and do not split if one key makes up nearly all of the
//! sample.

mod database;
mod heat;
mod key;
mod key_space;
mod parameters;
mod random;
mod sample;
mod servers;
mod split;
mod timeline;

pub(super) use crate::simulate::splits::database::Database;
pub use crate::simulate::splits::database::{DatabaseOutcome, SpaceFigures, Stuck};
pub use crate::simulate::splits::heat::{HeatMap, HeatPattern};
pub(super) use crate::simulate::splits::key::{Key, KeyRange, StartKey};
pub(super) use crate::simulate::splits::key_space::KeySpace;
pub use crate::simulate::splits::parameters::{ModelParameters, Sampling};
pub use crate::simulate::splits::split::{Obstacle, SplitFigures};
pub use crate::simulate::splits::timeline::{Period, Relief, Timeline};
