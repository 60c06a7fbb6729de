//! Definition of a table: its columns, its two keys, its number of partitions and its placement
//! function.
//!
//! Everything is parsed and validated once, here; a [`TableSpec`] that exists is valid.

mod candidate;
mod column_type;
mod ddl;
mod definition;
mod key_value;
mod placement_function;
mod spec;
mod spec_check;
mod spec_error;
mod ttl;
mod views;
mod ydb_version;

pub use candidate::{Candidate, CandidateError, KeyPart, Transform};
pub use column_type::{ColumnType, ColumnTypeError, ValueRange};
pub use ddl::{CreateTable, DdlError, DdlNote, parse_create_table, write_create_table};
pub use definition::{Column, TableDefinition, only_time_column};
pub use key_value::{KeyRange, KeyValue};
pub use placement_function::{PlacementFunction, PlacementFunctionError};
pub use spec::TableSpec;
pub use spec_error::{MAX_KEY_BYTES, MAX_KEY_COLUMNS, SpecError};
pub use ttl::{Ttl, TtlError};
pub use views::{as_view, filler, view_schema, without_unused_bytes, without_unused_text};
pub use ydb_version::{
    ColumnRole, TypeRule, YdbStatement, YdbTypeError, YdbVersion, YdbVersionError, check_ydb_types,
    write_create_table_for,
};

/// Newest version of the on-disk format that this build reads and writes, which files with deletes
/// have. See `docs/FORMAT.md`.
pub const FORMAT_VERSION: u32 = 3;

/// Version of the on-disk format of files without deletes, which older builds read, too.
pub const FORMAT_WITHOUT_DELETES: u32 = 2;

/// Maximum number of rows in a row group of a portion. A dictionary serves a whole group, so large
/// groups are smaller and faster to read; a query finds the rows it needs by the pages of the
/// group.
pub const ROW_GROUP_ROWS: usize = 1 << 20;

/// Approximate maximum size of a row group if rows are wide: a reader of a portion holds one group
/// in memory.
pub const ROW_GROUP_BYTES: usize = 32 << 20;
