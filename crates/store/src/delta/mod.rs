//! A Delta log next to the files of a table, so that engines that support Delta read the files in
//! place.
//!
//! `_delta_log/<version, 20 digits>.json` holds one action of the Delta protocol per line. Each
//! export of a snapshot that differs from the log writes the next version, by put-if-absent:
//! `commitInfo`; `protocol` and `metaData` if they changed; a `remove` for each portion that is
//! gone and an `add` for each new one; `txn` with the application `evenkeel` and the version of the
//! table. `docs/FORMAT.md` specifies them.
//!
//! A Delta reader shows every row of every file that is named. A snapshot is therefore exported
//! only if no two portions of a partition overlap in keys: the log does not reveal whether
//! overlapping portions share a key. Expired rows are included, as they are in queries, until a
//! compaction drops them.
//!
//! Delta tools may read but not write: by the rules of the protocol, the writer feature `evenkeel`,
//! which no tool supports, makes each of them refuse to append, to rewrite, and to vacuum away the
//! files of versions that only the table's own log names.

mod action;
mod declaration;
mod error;
mod export;
mod file_statistics;
mod history;
mod names;
mod plan;
mod report;
mod schema;

pub use error::DeltaError;
pub use export::{DeltaOptions, export};
pub use history::{DeltaLog, DeltaVersion};
pub use report::DeltaExport;
