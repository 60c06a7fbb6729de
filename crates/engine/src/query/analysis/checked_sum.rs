//! `sum` of whole numbers and decimals that fails if the sum leaves its type, instead of wrapping
//! around.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray,
    UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::accumulate::NullState;
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::nulls::filtered_null_mask;

use crate::query::out_of_range::OutOfRange;

/// Returns the function that replaces DataFusion's `sum`.
pub(in crate::query) fn checked_sum() -> AggregateUDF {
    AggregateUDF::new_from_impl(CheckedSum::default())
}

/// `sum` with 128 bits for whole numbers and decimals. Floats, durations and intervals are left to
/// DataFusion.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct CheckedSum {
    inner: Sum,
}

/// Whether sums of this type are computed here.
fn is_exact(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int64 | DataType::UInt64 | DataType::Decimal128(..))
}

/// Type of a partial sum: it holds 2^63 of the largest whole numbers.
fn state_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal128(_, scale) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale),
        _ => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
    }
}

fn beyond(data_type: &DataType) -> DataFusionError {
    OutOfRange::Sum(data_type.clone()).into()
}

/// Calls `$run` with an array of one of the exact types and a function that widens its values.
macro_rules! with_values {
    ($array:expr, |$values:ident, $wide:ident| $run:expr) => {
        match $array.data_type() {
            DataType::Int64 => {
                let ($values, $wide) = ($array.as_primitive::<Int64Type>(), i128::from);
                $run
            }
            DataType::UInt64 => {
                let ($values, $wide) = ($array.as_primitive::<UInt64Type>(), i128::from);
                $run
            }
            DataType::Decimal128(..) => {
                let ($values, $wide) = ($array.as_primitive::<Decimal128Type>(), i128::from);
                $run
            }
            other => return internal_err!("cannot sum {other} exactly"),
        }
    };
}

/// Sum of the values of an array that are not NULL; `None` if it is beyond 128 bits.
fn sum_of<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    wide: impl Fn(T::Native) -> i128,
) -> Option<i128> {
    let add = |sum: i128, value: T::Native| sum.checked_add(wide(value));
    match array.null_count() {
        0 => array.values().iter().copied().try_fold(0, add),
        _ => array.iter().flatten().try_fold(0, add),
    }
}

/// Converts sums to their type; fails if one is beyond its range. Where `nulls` has a NULL, the sum
/// is 0.
fn given_out(sums: Vec<i128>, nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    let error = || beyond(data_type);
    Ok(match data_type {
        DataType::Int64 => {
            let sums: Result<Vec<i64>, _> = sums.into_iter().map(i64::try_from).collect();
            Arc::new(Int64Array::try_new(sums.map_err(|_| error())?.into(), nulls)?)
        }
        DataType::UInt64 => {
            let sums: Result<Vec<u64>, _> = sums.into_iter().map(u64::try_from).collect();
            Arc::new(UInt64Array::try_new(sums.map_err(|_| error())?.into(), nulls)?)
        }
        DataType::Decimal128(precision, scale) => {
            let sums = Decimal128Array::try_new(sums.into(), nulls)?;
            let sums = sums.with_precision_and_scale(*precision, *scale)?;
            sums.validate_decimal_precision(*precision).map_err(|_| error())?;
            Arc::new(sums)
        }
        other => return internal_err!("cannot sum {other} exactly"),
    })
}

/// Converts partial sums to their type. They are not checked: others may bring them back into
/// range.
fn partial(sums: Vec<i128>, nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    let sums = Decimal128Array::try_new(sums.into(), nulls)?;
    Ok(Arc::new(sums.with_data_type(state_type(data_type))))
}

/// A single sum, NULL if it has no values.
fn alone(sum: Option<i128>) -> (Vec<i128>, Option<NullBuffer>) {
    (vec![sum.unwrap_or(0)], sum.is_none().then(|| NullBuffer::new_null(1)))
}

fn first(arrays: &[ArrayRef]) -> Result<&ArrayRef> {
    match arrays {
        [array] => Ok(array),
        _ => internal_err!("sum has one argument and one state"),
    }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type();
        match (is_exact(data_type), args.is_distinct) {
            (false, _) => self.inner.accumulator(args),
            (true, false) => Ok(Box::new(ExactSum { data_type: data_type.clone(), sum: 0, count: 0 })),
            (true, true) => {
                Ok(Box::new(DistinctSum { data_type: data_type.clone(), values: HashSet::new() }))
            }
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match is_exact(args.return_field.data_type()) && !args.is_distinct {
            true => self.accumulator(args),
            false => self.inner.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !is_exact(args.return_type()) {
            return self.inner.state_fields(args);
        }
        let state = state_type(args.return_type());
        let field = match args.is_distinct {
            true => {
                let items = Field::new_list_field(state, true);
                Field::new_list(format_state_name(args.name, "sum distinct"), items, false)
            }
            false => Field::new(format_state_name(args.name, "sum"), state, true),
        };
        Ok(vec![Arc::new(field)])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = args.return_field.data_type();
        match is_exact(data_type) {
            true => Ok(Box::new(ExactSums::new(data_type.clone()))),
            false => self.inner.create_groups_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.set_monotonicity(data_type)
    }
}

/// Accumulator of one sum.
#[derive(Debug)]
struct ExactSum {
    data_type: DataType,
    sum: i128,
    /// Number of values in the sum; without any, the sum is NULL.
    count: u64,
}

impl ExactSum {
    fn sum(&self) -> (Vec<i128>, Option<NullBuffer>) {
        alone((self.count > 0).then_some(self.sum))
    }
}

impl Accumulator for ExactSum {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        let array = first(arrays)?;
        let sum = with_values!(array, |values, wide| sum_of(values, wide));
        self.sum = sum.and_then(|sum| self.sum.checked_add(sum)).ok_or_else(|| beyond(&self.data_type))?;
        self.count += (array.len() - array.null_count()) as u64;
        Ok(())
    }

    fn retract_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        let array = first(arrays)?;
        let sum = with_values!(array, |values, wide| sum_of(values, wide));
        self.sum = sum.and_then(|sum| self.sum.checked_sub(sum)).ok_or_else(|| beyond(&self.data_type))?;
        self.count = self.count.saturating_sub((array.len() - array.null_count()) as u64);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (sum, nulls) = self.sum();
        ScalarValue::try_from_array(&given_out(sum, nulls, &self.data_type)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (sum, nulls) = self.sum();
        Ok(vec![ScalarValue::try_from_array(&partial(sum, nulls, &self.data_type)?, 0)?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// Accumulator of the sum of distinct values.
#[derive(Debug)]
struct DistinctSum {
    data_type: DataType,
    values: HashSet<i128>,
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        let array = first(arrays)?;
        with_values!(array, |values, wide| self.values.extend(values.iter().flatten().map(wide)));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in first(states)?.as_list::<i32>().iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum: Option<i128> = None;
        for value in &self.values {
            sum = Some(sum.unwrap_or(0).checked_add(*value).ok_or_else(|| beyond(&self.data_type))?);
        }
        let (sum, nulls) = alone(sum);
        ScalarValue::try_from_array(&given_out(sum, nulls, &self.data_type)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = partial(self.values.iter().copied().collect(), None, &self.data_type)?;
        let values = (0..values.len()).map(|row| ScalarValue::try_from_array(&values, row));
        let values = values.collect::<Result<Vec<_>>>()?;
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &state_type(&self.data_type)))])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<i128>()
    }
}

/// Accumulator of the sums of many groups.
#[derive(Debug)]
struct ExactSums {
    data_type: DataType,
    /// Sum of each group, 0 before its first value.
    sums: Vec<i128>,
    /// Groups with a value; the sum of the others is NULL.
    seen: NullState,
}

impl ExactSums {
    fn new(data_type: DataType) -> Self {
        Self { data_type, sums: Vec::new(), seen: NullState::new() }
    }
}

impl GroupsAccumulator for ExactSums {
    fn update_batch(
        &mut self,
        arrays: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.sums.resize(total, 0);
        let sums = self.sums.as_mut_slice();
        let mut overflows = false;
        let array = first(arrays)?;
        with_values!(array, |values, wide| {
            let add = |group: usize, value| {
                if let Some(sum) = sums.get_mut(group) {
                    let (added, overflow) = sum.overflowing_add(wide(value));
                    *sum = added;
                    overflows |= overflow;
                }
            };
            self.seen.accumulate(groups, values, filter, total, add);
        });
        if overflows { Err(beyond(&self.data_type)) } else { Ok(()) }
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        given_out(emit_to.take_needed(&mut self.sums), self.seen.build(emit_to), &self.data_type)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![partial(emit_to.take_needed(&mut self.sums), self.seen.build(emit_to), &self.data_type)?])
    }

    fn convert_to_state(&self, arrays: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let array = first(arrays)?;
        let nulls = filtered_null_mask(filter, array);
        let sums = with_values!(array, |values, wide| values.values().iter().copied().map(wide).collect());
        Ok(vec![partial(sums, nulls, &self.data_type)?])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.seen.size()
    }
}

#[cfg(test)]
#[path = "checked_sum_tests.rs"]
mod tests;
