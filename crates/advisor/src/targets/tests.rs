//! Statements for every target system: their columns, keys and notes.

use super::*;
use evenkeel_model::table::ColumnType;

/// A table with a column of every type, and with names that need quotes.
struct Table {
    columns: Vec<Column>,
    partition_key: Vec<String>,
    primary_key: Vec<String>,
}

impl Table {
    fn with_every_type() -> Self {
        let mut columns = vec![
            Column::required("user_id", ColumnType::Int64),
            Column::required("at", ColumnType::Timestamp),
            Column::required("Order", ColumnType::Utf8),
        ];
        let more = ColumnType::ALL.iter().enumerate();
        columns.extend(more.map(|(i, column_type)| Column::nullable(format!("c{i}"), *column_type)));
        columns.push(Column::nullable("a \"b\" `c` 'd'", ColumnType::Utf8));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self { columns, partition_key: names(&["user_id"]), primary_key: names(&["at", "user_id", "Order"]) }
    }

    fn design(&self, target: Target) -> TableDesign<'_> {
        TableDesign {
            name: "events",
            columns: &self.columns,
            partition_key: &self.partition_key,
            primary_key: &self.primary_key,
            is_unique: true,
            time: Some("at"),
            partitions: 16,
            role: Some(Role::Entity),
            heaviest_rows: Some(250_000),
            function: target.function(),
        }
    }
}

/// The notes on a design, each in one line.
fn notes(target: Target, design: &TableDesign<'_>) -> String {
    target.statements(design).map(|statements| statements.notes.join("\n")).unwrap_or_default()
}

fn text(target: Target, design: &TableDesign<'_>) -> String {
    target.statements(design).map(|statements| statements.text).unwrap_or_default()
}

#[test]
fn every_target_has_a_name_a_placement_and_statements() {
    let table = Table::with_every_type();
    for target in Target::ALL {
        assert_eq!(target.name().parse(), Ok(*target));
        assert_eq!(Target::from_function(target.function()), Some(*target), "{target}");
        assert_eq!(target.function().to_string(), target.placement_name());
        assert_eq!(text(*target, &table.design(*target)).is_empty(), *target == Target::Ydb, "{target}");
    }
    let target_of = |name: &str| Target::from_function(name.parse().unwrap());
    assert_eq!(target_of("clickhouse-siphash64"), Some(Target::Clickhouse));
    assert_eq!(target_of("cassandra-vnodes"), Some(Target::Cassandra));
    assert_eq!(target_of("librdkafka"), Some(Target::Kafka));
    assert_eq!(target_of("spanner-shard"), Some(Target::Spanner));
    assert_eq!([target_of("kudu"), target_of("neutral")], [None, None]);
    let unknown = "oracle".parse::<Target>().unwrap_err().to_string();
    assert!(unknown.contains("'oracle'") && unknown.contains("starrocks"), "{unknown}");
}

#[test]
fn tables_have_every_column_once_with_a_type() {
    let table = Table::with_every_type();
    for target in Target::ALL {
        if matches!(target, Target::Ydb | Target::Kafka | Target::Mongodb) {
            continue;
        }
        let text = text(*target, &table.design(*target));
        for column in &table.columns {
            let declared = text.lines().filter(|line| {
                let rest = line.strip_prefix("    ").and_then(|line| {
                    let bare = ['`', '"'].iter().fold(column.name.clone(), |name, mark| {
                        if line.starts_with(*mark) {
                            name.replace(*mark, &format!("{mark}{mark}"))
                        } else {
                            name
                        }
                    });
                    line.trim_start_matches(['`', '"']).strip_prefix(&bare)
                });
                rest.is_some_and(|rest| rest.trim_start_matches(['`', '"']).starts_with(' '))
            });
            assert_eq!(declared.count(), 1, "{target}, {}:\n{text}", column.name);
        }
    }
}

#[test]
fn keys_stand_where_each_system_expects_them() {
    let table = Table::with_every_type();
    let expected: &[(Target, &[&str])] = &[
        (
            Target::Clickhouse,
            &[
                "ORDER BY (at, user_id, `Order`)",
                "cityHash64(user_id)",
                "ReplacingMergeTree\nPARTITION BY toYYYYMM(at)",
            ],
        ),
        (
            Target::Citus,
            &[
                "PRIMARY KEY (at, user_id, \"Order\")",
                "create_distributed_table('events', 'user_id', shard_count => 16)",
            ],
        ),
        (Target::Postgres, &["PARTITION BY HASH (user_id)", "FOR i IN 0..15", "MODULUS 16"]),
        (Target::Greenplum, &["DISTRIBUTED BY (user_id)"]),
        (
            Target::Doris,
            &[
                "(\n    at DATETIME(6) NOT NULL,\n    user_id BIGINT NOT NULL,\n    `Order` VARCHAR(65533) NOT NULL",
                "UNIQUE KEY (at, user_id, `Order`)\nDISTRIBUTED BY HASH (user_id) BUCKETS 16",
            ],
        ),
        (
            Target::Starrocks,
            &["PRIMARY KEY (at, user_id, `Order`)\nDISTRIBUTED BY HASH (user_id) BUCKETS 16"],
        ),
        (Target::Spanner, &["PRIMARY KEY (user_id, at, `Order`)"]),
        (Target::Cassandra, &["PRIMARY KEY ((user_id), at, \"Order\")", "250000 rows share"]),
        (
            Target::Mongodb,
            &["sh.shardCollection(db.getName() + \".\" + \"events\", { \"user_id\": \"hashed\" }"],
        ),
        (Target::Kafka, &["--topic events --partitions 16", "record key to user_id"]),
        (
            Target::Iceberg,
            &["PARTITIONED BY (bucket(16, user_id), days(at))", "LOCALLY ORDERED BY at, user_id, `Order`"],
        ),
        (
            Target::Paimon,
            &[
                "PRIMARY KEY (at, user_id, `Order`) NOT ENFORCED",
                "'bucket' = '16',\n    'bucket-key' = 'user_id'",
            ],
        ),
    ];
    assert_eq!(expected.len() + 1, Target::ALL.len());
    for (target, parts) in expected {
        let design = table.design(*target);
        let text = text(*target, &design) + &notes(*target, &design);
        for part in *parts {
            assert!(text.contains(part), "{target} lacks {part}:\n{text}");
        }
    }
}

#[test]
fn nothing_is_declared_unique_that_is_not() {
    let table = Table::with_every_type();
    for target in Target::ALL {
        let design = TableDesign { is_unique: false, ..table.design(*target) };
        let text = text(*target, &design);
        // Spanner and Cassandra offer no alternative, and their notes say so.
        let has_choice = !matches!(target, Target::Spanner | Target::Cassandra);
        let unique = ["PRIMARY KEY", "UNIQUE", "ReplacingMergeTree", "IDENTIFIER"];
        assert!(!has_choice || unique.iter().all(|word| !text.contains(word)), "{target}:\n{text}");
        assert!(
            has_choice || notes(*target, &design).contains("add a column that distinguishes them"),
            "{text}"
        );
    }
}

#[test]
fn systems_that_hash_one_column_say_so_of_keys_with_more() {
    let mut table = Table::with_every_type();
    table.partition_key.push("Order".to_owned());
    for target in [Target::Citus, Target::Mongodb, Target::Iceberg] {
        let text = notes(target, &table.design(target));
        assert!(text.contains("hashes one column: add one that combines user_id and Order"), "{text}");
    }
    let text =
        text(Target::Spanner, &TableDesign { role: Some(Role::RowId), ..table.design(Target::Spanner) });
    assert!(text.contains("CONCAT(CAST(user_id AS STRING), CAST(`Order` AS STRING))"), "{text}");
    assert!(text.contains("PRIMARY KEY (ShardId, user_id, `Order`, at)"), "{text}");
}

#[test]
fn names_cannot_end_a_comment_or_a_literal() {
    let mut table = Table::with_every_type();
    table.columns.push(Column::nullable("x\nDROP TABLE t; --", ColumnType::Interval));
    for target in Target::ALL {
        let statements = target.statements(&TableDesign { name: "o'r\"s\nx", ..table.design(*target) });
        let Some(Statements { text, notes }) = statements else { continue };
        let marks = ["--", "//", "#"];
        let is_comment = |line: &&str| marks.iter().any(|mark| line.starts_with(mark));
        let comments: Vec<&str> = text.lines().take_while(is_comment).collect();
        assert_eq!(comments.len(), text.lines().filter(is_comment).count(), "{target}:\n{text}");
        // Continued lines are indented.
        let begun = comments.iter().filter(|line| !line.contains("   "));
        assert_eq!(begun.count(), notes.len(), "{target}:\n{text}");
    }
}
