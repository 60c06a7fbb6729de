//! Turns rows into a commit.
//!
//! ```text
//! batches -> hash -> scatter by partition -> buffer
//!   (full) -> the fullest partition: sort, newest wins -> portion -> ... -> commit
//! ```
//! Rows are buffered until they fill their part of the memory budget; then the rows of the fullest
//! partition are sorted and written as one portion, while others arrive. Which rows form a portion
//! depends only on the input and the budget. Portions are invisible until the single commit at the
//! end; an ingest that fails deletes what it wrote.
//!
//! Deletes travel the same way, as rows with a mark. When a partition is sorted, the newest row of
//! a key decides; the remaining rows and deletes become separate portions.

mod buffer;
mod collected;
mod commit;
mod committed;
mod deletes;
mod encode;
mod error;
mod existing;
mod files;
mod memory;
mod options;
mod pipeline;
mod plan;
mod reading;
mod rejects;
mod report;
#[cfg(test)]
mod tests;
mod uncommitted;
mod writer;

pub use collected::empty_input;
pub use committed::{Committed, PartitionWrite};
pub use deletes::{marked_schema, split_marked};
pub use encode::key_of;
pub use error::IngestError;
pub use files::ingest_files;
pub use options::{DEFAULT_MEMORY, IngestMode, IngestOptions, MIN_MEMORY};
pub use plan::{IngestFiles, IngestProgress};
pub use reading::{notes_of, notes_on_columns};
pub use report::{IngestReport, SourceReport};
pub use uncommitted::{UncommittedIngest, WritePortions, ingest_files_with};
pub use writer::Ingest;
