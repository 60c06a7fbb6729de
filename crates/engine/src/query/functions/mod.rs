//! Key transforms and placements as SQL functions.

pub(in crate::query) mod array_has;
pub(in crate::query) mod bounded;
pub(in crate::query) mod float_extremes;
mod nested_extremes;
pub(in crate::query) mod time_buckets;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    WindowUDF,
};

use crate::query::analysis::checked::checked_functions;
use crate::query::analysis::checked_sum::checked_sum;
use crate::query::analysis::drawn_values::is_between;
use crate::query::analysis::later_values::earlier_value;
use crate::query::analysis::nested_comparisons::nested_order;
use crate::query::analysis::opaque_casts::opaque_casts;
use crate::query::analysis::plain_nans::plain_nan;
use crate::query::analysis::truth_tests::truth_functions;
use crate::query::analysis::whole_division::whole_quotient;
use crate::query::functions::array_has::array_has;
use crate::query::functions::bounded::bounded_functions;
use crate::query::functions::float_extremes::extremes;
use crate::query::functions::time_buckets::time_buckets;
use evenkeel_model::table::{ColumnType, PlacementFunction};
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::Placement;
use evenkeel_placement::transform::{bit_reverse, fingerprints, shard_id};

/// Returns `farm_fingerprint(value, ...)`, `bit_reverse(value[, preserve_sign])`, `shard_id(N,
/// value, ...)`, `ydb_partition(N, value, ...)`, the functions that rules insert, and `array_has`,
/// which replaces DataFusion's.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let all = [Function::FarmFingerprint, Function::BitReverse, Function::ShardId, Function::YdbPartition];
    let of_keys = all.into_iter().map(|function| ScalarUDF::new_from_impl(KeyFunction::new(function)));
    let of_rules = checked_functions()
        .chain(opaque_casts())
        .chain(truth_functions())
        .chain([nested_order(), whole_quotient()]);
    let corrected = time_buckets().chain(bounded_functions()).chain([array_has()]);
    of_keys.chain(of_rules).chain(corrected).chain([is_between(), plain_nan()])
}

/// Returns `min`, `max` and `sum`, which replace DataFusion's.
pub fn aggregates() -> impl Iterator<Item = AggregateUDF> {
    extremes().chain([checked_sum()])
}

/// Returns the window functions that rules insert.
pub fn window_functions() -> impl Iterator<Item = WindowUDF> {
    std::iter::once(earlier_value())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Function {
    FarmFingerprint,
    BitReverse,
    ShardId,
    YdbPartition,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeyFunction {
    function: Function,
    signature: Signature,
}

impl KeyFunction {
    fn new(function: Function) -> Self {
        Self { function, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    /// Number of shards or partitions: the first argument, which must be a constant.
    fn count(&self, args: &ScalarFunctionArgs) -> Result<PartitionCount> {
        let name = self.name();
        let Some(ColumnarValue::Scalar(count)) = args.args.first() else {
            return exec_err!("the first argument of {name} is a number of partitions, not a column");
        };
        if !count.data_type().is_integer() {
            return exec_err!("the first argument of {name} is a number of partitions, a whole number");
        }
        let ScalarValue::Int64(Some(count)) = count.cast_to(&DataType::Int64)? else {
            return exec_err!("the first argument of {name} is a number of partitions, not NULL");
        };
        let count = u64::try_from(count)
            .map_err(|_| DataFusionError::Execution(format!("{name}({count}, ...): at least 1")))?;
        PartitionCount::new(count).map_err(|error| DataFusionError::Execution(format!("{name}: {error}")))
    }
}

impl ScalarUDFImpl for KeyFunction {
    fn name(&self) -> &str {
        match self.function {
            Function::FarmFingerprint => "farm_fingerprint",
            Function::BitReverse => "bit_reverse",
            Function::ShardId => "shard_id",
            Function::YdbPartition => "ydb_partition",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let (name, count) = (self.name(), arguments.len());
        match self.function {
            Function::FarmFingerprint if count == 0 => plan_err!("{name} needs a value"),
            Function::BitReverse if !(1..=2).contains(&count) => {
                plan_err!("write {name}(value) or {name}(value, preserve_sign)")
            }
            Function::ShardId | Function::YdbPartition if count < 2 => {
                plan_err!(
                    "write {name}(N, value, ...): the number of partitions, then the columns of the \
                    key"
                )
            }
            _ => Ok(DataType::Int64),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let of_key = arrays.get(1..).unwrap_or_default();
        let result: Int64Array = match self.function {
            Function::FarmFingerprint => fingerprints(&arrays)?,
            Function::BitReverse => reversed(&arrays)?,
            Function::ShardId => {
                let shards = self.count(&args)?.get();
                fingerprints(of_key)?.unary::<_, Int64Type>(|fingerprint| shard_id(fingerprint, shards))
            }
            Function::YdbPartition => {
                let types = of_key.iter().map(|array| ColumnType::from_arrow(array.data_type()));
                let types = types
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|error| DataFusionError::External(Box::new(error)))?;
                let placement = Placement::new(PlacementFunction::Ydb, self.count(&args)?, types);
                let placed =
                    placement.assign(of_key).map_err(|error| DataFusionError::External(Box::new(error)))?;
                placed.into_iter().map(|partition| Some(i64::from(partition.0))).collect()
            }
        };
        let all_scalars = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let result: ArrayRef = Arc::new(result);
        Ok(match all_scalars {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

/// Casts an array; fails if a value does not fit.
fn strict(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, to, &options)?)
}

fn reversed(arrays: &[ArrayRef]) -> Result<Int64Array> {
    let Some(values) = arrays.first() else { return exec_err!("bit_reverse needs a value") };
    let whole = values.data_type().is_integer() || values.data_type() == &DataType::Null;
    if !whole {
        return exec_err!("bit_reverse needs a whole number, not {}", values.data_type());
    }
    let values = strict(values, &DataType::Int64)?;
    let values = values.as_primitive::<Int64Type>();
    let preserve = arrays.get(1).map(|array| strict(array, &DataType::Boolean)).transpose()?;
    let preserve: Option<&BooleanArray> = preserve.as_ref().map(|array| array.as_boolean());
    let of_row = |(row, value): (usize, Option<i64>)| {
        let preserve = match preserve {
            Some(preserve) if preserve.is_null(row) => return None,
            Some(preserve) => preserve.value(row),
            // Spanner sequences are positive.
            None => true,
        };
        value.map(|value| bit_reverse(value, preserve))
    };
    Ok(values.iter().enumerate().map(of_row).collect())
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn run(expression: &str) -> Result<Vec<Option<i64>>> {
        let context = SessionContext::new();
        functions().for_each(|function| context.register_udf(function));
        let sql = format!("SELECT {expression} FROM (VALUES (1, true), (2, false), (NULL, true)) AS v(n, b)");
        let batches = context.sql(&sql).await?.collect().await?;
        let column =
            |batch: &arrow::array::RecordBatch| batch.column(0).as_primitive::<Int64Type>().iter().collect();
        Ok(batches.iter().flat_map(|batch| -> Vec<Option<i64>> { column(batch) }).collect())
    }

    #[tokio::test]
    async fn functions_of_keys_have_the_values_of_their_systems() {
        // The value that YDB has for the key 42 of 64 partitions.
        assert_eq!(run("ydb_partition(64, CAST(42 AS BIGINT UNSIGNED))").await.unwrap(), [Some(45); 3]);
        assert_eq!(run("bit_reverse(n)").await.unwrap(), [Some(1 << 62), Some(1 << 61), None]);
        assert_eq!(run("bit_reverse(n, false)").await.unwrap(), [Some(i64::MIN), Some(1 << 62), None]);
        assert_eq!(run("bit_reverse(n, b)").await.unwrap(), [Some(1 << 62), Some(1 << 62), None]);
        assert_eq!(run("bit_reverse(bit_reverse(n))").await.unwrap(), [Some(1), Some(2), None]);
        let shards = run("shard_id(3, n)").await.unwrap();
        assert!(shards.iter().flatten().all(|shard| (0..3).contains(shard)), "{shards:?}");
        assert_eq!(run("shard_id(1, n)").await.unwrap()[..2], [Some(0), Some(0)]);
        let (column, constant) =
            (run("farm_fingerprint(n)").await.unwrap(), run("farm_fingerprint(2)").await.unwrap());
        assert_eq!(column[1], constant[0]);
        assert_ne!(column[0], column[1]);
    }

    #[tokio::test]
    async fn wrong_arguments_are_refused() {
        for expression in [
            "farm_fingerprint()",
            "bit_reverse()",
            "bit_reverse('a')",
            "bit_reverse(n, true, 1)",
            "shard_id(3)",
            "shard_id(n, n)",
            "shard_id('3', n)",
            "shard_id(NULL, n)",
            "ydb_partition(0, n)",
            "ydb_partition(-1, n)",
            "ydb_partition(64)",
        ] {
            assert!(run(expression).await.is_err(), "{expression}");
        }
    }
}
