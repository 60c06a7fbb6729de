//! Writes the statements that declare a table under a strategy.

use crate::schema::{Dialect, IndexDraft, KeyFront, SchemaKey, ShardFront, TableDraft};
use crate::simulate::declared::{Declared, Parent, WrittenTable};
use crate::simulate::index::IndexSpec;
use crate::simulate::key::KeyOrder;
use crate::simulate::strategy::{Strategy, UuidForm};
use evenkeel_model::table::{Column, Ttl};
use evenkeel_model::units::Micros;
use evenkeel_placement::transform::UuidKind;

/// A declared table, to which strategies are applied.
#[derive(Debug, Clone, Copy)]
pub struct Declaration<'a> {
    /// Name of the table.
    pub name: &'a str,
    /// Columns of the table.
    pub columns: &'a [Column],
    /// Columns of the primary key.
    pub key: &'a [KeyOrder],
    /// Indexes of the table.
    pub indexes: &'a [IndexSpec],
    /// Table that this one is interleaved in.
    pub parent: Option<&'a Parent>,
    /// Columns that are NULL in some rows.
    pub nullable: &'a [String],
    /// Original declaration, if there is one: its own key, which one of the strategies represents,
    /// and its columns as written.
    pub declared: Option<&'a Declared>,
    /// Expiry of the rows.
    pub ttl: Option<&'a Ttl>,
}

impl Declaration<'_> {
    /// Returns the statements for a strategy. `None` for hash partitions, which Spanner does not
    /// have, and for the anti-patterns: ascending sequences and UUIDs that begin with the time.
    #[must_use]
    pub fn statements(&self, strategy: Strategy, dialect: Dialect) -> Option<String> {
        let written = self.declared.and_then(|declared| declared.written.as_ref());
        let written = written.filter(|written| written.dialect == dialect);
        let names = Names { columns: self.columns, written };
        let judged = self.declared.filter(|declared| declared.strategy == Some(strategy));
        let (mut front, mut key) = self.strategy_key(strategy, judged, &names)?;
        // The declared key is kept as it is.
        let kept = written.filter(|_| judged.is_some());
        if let Some(written) = kept {
            (front, key) = (KeyFront::Nothing, names.key(&written.key));
        }
        let mut comments = String::new();
        let has_front = front != KeyFront::Nothing;
        let parent = self.parent.filter(|parent| {
            let parent_key = names.key(&parent.key);
            let is_kept = !has_front && key.starts_with(&parent_key);
            if !is_kept {
                comments.push_str(&format!(
                    "-- not interleaved in {}: the key does not begin with that of {}, by name and order\n",
                    parent.name, parent.name
                ));
            }
            is_kept
        });
        let indexes = self.indexes.iter().map(|index| index_draft(index, parent, &names, &mut comments));
        let draft = TableDraft {
            name: self.name.to_owned(),
            columns: self.columns.to_vec(),
            indexes: indexes.collect(),
            declared: written.map(|written| self.written_columns(written, kept.is_some())),
            clauses: match self.ttl {
                Some(ttl) => self.deletion_policy(ttl, dialect, &mut comments),
                None => written.map(|written| written.clauses.clone()).unwrap_or_default(),
            },
            nullable: self.nullable.to_vec(),
            parent: parent.map(|parent| parent.name.clone()),
            key,
            front,
        };
        Some(comments + &draft.write(dialect))
    }

    /// Returns the generated prefix of the key under a strategy, and the columns after it. If the
    /// strategy represents the `judged` declaration, the columns of its shard are those declared.
    fn strategy_key(
        &self,
        strategy: Strategy,
        judged: Option<&Declared>,
        names: &Names<'_>,
    ) -> Option<(KeyFront, Vec<SchemaKey>)> {
        let mut key = names.key(self.key);
        let hashed = |most: usize| match judged.map(|declared| declared.shard_columns.as_slice()) {
            None | Some([]) => self.key.iter().take(most).map(|part| names.exact(&part.column)).collect(),
            Some(columns) => columns.iter().map(|name| names.exact(name)).collect(),
        };
        let front = match strategy {
            Strategy::Declared => KeyFront::Nothing,
            Strategy::Swapped => {
                let [first, second, ..] = key.as_mut_slice() else { return None };
                std::mem::swap(first, second);
                KeyFront::Nothing
            }
            Strategy::Descending => {
                key.iter_mut().for_each(|part| part.descending |= self.is_time(&part.column));
                KeyFront::Nothing
            }
            Strategy::Shards(shards) => KeyFront::Shard(hashed(usize::MAX), shards),
            Strategy::GeneratedShards(shards) => KeyFront::SignedShard(hashed(1), shards),
            Strategy::BitReversed => KeyFront::BitReversed,
            Strategy::Uuid(UuidKind::Random, UuidForm::Text) => KeyFront::Uuid,
            Strategy::Uuid(UuidKind::Random, UuidForm::Bytes) => KeyFront::UuidBytes,
            Strategy::Uuid(UuidKind::Random, UuidForm::TwoIntegers) => KeyFront::UuidIntegers,
            Strategy::Uuid(..) | Strategy::Sequence | Strategy::HashPartitions(_) => return None,
        };
        Some((front, key))
    }

    fn is_time(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name && column.column_type.is_time())
    }

    /// Returns the columns as written. A generated prefix of the key is left out unless the key is
    /// kept or an index needs it: another strategy has no use for it, and the export may lack it.
    fn written_columns(&self, written: &WrittenTable, is_key_kept: bool) -> Vec<(String, String)> {
        let is_generated = self.declared.is_some_and(|declared| declared.strategy.is_some());
        let front = written.key.first().filter(|_| is_generated && !is_key_kept);
        let is_front = |name: &String| front.is_some_and(|front| front.column.eq_ignore_ascii_case(name));
        let in_index = |name: &String| {
            let mut shards = self.indexes.iter().filter_map(|index| index.shard.as_ref()?.name.as_ref());
            shards.any(|shard| shard.eq_ignore_ascii_case(name))
        };
        let columns = written.columns.iter().filter(|(name, _)| !is_front(name) || in_index(name));
        columns.cloned().collect()
    }

    /// Returns the clause that lets rows expire, in whole days.
    fn deletion_policy(&self, ttl: &Ttl, dialect: Dialect, comments: &mut String) -> String {
        let column = self.columns.iter().find(|column| column.name == ttl.column);
        if !column.is_some_and(|column| column.column_type.is_timestamp()) {
            comments.push_str(&format!(
                "-- rows expire {} after {}: the policy is left out, since Spanner needs a TIMESTAMP for \
                    it\n",
                ttl.keep, ttl.column
            ));
            return String::new();
        }
        let days = (ttl.keep.get() - 1) / Micros::DAY.get() + 1;
        if ttl.keep.get() % Micros::DAY.get() > 0 {
            comments.push_str(&format!("-- rows expire after {}, here after whole days\n", ttl.keep));
        }
        match dialect {
            Dialect::GoogleSql => {
                format!("ROW DELETION POLICY (OLDER_THAN({}, INTERVAL {days} DAY))", ttl.column)
            }
            Dialect::Postgres => format!("TTL INTERVAL '{days} days' ON {}", ttl.column),
        }
    }
}

/// Returns an index with the names of its columns as declared. It is interleaved only in a parent
/// whose key is its prefix.
fn index_draft(
    index: &IndexSpec,
    parent: Option<&Parent>,
    names: &Names<'_>,
    comments: &mut String,
) -> IndexDraft {
    let columns = names.key(&index.columns);
    let interleaved_in =
        parent.filter(|parent| index.interleaved && columns.starts_with(&names.key(&parent.key)));
    if index.interleaved && interleaved_in.is_none() {
        comments.push_str(&format!(
            "-- index {} is not interleaved: it does not begin with the key of a parent of the \
                table\n",
            index.name
        ));
    }
    let exact = |columns: &[String]| columns.iter().map(|name| names.exact(name)).collect();
    IndexDraft {
        name: index.name.clone(),
        columns,
        storing: exact(&index.storing),
        null_filtered: index.null_filtered,
        unique: index.unique,
        shard: index
            .shard
            .as_ref()
            .map(|shard| ShardFront { columns: exact(&shard.columns), ..shard.clone() }),
        interleaved_in: interleaved_in.map(|parent| parent.name.clone()),
    }
}

/// Resolves names to the spelling of the columns; names in a schema do not differ by case.
struct Names<'a> {
    columns: &'a [Column],
    written: Option<&'a WrittenTable>,
}

impl Names<'_> {
    /// Returns the spelling of the declaration, or else of the export.
    fn exact(&self, name: &str) -> String {
        let written =
            self.written.iter().flat_map(|written| &written.columns).map(|(column, _)| column.as_str());
        let mut written = written.filter(|column| column.eq_ignore_ascii_case(name));
        let exported = || self.columns.iter().map(|column| column.name.as_str());
        let exact = exported().find(|column| *column == name);
        let alike = || exported().find(|column| column.eq_ignore_ascii_case(name));
        written.next().or(exact).or_else(alike).unwrap_or(name).to_owned()
    }

    fn key(&self, parts: &[KeyOrder]) -> Vec<SchemaKey> {
        let part =
            |part: &KeyOrder| SchemaKey { column: self.exact(&part.column), descending: part.descending };
        parts.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::parse_schema;
    use crate::simulate::index::parse_key_order;
    use evenkeel_model::table::ColumnType;

    const DIALECTS: [Dialect; 2] = [Dialect::GoogleSql, Dialect::Postgres];

    fn columns() -> Vec<Column> {
        vec![
            Column::required("user", ColumnType::Utf8),
            Column::required("at", ColumnType::Timestamp),
            Column::nullable("note", ColumnType::Utf8),
        ]
    }

    fn declaration<'a>(columns: &'a [Column], key: &'a [KeyOrder]) -> Declaration<'a> {
        Declaration {
            name: "events",
            columns,
            key,
            indexes: &[],
            parent: None,
            nullable: &[],
            declared: None,
            ttl: None,
        }
    }

    fn key(text: &str) -> Vec<KeyOrder> {
        parse_key_order(text).unwrap()
    }

    /// Returns the declaration that the statements amount to.
    fn read_back(text: &str) -> Declared {
        let schema = parse_schema(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        Declared::new(&schema, schema.table(Some("events")).unwrap())
    }

    #[test]
    fn statements_declare_the_strategy_that_they_are_for() {
        let (columns, declared_key) = (columns(), key("user, at"));
        let declaration = declaration(&columns, &declared_key);
        for dialect in DIALECTS {
            for (name, hashed) in [
                ("shard-16", &["user", "at"][..]),
                ("generated-9", &["user"]),
                ("bit-reversed", &[]),
                ("uuid4", &[]),
            ] {
                let strategy: Strategy = name.parse().unwrap();
                let read = read_back(&declaration.statements(strategy, dialect).unwrap());
                assert_eq!(
                    (read.strategy, read.shard_columns),
                    (Some(strategy), hashed.iter().map(|name| (*name).to_owned()).collect())
                );
                assert_eq!(read.primary_key, declared_key);
            }
            for (name, expected) in [("declared", "user, at"), ("swapped", "at, user")] {
                let read = read_back(&declaration.statements(name.parse().unwrap(), dialect).unwrap());
                assert_eq!((read.strategy, read.primary_key), (None, key(expected)));
            }
            for anti_pattern in ["sequence", "uuid1", "uuid7-bytes", "hash-8"] {
                assert_eq!(declaration.statements(anti_pattern.parse().unwrap(), dialect), None);
            }
        }
        let google = |name: &str| declaration.statements(name.parse().unwrap(), Dialect::GoogleSql).unwrap();
        assert_eq!(read_back(&google("desc")).primary_key, key("user, at desc"));
        let one = key("user");
        let short = Declaration { key: &one, ..declaration };
        assert_eq!(short.statements(Strategy::Swapped, Dialect::GoogleSql), None);
    }

    #[test]
    fn a_declared_key_is_written_as_it_was() {
        let text = "CREATE TABLE Users (user STRING(20) NOT NULL) PRIMARY KEY (user);
            CREATE TABLE events (
              ShardId INT64 NOT NULL AS (MOD(FARM_FINGERPRINT(note), 64)) STORED,
              user STRING(20) NOT NULL DEFAULT ('a, b'), at TIMESTAMP NOT NULL, note STRING(MAX),
            ) PRIMARY KEY (ShardId, at DESC, user), ROW DELETION POLICY (OLDER_THAN(at, INTERVAL 3 DAY));
            CREATE INDEX by_user ON events(user DESC) STORING (note);";
        let declared = read_back(text);
        let columns = columns();
        let base = declaration(&columns, &declared.primary_key);
        let declaration = Declaration { declared: Some(&declared), indexes: &declared.indexes, ..base };
        let kept =
            read_back(&declaration.statements(declared.strategy.unwrap(), Dialect::GoogleSql).unwrap());
        assert_eq!((&kept.written, &kept.indexes), (&declared.written, &declared.indexes));
        // Another strategy does not need the shard.
        let other = read_back(&declaration.statements(Strategy::Declared, Dialect::GoogleSql).unwrap());
        assert_eq!((other.strategy, &other.primary_key), (None, &declared.primary_key));
        let names = |declared: &Declared| {
            declared
                .written
                .iter()
                .flat_map(|written| &written.columns)
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&other), ["user", "at", "note"]);
        assert_eq!(names(&kept), ["ShardId", "user", "at", "note"]);
    }

    #[test]
    fn a_table_is_interleaved_only_if_its_key_begins_with_that_of_the_parent() {
        let (columns, own) = (columns(), key("user, at"));
        for (parent_key, strategy, is_kept) in [
            ("USER", "declared", true),
            ("user, at", "declared", true),
            ("user desc", "declared", false),
            ("at", "declared", false),
            ("at", "swapped", true),
            ("user", "shard-4", false),
            ("user, at, note", "declared", false),
        ] {
            let parent = Parent { name: "parents".to_owned(), key: key(parent_key) };
            let declaration = Declaration { parent: Some(&parent), ..declaration(&columns, &own) };
            let text = declaration.statements(strategy.parse().unwrap(), Dialect::GoogleSql).unwrap();
            assert_eq!(text.contains("INTERLEAVE IN PARENT parents"), is_kept, "{text}");
            assert_eq!(text.starts_with("-- not interleaved in parents"), !is_kept, "{text}");
        }
    }

    #[test]
    fn rows_expire_after_whole_days() {
        let (columns, own) = (columns(), key("user, at"));
        for (micros, days) in [(1, 1), (86_400_000_000, 1), (86_400_000_001, 2), (30 * 86_400_000_000, 30)] {
            let ttl = Ttl { column: "at".to_owned(), keep: Micros::new(micros) };
            let declaration = Declaration { ttl: Some(&ttl), ..declaration(&columns, &own) };
            let text = DIALECTS.map(|dialect| declaration.statements(Strategy::Declared, dialect).unwrap());
            assert!(
                text[0].contains(&format!("ROW DELETION POLICY (OLDER_THAN(at, INTERVAL {days} DAY))")),
                "{}",
                text[0]
            );
            assert!(text[1].contains(&format!("TTL INTERVAL '{days} days' ON at")), "{}", text[1]);
        }
        let ttl = Ttl { column: "note".to_owned(), keep: Micros::DAY };
        let declaration = Declaration { ttl: Some(&ttl), ..declaration(&columns, &own) };
        let text = declaration.statements(Strategy::Declared, Dialect::GoogleSql).unwrap();
        assert!(
            text.contains("is left out, since Spanner needs a TIMESTAMP")
                && !text.contains("DELETION POLICY ("),
            "{text}"
        );
    }
}
