//! Parameters of a query: `$name` in SQL, `name=value` outside.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::BinaryArray;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan};
use thiserror::Error;

use evenkeel_model::bounded::{names, quote};
use evenkeel_model::table::ColumnType;
use evenkeel_model::text_value::{TextFormat, parse_text_column};

/// Parameter for the present: a point in time, by default the newest one in the table.
pub const NOW: &str = "now";

/// Type assumed for parameters that a statement does not type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Untyped {
    /// Whole numbers.
    Numbers,
    /// Points in time.
    Times,
}

/// Values of parameters. Those given as text are converted to the types that the query needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params(BTreeMap<String, Given>);

/// Value of a parameter as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Given {
    Text(String),
    Typed(ScalarValue),
}

/// Error in the parameters of a query.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum ParamError {
    #[error("'{found}' is not a parameter; write name=value", found = quote(found))]
    Syntax { found: String },
    #[error("parameter '{name}' is given twice", name = quote(name))]
    Repeated { name: String },
    #[error("the query needs a value for ${name}; give it with --param {name}=VALUE", name = quote(name))]
    Missing { name: String },
    #[error("the query has no parameter ${name}; it has: {}", if known.is_empty() { "none".to_owned() } else { names(known) }, name = quote(name))]
    Unknown { name: String, known: Vec<String> },
    #[error("parameter {name}: '{value}' is not a value of type {data_type}{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default(), name = quote(name), value = quote(value))]
    Value { name: String, value: String, data_type: DataType, reason: Option<String> },
    #[error("the query uses $now, but the table has no column of points in time; give --param now=TIME")]
    NoTime,
}

impl Params {
    /// Reads `name=value` pairs.
    ///
    /// # Errors
    /// [`ParamError`] if a pair has another form or a name is repeated.
    pub fn parse(pairs: &[String]) -> Result<Self, ParamError> {
        let mut params = BTreeMap::new();
        for pair in pairs {
            let (name, value) = pair
                .split_once('=')
                .filter(|(name, _)| !name.trim().is_empty())
                .ok_or_else(|| ParamError::Syntax { found: pair.clone() })?;
            let name = name.trim().trim_start_matches('$').to_owned();
            if params.insert(name.clone(), Given::Text(value.to_owned())).is_some() {
                return Err(ParamError::Repeated { name });
            }
        }
        Ok(Self(params))
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), Given::Text(value.to_owned()));
        self
    }

    /// Adds a parameter whose value has a type already, or is NULL.
    #[must_use]
    pub fn with_value(mut self, name: &str, value: ScalarValue) -> Self {
        self.0.insert(name.to_owned(), Given::Typed(value));
        self
    }

    /// Whether a parameter has a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns only the values of parameters that a statement has, given the types of all of them.
    #[must_use]
    pub(super) fn only(&self, types: &HashMap<String, Option<DataType>>) -> Self {
        let has = |name: &String| types.contains_key(&format!("${name}"));
        Self(self.0.iter().filter(|(name, _)| has(name)).map(|(n, v)| (n.clone(), v.clone())).collect())
    }

    /// Like [`Params::bind`], but invents values for missing parameters: only the kind of condition
    /// matters, not the rows that it matches. Invented times are an hour apart and dates a day, in
    /// the order of the parameters' names; numbers and texts differ, and booleans are all true.
    /// Parameters that the statement does not type are treated as `untyped`.
    ///
    /// # Errors
    /// [`ParamError`] if a given value does not fit.
    pub(super) fn bind_or_invent(
        &self,
        types: &HashMap<String, Option<DataType>>,
        untyped: Untyped,
    ) -> Result<ParamValues, ParamError> {
        let mut names: Vec<&String> = types.keys().collect();
        names.sort_unstable();
        let mut full = Self::default();
        for (number, placeholder) in (1u32..).zip(names) {
            let name = placeholder.trim_start_matches('$');
            let data_type = types.get(placeholder).and_then(Option::as_ref);
            let is_time = matches!(data_type, Some(DataType::Timestamp(_, _)))
                || name == NOW
                || (data_type.is_none() && untyped == Untyped::Times);
            let invented = || match data_type {
                _ if is_time => format!("2026-01-{:02}T{:02}:34:56Z", 10 + number / 24 % 18, number % 24),
                Some(DataType::Date32 | DataType::Date64) => format!("2026-01-{:02}", 10 + number % 18),
                Some(DataType::Boolean) => "true".to_owned(),
                _ => number.to_string(),
            };
            let value = self.0.get(name).cloned().unwrap_or_else(|| Given::Text(invented()));
            full.0.insert(name.to_owned(), value);
        }
        full.bind(types, None)
    }

    /// Returns the values with the types of the plan's parameters. `now` is used if `$now` is not
    /// given.
    ///
    /// # Errors
    /// [`ParamError`] if one is missing, unknown or of another type.
    pub fn bind(
        &self,
        types: &HashMap<String, Option<DataType>>,
        now: Option<ScalarValue>,
    ) -> Result<ParamValues, ParamError> {
        let mut known: Vec<String> =
            types.keys().map(|name| name.trim_start_matches('$').to_owned()).collect();
        known.sort_unstable();
        if let Some(name) = self.0.keys().find(|name| !known.contains(name)) {
            return Err(ParamError::Unknown { name: name.clone(), known });
        }
        let mut values = HashMap::new();
        for (placeholder, data_type) in types {
            let name = placeholder.trim_start_matches('$');
            let value = match (self.0.get(name), name == NOW) {
                (Some(Given::Typed(value)), _) => value.clone(),
                (Some(Given::Text(value)), true) => {
                    typed(name, value, &DataType::Timestamp(TimeUnit::Microsecond, None))?
                }
                (Some(Given::Text(value)), false) => match data_type {
                    Some(data_type) => typed(name, value, data_type)?,
                    None => guessed(name, value)?,
                },
                (None, true) => now.clone().ok_or(ParamError::NoTime)?,
                (None, false) => return Err(ParamError::Missing { name: name.to_owned() }),
            };
            values.insert(name.to_owned(), ScalarAndMetadata::new(value, None));
        }
        Ok(ParamValues::Map(values))
    }
}

/// Parameters of a plan, with their types if the plan determines them. A parameter that is used as
/// two types has no type: its value decides.
///
/// # Errors
/// None that a caller can cause.
pub fn parameters_of(plan: &LogicalPlan) -> Result<HashMap<String, Option<DataType>>, DataFusionError> {
    let mut types: HashMap<String, Option<DataType>> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::Placeholder(Placeholder { id, field }) = part {
                    let data_type = field.as_ref().map(|field| field.data_type().clone());
                    types
                        .entry(id.clone())
                        .and_modify(|known| {
                            if *known != data_type {
                                *known = None;
                            }
                        })
                        .or_insert(data_type);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(types)
}

/// Types that the parameters of a plan are cast to.
///
/// # Errors
/// None that a caller can cause.
pub fn casts_of(plan: &LogicalPlan) -> Result<HashMap<String, DataType>, DataFusionError> {
    let mut casts = HashMap::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::Cast(cast) = part
                    && let Expr::Placeholder(Placeholder { id, .. }) = cast.expr.as_ref()
                {
                    casts.insert(id.clone(), cast.field.data_type().clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(casts)
}

fn typed(name: &str, value: &str, data_type: &DataType) -> Result<ScalarValue, ParamError> {
    let error = |reason: Option<String>| ParamError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        data_type: data_type.clone(),
        reason,
    };
    if matches!(data_type, DataType::Timestamp(_, _)) {
        let micros = timestamp(value).map_err(|reason| error(Some(reason)))?;
        return micros.cast_to(data_type).map_err(|_| error(None));
    }
    let typed = ScalarValue::try_from_string(value.to_owned(), data_type).map_err(|_| error(None))?;
    match lost(value, &typed) {
        Some(reason) => Err(error(Some(reason.to_owned()))),
        None => Ok(typed),
    }
}

/// Reason why a type cannot hold a number: it makes the number infinite, or drops digits.
fn lost(text: &str, value: &ScalarValue) -> Option<&'static str> {
    let is_infinite = match value {
        ScalarValue::Float64(Some(number)) => number.is_infinite(),
        ScalarValue::Float32(Some(number)) => number.is_infinite(),
        ScalarValue::Decimal128(Some(_), _, scale) => {
            let digits = text.split_once('.').map_or("", |(_, digits)| digits.trim_end_matches('0'));
            let too_fine = digits.bytes().all(|byte| byte.is_ascii_digit())
                && i64::try_from(digits.len()).is_ok_and(|digits| digits > i64::from(*scale).max(0));
            return too_fine.then_some("it has more decimal places than the type");
        }
        _ => false,
    };
    // An infinity that is written out is intended.
    let is_number =
        text.trim().trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (is_infinite && is_number).then_some("it is beyond the range of the type")
}

/// Guesses the value of a parameter whose type the query leaves open.
fn guessed(name: &str, value: &str) -> Result<ScalarValue, ParamError> {
    if let Ok(number) = value.parse() {
        return Ok(ScalarValue::Int64(Some(number)));
    }
    if let Ok(number) = value.parse() {
        return Ok(ScalarValue::UInt64(Some(number)));
    }
    if let Ok(number) = value.parse() {
        let number = ScalarValue::Float64(Some(number));
        let is_whole = value.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit());
        let reason = match is_whole {
            true => Some(
                "it is beyond the range of Int64 and Uint64; write CAST($name AS DECIMAL(38, 0)), or 1.0 for a Double",
            ),
            false => lost(value, &number),
        };
        return match reason {
            Some(reason) => Err(ParamError::Value {
                name: name.to_owned(),
                value: value.to_owned(),
                data_type: DataType::Float64,
                reason: Some(reason.to_owned()),
            }),
            None => Ok(number),
        };
    }
    Ok(timestamp(value).unwrap_or_else(|_| ScalarValue::Utf8(Some(value.to_owned()))))
}

fn timestamp(value: &str) -> Result<ScalarValue, String> {
    let text = Arc::new(BinaryArray::from_iter_values([value.as_bytes()]));
    let column = parse_text_column(&text, ColumnType::Timestamp64, &TextFormat::default());
    if let Some(fault) = column.faults.first() {
        return Err(fault.fault.to_string());
    }
    ScalarValue::try_from_array(&column.values, 0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(pairs: &[(&str, Option<DataType>)]) -> HashMap<String, Option<DataType>> {
        pairs.iter().map(|(name, t)| ((*name).to_owned(), t.clone())).collect()
    }

    fn bound(pairs: &[&str], expected: &[(&str, Option<DataType>)]) -> Result<ParamValues, ParamError> {
        let pairs: Vec<String> = pairs.iter().map(|p| (*p).to_owned()).collect();
        Params::parse(&pairs)?.bind(&types(expected), None)
    }

    #[test]
    fn values_take_the_types_of_the_query() {
        let ParamValues::Map(values) = bound(
            &["user=42", "campaign=42", "now=2026-01-31T10:00:00Z", "open=7"],
            &[
                ("$user", Some(DataType::Utf8View)),
                ("$campaign", Some(DataType::UInt64)),
                ("$now", None),
                ("$open", None),
            ],
        )
        .unwrap() else {
            panic!("named parameters")
        };
        assert_eq!(values["user"].value, ScalarValue::Utf8View(Some("42".into())));
        assert_eq!(values["campaign"].value, ScalarValue::UInt64(Some(42)));
        assert_eq!(values["now"].value, ScalarValue::TimestampMicrosecond(Some(1_769_853_600_000_000), None));
        assert_eq!(values["open"].value, ScalarValue::Int64(Some(7)));
    }

    #[test]
    fn numbers_that_would_change_are_refused() {
        let decimal = Some(DataType::Decimal128(10, 2));
        for (value, data_type) in [
            ("1e999", None),
            ("-1e999", None),
            ("1e999", Some(DataType::Float64)),
            ("1e39", Some(DataType::Float32)),
            ("18446744073709551616", None),
            ("-9223372036854775809", None),
            ("256", Some(DataType::UInt8)),
            ("1.5", Some(DataType::Int64)),
            ("1.239", decimal.clone()),
            ("123456789.5", decimal.clone()),
        ] {
            let refused = bound(&[&format!("x={value}")], &[("$x", data_type.clone())]);
            assert!(matches!(refused, Err(ParamError::Value { .. })), "{value} as {data_type:?}");
        }
        for (value, data_type, expected) in [
            ("18446744073709551615", None, ScalarValue::UInt64(Some(u64::MAX))),
            ("-9223372036854775808", None, ScalarValue::Int64(Some(i64::MIN))),
            ("1e308", None, ScalarValue::Float64(Some(1e308))),
            ("inf", Some(DataType::Float64), ScalarValue::Float64(Some(f64::INFINITY))),
            ("1.2300", decimal, ScalarValue::Decimal128(Some(123), 10, 2)),
        ] {
            let ParamValues::Map(values) = bound(&[&format!("x={value}")], &[("$x", data_type)]).unwrap()
            else {
                panic!("named parameters")
            };
            assert_eq!(values["x"].value, expected, "{value}");
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let campaign = [("$campaign", Some(DataType::UInt64))];
        assert!(matches!(bound(&["campaign"], &campaign), Err(ParamError::Syntax { .. })));
        assert!(matches!(bound(&["campaign=1", "campaign=2"], &campaign), Err(ParamError::Repeated { .. })));
        assert!(matches!(bound(&[], &campaign), Err(ParamError::Missing { .. })));
        assert!(matches!(bound(&["campaign=x"], &campaign), Err(ParamError::Value { .. })));
        assert!(matches!(bound(&["campain=1"], &campaign), Err(ParamError::Unknown { .. })));
        assert!(matches!(bound(&[], &[("$now", None)]), Err(ParamError::NoTime)));
    }
}
