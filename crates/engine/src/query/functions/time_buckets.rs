//! `date_bin` and `date_trunc` of times in any year.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, FieldRef, IntervalMonthDayNanoType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampSecondType,
};
use chrono::{Datelike, NaiveDate};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions::datetime;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::query::out_of_range::OutOfRange;

/// Returns `date_bin` and `date_trunc`, which replace DataFusion's.
///
/// DataFusion 55 computes both in nanoseconds, which end in 2262: `date_bin` of a later time is
/// NULL, and wrong if the origin is more than 292 years away; `date_trunc` fails.
pub(in crate::query) fn time_buckets() -> impl Iterator<Item = ScalarUDF> {
    [datetime::date_bin(), datetime::date_trunc()]
        .into_iter()
        .map(|inner| ScalarUDF::new_from_impl(TimeBucket { inner }))
}

/// One of DataFusion's functions, which still computes values with nanoseconds or a time zone.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeBucket {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for TimeBucket {
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

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(times) = args.args.get(1).cloned() else { return self.inner.invoke_with_args(args) };
        let bucket = match times.data_type() {
            DataType::Timestamp(unit, None) => match self.name() {
                "date_bin" => Bucket::from_stride(&args.args, unit),
                _ => Bucket::from_granularity(&args.args, unit),
            },
            _ => None,
        };
        let Some(bucket) = bucket else {
            let result = self.inner.invoke_with_args(args)?;
            return if nulls(&result) > nulls(&times) {
                Err(OutOfRange::Time { function: self.name().to_owned() }.into())
            } else {
                Ok(result)
            };
        };
        Ok(match times {
            ColumnarValue::Array(times) => ColumnarValue::Array(bucket.starts(&times)?),
            ColumnarValue::Scalar(time) => {
                let start = bucket.starts(&time.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&start, 0)?)
            }
        })
    }
}

fn nulls(values: &ColumnarValue) -> usize {
    match values {
        ColumnarValue::Array(array) => array.null_count(),
        ColumnarValue::Scalar(value) => usize::from(value.is_null()),
    }
}

/// Spans of time that follow one another, for times that count ticks.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    span: Span,
    ticks_per_second: i64,
}

#[derive(Debug, Clone, Copy)]
enum Span {
    /// Ticks, counted from an origin.
    Ticks { length: i64, origin: i64 },
    /// Months, counted from January 1970.
    Months(i64),
}

const DAY_SECONDS: i64 = 86_400;
/// Days from 1970-01-01 to the first Monday.
const MONDAY: i64 = 4;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Ticks of a second; `None` for nanoseconds, which have no other years than DataFusion computes.
fn ticks_per_second(unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Second => Some(1),
        TimeUnit::Millisecond => Some(1_000),
        TimeUnit::Microsecond => Some(1_000_000),
        TimeUnit::Nanosecond => None,
    }
}

impl Bucket {
    /// Spans of `date_bin(stride, time[, origin])`, if they consist of whole ticks or months.
    fn from_stride(arguments: &[ColumnarValue], unit: TimeUnit) -> Option<Self> {
        let ticks_per_second = ticks_per_second(unit)?;
        let ColumnarValue::Scalar(stride) = arguments.first()? else { return None };
        let stride =
            cast(&stride.to_array().ok()?, &DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano));
        let stride = stride.ok()?;
        let stride =
            stride.as_primitive_opt::<IntervalMonthDayNanoType>().filter(|stride| stride.is_valid(0))?;
        let stride = stride.value(0);
        let origin = match arguments.get(2) {
            Some(ColumnarValue::Scalar(origin)) => ticks(origin, ticks_per_second)?,
            Some(ColumnarValue::Array(_)) => return None,
            None => 0,
        };
        let span = match (i64::from(stride.months), i64::from(stride.days), stride.nanoseconds) {
            (months @ 1.., 0, 0) if origin == 0 => Span::Months(months),
            (0, days, nanos) => {
                let nanos_per_tick = NANOS_PER_SECOND / ticks_per_second;
                let ticks = (nanos % nanos_per_tick == 0).then_some(nanos / nanos_per_tick)?;
                let length = days.checked_mul(DAY_SECONDS * ticks_per_second)?.checked_add(ticks)?;
                (length > 0).then_some(Span::Ticks { length, origin })?
            }
            _ => return None,
        };
        Some(Self { span, ticks_per_second })
    }

    /// Spans of `date_trunc(granularity, time)`.
    fn from_granularity(arguments: &[ColumnarValue], unit: TimeUnit) -> Option<Self> {
        let ticks_per_second = ticks_per_second(unit)?;
        let ColumnarValue::Scalar(granularity) = arguments.first()? else { return None };
        let ticks = |seconds: i64| Span::Ticks { length: seconds * ticks_per_second, origin: 0 };
        let week = Span::Ticks {
            length: 7 * DAY_SECONDS * ticks_per_second,
            origin: MONDAY * DAY_SECONDS * ticks_per_second,
        };
        let span = match granularity.try_as_str()??.to_ascii_lowercase().as_str() {
            "second" => ticks(1),
            "minute" => ticks(60),
            "hour" => ticks(3_600),
            "day" => ticks(DAY_SECONDS),
            "week" => week,
            "month" => Span::Months(1),
            "quarter" => Span::Months(3),
            "year" => Span::Months(12),
            _ => return None,
        };
        Some(Self { span, ticks_per_second })
    }

    /// Returns the start of the span of each time.
    fn starts(self, times: &ArrayRef) -> Result<ArrayRef> {
        match times.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => self.each::<TimestampSecondType>(times),
            DataType::Timestamp(TimeUnit::Millisecond, _) => self.each::<TimestampMillisecondType>(times),
            _ => self.each::<TimestampMicrosecondType>(times),
        }
    }

    fn each<T: ArrowPrimitiveType<Native = i64>>(self, times: &ArrayRef) -> Result<ArrayRef> {
        let start = |tick| {
            let start = self.start(tick);
            start.ok_or_else(|| DataFusionError::from(OutOfRange::Bucket))
        };
        let starts: PrimitiveArray<T> = times.as_primitive::<T>().try_unary(start)?;
        Ok(Arc::new(starts))
    }

    fn start(self, tick: i64) -> Option<i64> {
        match self.span {
            Span::Ticks { length, origin } => tick.checked_sub(tick.checked_sub(origin)?.rem_euclid(length)),
            Span::Months(months) => {
                let day = tick.div_euclid(DAY_SECONDS * self.ticks_per_second);
                let date = NaiveDate::from_epoch_days(i32::try_from(day).ok()?)?;
                let month = i64::from(date.year() - 1970) * 12 + i64::from(date.month0());
                let month = month - month.rem_euclid(months);
                let year = i32::try_from(1970 + month.div_euclid(12)).ok()?;
                let first = NaiveDate::from_ymd_opt(year, u32::try_from(month.rem_euclid(12)).ok()? + 1, 1)?;
                i64::from(first.to_epoch_days()).checked_mul(DAY_SECONDS * self.ticks_per_second)
            }
        }
    }
}

/// Ticks of a time without a zone or in UTC, if it has a whole number of them.
fn ticks(time: &ScalarValue, ticks_per_second: i64) -> Option<i64> {
    let (value, per_second, zone) = match time {
        ScalarValue::TimestampSecond(value, zone) => (*value, 1, zone),
        ScalarValue::TimestampMillisecond(value, zone) => (*value, 1_000, zone),
        ScalarValue::TimestampMicrosecond(value, zone) => (*value, 1_000_000, zone),
        ScalarValue::TimestampNanosecond(value, zone) => (*value, NANOS_PER_SECOND, zone),
        _ => return None,
    };
    let is_utc = zone.as_deref().is_none_or(|zone| zone == "UTC" || zone == "+00:00");
    let ticks = i128::from(value?) * i128::from(ticks_per_second);
    let is_whole = ticks % i128::from(per_second) == 0;
    if is_utc && is_whole { i64::try_from(ticks / i128::from(per_second)).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use arrow::array::RecordBatch;
    use arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::SessionContext;
    use proptest::prelude::*;

    use super::*;

    async fn run(sql: &str, is_ours: bool) -> Result<Vec<RecordBatch>> {
        let context = SessionContext::new();
        if is_ours {
            time_buckets().for_each(|function| context.register_udf(function));
        }
        context.sql(sql).await?.collect().await
    }

    async fn value(expression: &str) -> String {
        let batches = run(&format!("SELECT CAST({expression} AS VARCHAR)"), true).await.unwrap();
        batches[0].column(0).as_string_view().value(0).to_owned()
    }

    #[tokio::test]
    async fn times_of_any_year_have_buckets() {
        let late = "CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6))";
        let early = "CAST('0001-01-03 05:06:07' AS TIMESTAMP(0))";
        for (expression, expected) in [
            (format!("date_bin(INTERVAL '1 hour', {late})"), "9999-12-31T23:00:00"),
            (format!("date_bin(INTERVAL '1 month', {late})"), "9999-12-01T00:00:00"),
            (format!("date_bin(INTERVAL '1 day', {early})"), "0001-01-03T00:00:00"),
            (
                format!("date_bin(INTERVAL '7 days', {late}, TIMESTAMP '2001-01-01 12:00:00')"),
                "9999-12-27T12:00:00",
            ),
            (format!("date_trunc('year', {late})"), "9999-01-01T00:00:00"),
            (format!("date_trunc('week', {late})"), "9999-12-27T00:00:00"),
            (format!("date_trunc('quarter', {early})"), "0001-01-01T00:00:00"),
            (format!("date_trunc('MINUTE', {early})"), "0001-01-03T05:06:00"),
        ] {
            assert_eq!(value(&expression).await, expected, "{expression}");
        }
        let zoned = format!("SELECT date_bin(INTERVAL '1 hour', {late} AT TIME ZONE 'UTC')");
        assert!(run(&zoned, true).await.is_err(), "DataFusion computes times with a zone");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn times_of_the_years_of_datafusion_have_its_buckets(
            micros in prop::collection::vec(-8_200_000_000_000_000i64..9_000_000_000_000_000, 8),
            count in 1..50u32,
            unit in prop::sample::select(vec!["microsecond", "second", "minute", "hour", "day", "week", "month"]),
            precision in prop::sample::select(vec!["second", "minute", "hour", "day", "week", "month", "quarter", "year"]),
            digits in prop::sample::select(vec![0, 3, 6]),
            origin in prop::sample::select(vec!["", ", TIMESTAMP '2001-02-03 04:05:06'"]),
        ) {
            let values: Vec<String> = micros.iter().map(|micros| format!("({micros})")).collect();
            let time = format!("CAST(CAST(us AS TIMESTAMP(6)) AS TIMESTAMP({digits}))");
            let sql = format!(
                "SELECT date_bin(INTERVAL '{count} {unit}', {time}{origin}), date_trunc('{precision}', {time}) \
                 FROM (VALUES {}, (NULL)) AS v(us)",
                values.join(", ")
            );
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let [ours, theirs] = [true, false].map(|is_ours| {
                let batches = runtime.block_on(run(&sql, is_ours)).unwrap();
                pretty_format_batches(&batches).unwrap().to_string()
            });
            prop_assert_eq!(ours, theirs, "{}", sql);
        }
    }
}
