//! A portion: an immutable Parquet file with the rows of one partition, sorted by the primary key,
//! each key once.
//!
//! Layout: row groups of at most [`evenkeel_model::table::ROW_GROUP_ROWS`] rows and
//! [`evenkeel_model::table::ROW_GROUP_BYTES`] with a page index; zstd if it saves a third;
//! dictionaries for columns with repeated values; a Bloom filter on each partition-key column
//! except the leading primary-key column, whose ranges already prune; the sort order and the format
//! version in the file's metadata.
mod checksum;
mod compression;
mod dictionary;
mod encoder;
mod encodings;
mod error;
mod footer;
mod key_ranges;
mod properties;
mod row_group;
mod statistics;

pub(crate) use checksum::FileChecksum;
pub use encoder::{EncodedPortion, GROUP_MEMORY, PortionEncoder, WRITE_BATCH_ROWS};
pub use error::PortionError;
pub use footer::{FooterError, PortionFooter};
pub(crate) use key_ranges::key_value;
pub use statistics::ColumnStatistics;
