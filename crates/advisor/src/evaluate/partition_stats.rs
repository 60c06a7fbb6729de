//! Rows of each partition, from the statistics of a database.
//!
//! | statistics of YDB | partition | rows |
//! |---|---|---|
//! | `.sys/partition_stats`, of row tables | `PartIdx` | `RowCount` |
//! | `.sys/primary_index_stats`, of column tables | `TabletId` | `Rows` |

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use thiserror::Error;

use crate::evaluate::partition_rows::PartitionRows;
use evenkeel_input::source::{Export, InputOptions, OnUnreadable, SourceError, find_inputs};
use evenkeel_model::bounded::names;

/// Reason why statistics cannot be read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum PartitionStatsError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "{file}: has no columns PartIdx and RowCount, or TabletId and Rows; it has: {}. Write them with: ydb sql -s 'SELECT * FROM \
        `.sys/partition_stats`' --format json-unicode",
        names(found)
    )]
    Columns { file: String, found: Vec<String> },
    #[error("{file}: has partitions of several tables; name one of them with --table: {}", names(found))]
    SeveralTables { file: String, found: Vec<String> },
    #[error("{file}: has no partitions of table '{table}'")]
    NoRows { file: String, table: String },
}

/// Reads the rows of each partition of a table from a file of statistics, as CSV, NDJSON or
/// Parquet. Statistics of several tables need the name of one, with or without its folder;
/// statistics of a single table are used whatever its name, unless `is_strict`.
///
/// # Errors
/// [`PartitionStatsError`] if the file cannot be read, or has no such statistics.
pub fn read_partition_stats(
    path: &Path,
    table: &str,
    is_strict: bool,
) -> Result<Vec<PartitionRows>, PartitionStatsError> {
    let file = path.display().to_string();
    let inputs = find_inputs(std::slice::from_ref(&file), None)?;
    let options = InputOptions { header_given: true, ..InputOptions::default() };
    let export = Export::open(&inputs.paths, options, &BTreeMap::new())?;
    let column_names: Vec<String> = export.columns().iter().map(|column| column.name.clone()).collect();
    let position = |name: &str| column_names.iter().position(|column| column.eq_ignore_ascii_case(name));
    let pair = |partition: &str, rows: &str| Some((position(partition)?, position(rows)?));
    let Some((partition, rows)) = pair("PartIdx", "RowCount").or_else(|| pair("TabletId", "Rows")) else {
        return Err(PartitionStatsError::Columns { file, found: column_names });
    };
    let (path, follower, activity) = (position("Path"), position("FollowerId"), position("Activity"));
    // Newer statistics have a line per portion and column; each counts the rows of the portion.
    let entity = position("EntityName");
    let mut first_entity = None;
    let mut is_readable = true;
    let mut tables: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    export.read::<SourceError>(OnUnreadable::Fail, |_, batch| {
        let numbers = |at: usize| cast(batch.column(at), &DataType::UInt64).ok();
        let (Some(partitions), Some(counts)) = (numbers(partition), numbers(rows)) else {
            is_readable = false;
            return Ok(false);
        };
        let (partitions, counts) =
            (partitions.as_primitive::<UInt64Type>(), counts.as_primitive::<UInt64Type>());
        let followers = follower.and_then(numbers);
        // A portion that was replaced still has its line.
        let active = activity.and_then(|at| cast(batch.column(at), &DataType::Utf8).ok());
        let entities = entity.and_then(|at| cast(batch.column(at), &DataType::Utf8).ok());
        let paths = path.and_then(|at| cast(batch.column(at), &DataType::Utf8).ok());
        for row in 0..batch.num_rows() {
            let is_follower = followers.as_ref().is_some_and(|numbers| {
                numbers.is_valid(row) && numbers.as_primitive::<UInt64Type>().value(row) != 0
            });
            let is_inactive = active.as_ref().is_some_and(|texts| {
                matches!(texts.as_string::<i32>().value(row).to_ascii_lowercase().as_str(), "0" | "false")
            });
            let is_other_entity = entities.as_ref().is_some_and(|texts| {
                let name = texts.as_string::<i32>().value(row);
                first_entity.get_or_insert_with(|| name.to_owned()) != name
            });
            if is_follower || is_inactive || is_other_entity || partitions.is_null(row) || counts.is_null(row)
            {
                continue;
            }
            let path = paths.as_ref().map_or("", |paths| paths.as_string::<i32>().value(row));
            let of_table = tables.entry(path.to_owned()).or_default();
            *of_table.entry(partitions.value(row)).or_default() += counts.value(row);
        }
        Ok(true)
    })?;
    if !is_readable {
        return Err(PartitionStatsError::Columns { file, found: column_names });
    }
    let is_table = |path: &str| path == table || path.rsplit('/').next() == Some(table);
    let named: Vec<&String> = tables.keys().filter(|path| is_table(path)).collect();
    let chosen = match (named.as_slice(), tables.len()) {
        ([only], _) => (*only).clone(),
        (_, 1) if !is_strict => tables.keys().next().cloned().unwrap_or_default(),
        (_, 0 | 1) => return Err(PartitionStatsError::NoRows { file, table: table.to_owned() }),
        _ => return Err(PartitionStatsError::SeveralTables { file, found: tables.into_keys().collect() }),
    };
    let of_table = tables.remove(&chosen).unwrap_or_default();
    Ok(of_table
        .into_iter()
        .map(|(partition, rows)| PartitionRows { partition: partition.to_string(), rows })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, table: &str) -> Result<Vec<(String, u64)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats.csv");
        std::fs::write(&path, text).unwrap();
        let partitions = read_partition_stats(&path, table, false).map_err(|error| error.to_string())?;
        Ok(partitions.into_iter().map(|partition| (partition.partition, partition.rows)).collect())
    }

    #[test]
    fn rows_are_those_of_the_leaders_of_one_table() {
        let text = "Path,PartIdx,FollowerId,RowCount\n/db/ads/events,0,0,10\n/db/ads/events,0,1,10\n/db/ads/events,1,0,30\n/db/u,0,0,7\n";
        assert_eq!(read(text, "events").unwrap(), [("0".to_owned(), 10), ("1".to_owned(), 30)]);
        assert!(read(text, "t").unwrap_err().contains("--table: /db/ads/events, /db/u"));
        let one = "PartIdx,RowCount\n0,5\n1,6\n";
        assert_eq!(read(one, "anything").unwrap().len(), 2);
        let portions = "TabletId,Rows,Activity\n72,5,1\n72,6,1\n73,9,1\n73,100,0\n";
        assert_eq!(read(portions, "t").unwrap(), [("72".to_owned(), 11), ("73".to_owned(), 9)]);
        let columns = "TabletId,Rows,Activity,EntityName\n72,5,1,id\n72,5,1,user\n73,9,1,user\n73,9,1,id\n";
        assert_eq!(read(columns, "t").unwrap(), [("72".to_owned(), 5), ("73".to_owned(), 9)]);
        assert!(read("PartIdx,RowCount\nx,5\n", "t").is_err());
        assert!(read("a,b\n1,2\n", "t").unwrap_err().contains("it has: a, b"));
    }
}
