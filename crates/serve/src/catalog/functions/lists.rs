//! Functions of lists.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use crate::catalog::functions::row_function::{as_text, function, text};

/// Functions whose first argument is a list.
pub(super) fn list_functions() -> Vec<ScalarUDF> {
    vec![
        function("element_numbers", DataType::new_list(DataType::Int32, true), |args| match args.first() {
            Some(ScalarValue::List(list)) => {
                let length = list.values().len();
                let numbers: Vec<ScalarValue> =
                    (1..).take(length).map(|number| ScalarValue::Int32(Some(number))).collect();
                ScalarValue::List(ScalarValue::new_list(&numbers, &DataType::Int32, true))
            }
            _ => ScalarValue::Null,
        }),
        function("array_to_string", DataType::Utf8, |args| match args.first() {
            Some(ScalarValue::List(list)) if list.is_valid(0) => {
                let between = as_text(args.get(1)).unwrap_or_default();
                let elements = list.values();
                let element = |row| ScalarValue::try_from_array(elements, row).ok();
                let texts = (0..elements.len()).filter_map(|row| as_text(element(row).as_ref()));
                text(texts.collect::<Vec<_>>().join(&between))
            }
            // Lists that may be NULL, such as lists of privileges.
            _ => ScalarValue::Utf8(None),
        }),
        function("numbered_elements", numbered_list(), |args| match args.first() {
            Some(ScalarValue::List(list)) => numbered(list.values()),
            _ => ScalarValue::Null,
        }),
    ]
}

/// Type of array elements with their positions.
fn numbered_list() -> DataType {
    DataType::new_list(DataType::Struct(numbered_fields()), true)
}

fn numbered_fields() -> Fields {
    let number = |name| Field::new(name, DataType::Int32, true);
    Fields::from(vec![number("x"), number("n")])
}

/// Returns elements with their positions, from 1.
fn numbered(elements: &ArrayRef) -> ScalarValue {
    let Ok(elements) = cast(elements, &DataType::Int32) else { return ScalarValue::Null };
    let numbers: Int32Array = (1..).take(elements.len()).map(Some).collect();
    let rows = StructArray::new(numbered_fields(), vec![elements, Arc::new(numbers)], None);
    let offsets = OffsetBuffer::from_lengths([rows.len()]);
    let element = Arc::new(Field::new_list_field(DataType::Struct(numbered_fields()), true));
    ScalarValue::List(Arc::new(ListArray::new(element, offsets, Arc::new(rows), None)))
}
