//! `array_has` on lists that contain NULL.

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions_nested::array_has::array_has_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// DataFusion's test whether a list contains a value, without its simplification.
///
/// DataFusion 55 turns it into IN, which is NULL instead of false if the list has a NULL but not
/// the value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayHas {
    inner: std::sync::Arc<ScalarUDF>,
}

/// Returns `array_has`, which replaces DataFusion's.
pub(in crate::query) fn array_has() -> ScalarUDF {
    ScalarUDF::new_from_impl(ArrayHas { inner: array_has_udf() })
}

impl ScalarUDFImpl for ArrayHas {
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

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
