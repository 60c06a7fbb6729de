//! Functions whose values can be of any size, with a limit on it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::kernels::length::length;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DataType, FieldRef, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::functions::{string, unicode};
use datafusion::functions_nested::range::{gen_series_udf, range_udf};
use datafusion::functions_nested::repeat::array_repeat_udf;
use datafusion::functions_nested::resize::array_resize_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::query::limits::LimitExceeded;
use evenkeel_model::units::ByteSize;

/// Greatest size of the values that one call of a function computes for a batch of rows.
const MAX_BYTES: u64 = 1 << 30;

/// Nanoseconds of a day, and the least number of days of a month.
const DAY_NANOS: i128 = 86_400_000_000_000;
const DAYS_OF_A_MONTH: i128 = 28;

/// Returns the functions, which replace DataFusion's.
///
/// `range(0, 1000000000000)` is 8 TB. DataFusion computes it in one piece, without reserving
/// memory, even while it plans a query, when nothing can end it.
pub(in crate::query) fn bounded_functions() -> impl Iterator<Item = ScalarUDF> {
    let all: [(Arc<ScalarUDF>, Estimate); 7] = [
        (range_udf(), elements_of_range),
        (gen_series_udf(), elements_of_range),
        (array_repeat_udf(), |args| repeated(args, 0, 1)),
        (array_resize_udf(), |args| repeated(args, 2, 1)),
        (string::repeat(), |args| repeated(args, 0, 1)),
        (unicode::lpad(), |args| repeated(args, 2, 1)),
        (unicode::rpad(), |args| repeated(args, 2, 1)),
    ];
    all.into_iter()
        .map(|(inner, estimate)| ScalarUDF::new_from_impl(Bounded { inner, estimate: Bytes(estimate) }))
}

/// Size of the values of a call, about.
type Estimate = fn(&[ArrayRef]) -> Option<u128>;

#[derive(Debug, Clone, Copy)]
struct Bytes(Estimate);

/// One of DataFusion's functions, which is called once its values are known to be small enough.
#[derive(Debug)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    estimate: Bytes,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl std::hash::Hash for Bounded {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args.args.iter().map(|arg| match arg {
            ColumnarValue::Array(array) => Ok(Arc::clone(array)),
            // A constant is one row, which the estimates read for each of the others.
            ColumnarValue::Scalar(value) => value.to_array(),
        });
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let Bytes(estimate) = self.estimate;
        let bytes = estimate(&arrays).unwrap_or(0);
        if bytes > u128::from(MAX_BYTES) {
            return Err(DataFusionError::External(Box::new(LimitExceeded::Values {
                function: self.name().to_owned(),
                limit: ByteSize(MAX_BYTES),
                demanded: ByteSize(u64::try_from(bytes).unwrap_or(u64::MAX)),
            })));
        }
        self.inner.invoke_with_args(args)
    }
}

/// Value of a row, or of the only row of a constant.
fn at(array: &Int64Array, row: usize) -> Option<i128> {
    let row = if array.len() == 1 { 0 } else { row };
    (row < array.len() && array.is_valid(row)).then(|| i128::from(array.value(row)))
}

fn whole_numbers(array: &ArrayRef) -> Option<Int64Array> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let numbers = cast_with_options(array, &DataType::Int64, &options).ok()?;
    numbers.as_primitive_opt::<Int64Type>().cloned()
}

/// Bytes of the values at `argument`, each as often as the number at `times` says.
fn repeated(arguments: &[ArrayRef], argument: usize, times: usize) -> Option<u128> {
    let times = whole_numbers(arguments.get(times)?)?;
    let rows = arguments.iter().map(|array| array.len()).max()?;
    let sizes: Option<Int64Array> = match arguments.get(argument) {
        Some(values) if values.data_type().is_string() => {
            let lengths = cast(values, &DataType::Utf8).and_then(|texts| length(&texts)).ok();
            let lengths = lengths.as_ref().and_then(|lengths| lengths.as_primitive_opt::<Int32Type>());
            lengths.map(|lengths| lengths.unary::<_, Int64Type>(i64::from))
        }
        Some(values) => {
            let each = values.get_array_memory_size() / values.len().max(1);
            Some(Int64Array::from(vec![i64::try_from(each).unwrap_or(i64::MAX)]))
        }
        None => Some(Int64Array::from(vec![1])),
    };
    let sizes = sizes?;
    let of_row =
        |row| Some((at(&times, row)?.max(0) as u128).saturating_mul(at(&sizes, row)?.max(1) as u128));
    Some((0..rows).filter_map(of_row).fold(0, u128::saturating_add))
}

/// Bytes of the lists of `range(stop)` and `range(start, stop[, step])`.
fn elements_of_range(arguments: &[ArrayRef]) -> Option<u128> {
    let (start, stop) = match arguments {
        [stop] => (None, stop),
        [start, stop, ..] => (Some(start), stop),
        [] => return None,
    };
    let rows = arguments.iter().map(|array| array.len()).max()?;
    // Times are counted in nanoseconds, as DataFusion returns them.
    let in_units = |array: &ArrayRef| match array.data_type() {
        DataType::Int64 | DataType::Null => whole_numbers(array),
        DataType::Date32 | DataType::Date64 => whole_numbers(&cast(array, &DataType::Date32).ok()?),
        _ => whole_numbers(&cast(array, &DataType::Timestamp(TimeUnit::Nanosecond, None)).ok()?),
    };
    let (start, stop) = (start.map(in_units), in_units(stop)?);
    let unit = match arguments.first()?.data_type() {
        DataType::Date32 | DataType::Date64 => DAY_NANOS,
        _ => 1,
    };
    let steps = match arguments.get(2) {
        Some(steps) if steps.data_type().is_integer() => Some(whole_numbers(steps)?),
        Some(steps) => {
            let steps = cast(steps, &DataType::Interval(IntervalUnit::MonthDayNano)).ok()?;
            let nanos = steps.as_primitive_opt::<IntervalMonthDayNanoType>()?.unary::<_, Int64Type>(|step| {
                let days = i128::from(step.months) * DAYS_OF_A_MONTH + i128::from(step.days);
                let nanos = (days * DAY_NANOS + i128::from(step.nanoseconds)) / unit;
                i64::try_from(nanos).unwrap_or(i64::MAX)
            });
            Some(nanos)
        }
        None => None,
    };
    let of_row = |row| {
        let from = start.as_ref().map_or(Some(0), |start| at(start.as_ref()?, row))?;
        let step = steps.as_ref().map_or(Some(1), |steps| at(steps, row))?.unsigned_abs().max(1);
        Some((at(&stop, row)? - from).unsigned_abs() / step * 8)
    };
    Some((0..rows).filter_map(of_row).fold(0, u128::saturating_add))
}

#[cfg(test)]
mod tests {
    use arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn run(expression: &str, is_bounded: bool) -> Result<String> {
        let context = SessionContext::new();
        if is_bounded {
            bounded_functions().for_each(|function| context.register_udf(function));
        }
        let sql =
            format!("SELECT {expression} AS v FROM (VALUES (1, 'ab'), (3, NULL), (NULL, 'ä')) AS t(n, s)");
        let batches = context.sql(&sql).await?.collect().await?;
        Ok(pretty_format_batches(&batches)?.to_string())
    }

    #[tokio::test]
    async fn values_of_any_size_are_refused_before_they_are_made() {
        for expression in [
            "range(0, 1000000000000)",
            "range(200000000)",
            "generate_series(n, 1000000000000)",
            "generate_series(1, 9223372036854775807, n)",
            "range(9223372036854775807, -9223372036854775807, -1)",
            "range(TIMESTAMP '1970-01-01', TIMESTAMP '2070-01-01', INTERVAL '1 microsecond')",
            "repeat('abc', 1000000000)",
            "repeat(s, 1000000000)",
            "lpad(s, 2000000000)",
            "rpad('a', 2000000000, s)",
            "array_repeat(n, 1000000000)",
            "array_repeat(range(1000), 10000000)",
            "array_resize(make_array(n), 1000000000)",
        ] {
            let error = run(expression, true).await.map_err(|error| error.find_root().to_string());
            assert!(
                error.as_ref().is_err_and(|error| error.contains("would need")),
                "{expression}: {error:?}"
            );
        }
    }

    #[tokio::test]
    async fn smaller_values_are_those_of_datafusion() {
        for expression in [
            "range(n)",
            "range(n, 10, 2)",
            "generate_series(10, n, -3)",
            "generate_series(DATE '2026-01-01', DATE '2026-03-01', INTERVAL '1 month')",
            "range(TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-02', INTERVAL '8 hours')",
            "repeat(s, n)",
            "repeat('x', -1)",
            "lpad(s, 5, 'xy')",
            "rpad(s, n)",
            "array_repeat(s, 2)",
            "array_resize(make_array(n, 2), 3, 7)",
            "range(NULL, 3)",
        ] {
            assert_eq!(
                run(expression, true).await.unwrap(),
                run(expression, false).await.unwrap(),
                "{expression}"
            );
        }
    }
}
