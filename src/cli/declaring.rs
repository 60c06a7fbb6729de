//! Names and types that arguments declare.

use std::path::{Component, Path};

use evenkeel::bounded::quote;
use evenkeel::table::ColumnType;

use crate::cli::Failure;

/// Reads `column:type`.
pub(crate) fn column_type(text: &str) -> Result<(String, ColumnType), Failure> {
    let (name, column_type) = text.split_once(':').ok_or_else(|| {
        Failure::wrong_usage(format!("--type '{}': write COLUMN:TYPE, such as user_id:uint64", quote(text)))
    })?;
    let column_type = column_type
        .parse()
        .map_err(|error| Failure::wrong_usage(format!("--type '{}': {error}", quote(text))))?;
    Ok((name.trim().to_owned(), column_type))
}

/// Derives a table name from the first input: without its endings, and with other characters
/// replaced.
pub(crate) fn table_name(inputs: &[String]) -> String {
    let first = inputs.first().filter(|input| *input != "-").map_or("table", String::as_str);
    // The folder is a better name than a pattern of file names.
    let is_pattern = |name: &str| name.contains(['*', '?', '[']);
    let named = Path::new(first).components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let mut named = named.skip_while(|name| is_pattern(name));
    let stem = named.next().unwrap_or_else(|| "table".to_owned());
    let stem = stem.split('.').next().unwrap_or_default();
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => name,
        _ => format!("t_{name}"),
    }
}
