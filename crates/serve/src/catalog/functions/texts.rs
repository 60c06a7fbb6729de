//! Functions that write and read texts.

use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, not_impl_err};
use datafusion::logical_expr::ScalarUDF;

use crate::catalog::functions::row_function::{as_number, as_text, fallible, function, text};
use crate::settings::VERSION_SETTING;
use crate::statement::is_utf8;

/// Functions of a text or a number.
pub(super) fn text_functions() -> Vec<ScalarUDF> {
    vec![
        function("pg_size_pretty", DataType::Utf8, |args| {
            as_number(args.first()).map_or(ScalarValue::Utf8(None), |bytes| text(pretty(bytes)))
        }),
        function("quote_literal", DataType::Utf8, |args| {
            as_text(args.first())
                .map_or(ScalarValue::Utf8(None), |value| text(format!("'{}'", value.replace('\'', "''"))))
        }),
        function("pg_char_to_encoding", DataType::Int32, |args| {
            let is_utf8 = as_text(args.first()).is_some_and(|name| is_utf8(&name));
            ScalarValue::Int32(Some(if is_utf8 { 6 } else { -1 }))
        }),
        // For settings without effect here, such as jit.
        fallible("set_config", DataType::Utf8, |args| {
            let name = as_text(args.first()).unwrap_or_default().to_ascii_lowercase();
            match name.as_str() {
                VERSION_SETTING | "statement_timeout" => {
                    not_impl_err!("set_config does not change {name}; write SET {name} = '...'")
                }
                _ => Ok(ScalarValue::Utf8(as_text(args.get(1)))),
            }
        }),
    ]
}

/// Writes a size as PostgreSQL does.
fn pretty(bytes: i64) -> String {
    let mut size = bytes;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if size.abs() < 10 * 1024 {
            return format!("{size} {unit}");
        }
        size = (size + 512) / 1024;
    }
    format!("{size} TB")
}
