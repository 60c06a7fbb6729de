//! Writes bit-reversed sequences.

use std::fmt::Write as _;

use crate::schema::dialect::Dialect;
use crate::schema::names::quote;

/// Returns the statement that declares a bit-reversed sequence.
pub(super) fn write_sequence(
    name: &str,
    skip: Option<(i64, i64)>,
    start: Option<i64>,
    dialect: Dialect,
) -> String {
    let name = quote(name, dialect);
    match dialect {
        Dialect::GoogleSql => {
            let mut options = vec!["sequence_kind = \"bit_reversed_positive\"".to_owned()];
            if let Some((least, most)) = skip {
                options.push(format!("skip_range_min = {least}"));
                options.push(format!("skip_range_max = {most}"));
            }
            options.extend(start.map(|start| format!("start_with_counter = {start}")));
            format!("CREATE SEQUENCE {name} OPTIONS (\n  {}\n);\n", options.join(",\n  "))
        }
        Dialect::Postgres => {
            let mut text = format!("CREATE SEQUENCE {name} BIT_REVERSED_POSITIVE");
            if let Some((least, most)) = skip {
                let _ = write!(text, "\n  SKIP RANGE {least} {most}");
            }
            if let Some(start) = start {
                let _ = write!(text, "\n  START COUNTER {start}");
            }
            text.push_str(";\n");
            text
        }
    }
}

/// Returns the expression for the next value of a sequence, as a default of a column.
pub(super) fn next_value(sequence: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::GoogleSql => format!("(GET_NEXT_SEQUENCE_VALUE(SEQUENCE {}))", quote(sequence, dialect)),
        // The sequence is named by a string literal.
        Dialect::Postgres => format!("nextval('{}')", quote(sequence, dialect).replace('\'', "''")),
    }
}
