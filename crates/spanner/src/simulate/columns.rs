//! Resolves the columns that a simulation refers to by name.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use uuid::Uuid;

use crate::schema::ShardFront;
use crate::simulate::error::SimulateError;
use crate::simulate::index::{Index, IndexShard, IndexSpec};
use crate::simulate::key::{KeyColumn, KeyOrder};
use crate::simulate::result::SimulateOptions;
use crate::simulate::strategy::Strategy;
use evenkeel_model::remark::Remark;
use evenkeel_model::table::{Column, only_time_column};

/// Columns that the options name, by position.
pub(super) struct TableColumns<'a> {
    pub(super) all: &'a [Column],
    pub(super) key: Vec<KeyColumn>,
    pub(super) partition_key: Vec<usize>,
    /// Columns that the shard of the judged strategy is computed from.
    pub(super) shard: Vec<usize>,
    pub(super) indexes: Vec<Index>,
    pub(super) time: Option<usize>,
    pub(super) owner: Option<usize>,
}

impl<'a> TableColumns<'a> {
    /// Looks up the columns, and checks that they suit the strategies.
    pub(super) fn resolve(
        all: &'a [Column],
        options: &SimulateOptions,
        notes: &mut Vec<Remark>,
    ) -> Result<Self, SimulateError> {
        let positions = |names: &[String]| -> Result<Vec<usize>, SimulateError> {
            names.iter().map(|name| position(all, name)).collect()
        };
        let key = key_columns(all, &options.primary_key)?;
        let in_key = || key.iter().map(|part| part.column);
        let partition_key = match options.partition_key.as_slice() {
            [] => in_key().collect(),
            names => positions(names)?,
        };
        // If there are several time columns, the one in the key determines when rows arrive.
        let time_in_key = || in_key().find(|column| is_time(all, *column));
        let time = time_column(all, options.time.as_deref())?.or_else(time_in_key);
        if time.is_none() && options.rate.is_none() {
            return Err(SimulateError::NoClock);
        }
        let owner = match &options.owner {
            Some(name) => Some(position(all, name)?),
            None => in_key().find(|column| !is_time(all, *column)),
        };
        let shard = positions(&options.shard_columns)?;
        let indexes = indexes_of(all, &key, &options.indexes, notes)?;
        for strategy in &options.strategies {
            check_suited(*strategy, all, &key)?;
        }
        Ok(Self { all, key, partition_key, shard, indexes, time, owner })
    }

    /// Returns the positions of the columns of the key.
    pub(super) fn in_key(&self) -> Vec<usize> {
        self.key.iter().map(|part| part.column).collect()
    }

    /// Returns the positions of all columns that are named.
    pub(super) fn named(&self) -> Vec<usize> {
        let mut named = self.in_key();
        named.extend(self.partition_key.iter().chain(&self.shard));
        named.extend(self.time.iter().chain(&self.owner));
        for index in &self.indexes {
            named.extend(index.columns.iter().map(|part| part.column));
            named.extend(index.shard.iter().flat_map(|shard| &shard.columns));
        }
        named
    }

    /// Returns the name of a column.
    pub(super) fn name(&self, column: Option<usize>) -> Option<String> {
        column.and_then(|column| self.all.get(column)).map(|column| column.name.clone())
    }
}

/// Returns the position of a column.
pub(super) fn position(columns: &[Column], name: &str) -> Result<usize, SimulateError> {
    // Names in Spanner never differ by case alone.
    let alike = |column: &Column| column.name.eq_ignore_ascii_case(name);
    let exact = columns.iter().position(|column| column.name == name);
    exact.or_else(|| columns.iter().position(alike)).ok_or_else(|| SimulateError::UnknownColumn {
        column: name.to_owned(),
        known: columns.iter().map(|column| column.name.clone()).collect(),
    })
}

/// Returns the positions of the columns of a key, which must be of key types and not repeat.
pub(super) fn key_columns(columns: &[Column], key: &[KeyOrder]) -> Result<Vec<KeyColumn>, SimulateError> {
    let mut key_columns: Vec<KeyColumn> = Vec::new();
    for part in key {
        let column = position(columns, &part.column)?;
        let column_type = columns.get(column).map(|column| column.column_type);
        if let Some(column_type) = column_type.filter(|column_type| !column_type.is_key_type()) {
            return Err(SimulateError::KeyType { column: part.column.clone(), column_type });
        }
        if key_columns.iter().any(|known| known.column == column) {
            return Err(SimulateError::Repeated { column: part.column.clone() });
        }
        key_columns.push(KeyColumn { column, descending: part.descending });
    }
    Ok(key_columns)
}

/// Looks up the columns of indexes.
fn indexes_of(
    columns: &[Column],
    key: &[KeyColumn],
    specs: &[IndexSpec],
    notes: &mut Vec<Remark>,
) -> Result<Vec<Index>, SimulateError> {
    let mut indexes: Vec<Index> = Vec::new();
    for spec in specs {
        if indexes.iter().any(|index| index.name == spec.name) {
            return Err(SimulateError::RepeatedIndex { name: spec.name.clone() });
        }
        let own_columns = key_columns(columns, &spec.columns)?;
        if spec.interleaved && own_columns.first() != key.first() {
            notes.push(Remark::new(
                "index_not_interleaved",
                format!(
                    "index {} is not interleaved: its first column is not that of the primary key, so \
                        its entries cannot lie among the rows",
                    spec.name
                ),
            ));
        }
        indexes.push(Index {
            name: spec.name.clone(),
            columns: own_columns,
            storing: spec.storing.iter().map(|name| position(columns, name)).collect::<Result<_, _>>()?,
            null_filtered: spec.null_filtered,
            interleaved: spec.interleaved,
            shard: spec.shard.as_ref().map(|shard| shard_of(columns, spec, shard)).transpose()?,
        });
    }
    Ok(indexes)
}

fn shard_of(columns: &[Column], spec: &IndexSpec, shard: &ShardFront) -> Result<IndexShard, SimulateError> {
    let hashed: Result<Vec<usize>, SimulateError> = match shard.columns.as_slice() {
        [] => spec.columns.iter().map(|part| position(columns, &part.column)).collect(),
        names => names.iter().map(|name| position(columns, name)).collect(),
    };
    Ok(IndexShard { shards: shard.shards, columns: hashed?, signed: shard.signed })
}

/// Returns the named time column or, if `name` is `None`, the only timestamp or the only date.
pub(super) fn time_column(columns: &[Column], name: Option<&str>) -> Result<Option<usize>, SimulateError> {
    if let Some(name) = name {
        let column = position(columns, name)?;
        return if is_time(columns, column) {
            Ok(Some(column))
        } else {
            Err(SimulateError::Time { column: name.to_owned() })
        };
    }
    Ok(only_time_column(columns))
}

/// Checks that a strategy can be applied to a key.
fn check_suited(strategy: Strategy, columns: &[Column], key: &[KeyColumn]) -> Result<(), SimulateError> {
    let unsuited = |what| Err(SimulateError::Unsuited { strategy: strategy.to_string(), what });
    let has_time = key.iter().any(|part| is_time(columns, part.column));
    match strategy {
        Strategy::Swapped if key.len() < 2 => unsuited("a key of two columns"),
        Strategy::Descending if !has_time => unsuited("a column of time in the key"),
        _ => Ok(()),
    }
}

/// Returns the names of those columns in `named` that are NULL in some rows.
pub(super) fn nullable(columns: &[Column], named: &[usize], nulls: &[u64]) -> Vec<String> {
    let mut named: Vec<usize> = named.to_vec();
    named.sort_unstable();
    named.dedup();
    let has_null = |column: &usize| nulls.get(*column).is_some_and(|nulls| *nulls > 0);
    let name = |column: usize| columns.get(column).map(|column| column.name.clone());
    named.into_iter().filter(has_null).filter_map(name).collect()
}

/// Returns the columns of `key` that hold time-ordered UUIDs in most of the sampled rows, each with
/// the most frequent version.
pub(super) fn timed_uuids(columns: &[Column], key: &[usize], rows: &[RecordBatch]) -> Vec<(String, u8)> {
    let uuid = |row: &RecordBatch, column: usize| {
        let array = row.columns().get(column).filter(|array| array.is_valid(0))?;
        match array.data_type() {
            DataType::FixedSizeBinary(16) => Uuid::from_slice(array.as_fixed_size_binary().value(0)).ok(),
            DataType::Utf8 => Uuid::try_parse(array.as_string::<i32>().value(0)).ok(),
            DataType::Utf8View => Uuid::try_parse(array.as_string_view().value(0)).ok(),
            _ => None,
        }
    };
    let timed = |column: &usize| {
        let versions =
            rows.iter().filter_map(|row| uuid(row, *column)).map(|uuid| uuid.get_version_num() as u8);
        let versions: Vec<u8> = versions.filter(|version| [1, 6, 7].contains(version)).collect();
        let most =
            versions.iter().max_by_key(|version| versions.iter().filter(|other| other == version).count());
        let version = most.copied().filter(|_| versions.len() * 2 > rows.len())?;
        Some((columns.get(*column)?.name.clone(), version))
    };
    key.iter().filter_map(timed).collect()
}

fn is_time(columns: &[Column], column: usize) -> bool {
    columns.get(column).is_some_and(|column| column.column_type.is_time())
}
