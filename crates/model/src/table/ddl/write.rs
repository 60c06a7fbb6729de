//! Writes a table as `CREATE TABLE`.

use std::fmt::Write as _;

use crate::table::ddl::statement::PARTITIONS_OPTION;
use crate::table::{PlacementFunction, TableSpec};

/// Words of YQL that are quoted if they are names.
const KEYWORDS: &[&str] = &[
    "all", "and", "any", "as", "between", "by", "case", "create", "distinct", "drop", "else", "end",
    "exists", "from", "group", "having", "in", "insert", "into", "is", "join", "like", "limit", "not",
    "null", "offset", "on", "or", "order", "return", "select", "set", "stream", "table", "then", "union",
    "update", "values", "when", "where", "window", "with", "without",
];

/// Writes the YQL that declares `spec`; [`crate::table::parse_create_table`] reads it back.
#[must_use]
pub fn write_create_table(spec: &TableSpec) -> String {
    let quoted = |name: &str| {
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !KEYWORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
        if plain { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
    };
    let list = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let definition = spec.definition();
    let mut text = String::new();
    if definition.placement != PlacementFunction::Ydb {
        // YQL has no clause for the placement function.
        let _ = writeln!(text, "-- placement function: {}", definition.placement);
    }
    let _ = writeln!(text, "CREATE TABLE {} (", quoted(&definition.name));
    for column in &definition.columns {
        let null = if column.nullable { "" } else { " NOT NULL" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    {} {}{null},", quoted(&column.name), column.column_type);
    }
    let ttl = definition.ttl.as_ref().map_or_else(String::new, |ttl| {
        format!(",\n    TTL = Interval(\"{}\") ON {}", ttl.keep.iso(), quoted(&ttl.column))
    });
    let _ = write!(
        text,
        "    PRIMARY KEY ({})\n)\nPARTITION BY HASH({})\nWITH (\n    STORE = COLUMN,\n    {PARTITIONS_OPTION} = {}{ttl}\n);\n",
        list(&definition.primary_key),
        list(&definition.partition_key),
        definition.partitions,
    );
    text
}
