//! Generated columns in front of a primary key.

use crate::schema::dialect::Dialect;
use crate::schema::draft::{KeyFront, TableDraft};
use crate::schema::write::sequence::next_value;
use crate::schema::write::shard::{generated_column, shard_expression};

/// Returns the names and declarations of the generated columns in front of the key. `sequence` is
/// the name of the sequence, if one generates the key.
pub(super) fn front_columns(table: &TableDraft, sequence: &str, dialect: Dialect) -> Vec<(String, String)> {
    let column = |name: &str, declaration: &str| (table.free_name(name, dialect), declaration.to_owned());
    let shard = |columns: &[String], shards: u32, signed: bool| {
        let expression = shard_expression(table, columns, shards, signed, dialect);
        vec![column("ShardId", &generated_column(&expression, table.not_null(columns), dialect))]
    };
    let in_dialect = |google, postgres| match dialect {
        Dialect::GoogleSql => google,
        Dialect::Postgres => postgres,
    };
    match &table.front {
        KeyFront::Nothing => Vec::new(),
        KeyFront::Shard(columns, shards) => shard(columns, *shards, false),
        KeyFront::SignedShard(columns, shards) => shard(columns, *shards, true),
        KeyFront::Uuid => vec![column(
            "EntryId",
            in_dialect(
                "STRING(36) NOT NULL DEFAULT (GENERATE_UUID())",
                "varchar(36) NOT NULL DEFAULT spanner.generate_uuid()",
            ),
        )],
        KeyFront::UuidBytes => {
            vec![column("EntryId", in_dialect("BYTES(16) NOT NULL", "bytea NOT NULL"))]
        }
        KeyFront::UuidIntegers => {
            let integer = in_dialect("INT64 NOT NULL", "bigint NOT NULL");
            vec![column("EntryHigh", integer), column("EntryLow", integer)]
        }
        KeyFront::BitReversed => {
            let integer = in_dialect("INT64", "bigint");
            let next = next_value(sequence, dialect);
            vec![column("EntryId", &format!("{integer} NOT NULL DEFAULT {next}"))]
        }
    }
}
