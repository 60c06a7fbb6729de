//! Parameters of queries, from values of Python.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};
use datafusion::common::ScalarValue;
use evenkeel::query::Params;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyString, PyTime,
};

use crate::errors::usage;

/// Maximum number of digits of a decimal parameter.
const DIGITS: u8 = 38;

/// Converts `{name: value}`.
pub(crate) fn params(given: Option<&Bound<'_, PyDict>>) -> PyResult<Params> {
    let mut params = Params::default();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        let value = scalar(&name, &value)?;
        params = params.with_value(&name, value);
    }
    Ok(params)
}

fn scalar(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    // A truth value is also a number, and a point in time also a date.
    let kind = value.get_type().name()?.to_string();
    if value.is_none() || matches!(kind.as_str(), "NAType" | "NaTType") {
        Ok(ScalarValue::Null)
    } else if value.is_instance_of::<PyBool>() {
        Ok(ScalarValue::Boolean(Some(value.extract()?)))
    } else if value.is_instance_of::<PyInt>() {
        whole_number(name, value)
    } else if value.is_instance_of::<PyFloat>() {
        Ok(ScalarValue::Float64(Some(value.extract()?)))
    } else if value.is_instance_of::<PyString>() {
        Ok(ScalarValue::Utf8(Some(value.extract()?)))
    } else if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        Ok(ScalarValue::Binary(Some(value.extract()?)))
    } else if matches!(kind.as_str(), "datetime64" | "timedelta64") {
        of_numpy(name, value, &kind)
    } else if value.is_instance_of::<PyDateTime>() {
        if value.hasattr("nanosecond")? && value.getattr("nanosecond")?.extract::<u32>()? > 0 {
            return Err(too_fine(name, value));
        }
        instant(value)
    } else if value.is_instance_of::<PyDate>() {
        let days = value.extract::<NaiveDate>()?.signed_duration_since(NaiveDate::default()).num_days();
        Ok(ScalarValue::Date32(i32::try_from(days).ok()))
    } else if value.is_instance_of::<PyTime>() {
        if !value.getattr("tzinfo")?.is_none() {
            return Err(usage(
                value.py(),
                format!("parameter {name}: a time of day with a zone is no point in time"),
            ));
        }
        let time: NaiveTime = value.extract()?;
        let micros =
            i64::from(time.num_seconds_from_midnight()) * 1_000_000 + i64::from(time.nanosecond() / 1000);
        Ok(ScalarValue::Time64Microsecond(Some(micros)))
    } else if value.is_instance_of::<PyDelta>() {
        if value.hasattr("nanoseconds")? && value.getattr("nanoseconds")?.extract::<i64>()? != 0 {
            return Err(too_fine(name, value));
        }
        match value.extract::<chrono::TimeDelta>()?.num_microseconds() {
            Some(micros) => Ok(ScalarValue::DurationMicrosecond(Some(micros))),
            None => Err(usage(value.py(), format!("parameter {name}: {value} is too long"))),
        }
    } else if value.hasattr("as_tuple")? {
        decimal(name, value)
    } else if let Some(plain) = scalar_of_numpy(value)? {
        scalar(name, &plain)
    } else {
        Err(usage(value.py(), format!("parameter {name}: a value of type {kind} cannot be a parameter")))
    }
}

fn too_fine(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    usage(value.py(), format!("parameter {name}: {value} is finer than microseconds"))
}

/// Returns the plain value of a scalar of numpy; `None` for anything else.
fn scalar_of_numpy<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !value.hasattr("item")? || !value.hasattr("shape")? || value.getattr("shape")?.len()? > 0 {
        return Ok(None);
    }
    let plain = value.call_method0("item")?;
    // Some have no plain value and return themselves.
    Ok((!plain.get_type().is(value.get_type())).then_some(plain))
}

/// A time of numpy, of any unit.
fn of_numpy(name: &str, value: &Bound<'_, PyAny>, kind: &str) -> PyResult<ScalarValue> {
    let micros = value.call_method1("astype", (format!("{kind}[us]"),))?;
    if value.py().import("numpy")?.call_method1("isnat", (&micros,))?.is_truthy()? {
        return Ok(ScalarValue::Null);
    }
    if !micros.eq(value)? {
        return Err(too_fine(name, value));
    }
    let plain = micros.call_method0("item")?;
    if plain.is_instance_of::<PyInt>() {
        return Err(usage(value.py(), format!("parameter {name}: {value} is out of range")));
    }
    scalar(name, &plain)
}

fn whole_number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if let Ok(number) = value.extract::<i64>() {
        return Ok(ScalarValue::Int64(Some(number)));
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(ScalarValue::UInt64(Some(number)));
    }
    decimal(name, value)
}

/// A time without a zone is taken as it is, and one with a zone as the instant.
fn instant(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if value.getattr("tzinfo")?.is_none() {
        let time: NaiveDateTime = value.extract()?;
        return Ok(ScalarValue::TimestampMicrosecond(Some(time.and_utc().timestamp_micros()), None));
    }
    // The offset of any zone, by Python's own rules.
    let utc = value.py().import("datetime")?.getattr("timezone")?.getattr("utc")?;
    let time: DateTime<Utc> = value.call_method1("astimezone", (utc,))?.extract()?;
    Ok(ScalarValue::TimestampMicrosecond(Some(time.timestamp_micros()), Some("UTC".into())))
}

fn decimal(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let text = match value.is_instance_of::<PyInt>() {
        true => value.str()?.to_string(),
        false => value.call_method1("__format__", ("f",))?.extract::<String>()?,
    };
    let wrong =
        || usage(value.py(), format!("parameter {name}: {text} is no decimal of at most {DIGITS} digits"));
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{fraction}");
    let scale = i8::try_from(fraction.len()).ok().filter(|scale| *scale <= DIGITS as i8).ok_or_else(wrong)?;
    let number: i128 = digits.parse().map_err(|_| wrong())?;
    if number.unsigned_abs() >= 10u128.pow(DIGITS.into()) {
        return Err(wrong());
    }
    Ok(ScalarValue::Decimal128(Some(number), DIGITS, scale))
}
