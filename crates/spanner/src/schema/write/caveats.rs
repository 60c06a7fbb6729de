//! Caveats about statements, to be written above them as SQL comments.

use crate::schema::dialect::Dialect;
use crate::schema::draft::{IndexDraft, KeyFront, TableDraft};
use crate::schema::names::plain_name;
use evenkeel_model::table::{Column, ColumnType};

/// Returns the caveats about the statements of a table, one sentence each.
pub(super) fn caveats(table: &TableDraft, dialect: Dialect) -> Vec<String> {
    let mut caveats = on_types(table, dialect);
    caveats.extend(on_order(table, dialect));
    caveats.extend(on_nulls(table, dialect));
    caveats.extend(on_time_zone(table));
    caveats.extend(on_application(table));
    caveats.extend(on_names(table));
    caveats
}

/// Types of the table that Spanner has no equal of.
fn on_types(table: &TableDraft, dialect: Dialect) -> Vec<String> {
    let columns: &[Column] = if table.declared.is_some() { &[] } else { &table.columns };
    let mut caveats = Vec::new();
    if columns.iter().any(|column| column.column_type == ColumnType::Uint64) {
        caveats.push(
            "Uint64 is wider than any integer of Spanner: NUMERIC if that is possible; use INT64 for ids below 2^63".to_owned(),
        );
    }
    let is_wide =
        |column: &Column| matches!(column.column_type, ColumnType::Decimal { scale, .. } if scale > 9);
    if dialect == Dialect::GoogleSql && columns.iter().any(is_wide) {
        caveats.push("NUMERIC has 9 decimal places; a Decimal of the table has more".to_owned());
    }
    caveats
}

fn on_order(table: &TableDraft, dialect: Dialect) -> Option<String> {
    let descending = table.key.iter().filter(|part| part.descending);
    let descending: Vec<&str> = descending.map(|part| part.column.as_str()).collect();
    (dialect == Dialect::Postgres && !descending.is_empty()).then(|| {
        format!(
            "primary keys of the PostgreSQL dialect only ascend: {} descends in the model, not here",
            descending.join(", ")
        )
    })
}

fn on_nulls(table: &TableDraft, dialect: Dialect) -> Vec<String> {
    let refused = match dialect {
        Dialect::GoogleSql => "",
        Dialect::Postgres => ", which a primary key of the PostgreSQL dialect does not allow",
    };
    let in_key = table.nullable.iter().filter(|column| table.in_key(column));
    let mut caveats: Vec<String> =
        in_key.map(|column| format!("{column} is NULL in some rows{refused}")).collect();
    for index in table.indexes.iter().filter(|index| !index.null_filtered) {
        let columns = index.shard_columns();
        let with_null = columns.iter().filter(|column| table.nullable.contains(column));
        caveats.extend(with_null.map(|column| {
            format!(
                "rows with a NULL in {column} have no shard: their entries of {} are all in one \
                    place; NULL_FILTERED leaves them out",
                index.name
            )
        }));
    }
    caveats
}

/// Shards of a time are computed from its text, which depends on the time zone.
fn on_time_zone(table: &TableDraft) -> Option<String> {
    let mut hashed: Vec<String> = table.indexes.iter().flat_map(IndexDraft::shard_columns).collect();
    if let KeyFront::Shard(columns, _) | KeyFront::SignedShard(columns, _) = &table.front {
        hashed.extend(columns.iter().cloned());
    }
    let mut times = table.columns.iter().filter(|column| column.column_type.is_timestamp());
    times.any(|column| hashed.contains(&column.name)).then(|| {
        "the text of a TIMESTAMP is in the default time zone of the database; shards were simulated in UTC, which spreads rows equally well".to_owned()
    })
}

/// Values that the database cannot generate.
fn on_application(table: &TableDraft) -> Option<String> {
    match table.front {
        KeyFront::UuidBytes => {
            Some("the application generates EntryId: the 16 bytes of a random UUID (version 4)".to_owned())
        }
        KeyFront::UuidIntegers => Some(
            "the application generates EntryHigh and EntryLow: the two halves of a random UUID (version 4), as signed integers".to_owned(),
        ),
        _ => None,
    }
}

fn on_names(table: &TableDraft) -> Option<String> {
    let names = table.columns.iter().map(|column| &column.name).chain([&table.name]);
    let changed: Vec<String> = names
        .filter(|name| plain_name(name) != **name)
        .map(|name| format!("'{name}' is {} here", plain_name(name)))
        .collect();
    (!changed.is_empty())
        .then(|| format!("names of Spanner have only letters, digits and _: {}", changed.join(", ")))
}
