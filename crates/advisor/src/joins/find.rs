//! Joins that are named, or found from names and contained values.

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::Float64Type;

use crate::joins::key_sample::KeySample;
use crate::joins::names::{NameRelation, alike};
use crate::joins::{ColumnOf, Join, JoinError, TableExport};
use evenkeel_input::source::OnUnreadable;
use evenkeel_model::table::{Column, ColumnType};

/// Minimum share of the values of one column that the other has, for a join that names suggest.
const CONTAINED: f64 = 0.95;

/// Returns the joins that were named as `TABLE.COLUMN=TABLE.COLUMN`; if none was named, the joins
/// that names and contained values suggest.
///
/// # Errors
/// [`JoinError`] if there is no such table or column, or an export cannot be read.
pub fn find_joins(tables: &[TableExport<'_>], named: &[String]) -> Result<Vec<Join>, JoinError> {
    for (index, table) in tables.iter().enumerate() {
        if tables.iter().skip(index + 1).any(|other| other.name == table.name) {
            return Err(JoinError::SameName { name: table.name.clone() });
        }
    }
    if !named.is_empty() {
        let mut joins: Vec<(ColumnOf, ColumnOf)> = Vec::new();
        for text in named {
            let join = parse(tables, text)?;
            if !joins.contains(&join) {
                joins.push(join);
            }
        }
        return joins.into_iter().map(|(left, right)| measure(tables, left, right)).collect();
    }
    let mut joins = Vec::new();
    for (index, left) in tables.iter().enumerate() {
        for (offset, right) in tables.iter().skip(index + 1).enumerate() {
            for a in left.export.columns().iter().filter(|column| joins_by(column.column_type)) {
                for b in right.export.columns().iter().filter(|column| joins_by(column.column_type)) {
                    let Some(names) = alike((&left.name, &a.name), (&right.name, &b.name)) else { continue };
                    let sides = (Side::read(left, a)?, Side::read(right, b)?);
                    let (left, right) = ((index, a.name.clone()), (index + 1 + offset, b.name.clone()));
                    let join = Join { left, right, contained: sides.0.contained(&sides.1), inferred: true };
                    if is_likely(names, &sides, join.contained, &a.name) {
                        joins.push(join);
                    }
                }
            }
        }
    }
    Ok(joins)
}

/// Types that ids have.
fn joins_by(column_type: ColumnType) -> bool {
    use ColumnType::{Double, Int8, Int16, Int32, Int64, String, Uint8, Uint16, Uint32, Uint64, Utf8, Uuid};
    // Whole numbers with NULLs are written as Double by some programs.
    matches!(
        column_type,
        Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 | Utf8 | String | Uuid | Double
    )
}

/// Whether names and values together show a join: one side has each value once and the values of
/// the other, or both name an entity and one has the values of the other.
fn is_likely(names: NameRelation, (left, right): &(Side, Side), contained: (f64, f64), column: &str) -> bool {
    let refers = (right.sample.is_unique() && contained.0 >= CONTAINED)
        || (left.sample.is_unique() && contained.1 >= CONTAINED);
    let shares = names == NameRelation::Same
        && crate::evaluate::is_identifier(column)
        && contained.0.max(contained.1) >= CONTAINED;
    refers || shares
}

/// A column with a sample of its values.
struct Side {
    sample: KeySample,
}

impl Side {
    fn read(table: &TableExport<'_>, column: &Column) -> Result<Self, JoinError> {
        let mut sample = KeySample::default();
        let position = table.export.columns().iter().position(|other| other.name == column.name);
        let compared =
            |source| JoinError::Compare { table: table.name.clone(), column: column.name.clone(), source };
        table.export.read_columns::<JoinError>(
            OnUnreadable::Skip,
            &|at| Some(at) == position,
            |_, batch| {
                if let Some(values) = batch.column_by_name(&column.name) {
                    sample.add(&readable(values)).map_err(compared)?;
                }
                Ok(true)
            },
        )?;
        Ok(Self { sample })
    }

    fn contained(&self, other: &Self) -> (f64, f64) {
        (self.sample.share_in(&other.sample), other.sample.share_in(&self.sample))
    }
}

/// Makes values of different types comparable: UUIDs become text, and so do floats, whole ones
/// without a decimal point.
fn readable(values: &ArrayRef) -> ArrayRef {
    if let Some(numbers) = values.as_primitive_opt::<Float64Type>() {
        // Up to 2^53 a Double holds whole numbers exactly.
        let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64);
        let texts = numbers.iter().map(|number| {
            number.map(|number| whole(number).map_or_else(|| number.to_string(), |whole| whole.to_string()))
        });
        return std::sync::Arc::new(texts.collect::<StringArray>());
    }
    if let Some(ids) = values.as_fixed_size_binary_opt() {
        let text = |id: &[u8]| uuid::Uuid::from_slice(id).ok().map(|id| id.to_string());
        return std::sync::Arc::new(ids.iter().map(|id| id.and_then(text)).collect::<StringArray>());
    }
    ArrayRef::clone(values)
}

/// Reads `TABLE.COLUMN=TABLE.COLUMN`; names of columns may have dots and equals signs themselves.
fn parse(tables: &[TableExport<'_>], text: &str) -> Result<(ColumnOf, ColumnOf), JoinError> {
    let side = |text: &str| {
        let (table, column) = text.trim().split_once('.')?;
        let table = tables.iter().position(|other| other.name == table.trim())?;
        Some((table, column.trim().to_owned()))
    };
    let has = |(table, column): &ColumnOf| {
        tables
            .get(*table)
            .is_some_and(|table| table.export.columns().iter().any(|other| other.name == *column))
    };
    let splits = text.match_indices('=').filter_map(|(at, _)| {
        let (left, right) = (text.get(..at)?, text.get(at + 1..)?);
        Some((side(left)?, side(right)?))
    });
    let splits: Vec<_> = splits.filter(|(left, right)| left.0 != right.0).collect();
    if let Some(split) = splits.iter().find(|(left, right)| has(left) && has(right)) {
        return Ok(split.clone());
    }
    let Some((left, right)) = splits.into_iter().next() else {
        let known = || tables.iter().map(|table| table.name.clone()).collect();
        let sides = text.split_once('=').map(|(left, right)| [left, right]);
        let named = sides.into_iter().flatten().filter_map(|side| Some(side.trim().split_once('.')?.0));
        let mut unknown = named.filter(|name| !tables.iter().any(|table| table.name == *name));
        return Err(match unknown.next() {
            Some(table) => {
                JoinError::UnknownTable { text: text.to_owned(), table: table.to_owned(), known: known() }
            }
            None => JoinError::Form { text: text.to_owned(), tables: known() },
        });
    };
    let (table, column) = if has(&left) { right } else { left };
    let known = tables.get(table).map(|table| table.export.columns()).unwrap_or_default();
    Err(JoinError::UnknownColumn {
        text: text.to_owned(),
        table: tables.get(table).map(|table| table.name.clone()).unwrap_or_default(),
        column,
        known: known.iter().map(|column| column.name.clone()).collect(),
    })
}

fn measure(tables: &[TableExport<'_>], left: ColumnOf, right: ColumnOf) -> Result<Join, JoinError> {
    let read = |(table, name): &ColumnOf| {
        let table = tables.get(*table);
        let column =
            table.and_then(|table| table.export.columns().iter().find(|column| column.name == *name));
        table.zip(column).map_or_else(
            || Ok(Side { sample: KeySample::default() }),
            |(table, column)| Side::read(table, column),
        )
    };
    let contained = read(&left)?.contained(&read(&right)?);
    Ok(Join { left, right, contained, inferred: false })
}
