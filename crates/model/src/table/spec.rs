//! Table declarations, raw and checked.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounded::{names, quote};
use crate::table::{ColumnType, KeyValue, PlacementFunction, Ttl};
use crate::units::PartitionCount;

/// Maximum number of columns in a primary key of YDB.
pub const MAX_KEY_COLUMNS: usize = 20;
/// Maximum size of a primary key of YDB in bytes (1 MB).
pub const MAX_KEY_BYTES: usize = 1 << 20;

/// Returns the position of the only column of points in time; without any, that of the only date
/// column.
#[must_use]
pub fn only_time_column(columns: &[Column]) -> Option<usize> {
    let only = |is: fn(ColumnType) -> bool| {
        let mut times = columns.iter().enumerate().filter(|(_, column)| is(column.column_type));
        (times.next().map(|(index, _)| index), times.next().is_some())
    };
    match (only(ColumnType::is_timestamp), only(ColumnType::is_time)) {
        ((Some(index), false), _) | ((None, _), (Some(index), false)) => Some(index),
        _ => None,
    }
}

/// One declared column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Case-sensitive name.
    pub name: String,
    /// Type of the column.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Whether the column takes NULL.
    pub nullable: bool,
}

impl Column {
    /// Creates a column that takes NULL.
    #[must_use]
    pub fn nullable(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self { name: name.into(), column_type, nullable: true }
    }

    /// Creates a NOT NULL column.
    #[must_use]
    pub fn required(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self { name: name.into(), column_type, nullable: false }
    }
}

/// An unchecked declaration, as it appears in flags, DDL and the log. [`TableSpec::new`] checks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDefinition {
    /// Name of the table, also in SQL.
    pub name: String,
    /// Columns in declared order.
    pub columns: Vec<Column>,
    /// Names of the primary-key columns, in key order.
    pub primary_key: Vec<String>,
    /// Names of the partition-key columns, in hash order; if empty, the whole primary key is used.
    pub partition_key: Vec<String>,
    /// Number of hash partitions.
    pub partitions: PartitionCount,
    /// Function from partition key to partition.
    #[serde(default)]
    pub placement: PlacementFunction,
    /// Time to live of rows; `None` keeps them forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
}

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

/// Reason why a declaration is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SpecError {
    #[error("the table has no name")]
    NoName,
    #[error("'{name}' cannot be the name of a table: a part called .sys is kept for system tables", name = quote(name))]
    ReservedName { name: String },
    #[error("a table needs at least one column")]
    NoColumns,
    #[error("a column has an empty name")]
    EmptyColumnName,
    #[error("column '{name}' is declared twice", name = quote(name))]
    DuplicateColumn { name: String },
    #[error("a table needs a primary key, such as --primary-key event_timestamp,user_id")]
    NoPrimaryKey,
    #[error("a primary key has at most {MAX_KEY_COLUMNS} columns, this one has {found}")]
    TooManyKeyColumns { found: usize },
    #[error("the {key} names column '{name}', which is not declared; declared: {}", names(declared), name = quote(name))]
    UnknownKeyColumn { key: &'static str, name: String, declared: Vec<String> },
    #[error("the {key} names column '{name}' twice", name = quote(name))]
    RepeatedKeyColumn { key: &'static str, name: String },
    #[error(
        "column '{name}' is part of the primary key and must be NOT NULL; declare it as {name}:{column_type}:not-null", name = quote(name)
)]
    NullableKeyColumn { name: String, column_type: ColumnType },
    #[error(
        "column '{name}' of type {column_type} cannot be part of a primary key; YDB allows Int32, Int64, Uint8 to \
         Uint64, Utf8, String, Date, Datetime, Datetime64, Timestamp and Timestamp64", name = quote(name)
)]
    KeyType { name: String, column_type: ColumnType },
    #[error(
        "partition-key column '{name}' is not in the primary key ({}); the partition key is a subset of the primary \
         key, so that rows with equal primary keys are in one partition. Add it to the primary key or partition by another column",
        names(primary_key), name = quote(name)
)]
    PartitionKeyOutsidePrimaryKey { name: String, primary_key: Vec<String> },
    #[error(
        "placement ydb-cloud-logs needs a partition key of at least two columns, the first of them a Timestamp; \
         this one is ({})",
        names(partition_key)
    )]
    CloudLogsKey { partition_key: Vec<String> },
    #[error(
        "placement ydb-cloud-logs needs at least one active partition and a period of at least 1 microsecond"
    )]
    CloudLogsParameters,
    #[error(
        "the time to live names column '{name}', which is not in the primary key ({}); all versions of a \
            row must expire together, and portions record only the ranges of key columns", names(primary_key), name = quote(name)
)]
    TtlOutsidePrimaryKey { name: String, primary_key: Vec<String> },
    #[error(
        "the time to live names column '{name}' of type {column_type}; it must be a date or a point in time", name = quote(name)
)]
    TtlType { name: String, column_type: ColumnType },
    #[error("column '{name}' exists already", name = quote(name))]
    ColumnExists { name: String },
    #[error("{what} cannot be changed once a table is declared; {instead}")]
    Fixed { what: String, instead: &'static str },
    #[error(
        "column '{name}' cannot be added as NOT NULL: existing rows have no value for it. Declare it as \
         {name}:{column_type}", name = quote(name)
)]
    AddedNotNull { name: String, column_type: ColumnType },
}

impl TableSpec {
    /// Checks a declaration. An empty partition key becomes the whole primary key, as in YDB.
    ///
    /// # Errors
    /// [`SpecError`] for the first fault found; it says what is wrong and how to fix it.
    pub fn new(mut definition: TableDefinition) -> Result<Self, SpecError> {
        check_columns(&definition)?;
        if definition.primary_key.is_empty() {
            return Err(SpecError::NoPrimaryKey);
        }
        if definition.primary_key.len() > MAX_KEY_COLUMNS {
            return Err(SpecError::TooManyKeyColumns { found: definition.primary_key.len() });
        }
        if definition.partition_key.is_empty() {
            definition.partition_key.clone_from(&definition.primary_key);
        }
        let primary_key = resolve_key(&definition, "primary key", &definition.primary_key)?;
        let partition_key = resolve_key(&definition, "partition key", &definition.partition_key)?;
        for (index, name) in partition_key.iter().zip(&definition.partition_key) {
            if !primary_key.contains(index) {
                return Err(SpecError::PartitionKeyOutsidePrimaryKey {
                    name: name.clone(),
                    primary_key: definition.primary_key,
                });
            }
        }
        for column in primary_key.iter().filter_map(|index| definition.columns.get(*index)) {
            check_key_column(column)?;
        }
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

    /// Checks a changed declaration: columns that take NULL may be added at the end, and the time
    /// to live may change.
    ///
    /// # Errors
    /// [`SpecError`] for every other change, and for a declaration that is invalid in itself.
    pub fn altered(&self, to: TableDefinition) -> Result<Self, SpecError> {
        const REWRITE: &str = "'evenkeel repartition' rewrites the rows into a new table";
        const NEW_TABLE: &str = "declare a new table and ingest into it";
        let from = &self.definition;
        let fixed = |what: String, instead| Err(SpecError::Fixed { what, instead });
        if to.name != from.name {
            return fixed("the name".to_owned(), NEW_TABLE);
        }
        if to.primary_key != from.primary_key {
            return fixed("the primary key".to_owned(), NEW_TABLE);
        }
        if to.partition_key != from.partition_key {
            return fixed("the partition key".to_owned(), REWRITE);
        }
        if to.partitions != from.partitions {
            return fixed("the number of partitions".to_owned(), REWRITE);
        }
        if to.placement != from.placement {
            return fixed("the placement function".to_owned(), REWRITE);
        }
        for (index, column) in from.columns.iter().enumerate() {
            if to.columns.get(index) != Some(column) {
                return fixed(format!("column '{}'", column.name), NEW_TABLE);
            }
        }
        let added = || to.columns.iter().skip(from.columns.len());
        if let Some(known) = added().find(|column| from.columns.iter().any(|known| known.name == column.name))
        {
            return Err(SpecError::ColumnExists { name: known.name.clone() });
        }
        if let Some(added) = added().find(|column| !column.nullable) {
            let (name, column_type) = (added.name.clone(), added.column_type);
            return Err(SpecError::AddedNotNull { name, column_type });
        }
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

fn check_columns(definition: &TableDefinition) -> Result<(), SpecError> {
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
        if !seen.insert(column.name.as_str()) {
            return Err(SpecError::DuplicateColumn { name: column.name.clone() });
        }
    }
    Ok(())
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

fn check_cloud_logs(definition: &TableDefinition, first: Option<&Column>) -> Result<(), SpecError> {
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

fn check_ttl(definition: &TableDefinition) -> Result<(), SpecError> {
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

/// Returns the schema with text and bytes as views: short values are stored in the view itself and
/// move like numbers.
#[must_use]
pub fn view_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = view_type(field.data_type()).unwrap_or_else(|| field.data_type().clone());
        Field::new(field.name(), data_type, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Casts a column to its type in [`view_schema`].
///
/// # Errors
/// [`ArrowError`] if memory does not suffice.
pub fn as_view(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match view_type(column.data_type()) {
        Some(view) => cast(column, &view),
        None => Ok(Arc::clone(column)),
    }
}

/// Returns the view type of text and bytes; `None` for other types and for views.
fn view_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Utf8 => Some(DataType::Utf8View),
        DataType::Binary => Some(DataType::BinaryView),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_spec_read_back_from_json_is_checked_again() {
        let spec = TableSpec::new(definition()).unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<TableSpec>(&json).unwrap(), spec);
        let broken = json.replace(r#""primary_key":["at","user"]"#, r#""primary_key":["at"]"#);
        assert!(serde_json::from_str::<TableSpec>(&broken).is_err());
    }
}
