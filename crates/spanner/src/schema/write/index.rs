//! Writes `CREATE INDEX`.

use std::fmt::Write as _;

use crate::schema::dialect::Dialect;
use crate::schema::draft::{IndexDraft, TableDraft};
use crate::schema::names::quote;
use crate::schema::tables::SchemaKey;

/// Returns the statement that declares an index of `table`.
pub(super) fn write_index(table: &TableDraft, index: &IndexDraft, dialect: Dialect) -> String {
    let mut parts: Vec<String> = Vec::new();
    if index.shard.is_some() {
        parts.push(quote(&table.shard_column(index, dialect), dialect));
    }
    parts.extend(index.columns.iter().map(|part| key_part(part, dialect)));
    let in_index = |name: &String| index.columns.iter().any(|part| part.column == *name);
    let storing: Vec<String> = index
        .storing
        .iter()
        .filter(|name| !in_index(name) && !table.in_key(name))
        .map(|name| quote(name, dialect))
        .collect();
    let filtered = index.null_filtered && dialect == Dialect::GoogleSql;
    let mut text = format!(
        "CREATE {}{}INDEX {} ON {} ({})",
        if index.unique { "UNIQUE " } else { "" },
        if filtered { "NULL_FILTERED " } else { "" },
        quote(&index.name, dialect),
        quote(&table.name, dialect),
        parts.join(", ")
    );
    if !storing.is_empty() {
        let word = if dialect == Dialect::GoogleSql { "STORING" } else { "INCLUDE" };
        let _ = write!(text, "\n  {word} ({})", storing.join(", "));
    }
    if let Some(parent) = &index.interleaved_in {
        let comma = if dialect == Dialect::GoogleSql { "," } else { "" };
        let _ = write!(text, "{comma}\n  INTERLEAVE IN {}", quote(parent, dialect));
    }
    if index.null_filtered && dialect == Dialect::Postgres {
        let filters =
            index.columns.iter().map(|part| format!("{} IS NOT NULL", quote(&part.column, dialect)));
        let _ = write!(text, "\n  WHERE {}", filters.collect::<Vec<_>>().join(" AND "));
    }
    text.push_str(";\n");
    text
}

/// Returns a column of a key with its order.
pub(super) fn key_part(part: &SchemaKey, dialect: Dialect) -> String {
    format!("{}{}", quote(&part.column, dialect), if part.descending { " DESC" } else { "" })
}
