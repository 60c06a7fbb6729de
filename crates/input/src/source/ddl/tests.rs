//! `CREATE TABLE` statements of several systems, and arbitrary text.

use super::*;

fn table(text: &str) -> DeclaredTable {
    read_ddl(text, "t.sql", None).unwrap()
}

fn types(table: &DeclaredTable) -> Vec<String> {
    let text = |column: &DeclaredColumn| {
        let column_type =
            column.column_type.map_or_else(|| "?".to_owned(), |column_type| column_type.to_string());
        format!("{} {column_type}{}", column.name, if column.nullable { "" } else { " NOT NULL" })
    };
    table.columns.iter().map(text).collect()
}

#[test]
fn statements_of_postgresql_citus_and_greenplum() {
    let declared = table(
        "CREATE TABLE public.events (\n    id bigint NOT NULL,\n    user_id integer,\n    \"Kind\" character varying(20) DEFAULT 'a,b'::character varying,\n \
             price numeric(10,2),\n ts timestamp with time zone DEFAULT now() NOT NULL,\n CONSTRAINT c CHECK ((price > (0)::numeric))\n);\n\
             ALTER TABLE public.events OWNER TO me;\n\
             ALTER TABLE ONLY public.events\n    ADD CONSTRAINT events_pkey PRIMARY KEY (user_id, id);\n\
             SELECT create_distributed_table('events', 'user_id');",
    );
    assert_eq!(declared.name, "public.events");
    let expected =
        ["id Int64 NOT NULL", "user_id Int32", "Kind Utf8", "price Decimal(10,2)", "ts ? NOT NULL"];
    assert_eq!(types(&declared), expected);
    assert_eq!(
        (declared.primary_key, declared.partition_key),
        (vec!["user_id".into(), "id".into()], vec!["user_id".into()])
    );
    let declared = table(
        "create table t (id bigint check (id > 0), p int check (p >= 0 and p < 9), a int, b map<text, list<int>>, \
             ok boolean, primary key (id, b, a));",
    );
    assert_eq!(types(&declared).len(), 5, "{declared:?}");
    assert_eq!(declared.primary_key.join(","), "id,b,a");
    let declared = table("CREATE TABLE t (a int PRIMARY KEY, b text) DISTRIBUTED BY (a);");
    assert_eq!((declared.primary_key, declared.partition_key), (vec!["a".to_owned()], vec!["a".to_owned()]));
}

#[test]
fn statements_of_clickhouse_doris_mysql_and_cassandra() {
    let declared = table(
        "CREATE TABLE db.hits ON CLUSTER c\n(\n    `id` UInt64 CODEC(Delta(8), ZSTD(1)),\n    `user` LowCardinality(Nullable(String)),\n \
             `at` DateTime64(3, 'UTC'),\n m String MATERIALIZED upper(user), al String ALIAS user,\n INDEX i user TYPE bloom_filter GRANULARITY 1\n)\n\
             ENGINE = MergeTree PARTITION BY toYYYYMM(at) ORDER BY (user, at) SETTINGS index_granularity = 8192",
    );
    assert_eq!(types(&declared), ["id Uint64 NOT NULL", "user Utf8", "at ? NOT NULL"]);
    assert_eq!((declared.primary_key.join(","), declared.partition_key.len()), ("user,at".to_owned(), 0));
    let declared = table(
        "CREATE TABLE d (id UInt64, user UInt64) ENGINE = Distributed('c', 'db', 'hits', cityHash64(user))",
    );
    assert_eq!(declared.partition_key, ["user"]);
    let declared = table(
        "CREATE TABLE IF NOT EXISTS `t` (`k` INT NOT NULL COMMENT 'a, (b)', `v` VARCHAR(20)) ENGINE=OLAP \
             DUPLICATE KEY(`k`) COMMENT 'x' DISTRIBUTED BY HASH(`k`) BUCKETS 32 PROPERTIES (\"replication_num\" = \"1\");",
    );
    assert_eq!(
        (declared.primary_key, declared.partition_key, declared.partitions),
        (vec!["k".into()], vec!["k".into()], Some(32))
    );
    let declared = table(
        "CREATE TABLE `t` (\n  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,\n  `n` int DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  \
             KEY `n` (`n`)\n) ENGINE=InnoDB PARTITION BY HASH (`id`) PARTITIONS 8;",
    );
    assert_eq!(types(&declared), ["id Uint64 NOT NULL", "n Int32"]);
    assert_eq!((declared.partition_key, declared.partitions), (vec!["id".to_owned()], Some(8)));
    let declared = table(
        "CREATE TABLE ks.readings (sensor uuid, day date, at timestamp, v double, PRIMARY KEY ((sensor, day), at)) \
             WITH CLUSTERING ORDER BY (at DESC);",
    );
    assert_eq!(
        (declared.primary_key.join(","), declared.partition_key.join(",")),
        ("sensor,day,at".into(), "sensor,day".into())
    );
}

#[test]
fn statements_of_spanner_and_ydb() {
    let declared = table(
        "CREATE TABLE Singers (\n  SingerId INT64 NOT NULL,\n  Name STRING(MAX),\n  Tags ARRAY<STRING(20)>,\n) PRIMARY KEY (SingerId DESC);",
    );
    assert_eq!(types(&declared), ["SingerId Int64 NOT NULL", "Name Utf8", "Tags Utf8"]);
    assert_eq!(declared.primary_key, ["SingerId"]);
    let declared = table(
        "CREATE TABLE `ads/events` (\n ts Timestamp NOT NULL,\n user_id Uint64 NOT NULL,\n PRIMARY KEY (ts, user_id)\n)\n\
             PARTITION BY HASH(user_id)\nWITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 64);",
    );
    assert_eq!((declared.partition_key, declared.partitions), (vec!["user_id".to_owned()], Some(64)));
    assert_eq!(declared.name, "ads/events");
}

#[test]
fn one_table_is_chosen_by_name_and_anything_else_is_refused() {
    let text = "CREATE TABLE a.x (id int); CREATE TABLE b.y (id int); CREATE INDEX i ON b.y (id);";
    assert_eq!(read_ddl(text, "t.sql", Some("y")).unwrap().name, "b.y");
    assert_eq!(read_ddl(text, "t.sql", Some("a.x")).unwrap().name, "a.x");
    let error = |text: &str, table: Option<&str>| read_ddl(text, "t.sql", table).unwrap_err().to_string();
    assert!(error(text, None).contains("--table: a.x, b.y"), "{}", error(text, None));
    assert!(error(text, Some("z")).contains("no table 'z'"));
    for text in ["", "SELECT 1", "CREATE VIEW v AS SELECT 1", "CREATE TABLE t", "CREATE TABLE t ()", "x"] {
        assert_eq!(error(text, None), "there is no CREATE TABLE with columns", "{text}");
    }
    assert!(error("CREATE TABLE t (a int) COMMENT 'x", None).contains("string"));
    let nested = format!("CREATE TABLE t (a {}", "Nullable(".repeat(100_000));
    assert!(error(&nested, None).contains("nested more than"));
}

proptest::proptest! {
    #[test]
    fn no_text_breaks_the_reader(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "CREATE", "TABLE", "t", "(", ")", ",", "a", "int", "PRIMARY", "KEY", "ORDER", "BY", "HASH", "<", ">",
            "'x'", "NOT", "NULL", ";", "Distributed", "ENGINE", "=", "Nullable", "`b`", "\"c\"", "7", "ALTER", "ADD",
        ]), 0..40,
    )) {
        let _ = read_ddl(&words.join(" "), "t.sql", None);
    }
}
