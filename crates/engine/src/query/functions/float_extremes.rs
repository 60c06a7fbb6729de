//! `min` and `max` of groups of floating-point numbers, independent of the order of their rows.
//!
//! For groups, DataFusion 55 lets a NaN replace any number and any number replace a NaN, so the
//! last of them decides. It also begins with the largest finite number, which a single infinity in
//! a group does not replace. Without groups, it compares by the total order of IEEE 754, in which
//! NaN is above infinity. These functions do the same for groups: they compare integers with the
//! same order as the floats.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use crate::query::functions::nested_extremes::{End, NestedExtreme, NestedExtremes, is_compared_as_row};

/// Returns `min` and `max`, to be registered instead of DataFusion's.
pub(in crate::query) fn extremes() -> impl Iterator<Item = AggregateUDF> {
    [min_udaf(), max_udaf()].into_iter().map(|plain| AggregateUDF::from(Extreme { plain }))
}

/// One of DataFusion's functions, with special accumulators for groups of floats, and for structs
/// and lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Extreme {
    plain: Arc<AggregateUDF>,
}

impl Extreme {
    fn end(&self) -> End {
        if self.plain.name() == "min" { End::Least } else { End::Greatest }
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn aliases(&self) -> &[String] {
        self.plain.aliases()
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.plain.return_type(arg_types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type();
        match is_compared_as_row(data_type) {
            true => Ok(Box::new(NestedExtreme::new(data_type, self.end(), false)?)),
            false => self.plain.accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.plain.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        is_compared_as_row(args.return_field.data_type()) || self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = args.return_field.data_type().clone();
        if is_compared_as_row(&data_type) {
            return Ok(Box::new(NestedExtremes::new(&data_type, self.end())?));
        }
        if !data_type.is_floating() {
            return self.plain.create_groups_accumulator(args);
        }
        let ranks = Arc::new(Field::new(args.return_field.name(), DataType::Int64, true));
        let ranks = self.plain.create_groups_accumulator(AccumulatorArgs { return_field: ranks, ..args })?;
        Ok(Box::new(FloatExtremes { ranks, data_type }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type();
        match is_compared_as_row(data_type) {
            true => Ok(Box::new(NestedExtreme::new(data_type, self.end(), true)?)),
            false => self.plain.create_sliding_accumulator(args),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.plain.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.plain.reverse_udf()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.plain.coerce_types(arg_types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.plain.is_descending()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs) -> Option<ScalarValue> {
        self.plain.value_from_stats(statistics)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.plain.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.plain.inner().set_monotonicity(data_type)
    }
}

/// Extremes of floats for each group, kept as ranks.
struct FloatExtremes {
    ranks: Box<dyn GroupsAccumulator>,
    data_type: DataType,
}

impl FloatExtremes {
    fn to_floats(&self, ranks: &ArrayRef) -> Result<ArrayRef> {
        let floats: Float64Array = ranks.as_primitive::<Int64Type>().unary(float_of);
        Ok(cast(&floats, &self.data_type)?)
    }
}

/// Converts floats to integers that sort as the floats do by their total order.
fn to_ranks(floats: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let ranks = floats.iter().map(|floats| {
        let floats = cast(floats, &DataType::Float64)?;
        let ranks: Int64Array = floats.as_primitive::<Float64Type>().unary(rank_of);
        Ok(Arc::new(ranks) as ArrayRef)
    });
    ranks.collect()
}

/// Rank as `f64::total_cmp` defines it: all bits of a negative number but the sign are inverted.
fn rank_of(float: f64) -> i64 {
    let bits = float.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

fn float_of(rank: i64) -> f64 {
    f64::from_bits((rank ^ ((rank >> 63).cast_unsigned() >> 1).cast_signed()).cast_unsigned())
}

impl GroupsAccumulator for FloatExtremes {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.ranks.update_batch(&to_ranks(values)?, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let ranks = self.ranks.evaluate(emit_to)?;
        self.to_floats(&ranks)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let ranks = self.ranks.state(emit_to)?;
        ranks.iter().map(|ranks| self.to_floats(ranks)).collect()
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.ranks.merge_batch(&to_ranks(values)?, group_indices, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let ranks = self.ranks.convert_to_state(&to_ranks(values)?, opt_filter)?;
        ranks.iter().map(|ranks| self.to_floats(ranks)).collect()
    }

    fn size(&self) -> usize {
        self.ranks.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_sort_as_floats_do() {
        let floats = [
            -f64::NAN,
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.5,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(floats.windows(2).all(|pair| rank_of(pair[0]) < rank_of(pair[1])));
        assert!(floats.iter().all(|float| float_of(rank_of(*float)).to_bits() == float.to_bits()));
    }
}
