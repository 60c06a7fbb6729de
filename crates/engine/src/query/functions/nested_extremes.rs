//! `min` and `max` of structs and lists, in the order in which ORDER BY sorts them.
//!
//! DataFusion 55 ignores what is NULL inside when it compares two structs, so that which of them is
//! the least depends on the order of the rows. Here NULL is above all values, as in PostgreSQL and
//! DuckDB.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::row::{OwnedRow, Row, RowConverter, SortField};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// Which of several values is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Least,
    Greatest,
}

impl End {
    fn is_further(self, row: Row<'_>, than: Row<'_>) -> bool {
        match self {
            Self::Least => row < than,
            Self::Greatest => row > than,
        }
    }
}

/// Whether values of this type are compared as rows.
pub(super) fn is_compared_as_row(data_type: &DataType) -> bool {
    data_type.is_nested() && RowConverter::supports_fields(&[field(data_type)])
}

fn field(data_type: &DataType) -> SortField {
    // NULL is last.
    let options = arrow::compute::SortOptions { descending: false, nulls_first: false };
    SortField::new_with_options(data_type.clone(), options)
}

fn only(arrays: &[ArrayRef]) -> Result<&ArrayRef> {
    match arrays {
        [array] => Ok(array),
        _ => internal_err!("min and max have one argument and one state"),
    }
}

/// Conversion of values to rows that sort as the values do.
#[derive(Debug)]
struct Values {
    data_type: DataType,
    converter: RowConverter,
}

impl Values {
    fn new(data_type: &DataType) -> Result<Self> {
        Ok(Self { data_type: data_type.clone(), converter: RowConverter::new(vec![field(data_type)])? })
    }

    fn to_rows(&self, array: &ArrayRef) -> Result<arrow::row::Rows> {
        Ok(self.converter.convert_columns(std::slice::from_ref(array))?)
    }

    /// Returns the values of rows, and NULL where there is none.
    fn of_rows(&self, rows: &[Option<OwnedRow>]) -> Result<ArrayRef> {
        let none = self.to_rows(&new_null_array(&self.data_type, 1))?;
        let rows = rows.iter().map(|row| row.as_ref().map_or_else(|| none.row(0), OwnedRow::row));
        let values = self.converter.convert_rows(rows)?;
        let values = only(&values)?;
        match values.data_type() == &self.data_type {
            true => Ok(ArrayRef::clone(values)),
            // Dictionaries inside come back as their values.
            false => Ok(cast(values, &self.data_type)?),
        }
    }
}

/// The least or the greatest of all values, or of those in a moving window.
#[derive(Debug)]
pub(super) struct NestedExtreme {
    values: Values,
    end: End,
    /// Rows, and how often each occurs; only the furthest, unless the window moves.
    rows: BTreeMap<OwnedRow, u64>,
    moves: bool,
    bytes: usize,
}

impl NestedExtreme {
    pub(super) fn new(data_type: &DataType, end: End, moves: bool) -> Result<Self> {
        Ok(Self { values: Values::new(data_type)?, end, rows: BTreeMap::new(), moves, bytes: 0 })
    }

    fn furthest(&self) -> Option<&OwnedRow> {
        let furthest = match self.end {
            End::Least => self.rows.first_key_value(),
            End::Greatest => self.rows.last_key_value(),
        };
        furthest.map(|(row, _)| row)
    }

    fn add(&mut self, row: OwnedRow) {
        let bytes = row.as_ref().len() + size_of::<(OwnedRow, u64)>();
        let count = self.rows.entry(row).or_insert(0);
        if *count == 0 {
            self.bytes += bytes;
        }
        *count += 1;
    }
}

impl Accumulator for NestedExtreme {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        let array = only(arrays)?;
        let rows = self.values.to_rows(array)?;
        let valid = (0..array.len()).filter(|at| array.is_valid(*at)).map(|at| rows.row(at));
        if self.moves {
            valid.for_each(|row| self.add(row.owned()));
            return Ok(());
        }
        let furthest = match self.end {
            End::Least => valid.min(),
            End::Greatest => valid.max(),
        };
        let Some(furthest) = furthest else { return Ok(()) };
        if self.furthest().is_none_or(|known| self.end.is_further(furthest, known.row())) {
            self.rows.clear();
            self.bytes = 0;
            self.add(furthest.owned());
        }
        Ok(())
    }

    fn retract_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        let array = only(arrays)?;
        let rows = self.values.to_rows(array)?;
        for at in (0..array.len()).filter(|at| array.is_valid(*at)) {
            let row = rows.row(at).owned();
            let Some(count) = self.rows.get_mut(&row) else {
                return internal_err!("a value leaves a window that it is not in");
            };
            *count -= 1;
            if *count == 0 {
                self.bytes -= row.as_ref().len() + size_of::<(OwnedRow, u64)>();
                self.rows.remove(&row);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.moves
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.values.of_rows(&[self.furthest().cloned()])?;
        ScalarValue::try_from_array(&value, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.converter.size() + self.bytes
    }
}

/// The least or the greatest values of groups.
#[derive(Debug)]
pub(super) struct NestedExtremes {
    values: Values,
    end: End,
    /// Furthest row of each group, if it has any.
    groups: Vec<Option<OwnedRow>>,
    bytes: usize,
}

impl NestedExtremes {
    pub(super) fn new(data_type: &DataType, end: End) -> Result<Self> {
        Ok(Self { values: Values::new(data_type)?, end, groups: Vec::new(), bytes: 0 })
    }
}

impl GroupsAccumulator for NestedExtremes {
    fn update_batch(
        &mut self,
        arrays: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.groups.resize(total, None);
        let array = only(arrays)?;
        let rows = self.values.to_rows(array)?;
        for (at, group) in groups.iter().enumerate() {
            let is_counted = filter.is_none_or(|filter| filter.is_valid(at) && filter.value(at));
            let Some(known) = self.groups.get_mut(*group).filter(|_| is_counted && array.is_valid(at)) else {
                continue;
            };
            let row = rows.row(at);
            if known.as_ref().is_none_or(|known| self.end.is_further(row, known.row())) {
                self.bytes -= known.as_ref().map_or(0, |known| known.as_ref().len());
                self.bytes += row.as_ref().len();
                *known = Some(row.owned());
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let emitted = emit_to.take_needed(&mut self.groups);
        self.bytes -= emitted.iter().flatten().map(|row| row.as_ref().len()).sum::<usize>();
        self.values.of_rows(&emitted)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn convert_to_state(&self, arrays: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let array = only(arrays)?;
        let Some(filter) = filter else { return Ok(vec![ArrayRef::clone(array)]) };
        let excluded: BooleanArray = filter.iter().map(|counted| Some(counted != Some(true))).collect();
        Ok(vec![arrow::compute::nullif(array, &excluded)?])
    }

    fn size(&self) -> usize {
        self.values.converter.size() + self.groups.capacity() * size_of::<Option<OwnedRow>>() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::datatypes::{Field, Int64Type, Schema};
    use arrow::util::display::array_value_to_string;
    use datafusion::datasource::MemTable;
    use datafusion::prelude::{SessionConfig, SessionContext};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::query::functions::float_extremes::extremes;

    type Inner = (Option<i64>, Option<String>);

    /// Sorts NULL above all values.
    fn key(inner: &Inner) -> (bool, Option<i64>, bool, Option<String>) {
        (inner.0.is_none(), inner.0, inner.1.is_none(), inner.1.clone())
    }

    fn structs(values: &[Option<Inner>]) -> StructArray {
        let of = |value: &Option<Inner>| value.clone().unwrap_or_default();
        let numbers = Int64Array::from_iter(values.iter().map(|value| of(value).0));
        let texts = StringArray::from_iter(values.iter().map(|value| of(value).1));
        let fields = vec![Field::new("n", DataType::Int64, true), Field::new("t", DataType::Utf8, true)];
        let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
        StructArray::new(fields.into(), vec![Arc::new(numbers), Arc::new(texts)], Some(nulls))
    }

    /// Values with NULL inside and as a whole, in batches of 50.
    fn context(values: &[Option<Inner>]) -> SessionContext {
        let structs: ArrayRef = Arc::new(structs(values));
        let rows = || 0..values.len() as i64;
        let schema = Schema::new(vec![
            Field::new("row", DataType::Int64, false),
            Field::new("s", structs.data_type().clone(), true),
        ]);
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(rows())), structs];
        let all = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        let batches: Vec<_> = (0..values.len()).step_by(50).map(|from| all.slice(from, 50)).collect();
        let table = MemTable::try_new(all.schema(), vec![batches[..4].to_vec(), batches[4..].to_vec()]);
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
        context.register_table("t", Arc::new(table.unwrap())).unwrap();
        extremes().for_each(|function| context.register_udaf(function));
        context
    }

    #[test]
    fn values_of_other_nested_types_keep_their_types() {
        let texts: StringArray = [Some("b"), None, Some("a"), Some("b")].into_iter().collect();
        let texts = cast(&texts, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)));
        let texts = texts.unwrap();
        let field = Arc::new(Field::new("item", texts.data_type().clone(), true));
        let structs = StructArray::new(vec![Arc::clone(&field)].into(), vec![Arc::clone(&texts)], None);
        let offsets = OffsetBuffer::from_lengths([1, 1, 2]);
        let lists = ListArray::new(field, offsets, texts, None);
        let arrays: [(ArrayRef, &str, &str); 2] =
            [(Arc::new(structs), "{item: a}", "{item: }"), (Arc::new(lists), "[a, b]", "[]")];
        for (array, least, greatest) in arrays {
            for (end, expected) in [(End::Least, least), (End::Greatest, greatest)] {
                for moves in [false, true] {
                    let mut extreme = NestedExtreme::new(array.data_type(), end, moves).unwrap();
                    extreme.update_batch(&[Arc::clone(&array)]).unwrap();
                    let found = extreme.evaluate().unwrap().to_array().unwrap();
                    assert_eq!(found.data_type(), array.data_type());
                    assert_eq!(array_value_to_string(&found, 0).unwrap(), expected);
                }
                let mut groups = NestedExtremes::new(array.data_type(), end).unwrap();
                let all = vec![0; array.len()];
                let states = groups.convert_to_state(&[Arc::clone(&array)], None).unwrap();
                groups.merge_batch(&states, &all, 2).unwrap();
                let found = groups.evaluate(EmitTo::All).unwrap();
                assert_eq!(array_value_to_string(&found, 0).unwrap(), expected);
                assert!(found.is_null(1));
                let none = BooleanArray::from(vec![false; array.len()]);
                let states = groups.convert_to_state(&[Arc::clone(&array)], Some(&none)).unwrap();
                assert_eq!(states[0].null_count(), array.len());
            }
        }
    }

    #[tokio::test]
    async fn extremes_of_structs_are_those_of_their_order() {
        for seed in 0..6 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let value = |random: &mut ChaCha8Rng| -> Option<Inner> {
                let number = random.random_bool(0.6).then(|| random.random_range(0..3));
                let text = random.random_bool(0.6).then(|| format!("t{}", random.random_range(0..3)));
                random.random_bool(0.9).then_some((number, text))
            };
            let values: Vec<_> = (0..400).map(|_| value(&mut random)).collect();
            let context = context(&values);
            let shown =
                |value: Option<&Inner>| array_value_to_string(&structs(&[value.cloned()]), 0).unwrap();
            let extremes = |rows: &mut dyn Iterator<Item = usize>| {
                let of: Vec<&Inner> = rows.filter_map(|row| values.get(row)?.as_ref()).collect();
                let least = of.iter().min_by_key(|value| key(value)).copied();
                let greatest = of.iter().max_by_key(|value| key(value)).copied();
                (shown(least), shown(greatest))
            };
            for (sql, rows_of) in [
                ("SELECT 0, min(s), max(s) FROM t", (|_, _| true) as fn(usize, usize) -> bool),
                ("SELECT row % 7, min(s), max(s) FROM t GROUP BY 1", |result, row| row % 7 == result),
                (
                    "SELECT row % 90, min(s) FILTER (WHERE row % 2 = 0), max(s) FILTER (WHERE row % 2 = 0)
                     FROM t GROUP BY 1",
                    |result, row| row % 90 == result && row % 2 == 0,
                ),
                (
                    "SELECT row, min(s) OVER w, max(s) OVER w FROM t
                     WINDOW w AS (ORDER BY row ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING)",
                    |result, row| row + 3 >= result && row <= result + 2,
                ),
                (
                    "SELECT row, min(s) OVER w, max(s) OVER w FROM t WINDOW w AS (ORDER BY row)",
                    |result, row| row <= result,
                ),
            ] {
                let mut found = 0;
                for batch in context.sql(sql).await.unwrap().collect().await.unwrap() {
                    for row in 0..batch.num_rows() {
                        let result = batch.column(0).as_primitive::<Int64Type>().value(row) as usize;
                        let text = |column: usize| array_value_to_string(batch.column(column), row).unwrap();
                        let expected = extremes(&mut (0..values.len()).filter(|row| rows_of(result, *row)));
                        assert_eq!((text(1), text(2)), expected, "{sql}, seed {seed}, row {result}");
                        found += 1;
                    }
                }
                assert!(found > 0, "{sql}");
            }
        }
    }
}
