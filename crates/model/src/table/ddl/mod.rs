//! Reads and writes YQL's `CREATE TABLE` for column tables.
//!
//! ```text
//! CREATE TABLE [IF NOT EXISTS] name (
//!     column Type [NOT NULL | NULL] [FAMILY family], ...
//!     PRIMARY KEY (column, ...)
//! )
//! [PARTITION BY HASH(column, ...)]
//! [WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = N, ...)] [;]
//! ```
//! The option `TTL = Interval("P30D") [DELETE] ON column` is accepted if the column is in the
//! primary key. Names may be quoted with backticks. A clause that changes how YDB stores the table
//! but has no meaning here (a column family, a tier) is not rejected: it is reported in
//! [`CreateTable::notes`].
mod cursor;
mod parser;
mod statement;
mod write;

pub use parser::parse_create_table;
pub use statement::{CreateTable, DdlError, DdlNote};
pub use write::write_create_table;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
    use crate::units::PartitionCount;

    const MINIMAL: &str = "CREATE TABLE t (a Int64 NOT NULL, PRIMARY KEY (a)) WITH (STORE = COLUMN)";

    fn parsed(text: &str) -> CreateTable {
        parse_create_table(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_statement_of_the_ydb_documentation_is_read() {
        let create = parsed(include_str!("../../../../../data/ad_events.sql"));
        let spec = TableSpec::new(create.definition).unwrap();
        assert_eq!(spec.name(), "ad_events");
        assert_eq!(spec.definition().primary_key, ["event_timestamp", "user_id", "campaign_id"]);
        assert_eq!(spec.definition().partition_key, ["user_id", "event_timestamp"]);
        assert_eq!(spec.partitions().get(), 16);
        assert_eq!(create.notes, []);
    }

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let mut columns: Vec<Column> = ColumnType::ALL
            .into_iter()
            .enumerate()
            .map(|(i, t)| Column::nullable(format!("c {i}"), t))
            .collect();
        columns.push(Column::required("key", ColumnType::Utf8));
        let spec = TableSpec::new(TableDefinition {
            name: "shop/events".into(),
            columns,
            primary_key: vec!["key".into()],
            partition_key: vec!["key".into()],
            partitions: PartitionCount::new(7).unwrap(),
            placement: PlacementFunction::Ydb,
            ttl: None,
        })
        .unwrap();
        let create = parsed(&write_create_table(&spec));
        assert_eq!(create.definition, *spec.definition());
    }

    #[test]
    fn what_is_assumed_or_ignored_is_noted() {
        let text = "create table if not exists `a/b` (\n k Uint64 not null family fast, v Decimal(10, 2) null,\n\
                    primary key (k,),\n family fast (compression = \"lz4\"))\n\
                    with (ttl = Interval(\"P1D\") on at);";
        let create = parsed(text);
        assert_eq!(create.definition.name, "a/b");
        assert_eq!(create.definition.columns[1].column_type, ColumnType::Decimal { precision: 10, scale: 2 });
        assert_eq!(create.definition.partitions.get(), 64);
        assert_eq!(create.definition.partition_key, Vec::<String>::new());
        assert_eq!(create.notes.len(), 5, "{:?}", create.notes);
    }

    #[test]
    fn a_ttl_is_read_and_written() {
        let text = |ttl: &str| {
            format!(
                "CREATE TABLE t (at Timestamp NOT NULL, v Date, PRIMARY KEY (at)) WITH (STORE = COLUMN, TTL = {ttl}, A = 1)"
            )
        };
        for ttl in ["Interval(\"P30D\") ON at", "interval('P30D') delete on `at`"] {
            let create = parsed(&text(ttl));
            assert_eq!(create.definition.ttl, Some("at=30d".parse().unwrap()));
            let spec = TableSpec::new(create.definition).unwrap();
            let written = write_create_table(&spec);
            assert!(written.contains("    TTL = Interval(\"P30D\") ON at\n"), "{written}");
            assert_eq!(parsed(&written).definition.ttl, spec.definition().ttl);
        }
        for ttl in [
            "Interval(\"P30D\") ON v",
            "Interval(\"P30D\") TO EXTERNAL DATA SOURCE `/s3` ON at",
            "Interval(7) ON at",
        ] {
            let create = parsed(&text(ttl));
            assert_eq!(create.definition.ttl, None);
            assert!(
                create
                    .notes
                    .iter()
                    .any(|note| matches!(note, DdlNote::TtlOutsideKey { .. } | DdlNote::TtlUnknown)),
                "{:?}",
                create.notes
            );
        }
    }

    #[test]
    fn errors_name_line_column_and_what_was_expected() {
        let cases = [
            ("", "line 1, column 1: expected CREATE TABLE, found the end of the text"),
            ("SELECT 1", "line 1, column 1: expected CREATE TABLE, found 'SELECT'"),
            ("CREATE TABLE t\n(a Nope)", "line 2, column 4: unknown column type 'Nope'"),
            ("CREATE TABLE t (a Int64", "expected , or ) after a column, found the end of the text"),
            (
                "CREATE TABLE t (a Int64) PARTITION BY RANGE(a)",
                "expected HASH after PARTITION BY, found 'RANGE'",
            ),
            ("CREATE TABLE t (a Int64) WITH (STORE = ROW)", "only column tables"),
            ("CREATE TABLE t (a Int64, INDEX i GLOBAL ON (a))", "no secondary indexes"),
            (
                "CREATE TABLE t (a Int64) WITH (AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 0)",
                "a table has 1 to 100000 partitions, not 0",
            ),
            ("CREATE TABLE t (a Int64); DROP TABLE t", "expected the end of the statement"),
            ("CREATE TABLE t (a 'x')", "expected a column type"),
            ("CREATE TABLE `t (a Int64)", "line 1"),
        ];
        for (text, expected) in cases {
            let error = parse_create_table(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn no_cut_of_a_statement_panics() {
        for end in 0..=MINIMAL.len() {
            let _ = parse_create_table(&MINIMAL[..end]);
        }
        assert!(parse_create_table(MINIMAL).is_ok());
    }
}
