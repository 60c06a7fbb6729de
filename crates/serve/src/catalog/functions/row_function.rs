//! Functions that are computed row by row, and their arguments.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

/// Computes a value from the arguments of one row.
type Body = dyn Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync;

/// A function that is computed row by row.
struct RowFunction {
    name: &'static str,
    signature: Signature,
    returns: DataType,
    body: Arc<Body>,
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.body, &other.body)
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        if is_constant {
            let values = args.args.into_iter().map(|value| match value {
                ColumnarValue::Scalar(value) => value,
                ColumnarValue::Array(_) => ScalarValue::Null,
            });
            let values: Vec<ScalarValue> = values.collect();
            return Ok(ColumnarValue::Scalar((self.body)(&values)?.cast_to(&self.returns)?));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let value = |row: usize| -> Result<ScalarValue> {
            let values = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            (self.body)(&values.collect::<Result<Vec<_>>>()?)?.cast_to(&self.returns)
        };
        let values: Vec<ScalarValue> = (0..args.number_rows).map(value).collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?))
    }
}

/// A function of any arguments.
pub(super) fn function(
    name: &'static str,
    returns: DataType,
    body: impl Fn(&[ScalarValue]) -> ScalarValue + Send + Sync + 'static,
) -> ScalarUDF {
    fallible(name, returns, move |args| Ok(body(args)))
}

/// A function of any arguments that may refuse them.
pub(super) fn fallible(
    name: &'static str,
    returns: DataType,
    body: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
) -> ScalarUDF {
    let any = TypeSignature::OneOf(vec![TypeSignature::Nullary, TypeSignature::VariadicAny]);
    let signature = Signature::new(any, Volatility::Stable);
    ScalarUDF::from(RowFunction { name, signature, returns, body: Arc::new(body) })
}

/// A function with the same value for all arguments.
pub(super) fn constant(name: &'static str, value: ScalarValue) -> ScalarUDF {
    function(name, value.data_type(), move |_| value.clone())
}

pub(super) fn as_number(value: Option<&ScalarValue>) -> Option<i64> {
    match value?.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(number)) => number,
        _ => None,
    }
}

pub(super) fn as_text(value: Option<&ScalarValue>) -> Option<String> {
    match value?.cast_to(&DataType::Utf8) {
        Ok(ScalarValue::Utf8(text)) => text,
        _ => None,
    }
}

pub(super) fn text(value: impl Into<String>) -> ScalarValue {
    ScalarValue::Utf8(Some(value.into()))
}
