//! Facts about a stored table: its size, files, commits and balance.

mod files;
mod history;
mod overview;
mod partitions;
mod skew;

pub(crate) use crate::inspect::files::files;
pub use crate::inspect::files::{TableFiles, VisibleFile};
pub(crate) use crate::inspect::history::history;
pub use crate::inspect::history::{CommitOverview, TableHistory};
pub use crate::inspect::overview::TableOverview;
pub(crate) use crate::inspect::overview::overview;
pub use crate::inspect::partitions::PartitionOverview;
pub(crate) use crate::inspect::skew::skew;
pub use crate::inspect::skew::{CommitBalance, TableSkew};
