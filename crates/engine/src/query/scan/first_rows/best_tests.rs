use arrow::array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Int32Type;

use super::*;

/// Numbers that look random, with NULLs and repetitions.
fn numbers(rows: usize) -> Vec<Option<i64>> {
    (0..rows as i64).map(|row| (row % 7 != 3).then_some(row * 7_919 % 1_009)).collect()
}

fn arrays(rows: usize) -> Vec<ArrayRef> {
    let numbers = numbers(rows);
    let texts: Vec<_> =
        numbers.iter().map(|number| number.map(|number| format!("text {number:05}"))).collect();
    let floats = numbers.iter().map(|number| {
        number.map(|number| match number % 10 {
            0 => f64::NAN,
            1 => -0.0,
            _ => number as f64 - 500.5,
        })
    });
    let dictionary: DictionaryArray<Int32Type> = texts.iter().map(Option::as_deref).collect();
    vec![
        Arc::new(Int64Array::from(numbers.clone())),
        Arc::new(StringArray::from(texts)),
        Arc::new(Float64Array::from_iter(floats)),
        Arc::new(dictionary),
    ]
}

#[test]
fn rows_that_are_kept_have_the_first_ones() {
    for keys in arrays(2_000) {
        for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
            let order = SortOptions { descending, nulls_first };
            for (count, batch) in [(1, 100), (7, 1), (7, 333), (300, 64), (1_999, 500), (5_000, 500)] {
                let best = Best::new(keys.data_type().clone(), order, count).unwrap();
                let mut returned = Vec::new();
                for start in (0..keys.len()).step_by(batch) {
                    let length = batch.min(keys.len() - start);
                    let kept = best.keep(&keys.slice(start, length)).unwrap();
                    assert_eq!(kept.null_count(), 0);
                    returned.push(filter(&keys.slice(start, length), &kept).unwrap());
                }
                let returned: Vec<&dyn Array> = returned.iter().map(AsRef::as_ref).collect();
                let returned = arrow::compute::concat(&returned).unwrap();
                let first = |keys: &ArrayRef| {
                    let converter =
                        RowConverter::new(vec![SortField::new_with_options(keys.data_type().clone(), order)]);
                    let rows = converter.unwrap().convert_columns(&[Arc::clone(keys)]).unwrap();
                    let mut rows: Vec<OwnedRow> = rows.iter().map(|row| row.owned()).collect();
                    rows.sort();
                    rows.truncate(count);
                    rows
                };
                assert!(first(&returned) == first(&keys), "{:?} {order:?} {count}", keys.data_type());
                if count < 10 {
                    assert!(returned.len() < 700, "{} rows of {:?}", returned.len(), keys.data_type());
                }
            }
        }
    }
}

#[test]
fn files_beyond_the_bound_are_left_out() {
    let excludes = |descending, nulls_first, min: i64, max: i64, nulls: usize| {
        let order = SortOptions { descending, nulls_first };
        let best = Best::new(DataType::Int64, order, 2).unwrap();
        let known = ColumnStatistics {
            null_count: Precision::Exact(nulls),
            min_value: Precision::Exact(ScalarValue::from(min)),
            max_value: Precision::Exact(ScalarValue::from(max)),
            ..ColumnStatistics::new_unknown()
        };
        assert!(!best.excludes(&known), "no bound is known");
        best.keep(&(Arc::new(Int64Array::from(vec![10, 20])) as ArrayRef)).unwrap();
        assert!(!best.excludes(&ColumnStatistics::new_unknown()));
        best.excludes(&known)
    };
    assert!(excludes(false, false, 21, 30, 0));
    assert!(!excludes(false, false, 20, 30, 0));
    assert!(excludes(false, false, 21, 30, 1));
    assert!(!excludes(false, true, 21, 30, 1));
    assert!(excludes(true, true, 1, 9, 0));
    assert!(!excludes(true, true, 1, 9, 1));
    assert!(!excludes(true, false, 1, 10, 0));
}

#[test]
fn each_execution_has_keys_of_its_own() {
    let order = SortOptions::default();
    let executions = Executions::new(DataType::Int64, order, 1).unwrap();
    let [first, second] = [0, 1].map(|stream| executions.of_stream(stream));
    assert!(Arc::ptr_eq(&first, &second));
    let again = executions.of_stream(1);
    assert!(!Arc::ptr_eq(&first, &again));
    assert!(Arc::ptr_eq(&again, &executions.of_stream(0)));
}
