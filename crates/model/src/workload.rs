//! Statements of a workload, reduced to their conditions on the columns of a table.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::take;

/// Maximum number of keys to place in order to find the partitions of a statement; a longer list
/// reads all partitions.
pub const MAX_KEYS: usize = 10_000;

/// A statement with the conditions of each of its scans, or the reason why it cannot be planned.
#[derive(Debug, Clone)]
pub struct PlannedStatement {
    /// Name of the statement.
    pub name: String,
    /// Number of times that it runs: its weight among the statements.
    pub runs: f64,
    /// Conditions of each scan of the table, or the reason.
    pub scans: Result<Vec<ScanCondition>, String>,
}

/// Conditions that apply to one scan of a table.
#[derive(Debug, Clone, Default)]
pub struct ScanCondition {
    fixed: Vec<(String, ArrayRef)>,
    ranges: BTreeMap<String, (i64, i64)>,
}

impl ScanCondition {
    /// Creates conditions from the columns that are fixed to values and from the time ranges of
    /// others, with both ends included, in microseconds.
    #[must_use]
    pub fn new(fixed: Vec<(String, ArrayRef)>, ranges: BTreeMap<String, (i64, i64)>) -> Self {
        Self { fixed, ranges }
    }

    /// Returns the values that the conditions allow for a column, if they fix it.
    #[must_use]
    pub fn fixed_values(&self, column: &str) -> Option<&ArrayRef> {
        self.fixed.iter().find(|(name, _)| name == column).map(|(_, values)| values)
    }

    /// Returns the bounds of a column of points in time, both included, in microseconds; `None` if
    /// a bound is open or the range is empty.
    #[must_use]
    pub fn time_range(&self, column: &str) -> Option<(i64, i64)> {
        self.ranges.get(column).copied().filter(|(low, high)| low <= high)
    }

    /// Returns the columns that are fixed to values.
    #[must_use]
    pub fn fixed_columns(&self) -> Vec<String> {
        self.fixed.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Returns all combinations of one value per column, as one array per column; `None` if there are
/// more than [`MAX_KEYS`], or if a column has no values.
#[must_use]
pub fn combinations(values: &[ArrayRef]) -> Option<Vec<ArrayRef>> {
    let keys = values.iter().try_fold(1usize, |count, list| count.checked_mul(list.len()))?;
    if keys > MAX_KEYS {
        return None;
    }
    let mut repeat = keys;
    let mut columns = Vec::with_capacity(values.len());
    for list in values {
        repeat = repeat.checked_div(list.len())?;
        let indices =
            UInt64Array::from_iter_values((0..keys).map(|key| ((key / repeat) % list.len()) as u64));
        columns.push(take(list, &indices, None).ok()?);
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn numbers(count: i64) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(0..count))
    }

    #[test]
    fn every_value_of_a_column_meets_every_value_of_the_others() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let columns = combinations(&[numbers(3), texts]).unwrap();
        let pairs: Vec<(i64, &str)> = columns[0]
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .copied()
            .zip(columns[1].as_string::<i32>().iter().flatten())
            .collect();
        assert_eq!(pairs, [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a"), (2, "b")]);
    }

    #[test]
    fn too_many_keys_and_columns_without_values_have_no_combinations() {
        assert_eq!(combinations(&[numbers(100), numbers(100)]).unwrap()[0].len(), MAX_KEYS);
        assert!(combinations(&[numbers(100), numbers(101)]).is_none());
        assert!(combinations(&[numbers(i64::from(u16::MAX)), numbers(0)]).is_none());
    }

    #[test]
    fn a_range_that_is_empty_is_none() {
        let ranges = BTreeMap::from([("a".to_owned(), (1, 2)), ("b".to_owned(), (2, 1))]);
        let condition = ScanCondition::new(vec![("c".to_owned(), numbers(1))], ranges);
        assert_eq!(condition.time_range("a"), Some((1, 2)));
        assert_eq!((condition.time_range("b"), condition.time_range("c")), (None, None));
        assert_eq!(condition.fixed_columns(), ["c"]);
        assert_eq!(condition.fixed_values("c").map(|values| values.len()), Some(1));
    }
}
