//! Merging portions, so that queries read few files and each key once.
//!
//! ```text
//! snapshot -> per partition, CompactionPolicy.decide: portions to drop, sets to merge
//!          -> each set: check the files, merge by key (newest wins), drop expired rows,
//!                       cut near the target size, store
//!          -> one commit: removes and adds, for all partitions   } repeat until nothing is left
//! ```
//! No row changes its age: a merged run is as old as its newest portion, and a set is merged only
//! if no other portion lies between its portions in key and age. Compactions of different portions
//! therefore never disturb each other, and ingests never wait. If another compaction has removed
//! the portions of this one, its work on them is discarded and planned again.

mod encode;
mod error;
mod expiry;
mod memory;
mod options;
mod policy;
mod portions;
mod report;
mod round;
mod run;
mod worker;

pub use crate::compact::error::CompactionError;
pub use crate::compact::options::{CompactionOptions, MIN_MEMORY};
pub use crate::compact::policy::CompactionPolicy;
pub use crate::compact::portions::Scope;
pub use crate::compact::report::{CompactionProgress, CompactionReport};
pub(crate) use crate::compact::run::compact;
