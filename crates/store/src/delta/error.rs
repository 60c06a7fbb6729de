//! Errors of a Delta log.

use thiserror::Error;

use crate::delta::names::FOLDER;
use crate::log::{LogError, PortionDamage};
use evenkeel_model::bounded::{names, quote};
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::PartitionId;
use evenkeel_storage::StorageError;

/// Error while exporting a snapshot or reading a Delta log.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum DeltaError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(
        "{table}: {file} is missing, so the files of the Delta log are unknown. Restore it, or remove \
            {FOLDER} and export again; readers then lose its earlier versions"
    )]
    Missing { table: String, file: String },
    #[error(
        "{table}: {file} is not a commit of Delta: {reason}. Restore it, or remove {FOLDER} and export \
            again; readers then lose its earlier versions"
    )]
    Damaged { table: String, file: String, reason: String },
    #[error(
        "{table}: {file} was not written by evenkeel, and another export would undo it. Remove {FOLDER} \
            and export again; readers then lose its earlier versions"
    )]
    Foreign { table: String, file: String },
    #[error(
        "{table}: {depth} portions of partition {partition} overlap in keys, so they may contain \
            superseded or deleted rows, which readers of Delta would show. Compact first: --compact, or 'evenkeel compact {table} --max-depth 1'"
    )]
    Overlap { table: String, partition: PartitionId, depth: u64 },
    #[error("--without names column '{name}', which the table does not have; it has: {}", names(declared), name = quote(name))]
    UnknownColumn { name: String, declared: Vec<String> },
    #[error("no column is left to export")]
    NoColumns,
    #[error(
        "columns '{first}' and '{second}' differ only in case, which Delta does not distinguish; leave \
            one out: --without {second}", first = quote(first), second = quote(second)
)]
    Case { first: String, second: String },
    #[error(
        "column '{column}' ({column_type}) holds {found} in {file}, and the largest integer of Delta is {}. Leave the column out: \
         --without {column}",
        i64::MAX, column = quote(column)
)]
    TooLarge { column: String, column_type: ColumnType, found: u64, file: String },
    #[error(
        "column '{column}' ({column_type}): {file} does not say how large its values are, and the largest integer of Delta is {}. \
         Leave the column out: --without {column}",
        i64::MAX, column = quote(column)
)]
    Unproven { column: String, column_type: ColumnType, file: String },
    #[error("{table}: the next version of the Delta log cannot be written: {reason}")]
    Unwritable { table: String, reason: String },
    #[error("{table}: {file} {damage}; 'evenkeel check {table}' verifies all files")]
    Portion { table: String, file: String, damage: PortionDamage },
}
