//! Checks of a declaration, and of a change to one.

use std::collections::HashSet;

use crate::table::definition::{Column, TableDefinition};
use crate::table::spec_error::{MAX_KEY_COLUMNS, SpecError};
use crate::table::{ColumnType, PlacementFunction};

/// Checks that a declaration changes from one to the other only as the rows of a table allow:
/// nullable columns are added at the end, and the time to live changes.
pub(super) fn check_change(from: &TableDefinition, to: &TableDefinition) -> Result<(), SpecError> {
    const REWRITE: &str = "'evenkeel repartition' rewrites the rows into a new table";
    const NEW_TABLE: &str = "declare a new table and ingest into it";
    let fixed = |what: &str, instead| Err(SpecError::Fixed { what: what.to_owned(), instead });
    let parts = [
        (to.name == from.name, "the name", NEW_TABLE),
        (to.primary_key == from.primary_key, "the primary key", NEW_TABLE),
        (to.partition_key == from.partition_key, "the partition key", REWRITE),
        (to.partitions == from.partitions, "the number of partitions", REWRITE),
        (to.placement == from.placement, "the placement function", REWRITE),
    ];
    if let Some((_, what, instead)) = parts.into_iter().find(|(is_same, ..)| !is_same) {
        return fixed(what, instead);
    }
    for (index, column) in from.columns.iter().enumerate() {
        if to.columns.get(index) != Some(column) {
            return fixed(&format!("column '{}'", column.name), NEW_TABLE);
        }
    }
    let added = || to.columns.iter().skip(from.columns.len());
    if let Some(known) = added().find(|column| from.columns.iter().any(|known| known.name == column.name)) {
        return Err(SpecError::ColumnExists { name: known.name.clone() });
    }
    if let Some(added) = added().find(|column| !column.nullable) {
        let (name, column_type) = (added.name.clone(), added.column_type);
        return Err(SpecError::AddedNotNull { name, column_type });
    }
    Ok(())
}

pub(super) fn check_columns(definition: &TableDefinition) -> Result<(), SpecError> {
    if definition.name.is_empty() {
        return Err(SpecError::NoName);
    }
    if definition.name.split('/').any(|part| part == ".sys") {
        return Err(SpecError::ReservedName { name: definition.name.clone() });
    }
    if definition.columns.is_empty() {
        return Err(SpecError::NoColumns);
    }
    let mut seen = HashSet::new();
    for column in &definition.columns {
        if column.name.is_empty() {
            return Err(SpecError::EmptyColumnName);
        }
        if column.column_type.in_table() != column.column_type {
            let (name, column_type) = (column.name.clone(), column.column_type);
            return Err(SpecError::NotInTable { name, column_type });
        }
        if !seen.insert(column.name.as_str()) {
            return Err(SpecError::DuplicateColumn { name: column.name.clone() });
        }
    }
    Ok(())
}

/// Returns the column indices of the primary key and of the partition key.
pub(super) fn resolve_keys(definition: &TableDefinition) -> Result<(Vec<usize>, Vec<usize>), SpecError> {
    if definition.primary_key.is_empty() {
        return Err(SpecError::NoPrimaryKey);
    }
    if definition.primary_key.len() > MAX_KEY_COLUMNS {
        return Err(SpecError::TooManyKeyColumns { found: definition.primary_key.len() });
    }
    let primary_key = resolve_key(definition, "primary key", &definition.primary_key)?;
    let partition_key = resolve_key(definition, "partition key", &definition.partition_key)?;
    for (index, name) in partition_key.iter().zip(&definition.partition_key) {
        if !primary_key.contains(index) {
            return Err(SpecError::PartitionKeyOutsidePrimaryKey {
                name: name.clone(),
                primary_key: definition.primary_key.clone(),
            });
        }
    }
    for column in primary_key.iter().filter_map(|index| definition.columns.get(*index)) {
        check_key_column(column)?;
    }
    Ok((primary_key, partition_key))
}

fn resolve_key(
    definition: &TableDefinition,
    key: &'static str,
    names: &[String],
) -> Result<Vec<usize>, SpecError> {
    let mut indices = Vec::with_capacity(names.len());
    for name in names {
        let index = definition.columns.iter().position(|column| column.name == *name).ok_or_else(|| {
            SpecError::UnknownKeyColumn {
                key,
                name: name.clone(),
                declared: definition.columns.iter().map(|column| column.name.clone()).collect(),
            }
        })?;
        if indices.contains(&index) {
            return Err(SpecError::RepeatedKeyColumn { key, name: name.clone() });
        }
        indices.push(index);
    }
    Ok(indices)
}

fn check_key_column(column: &Column) -> Result<(), SpecError> {
    if !column.column_type.is_key_type() {
        return Err(SpecError::KeyType { name: column.name.clone(), column_type: column.column_type });
    }
    if column.nullable {
        return Err(SpecError::NullableKeyColumn {
            name: column.name.clone(),
            column_type: column.column_type,
        });
    }
    Ok(())
}

pub(super) fn check_cloud_logs(
    definition: &TableDefinition,
    first: Option<&Column>,
) -> Result<(), SpecError> {
    let PlacementFunction::YdbCloudLogs { active, period_micros } = definition.placement else {
        return Ok(());
    };
    if active == 0 || period_micros == 0 {
        return Err(SpecError::CloudLogsParameters);
    }
    let starts_with_time = first.is_some_and(|column| column.column_type == ColumnType::Timestamp);
    if starts_with_time && definition.partition_key.len() >= 2 {
        Ok(())
    } else {
        Err(SpecError::CloudLogsKey { partition_key: definition.partition_key.clone() })
    }
}

pub(super) fn check_ttl(definition: &TableDefinition) -> Result<(), SpecError> {
    let Some(ttl) = &definition.ttl else { return Ok(()) };
    let name = ttl.column.clone();
    if !definition.columns.iter().any(|column| column.name == name) {
        let declared = definition.columns.iter().map(|column| column.name.clone()).collect();
        return Err(SpecError::UnknownKeyColumn { key: "time to live", name, declared });
    }
    if !definition.primary_key.contains(&name) {
        return Err(SpecError::TtlOutsidePrimaryKey { name, primary_key: definition.primary_key.clone() });
    }
    match definition.columns.iter().find(|column| column.name == name).map(|column| column.column_type) {
        Some(column_type) if !column_type.is_time() => Err(SpecError::TtlType { name, column_type }),
        _ => Ok(()),
    }
}
