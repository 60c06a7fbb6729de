//! Writes a table with one key column, whose future values the database generates.

use std::fmt::Write as _;

use crate::schema::dialect::Dialect;
use crate::schema::names::{quote, type_name};
use crate::schema::write::sequence::{next_value, write_sequence};
use evenkeel_model::table::Column;

/// Generator of the future values of a key column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeKey {
    /// Random UUIDs, as text.
    Uuid,
    /// A bit-reversed sequence that skips a range, or starts at a given counter.
    Sequence {
        /// Range of values that the sequence skips.
        skip: Option<(i64, i64)>,
        /// First counter of the sequence.
        start: Option<i64>,
    },
}

/// Returns the statements that declare a table with one key column whose future values the database
/// generates.
#[must_use]
pub fn write_migrated_table(
    name: &str,
    columns: &[Column],
    key: &str,
    made: &MadeKey,
    dialect: Dialect,
) -> String {
    let quoted = |name: &str| quote(name, dialect);
    let sequence = format!("{name}_ids");
    let mut text = String::new();
    let (key_type, default) = match (made, dialect) {
        (MadeKey::Uuid, Dialect::GoogleSql) => ("STRING(36)", "(GENERATE_UUID())".to_owned()),
        (MadeKey::Uuid, Dialect::Postgres) => ("varchar(36)", "spanner.generate_uuid()".to_owned()),
        (MadeKey::Sequence { .. }, Dialect::GoogleSql) => ("INT64", next_value(&sequence, dialect)),
        (MadeKey::Sequence { .. }, Dialect::Postgres) => ("bigint", next_value(&sequence, dialect)),
    };
    if let MadeKey::Sequence { skip, start } = made {
        text.push_str(&write_sequence(&sequence, *skip, *start, dialect));
        text.push('\n');
    }
    let _ = writeln!(text, "CREATE TABLE {} (", quoted(name));
    for column in columns {
        let declared = match column.name == key {
            true => format!("{key_type} NOT NULL DEFAULT {default}"),
            false => {
                let not_null = if column.nullable { "" } else { " NOT NULL" };
                format!("{}{not_null}", type_name(column.column_type, dialect))
            }
        };
        let _ = writeln!(text, "  {} {declared},", quoted(&column.name));
    }
    let _ = match dialect {
        Dialect::GoogleSql => writeln!(text, ") PRIMARY KEY ({});", quoted(key)),
        Dialect::Postgres => writeln!(text, "  PRIMARY KEY ({})\n);", quoted(key)),
    };
    text
}
