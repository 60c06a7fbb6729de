//! Schemas as text.

use std::fmt::Write as _;

use crate::spanner::Dialect;
use crate::table::{Column, ColumnType};

/// What a key begins with, besides columns of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFront {
    /// Nothing.
    Nothing,
    /// `ShardId`: the fingerprint of these columns by so many shards.
    Shard(Vec<String>, u32),
    /// `MOD` of the fingerprint of one column as it is, which is negative for half of the values.
    SignedShard(String, u32),
    /// A random UUID.
    Uuid,
    /// A bit-reversed sequence.
    BitReversed,
}

/// The statements that declare a table with a key.
#[must_use]
pub fn write_table(
    name: &str,
    columns: &[Column],
    key: &[(String, bool)],
    front: &KeyFront,
    dialect: Dialect,
) -> String {
    let mut text = String::new();
    let quoted = |name: &str| quote(name, dialect);
    let sequence = format!("{name}_ids");
    if *front == KeyFront::BitReversed {
        text.push_str(&write_sequence(&sequence, None, None, dialect));
        text.push('\n');
    }
    let is_wide = |column: &&Column| column.column_type == ColumnType::Uint64;
    if columns.iter().any(|column| is_wide(&column)) {
        text.push_str("-- Uint64 is wider than any integer of Spanner: NUMERIC, where that can be; take INT64 for ids below 2^63\n");
    }
    let of_time = |name: &String| {
        columns.iter().any(|column| column.name == *name && column.column_type.is_timestamp())
    };
    let hashes_time = match front {
        KeyFront::Shard(of, _) => of.iter().any(of_time),
        KeyFront::SignedShard(of, _) => of_time(of),
        _ => false,
    };
    if hashes_time {
        text.push_str("-- the text of a TIMESTAMP is in the default time zone of the database; shards were simulated in UTC, and spread alike\n");
    }
    let _ = writeln!(text, "CREATE TABLE {} (", quoted(name));
    let (front_column, front_text) = front_of(front, &sequence, columns, dialect);
    if let (Some(column), Some(declaration)) = (&front_column, front_text) {
        let _ = writeln!(text, "  {} {declaration},", quoted(column));
    }
    for column in columns {
        let in_key = key.iter().any(|(name, _)| *name == column.name);
        let not_null = if in_key || !column.nullable { " NOT NULL" } else { "" };
        // The PostgreSQL dialect takes no numeric in a key.
        let column_type = match (in_key, column.column_type, dialect) {
            (true, ColumnType::Uint64, Dialect::Postgres) => ColumnType::Int64,
            (_, other, _) => other,
        };
        let _ = writeln!(text, "  {} {}{not_null},", quoted(&column.name), type_name(column_type, dialect));
    }
    let part = |(column, descending): &(String, bool)| {
        format!("{}{}", quoted(column), if *descending { " DESC" } else { "" })
    };
    let mut parts: Vec<String> = front_column.iter().map(|column| quoted(column)).collect();
    parts.extend(key.iter().map(part));
    let parts = parts.join(", ");
    match dialect {
        Dialect::GoogleSql => {
            let _ = writeln!(text, ") PRIMARY KEY ({parts});");
        }
        Dialect::Postgres => {
            let _ = writeln!(text, "  PRIMARY KEY ({parts})\n);");
        }
    }
    text
}

/// A key column whose values to come the database makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeKey {
    /// Random UUIDs, as text.
    Uuid,
    /// A bit-reversed sequence that leaves out a range, or begins with a counter.
    Sequence {
        /// Values that it leaves out.
        skip: Option<(i64, i64)>,
        /// Its first counter.
        start: Option<i64>,
    },
}

/// The statements that declare a table with one key column whose values to come the database makes.
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
        (MadeKey::Sequence { .. }, Dialect::GoogleSql) => {
            ("INT64", format!("(GET_NEXT_SEQUENCE_VALUE(SEQUENCE {}))", quoted(&sequence)))
        }
        (MadeKey::Sequence { .. }, Dialect::Postgres) => ("bigint", nextval(&sequence)),
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

/// The statement that declares a bit-reversed sequence.
#[must_use]
pub fn write_sequence(name: &str, skip: Option<(i64, i64)>, start: Option<i64>, dialect: Dialect) -> String {
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

/// The name and the declaration of the column in front.
fn front_of(
    front: &KeyFront,
    sequence: &str,
    columns: &[Column],
    dialect: Dialect,
) -> (Option<String>, Option<String>) {
    let free = |wanted: &str| {
        let mut name = wanted.to_owned();
        while columns.iter().any(|column| column.name.eq_ignore_ascii_case(&name)) {
            name.push('_');
        }
        name
    };
    let text = |column: &String| match dialect {
        Dialect::GoogleSql => format!("CAST({} AS STRING)", quote(column, dialect)),
        Dialect::Postgres => format!("{}::text", quote(column, dialect)),
    };
    match (front, dialect) {
        (KeyFront::Nothing, _) => (None, None),
        (KeyFront::Shard(of, shards), Dialect::GoogleSql) => {
            let all = of.iter().map(text).collect::<Vec<_>>().join(", ");
            let hash = format!("FARM_FINGERPRINT(CONCAT({all}))");
            let shard = format!("MOD(MOD({hash}, {shards}) + {shards}, {shards})");
            (Some(free("ShardId")), Some(format!("INT64 NOT NULL AS ({shard}) STORED")))
        }
        (KeyFront::Shard(of, shards), Dialect::Postgres) => {
            let all = of.iter().map(text).collect::<Vec<_>>().join(" || ");
            let hash = format!("spanner.farm_fingerprint({all})");
            let shard = format!("mod(mod({hash}, {shards}) + {shards}, {shards})");
            (Some(free("shardid")), Some(format!("bigint NOT NULL GENERATED ALWAYS AS ({shard}) STORED")))
        }
        (KeyFront::SignedShard(of, shards), Dialect::GoogleSql) => {
            let shard = format!("MOD(FARM_FINGERPRINT({}), {shards})", text(of));
            (Some(free("ShardId")), Some(format!("INT64 NOT NULL AS ({shard}) STORED")))
        }
        (KeyFront::SignedShard(of, shards), Dialect::Postgres) => {
            let shard = format!("mod(spanner.farm_fingerprint({}), {shards})", text(of));
            (Some(free("shardid")), Some(format!("bigint NOT NULL GENERATED ALWAYS AS ({shard}) STORED")))
        }
        (KeyFront::Uuid, Dialect::GoogleSql) => {
            (Some(free("EntryId")), Some("STRING(36) NOT NULL DEFAULT (GENERATE_UUID())".to_owned()))
        }
        (KeyFront::Uuid, Dialect::Postgres) => {
            (Some(free("entryid")), Some("varchar(36) NOT NULL DEFAULT spanner.generate_uuid()".to_owned()))
        }
        (KeyFront::BitReversed, Dialect::GoogleSql) => {
            let next = format!("GET_NEXT_SEQUENCE_VALUE(SEQUENCE {})", quote(sequence, dialect));
            (Some(free("EntryId")), Some(format!("INT64 NOT NULL DEFAULT ({next})")))
        }
        (KeyFront::BitReversed, Dialect::Postgres) => {
            (Some(free("entryid")), Some(format!("bigint NOT NULL DEFAULT {}", nextval(sequence))))
        }
    }
}

/// The type that holds the values of a column of YDB. Uint64 is wider than any integer of Spanner.
fn type_name(column_type: ColumnType, dialect: Dialect) -> &'static str {
    let [google, postgres] = match column_type {
        ColumnType::Bool => ["BOOL", "boolean"],
        ColumnType::Int8
        | ColumnType::Int16
        | ColumnType::Int32
        | ColumnType::Int64
        | ColumnType::Uint8
        | ColumnType::Uint16
        | ColumnType::Uint32
        | ColumnType::Interval
        | ColumnType::Interval64 => ["INT64", "bigint"],
        ColumnType::Uint64 | ColumnType::Decimal { .. } => ["NUMERIC", "numeric"],
        ColumnType::Float => ["FLOAT32", "real"],
        ColumnType::Double => ["FLOAT64", "double precision"],
        ColumnType::Utf8 => ["STRING(MAX)", "varchar"],
        ColumnType::String | ColumnType::Yson => ["BYTES(MAX)", "bytea"],
        ColumnType::Json | ColumnType::JsonDocument => ["JSON", "jsonb"],
        ColumnType::Uuid => ["STRING(36)", "varchar(36)"],
        ColumnType::Date | ColumnType::Date32 => ["DATE", "date"],
        ColumnType::Datetime | ColumnType::Timestamp | ColumnType::Datetime64 | ColumnType::Timestamp64 => {
            ["TIMESTAMP", "timestamptz"]
        }
    };
    match dialect {
        Dialect::GoogleSql => google,
        Dialect::Postgres => postgres,
    }
}

/// Words that are no names in one of the dialects, as their references list them; quotes are harmless around others.
const RESERVED: &str = " all analyse analyze and any array as asc assert_rows_modified asymmetric at authorization between binary both by case cast \
                        check collate collation column concurrently constraint contains create cross cube current current_catalog \
                        current_date current_role current_time current_timestamp current_user default deferrable define desc distinct \
                        do else end enum escape except exclude exists extract false fetch following for foreign freeze from full grant group \
                        grouping groups hash having if ignore ilike in initially inner intersect interval into is isnull join lateral leading \
                        left like limit localtime localtimestamp lookup merge natural new no not notnull null nulls of offset on only or order \
                        outer over overlaps partition placing preceding primary proto range recursive references respect returning right rollup \
                        rows select session_user set similar some struct symmetric table tablesample then to trailing treat true unbounded \
                        union unique unnest user using variadic verbose when where window with within ";

/// A name, in quotes where it needs them.
fn quote(name: &str, dialect: Dialect) -> String {
    let plain = name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        && !name.starts_with(|character: char| character.is_ascii_digit())
        && !RESERVED.contains(&format!(" {} ", name.to_ascii_lowercase()));
    match (plain, dialect) {
        // Names that are not quoted are read in lower case there.
        (true, Dialect::Postgres) if name.chars().any(|c| c.is_ascii_uppercase()) => format!("\"{name}\""),
        (true, _) => name.to_owned(),
        (false, Dialect::GoogleSql) => format!("`{name}`"),
        (false, Dialect::Postgres) => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// The next value of a sequence, in the PostgreSQL dialect: its name is a text that is read as a name.
fn nextval(sequence: &str) -> String {
    format!("nextval('{}')", quote(sequence, Dialect::Postgres).replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spanner::{Made, Shard, parse_schema};

    #[test]
    fn what_is_written_is_read_back_with_its_key() {
        let columns = [
            Column::required("at", ColumnType::Timestamp),
            Column::required("user", ColumnType::Utf8),
            Column::nullable("the price", ColumnType::Uint64),
        ];
        let key = [("at".to_owned(), true), ("user".to_owned(), false)];
        let both = vec!["at".to_owned(), "user".to_owned()];
        for dialect in [Dialect::GoogleSql, Dialect::Postgres] {
            for (front, made) in [
                (KeyFront::Nothing, None),
                (
                    KeyFront::Shard(both.clone(), 16),
                    Some(Made::Shard(Shard { shards: 16, columns: both.clone(), signed: false })),
                ),
                (
                    KeyFront::SignedShard("at".to_owned(), 2048),
                    Some(Made::Shard(Shard { shards: 2048, columns: vec!["at".to_owned()], signed: true })),
                ),
                (KeyFront::Uuid, Some(Made::Uuid)),
                (KeyFront::BitReversed, Some(Made::Sequence)),
            ] {
                let text = write_table("Logs", &columns, &key, &front, dialect);
                let schema = parse_schema(&text).unwrap();
                let table = schema.table(Some("Logs")).unwrap();
                assert_eq!(table.columns[0].made, made, "{text}");
                let rest = &table.primary_key[usize::from(made.is_some())..];
                assert_eq!(
                    rest.iter().map(|key| key.descending).collect::<Vec<_>>(),
                    [true, false],
                    "{text}"
                );
                assert_eq!(table.columns.len(), 3 + usize::from(made.is_some()), "{text}");
            }
        }
    }

    #[test]
    fn names_that_are_words_of_the_language_stand_in_quotes() {
        let columns =
            [Column::required("order", ColumnType::Int64), Column::nullable("Total", ColumnType::Int64)];
        let key = [("order".to_owned(), false)];
        let google = write_table("user", &columns, &key, &KeyFront::BitReversed, Dialect::GoogleSql);
        assert!(
            google.contains("CREATE TABLE `user` (") && google.contains("PRIMARY KEY (EntryId, `order`)"),
            "{google}"
        );
        let postgres = write_table("Logs", &columns, &key, &KeyFront::BitReversed, Dialect::Postgres);
        assert!(
            postgres.contains("nextval('\"Logs_ids\"')") && postgres.contains("\"Total\" bigint"),
            "{postgres}"
        );
    }

    #[test]
    fn sequences_have_their_range_and_their_counter() {
        let google = write_sequence("Ids", Some((1, 4_294_967_296)), Some(11_000), Dialect::GoogleSql);
        assert!(
            google.contains("skip_range_max = 4294967296") && google.contains("start_with_counter = 11000")
        );
        let postgres = write_sequence("ids", Some((1, 10)), None, Dialect::Postgres);
        assert_eq!(postgres, "CREATE SEQUENCE ids BIT_REVERSED_POSITIVE\n  SKIP RANGE 1 10;\n");
    }
}
