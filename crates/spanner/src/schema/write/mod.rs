//! Writes schemas as text.

mod caveats;
mod front;
mod index;
mod migrated;
mod sequence;
mod shard;
mod table;

pub use crate::schema::write::migrated::{MadeKey, write_migrated_table};

#[cfg(test)]
mod tests {
    use crate::schema::dialect::Dialect;
    use crate::schema::draft::{IndexDraft, KeyFront, ShardFront, TableDraft};
    use crate::schema::parse::parse_schema;
    use crate::schema::tables::{Made, SchemaKey, Shard};
    use crate::schema::write::sequence::write_sequence;
    use evenkeel_model::table::{Column, ColumnType};

    fn key(column: &str, descending: bool) -> SchemaKey {
        SchemaKey { column: column.to_owned(), descending }
    }

    fn draft(name: &str, columns: &[Column], key: &[SchemaKey], front: KeyFront) -> TableDraft {
        let (columns, key) = (columns.to_vec(), key.to_vec());
        TableDraft {
            name: name.to_owned(),
            columns,
            declared: None,
            clauses: String::new(),
            nullable: Vec::new(),
            key,
            front,
            parent: None,
            indexes: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_is_read_back_with_its_key() {
        let columns = [
            Column::required("at", ColumnType::Timestamp),
            Column::required("user", ColumnType::Utf8),
            Column::nullable("the price", ColumnType::Uint64),
        ];
        let keys = [key("at", true), key("user", false)];
        let both = vec!["at".to_owned(), "user".to_owned()];
        let shard = |columns: &[String], shards, signed| {
            Some(Made::Shard(Shard { shards, columns: columns.to_vec(), signed }))
        };
        for dialect in [Dialect::GoogleSql, Dialect::Postgres] {
            for (front, made, added) in [
                (KeyFront::Nothing, None, 0),
                (KeyFront::Shard(both.clone(), 16), shard(&both, 16, false), 1),
                (KeyFront::SignedShard(both[..1].to_vec(), 2048), shard(&both[..1], 2048, true), 1),
                (KeyFront::Uuid, Some(Made::Uuid), 1),
                (KeyFront::UuidBytes, None, 1),
                (KeyFront::UuidIntegers, None, 2),
                (KeyFront::BitReversed, Some(Made::Sequence), 1),
            ] {
                let text = draft("Logs", &columns, &keys, front).write(dialect);
                let schema = parse_schema(&text).unwrap();
                let table = schema.table(Some("Logs")).unwrap();
                assert_eq!(table.columns[0].made, made, "{text}");
                let falls = |part: &SchemaKey| SchemaKey {
                    descending: part.descending && dialect == Dialect::GoogleSql,
                    ..part.clone()
                };
                assert_eq!(table.primary_key[added..], keys.each_ref().map(falls), "{text}");
                assert_eq!(table.columns.len(), 3 + added, "{text}");
            }
        }
    }

    #[test]
    fn indexes_and_parents_are_read_back() {
        let columns = [
            Column::required("user", ColumnType::Utf8),
            Column::required("at", ColumnType::Timestamp),
            Column::nullable("price", ColumnType::Int64),
            Column::nullable("note", ColumnType::Utf8),
        ];
        let keys = [key("user", false), key("at", true)];
        let mut table = draft("Orders", &columns, &keys, KeyFront::Nothing);
        table.parent = Some("Users".to_owned());
        let index = IndexDraft {
            name: "ByPrice".to_owned(),
            columns: vec![key("price", true)],
            storing: vec!["note".to_owned(), "user".to_owned()],
            null_filtered: true,
            unique: true,
            shard: Some(ShardFront { shards: 8, columns: Vec::new(), signed: false, name: None }),
            interleaved_in: None,
        };
        let inside = IndexDraft {
            name: "Inside".to_owned(),
            columns: vec![key("user", false), key("price", false)],
            storing: Vec::new(),
            null_filtered: false,
            unique: false,
            shard: None,
            interleaved_in: Some("Users".to_owned()),
        };
        table.indexes = vec![index, inside];
        for dialect in [Dialect::GoogleSql, Dialect::Postgres] {
            let text = table.write(dialect);
            // The parent has to be declared too.
            let users = draft("Users", &columns[..1], &keys[..1], KeyFront::Nothing).write(dialect);
            let schema = parse_schema(&format!("{users}{text}")).unwrap();
            let read = schema.table(Some("Orders")).unwrap();
            assert_eq!((read.parent.as_deref(), read.dialect), (Some("Users"), dialect), "{text}");
            assert_eq!(text.contains("at descends in the model, not here"), dialect == Dialect::Postgres);
            let of_shard = read.columns.last().unwrap();
            let made = Made::Shard(Shard { shards: 8, columns: vec!["price".to_owned()], signed: false });
            assert_eq!(of_shard.made, Some(made), "{text}");
            let [by_price, inside] = schema.indexes.as_slice() else { panic!("{text}") };
            assert_eq!(by_price.columns, [key(&of_shard.name, false), key("price", true)], "{text}");
            assert!(by_price.unique && by_price.null_filtered && by_price.storing == ["note"], "{text}");
            assert_eq!(inside.interleaved_in.as_deref(), Some("Users"), "{text}");
        }
    }

    #[test]
    fn names_that_are_words_of_the_language_stand_in_quotes() {
        let columns =
            [Column::required("order", ColumnType::Int64), Column::nullable("Total", ColumnType::Int64)];
        let keys = [key("order", false)];
        let google = draft("user", &columns, &keys, KeyFront::BitReversed).write(Dialect::GoogleSql);
        assert!(
            google.contains("CREATE TABLE `user` (") && google.contains("PRIMARY KEY (EntryId, `order`)"),
            "{google}"
        );
        let postgres = draft("Logs", &columns, &keys, KeyFront::BitReversed).write(Dialect::Postgres);
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
