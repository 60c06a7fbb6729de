//! Sums that are exact or refused, compared with sums in wider integers.

use proptest::prelude::{prop_assert_eq, proptest};

use super::*;

fn numbers(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn exact_sum() -> ExactSum {
    ExactSum { data_type: DataType::Int64, sum: 0, count: 0 }
}

/// Sum as SQL defines it; `None` if it is beyond the range.
fn expected(values: impl IntoIterator<Item = i64>) -> Option<ScalarValue> {
    let values: Vec<i128> = values.into_iter().map(i128::from).collect();
    if values.is_empty() {
        return Some(ScalarValue::Int64(None));
    }
    let sum: i128 = values.iter().sum();
    i64::try_from(sum).ok().map(|sum| ScalarValue::Int64(Some(sum)))
}

proptest! {
    #[test]
    fn a_sum_is_exact_or_refused(
        values in proptest::collection::vec(proptest::option::of(proptest::num::i64::ANY), 0..6), cut in 0usize..6
    ) {
        let (left, right) = values.split_at(cut.min(values.len()));
        let mut other = exact_sum();
        other.update_batch(&[numbers(right)]).unwrap();
        let state: Vec<ArrayRef> =
            other.state().unwrap().iter().map(|state| state.to_array().unwrap()).collect();
        let mut sum = exact_sum();
        sum.update_batch(&[numbers(left)]).unwrap();
        sum.merge_batch(&state).unwrap();
        prop_assert_eq!(sum.evaluate().ok(), expected(values.iter().flatten().copied()));
        let mut sliding = exact_sum();
        sliding.update_batch(&[numbers(&values)]).unwrap();
        sliding.retract_batch(&[numbers(left)]).unwrap();
        prop_assert_eq!(sliding.evaluate().ok(), expected(right.iter().flatten().copied()));
    }

    #[test]
    fn distinct_values_count_once(values in proptest::collection::vec(-3i64..3, 0..9)) {
        let array: Vec<Option<i64>> = values.iter().copied().map(Some).collect();
        let distinct: HashSet<i64> = values.into_iter().collect();
        let mut sum = DistinctSum { data_type: DataType::Int64, values: HashSet::new() };
        sum.update_batch(&[numbers(&array)]).unwrap();
        let mut merged = DistinctSum { data_type: DataType::Int64, values: HashSet::new() };
        let state = sum.state().unwrap()[0].to_array().unwrap();
        merged.merge_batch(&[Arc::clone(&state)]).unwrap();
        merged.merge_batch(&[state]).unwrap();
        prop_assert_eq!(merged.evaluate().ok(), expected(distinct));
    }
}

#[test]
fn groups_have_sums_of_their_own_without_filtered_rows() {
    let mut sums = ExactSums::new(DataType::Int64);
    let values = numbers(&[Some(1), Some(2), None, Some(4), Some(i64::MAX)]);
    let keep = BooleanArray::from(vec![Some(true), Some(true), Some(true), None, Some(false)]);
    sums.update_batch(&[values], &[0, 2, 1, 1, 0], Some(&keep), 3).unwrap();
    sums.update_batch(&[numbers(&[Some(10)])], &[2], None, 4).unwrap();
    let evaluated = sums.evaluate(EmitTo::All).unwrap();
    assert_eq!(evaluated.as_ref(), &Int64Array::from(vec![Some(1), None, Some(12), None]));
}
