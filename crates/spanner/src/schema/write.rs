//! Schemas as text.

use std::fmt::Write as _;

use serde::Serialize;

use crate::schema::names::{nextval, plain_name, quote, type_name};
use crate::schema::{Dialect, SchemaKey};
use evenkeel_model::table::{Column, ColumnType};

/// What a key begins with, besides columns of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFront {
    /// Nothing.
    Nothing,
    /// `ShardId`: the fingerprint of these columns by so many shards.
    Shard(Vec<String>, u32),
    /// `MOD` of the fingerprint of columns as it is, which is negative for half of the values.
    SignedShard(Vec<String>, u32),
    /// A random UUID as text.
    Uuid,
    /// The same as 16 bytes, which the application makes.
    UuidBytes,
    /// The same as two integers, which the application makes.
    UuidIntegers,
    /// A bit-reversed sequence.
    BitReversed,
}

/// A table that is to be declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDraft {
    /// Its name.
    pub name: String,
    /// Its columns, without those that its key begins with besides.
    pub columns: Vec<Column>,
    /// Its columns as they are declared already, each with its name: they stand in the place of `columns`.
    pub declared: Option<Vec<(String, String)>>,
    /// What stands behind the key and the parent.
    pub clauses: String,
    /// Columns that are NULL in some rows.
    pub nullable: Vec<String>,
    /// Its primary key, without what it begins with besides.
    pub key: Vec<SchemaKey>,
    /// What its primary key begins with besides.
    pub front: KeyFront,
    /// The table that it is interleaved in.
    pub parent: Option<String>,
    /// Its indexes.
    pub indexes: Vec<IndexDraft>,
}

/// An index that is to be declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDraft {
    /// Its name.
    pub name: String,
    /// What it is ordered by.
    pub columns: Vec<SchemaKey>,
    /// What it holds besides; what is in its order or in the primary key it holds anyway.
    pub storing: Vec<String>,
    /// Whether no two rows have the same entry.
    pub unique: bool,
    /// Whether rows with a NULL have no entry.
    pub null_filtered: bool,
    /// A shard in front.
    pub shard: Option<ShardFront>,
    /// The table that it is interleaved in.
    pub interleaved_in: Option<String>,
}

/// A shard in front of an index: a generated column of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardFront {
    /// By how many it is.
    pub shards: u32,
    /// What it is made of; where there is nothing, of the columns of the index.
    pub columns: Vec<String>,
    /// Whether it may be negative.
    pub signed: bool,
    /// The column, where it is declared already.
    pub name: Option<String>,
}

impl TableDraft {
    /// The statements that declare the table and its indexes.
    #[must_use]
    pub fn write(&self, dialect: Dialect) -> String {
        let Self { name, columns, key, .. } = self;
        let mut text = String::new();
        let quoted = |name: &str| quote(name, dialect);
        let sequence = format!("{name}_ids");
        if self.front == KeyFront::BitReversed {
            text.push_str(&write_sequence(&sequence, None, None, dialect));
            text.push('\n');
        }
        self.comments(dialect).iter().for_each(|comment| {
            let _ = writeln!(text, "-- {comment}");
        });
        let _ = writeln!(text, "CREATE TABLE {} (", quoted(name));
        let front = self.front_columns(&sequence, dialect);
        for (column, declaration) in &front {
            let _ = writeln!(text, "  {} {declaration},", quoted(column));
        }
        for (column, declaration) in self.declared.iter().flatten() {
            let _ = writeln!(text, "  {} {declaration},", quoted(column));
        }
        let columns: &[Column] = if self.declared.is_some() { &[] } else { columns };
        for column in columns {
            let in_key = self.in_key(&column.name);
            let has_null = self.nullable.contains(&column.name);
            let not_null = if in_key && !has_null || !column.nullable { " NOT NULL" } else { "" };
            // The PostgreSQL dialect takes no numeric in a key or an index.
            let of_index = |index: &IndexDraft| index.columns.iter().any(|part| part.column == column.name);
            let ordered = in_key || self.indexes.iter().any(of_index);
            let column_type = match (ordered, column.column_type, dialect) {
                (true, ColumnType::Uint64, Dialect::Postgres) => ColumnType::Int64,
                (_, other, _) => other,
            };
            let _ =
                writeln!(text, "  {} {}{not_null},", quoted(&column.name), type_name(column_type, dialect));
        }
        for (index, shard) in self.indexes.iter().filter_map(|index| Some((index, index.shard.as_ref()?))) {
            if self.declared.is_some() && shard.name.is_some() {
                continue;
            }
            let of = index.shard_columns();
            let has_null = of.iter().any(|column| self.nullable.contains(column));
            let not_null = if has_null { "" } else { " NOT NULL" };
            let expression = self.shard_of(&of, shard.shards, shard.signed, dialect);
            let declaration = generated(&expression, not_null, dialect);
            let _ = writeln!(text, "  {} {declaration},", quoted(&self.shard_column(index, dialect)));
        }
        let mut parts: Vec<String> = front.iter().map(|(column, _)| quoted(column)).collect();
        parts.extend(key.iter().map(|part| match dialect {
            Dialect::GoogleSql => key_part(part, dialect),
            // Its primary keys only ascend.
            Dialect::Postgres => quoted(&part.column),
        }));
        let parts = parts.join(", ");
        let parent = self.parent.as_ref().map(|parent| format!("INTERLEAVE IN PARENT {}", quoted(parent)));
        let mut behind: Vec<String> = parent.into_iter().collect();
        match (behind.last_mut(), self.clauses.is_empty()) {
            (_, true) => {}
            // ON DELETE belongs to the parent, and stands behind it without a comma.
            (Some(parent), false) if self.clauses.starts_with("ON ") => {
                let _ = write!(parent, " {}", self.clauses);
            }
            (_, false) => behind.push(self.clauses.clone()),
        }
        match dialect {
            Dialect::GoogleSql => {
                let _ = write!(text, ") PRIMARY KEY ({parts})");
                behind.iter().for_each(|clause| {
                    let _ = write!(text, ",\n  {clause}");
                });
            }
            Dialect::Postgres => {
                let _ = write!(text, "  PRIMARY KEY ({parts})\n)");
                behind.iter().for_each(|clause| {
                    let _ = write!(text, " {clause}");
                });
            }
        }
        text.push_str(";\n");
        for index in &self.indexes {
            text.push('\n');
            text.push_str(&self.write_index(index, dialect));
        }
        text
    }

    fn write_index(&self, index: &IndexDraft, dialect: Dialect) -> String {
        let mut parts: Vec<String> = Vec::new();
        if index.shard.is_some() {
            parts.push(quote(&self.shard_column(index, dialect), dialect));
        }
        parts.extend(index.columns.iter().map(|part| key_part(part, dialect)));
        let of_index = |name: &String| index.columns.iter().any(|part| part.column == *name);
        let storing: Vec<String> = index
            .storing
            .iter()
            .filter(|name| !of_index(name) && !self.in_key(name))
            .map(|name| quote(name, dialect))
            .collect();
        let filtered = index.null_filtered && dialect == Dialect::GoogleSql;
        let mut text = format!(
            "CREATE {}{}INDEX {} ON {} ({})",
            if index.unique { "UNIQUE " } else { "" },
            if filtered { "NULL_FILTERED " } else { "" },
            quote(&index.name, dialect),
            quote(&self.name, dialect),
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

    /// What has to be known of the statements.
    fn comments(&self, dialect: Dialect) -> Vec<String> {
        let mut comments: Vec<String> = Vec::new();
        let typed: &[Column] = if self.declared.is_some() { &[] } else { &self.columns };
        if typed.iter().any(|column| column.column_type == ColumnType::Uint64) {
            comments.push(
                "Uint64 is wider than any integer of Spanner: NUMERIC, where that can be; take INT64 for ids below 2^63".into(),
            );
        }
        let wide =
            |column: &Column| matches!(column.column_type, ColumnType::Decimal { scale, .. } if scale > 9);
        if dialect == Dialect::GoogleSql && typed.iter().any(wide) {
            comments.push("NUMERIC has 9 digits behind the point; a Decimal of the table has more".into());
        }
        let falls = |part: &&SchemaKey| part.descending;
        if dialect == Dialect::Postgres && self.key.iter().any(|part| falls(&part)) {
            let falling: Vec<&str> = self.key.iter().filter(falls).map(|part| part.column.as_str()).collect();
            comments.push(format!(
                "primary keys of the PostgreSQL dialect only ascend: {} descends in the model, not here",
                falling.join(", ")
            ));
        }
        let in_order = |column: &&String| self.in_key(column);
        for column in self.nullable.iter().filter(in_order) {
            comments.push(format!(
                "{column} is NULL in some rows{}",
                match dialect {
                    Dialect::GoogleSql => "",
                    Dialect::Postgres => ", and a primary key of the PostgreSQL dialect takes none",
                }
            ));
        }
        for index in self.indexes.iter().filter(|index| index.shard.is_some() && !index.null_filtered) {
            for column in index.shard_columns().iter().filter(|column| self.nullable.contains(column)) {
                comments.push(format!(
                    "rows with a NULL in {column} have no shard: their entries of {} stand in one place; NULL_FILTERED leaves them out",
                    index.name
                ));
            }
        }
        let is_time = |name: &String| {
            self.columns.iter().any(|column| column.name == *name && column.column_type.is_timestamp())
        };
        let sharded_indexes = self.indexes.iter().filter(|index| index.shard.is_some());
        let mut hashed: Vec<String> = sharded_indexes.flat_map(IndexDraft::shard_columns).collect();
        if let KeyFront::Shard(of, _) | KeyFront::SignedShard(of, _) = &self.front {
            hashed.extend(of.iter().cloned());
        }
        if hashed.iter().any(is_time) {
            comments.push(
                "the text of a TIMESTAMP is in the default time zone of the database; shards were simulated in UTC, and spread alike".into(),
            );
        }
        match self.front {
            KeyFront::UuidBytes => {
                comments.push("the application makes EntryId: the 16 bytes of a random UUID (version 4)".into());
            }
            KeyFront::UuidIntegers => comments.push(
                "the application makes EntryHigh and EntryLow: the two halves of a random UUID (version 4), as signed integers".into(),
            ),
            _ => {}
        }
        let names = self.columns.iter().map(|column| &column.name).chain([&self.name]);
        let changed: Vec<String> = names
            .filter(|name| plain_name(name) != **name)
            .map(|name| format!("'{name}' is {} here", plain_name(name)))
            .collect();
        if !changed.is_empty() {
            comments
                .push(format!("names of Spanner have letters, digits and _ alone: {}", changed.join(", ")));
        }
        comments
    }

    fn in_key(&self, column: &str) -> bool {
        self.key.iter().any(|part| part.column == column)
    }

    /// A name that no column has.
    fn free(&self, google: &str, dialect: Dialect) -> String {
        let mut name = match dialect {
            Dialect::GoogleSql => google.to_owned(),
            Dialect::Postgres => google.to_ascii_lowercase(),
        };
        let declared = || self.declared.iter().flatten().map(|(name, _)| name.as_str());
        let columns = || self.columns.iter().map(|column| column.name.as_str());
        while columns().chain(declared()).any(|column| column.eq_ignore_ascii_case(&name)) {
            name.push('_');
        }
        name
    }

    /// The generated column in front of an index.
    fn shard_column(&self, index: &IndexDraft, dialect: Dialect) -> String {
        let declared = index.shard.as_ref().and_then(|shard| shard.name.clone());
        if let Some(name) = declared.filter(|_| self.declared.is_some()) {
            return name;
        }
        self.free(&format!("{}_ShardId", index.name), dialect)
    }

    /// Names and declarations of the columns in front of the key.
    fn front_columns(&self, sequence: &str, dialect: Dialect) -> Vec<(String, String)> {
        let one = |name: &str, declaration: String| vec![(self.free(name, dialect), declaration)];
        let of = |google: &str, postgres: &str| match dialect {
            Dialect::GoogleSql => google.to_owned(),
            Dialect::Postgres => postgres.to_owned(),
        };
        match &self.front {
            KeyFront::Nothing => Vec::new(),
            KeyFront::Shard(columns, shards) => one(
                "ShardId",
                generated(&self.shard_of(columns, *shards, false, dialect), self.of_all(columns), dialect),
            ),
            KeyFront::SignedShard(columns, shards) => one(
                "ShardId",
                generated(&self.shard_of(columns, *shards, true, dialect), self.of_all(columns), dialect),
            ),
            KeyFront::Uuid => one(
                "EntryId",
                of(
                    "STRING(36) NOT NULL DEFAULT (GENERATE_UUID())",
                    "varchar(36) NOT NULL DEFAULT spanner.generate_uuid()",
                ),
            ),
            KeyFront::UuidBytes => one("EntryId", of("BYTES(16) NOT NULL", "bytea NOT NULL")),
            KeyFront::UuidIntegers => ["EntryHigh", "EntryLow"]
                .into_iter()
                .map(|name| (self.free(name, dialect), of("INT64 NOT NULL", "bigint NOT NULL")))
                .collect(),
            KeyFront::BitReversed => {
                let next = match dialect {
                    Dialect::GoogleSql => {
                        format!("(GET_NEXT_SEQUENCE_VALUE(SEQUENCE {}))", quote(sequence, dialect))
                    }
                    Dialect::Postgres => nextval(sequence),
                };
                one("EntryId", format!("{} NOT NULL DEFAULT {next}", of("INT64", "bigint")))
            }
        }
    }
}

impl IndexDraft {
    /// What the shard in front is made of.
    fn shard_columns(&self) -> Vec<String> {
        match &self.shard {
            Some(shard) if !shard.columns.is_empty() => shard.columns.clone(),
            Some(_) => self.columns.iter().map(|part| part.column.clone()).collect(),
            None => Vec::new(),
        }
    }
}

impl TableDraft {
    /// ` NOT NULL` where none of the columns has one.
    fn of_all(&self, columns: &[String]) -> &'static str {
        if columns.iter().any(|column| self.nullable.contains(column)) { "" } else { " NOT NULL" }
    }

    /// The remainder of the fingerprint of columns: signed as `MOD` leaves it, or from 0 on. Bytes have no text of their own: alone they are
    /// hashed as they are, among others in hexadecimal.
    fn shard_of(&self, columns: &[String], shards: u32, signed: bool, dialect: Dialect) -> String {
        let is_bytes = |name: &String| {
            let of_bytes = |column: &&Column| {
                column.name == *name && matches!(column.column_type, ColumnType::String | ColumnType::Yson)
            };
            self.columns.iter().any(|column| of_bytes(&column))
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
}

fn key_part(part: &SchemaKey, dialect: Dialect) -> String {
    format!("{}{}", quote(&part.column, dialect), if part.descending { " DESC" } else { "" })
}

/// The declaration of a generated integer.
fn generated(expression: &str, not_null: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::GoogleSql => format!("INT64{not_null} AS ({expression}) STORED"),
        Dialect::Postgres => format!("bigint{not_null} GENERATED ALWAYS AS ({expression}) STORED"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Made, Shard, parse_schema};

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
            // The parent is declared beside it.
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
