//! A checked table declaration.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::table::definition::{Column, TableDefinition};
use crate::table::spec_check::{check_change, check_cloud_logs, check_columns, check_ttl, resolve_keys};
use crate::table::spec_error::SpecError;
use crate::table::{ColumnType, KeyValue, PlacementFunction};
use crate::units::PartitionCount;

/// A checked declaration. The partition key is a non-empty subset of the primary key, and every key
/// column exists, is NOT NULL and has a type that YDB allows in a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TableDefinition", into = "TableDefinition")]
pub struct TableSpec {
    definition: TableDefinition,
    primary_key: Vec<usize>,
    partition_key: Vec<usize>,
    schema: SchemaRef,
}

impl TableSpec {
    /// Checks a declaration. An empty partition key becomes the whole primary key, as in YDB.
    ///
    /// # Errors
    /// [`SpecError`] for the first fault found; it names the fault and its fix.
    pub fn new(mut definition: TableDefinition) -> Result<Self, SpecError> {
        check_columns(&definition)?;
        if definition.partition_key.is_empty() {
            definition.partition_key.clone_from(&definition.primary_key);
        }
        let (primary_key, partition_key) = resolve_keys(&definition)?;
        let first = partition_key.first().and_then(|index| definition.columns.get(*index));
        check_cloud_logs(&definition, first)?;
        check_ttl(&definition)?;
        let fields: Vec<Field> = definition
            .columns
            .iter()
            .map(|column| Field::new(&column.name, column.column_type.arrow_type(), column.nullable))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { definition, primary_key, partition_key, schema })
    }

    /// Checks a changed declaration: nullable columns may be added at the end, and the time to live
    /// may change.
    ///
    /// # Errors
    /// [`SpecError`] for every other change, and for a declaration that is invalid in itself.
    pub fn altered(&self, to: TableDefinition) -> Result<Self, SpecError> {
        check_change(&self.definition, &to)?;
        Self::new(to)
    }

    /// Returns the declaration from which this spec was created.
    #[must_use]
    pub fn definition(&self) -> &TableDefinition {
        &self.definition
    }

    /// Returns the name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Returns all columns in declared order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.definition.columns
    }

    /// Returns the Arrow schema of rows and portions.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the column indices of the primary key, in key order.
    #[must_use]
    pub fn primary_key(&self) -> &[usize] {
        &self.primary_key
    }

    /// Returns the column indices of the partition key, in hash order.
    #[must_use]
    pub fn partition_key(&self) -> &[usize] {
        &self.partition_key
    }

    /// Returns the columns of the primary key, in key order.
    pub fn primary_key_columns(&self) -> impl Iterator<Item = &Column> {
        self.primary_key.iter().filter_map(|index| self.definition.columns.get(*index))
    }

    /// Returns the columns of the partition key, in hash order.
    pub fn partition_key_columns(&self) -> impl Iterator<Item = &Column> {
        self.partition_key.iter().filter_map(|index| self.definition.columns.get(*index))
    }

    /// Returns the position within the primary key of the time-to-live column, and its smallest
    /// value that is kept at `now`, in microseconds since 1970. `None` if rows are kept forever.
    #[must_use]
    pub fn oldest_kept(&self, now: i64) -> Option<(usize, KeyValue)> {
        let ttl = self.definition.ttl.as_ref()?;
        let (position, column) =
            self.primary_key_columns().enumerate().find(|(_, column)| column.name == ttl.column)?;
        Some((position, ttl.oldest_kept(now, column.column_type)))
    }

    /// Returns the types of the primary-key columns, in key order.
    #[must_use]
    pub fn primary_key_types(&self) -> Vec<ColumnType> {
        self.primary_key_columns().map(|column| column.column_type).collect()
    }

    /// Returns the types of the partition-key columns, in hash order.
    #[must_use]
    pub fn partition_key_types(&self) -> Vec<ColumnType> {
        self.partition_key_columns().map(|column| column.column_type).collect()
    }

    /// Returns the number of partitions.
    #[must_use]
    pub fn partitions(&self) -> PartitionCount {
        self.definition.partitions
    }

    /// Returns the function from partition key to partition.
    #[must_use]
    pub fn placement(&self) -> PlacementFunction {
        self.definition.placement
    }

    /// Returns the column that is the time axis of the table: the first point-in-time column of the
    /// primary key or, if it has none, the first one declared.
    #[must_use]
    pub fn time_column(&self) -> Option<usize> {
        let is_time = |index: &usize| {
            self.definition.columns.get(*index).is_some_and(|column| column.column_type.is_timestamp())
        };
        let declared: Vec<usize> = (0..self.definition.columns.len()).collect();
        self.primary_key
            .iter()
            .find(|index| is_time(index))
            .or(declared.iter().find(|index| is_time(index)))
            .copied()
    }
}

impl TryFrom<TableDefinition> for TableSpec {
    type Error = SpecError;
    fn try_from(definition: TableDefinition) -> Result<Self, Self::Error> {
        Self::new(definition)
    }
}

impl From<TableSpec> for TableDefinition {
    fn from(spec: TableSpec) -> Self {
        spec.definition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Ttl;
    use crate::units::Micros;

    fn definition() -> TableDefinition {
        TableDefinition {
            name: "events".into(),
            columns: vec![
                Column::required("at", ColumnType::Timestamp),
                Column::required("user", ColumnType::Utf8),
                Column::nullable("note", ColumnType::Utf8),
                Column::required("price", ColumnType::Double),
            ],
            primary_key: vec!["at".into(), "user".into()],
            partition_key: vec!["user".into()],
            partitions: PartitionCount::new(4).unwrap(),
            placement: PlacementFunction::Ydb,
            ttl: None,
        }
    }

    fn refused(change: impl FnOnce(&mut TableDefinition)) -> SpecError {
        let mut changed = definition();
        change(&mut changed);
        TableSpec::new(changed).unwrap_err()
    }

    #[test]
    fn a_valid_declaration_keeps_its_key_order() {
        let spec = TableSpec::new(definition()).unwrap();
        assert_eq!(spec.primary_key(), [0, 1]);
        assert_eq!(spec.partition_key(), [1]);
        assert_eq!(spec.time_column(), Some(0));
    }

    #[test]
    fn without_a_partition_key_the_whole_primary_key_is_hashed() {
        let spec = TableSpec::new(TableDefinition { partition_key: vec![], ..definition() }).unwrap();
        assert_eq!(spec.partition_key(), spec.primary_key());
    }

    #[test]
    fn each_fault_is_refused_with_its_own_error() {
        assert_eq!(refused(|d| d.name.clear()), SpecError::NoName);
        assert!(matches!(refused(|d| d.name = "t/.sys/x".into()), SpecError::ReservedName { .. }));
        assert_eq!(refused(|d| d.columns.clear()), SpecError::NoColumns);
        assert_eq!(refused(|d| d.columns[2].name.clear()), SpecError::EmptyColumnName);
        assert_eq!(
            refused(|d| d.columns[2].name = "at".into()),
            SpecError::DuplicateColumn { name: "at".into() }
        );
        assert_eq!(refused(|d| d.primary_key.clear()), SpecError::NoPrimaryKey);
        assert!(matches!(
            refused(|d| d.primary_key.push("nope".into())),
            SpecError::UnknownKeyColumn { key: "primary key", .. }
        ));
        assert!(matches!(
            refused(|d| d.partition_key = vec!["nope".into()]),
            SpecError::UnknownKeyColumn { key: "partition key", .. }
        ));
        assert!(matches!(refused(|d| d.primary_key.push("at".into())), SpecError::RepeatedKeyColumn { .. }));
        assert!(matches!(
            refused(|d| d.primary_key.push("note".into())),
            SpecError::NullableKeyColumn { .. }
        ));
        assert!(matches!(refused(|d| d.primary_key.push("price".into())), SpecError::KeyType { .. }));
        assert!(matches!(
            refused(|d| d.partition_key = vec!["note".into()]),
            SpecError::PartitionKeyOutsidePrimaryKey { .. }
        ));
        assert!(matches!(
            refused(|d| d.placement = PlacementFunction::CLOUD_LOGS_DEFAULT),
            SpecError::CloudLogsKey { .. }
        ));
    }

    #[test]
    fn a_primary_key_has_at_most_twenty_columns() {
        let with = |count: usize| TableDefinition {
            columns: (0..count).map(|i| Column::required(format!("c{i}"), ColumnType::Int64)).collect(),
            primary_key: (0..count).map(|i| format!("c{i}")).collect(),
            partition_key: vec![],
            ..definition()
        };
        assert!(TableSpec::new(with(20)).is_ok());
        assert_eq!(TableSpec::new(with(21)), Err(SpecError::TooManyKeyColumns { found: 21 }));
    }

    #[test]
    fn a_changed_declaration_may_only_add_columns_that_take_null_and_keep_rows_for_another_time() {
        let spec = TableSpec::new(definition()).unwrap();
        let changed = |change: fn(&mut TableDefinition)| {
            let mut changed = definition();
            change(&mut changed);
            spec.altered(changed)
        };
        let longer = changed(|d| d.columns.push(Column::nullable("more", ColumnType::Double))).unwrap();
        assert_eq!(longer.schema().fields().len(), 5);
        assert!(changed(|d| d.ttl = Some(Ttl { column: "at".into(), keep: Micros::DAY })).is_ok());
        for (error, expected) in [
            (changed(|d| d.name = "other".into()), "the name cannot be changed"),
            (changed(|d| d.primary_key.truncate(1)), "the primary key cannot be changed"),
            (changed(|d| d.partition_key.push("at".into())), "the partition key cannot be changed"),
            (changed(|d| d.partitions = PartitionCount::new(5).unwrap()), "number of partitions cannot"),
            (changed(|d| d.placement = PlacementFunction::YdbModulo), "the placement function cannot"),
            (changed(|d| d.columns[2].nullable = false), "column 'note' cannot be changed"),
            (changed(|d| d.columns.truncate(3)), "column 'price' cannot be changed"),
            (changed(|d| d.columns.swap(2, 3)), "column 'note' cannot be changed"),
            (changed(|d| d.columns.push(Column::nullable("at", ColumnType::Int64))), "'at' exists already"),
            (changed(|d| d.columns.push(Column::required("x", ColumnType::Int64))), "'x' cannot be added"),
            (changed(|d| d.columns.push(Column::nullable("", ColumnType::Int64))), "an empty name"),
        ] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn rows_expire_by_a_time_column_of_the_primary_key_and_by_no_other() {
        let keep = |column: &str| Some(Ttl { column: column.into(), keep: Micros::DAY });
        let expiring = TableSpec::new(TableDefinition { ttl: keep("at"), ..definition() }).unwrap();
        let day = Micros::DAY.get();
        assert_eq!(expiring.oldest_kept(3 * day), Some((0, KeyValue::Int(2 * day))));
        assert_eq!(TableSpec::new(definition()).unwrap().oldest_kept(3 * day), None);
        assert!(matches!(refused(|d| d.ttl = keep("user")), SpecError::TtlType { .. }));
        assert!(matches!(refused(|d| d.ttl = keep("price")), SpecError::TtlOutsidePrimaryKey { .. }));
        let unknown = refused(|d| d.ttl = keep("nope"));
        assert!(matches!(unknown, SpecError::UnknownKeyColumn { key: "time to live", .. }), "{unknown}");
    }

    #[test]
    fn a_spec_read_back_from_json_is_checked_again() {
        let spec = TableSpec::new(definition()).unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<TableSpec>(&json).unwrap(), spec);
        let broken = json.replace(r#""primary_key":["at","user"]"#, r#""primary_key":["at"]"#);
        assert!(serde_json::from_str::<TableSpec>(&broken).is_err());
    }
}
