//! Expressions of shards, in generated columns.

use crate::schema::dialect::Dialect;
use crate::schema::draft::TableDraft;
use crate::schema::names::quote;
use evenkeel_model::table::{Column, ColumnType};

/// Returns the expression for the fingerprint of `columns` modulo `shards`: signed, as `MOD`
/// leaves it, or from 0 up. Bytes cannot be cast to text: a single column of bytes is hashed as
/// it is; together with other columns, bytes are hashed in hexadecimal.
pub(super) fn shard_expression(
    table: &TableDraft,
    columns: &[String],
    shards: u32,
    signed: bool,
    dialect: Dialect,
) -> String {
    let is_bytes = |name: &String| {
        let has_bytes = |column: &&Column| {
            column.name == *name && matches!(column.column_type, ColumnType::String | ColumnType::Yson)
        };
        table.columns.iter().any(|column| has_bytes(&column))
    };
    let text = |column: &String| match (dialect, is_bytes(column)) {
        (Dialect::GoogleSql, true) if columns.len() == 1 => quote(column, dialect),
        (Dialect::GoogleSql, true) => format!("TO_HEX({})", quote(column, dialect)),
        (Dialect::GoogleSql, false) => format!("CAST({} AS STRING)", quote(column, dialect)),
        (Dialect::Postgres, true) if columns.len() == 1 => quote(column, dialect),
        (Dialect::Postgres, true) => format!("encode({}, 'hex')", quote(column, dialect)),
        (Dialect::Postgres, false) => format!("{}::text", quote(column, dialect)),
    };
    let texts: Vec<String> = columns.iter().map(text).collect();
    let (hash, modulo) = match dialect {
        Dialect::GoogleSql => {
            let all = match texts.as_slice() {
                [only] => only.clone(),
                several => format!("CONCAT({})", several.join(", ")),
            };
            (format!("FARM_FINGERPRINT({all})"), "MOD")
        }
        Dialect::Postgres => (format!("spanner.farm_fingerprint({})", texts.join(" || ")), "mod"),
    };
    if signed {
        format!("{modulo}({hash}, {shards})")
    } else {
        format!("{modulo}({modulo}({hash}, {shards}) + {shards}, {shards})")
    }
}

/// Returns the declaration of a generated integer column.
pub(super) fn generated_column(expression: &str, not_null: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::GoogleSql => format!("INT64{not_null} AS ({expression}) STORED"),
        Dialect::Postgres => format!("bigint{not_null} GENERATED ALWAYS AS ({expression}) STORED"),
    }
}
