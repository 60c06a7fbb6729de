//! Names in SQL text.

/// Writes a name in quotes, in which it may have any characters and is none of the words of SQL.
#[must_use]
pub fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
