//! Queries on several tables and exports. The truth is DataFusion over the same rows in memory, in
//! one partition.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::query::{Database, Params, QueryLimits};
use evenkeel::source::{Export, InputOptions, InputPath};
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;
use parquet::arrow::ArrowWriter;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{done, evenkeel, run, sorted_rows};

fn spec(name: &str, key: &str, value: &str, partitions: u64) -> TableSpec {
    TableSpec::new(TableDefinition {
        name: name.into(),
        columns: vec![
            Column::required("id", ColumnType::Int64),
            Column::nullable(key, ColumnType::Int64),
            Column::nullable(value, ColumnType::Utf8),
        ],
        primary_key: vec!["id".into()],
        partition_key: vec!["id".into()],
        partitions: PartitionCount::new(partitions).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

/// Rows whose second column has few values, most of them of one kind, and NULL.
fn batch(spec: &TableSpec, ids: std::ops::Range<i64>, keys: i64, random: &mut ChaCha8Rng) -> RecordBatch {
    let key = |random: &mut ChaCha8Rng| match random.random_range(0..10) {
        0 => None,
        1..4 => Some(7 % keys),
        _ => Some(random.random_range(0..keys)),
    };
    let join: Int64Array = ids.clone().map(|_| key(random)).collect();
    let text: StringArray = ids
        .clone()
        .map(|id| (id % 11 != 0).then(|| format!("{} {}", spec.name(), random.random_range(0..50))))
        .collect();
    let columns: [ArrayRef; 3] =
        [Arc::new(Int64Array::from_iter_values(ids)), Arc::new(join), Arc::new(text)];
    RecordBatch::try_new(Arc::clone(spec.schema()), columns.to_vec()).unwrap()
}

async fn table(place: &Path, spec: &TableSpec, batches: &[RecordBatch]) -> Table {
    let mut table = Table::create(place, spec).await.unwrap();
    for batch in batches {
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    table
}

fn export(path: &Path) -> Arc<Export> {
    let inputs = [InputPath::File(path.to_owned())];
    Arc::new(Export::open(&inputs, InputOptions::default(), &Default::default()).unwrap())
}

const STATEMENTS: &[&str] = &[
    "SELECT count(*) FROM a",
    "SELECT count(*) FROM c",
    "SELECT count(*), count(x), min(id), max(id) FROM d",
    "SELECT a.id, b.id, a.v, b.w FROM a JOIN b ON a.k = b.j WHERE a.id < 300",
    "SELECT a.id, b.w FROM a LEFT JOIN b ON a.k = b.j AND b.id < 40",
    "SELECT a.v, b.id FROM a RIGHT JOIN b ON a.id = b.id",
    "SELECT a.id, b.id FROM a FULL JOIN b ON a.id = b.id AND a.k = b.j",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.j = a.k)",
    "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.j = a.k)",
    "SELECT a.id FROM a WHERE a.k NOT IN (SELECT b.j FROM b WHERE b.j IS NOT NULL)",
    "SELECT a.k, count(*), count(b.w) FROM a JOIN b ON a.id = b.id GROUP BY a.k",
    "SELECT a.id, count(*) FROM a JOIN b ON a.id = b.id GROUP BY a.id",
    "SELECT c.x, count(*) FROM a JOIN c ON a.k = c.i GROUP BY c.x",
    "SELECT d.x, count(*) FROM d JOIN b ON d.i = b.j JOIN c ON c.id = b.id GROUP BY d.x",
    "SELECT id FROM a UNION ALL SELECT id FROM b UNION ALL SELECT id FROM c",
    "SELECT id, k FROM a INTERSECT SELECT id, j FROM b",
    "SELECT id FROM a EXCEPT SELECT id FROM c",
    "SELECT count(*) FROM a CROSS JOIN (SELECT * FROM c ORDER BY id LIMIT 3)",
    "SELECT x.id, y.id FROM a x JOIN a y ON x.k = y.k WHERE x.id < 30 AND y.id < 30",
    "SELECT id FROM c ORDER BY id LIMIT 5",
    "SELECT x FROM d WHERE id = 17",
    "SELECT 1 FROM c",
    "SELECT count(*) FROM (SELECT * FROM c LIMIT 7)",
    "SELECT count(*) FROM (SELECT 1 FROM c UNION ALL SELECT 1 FROM d)",
    "SELECT id FROM b WHERE EXISTS (SELECT 1 FROM c)",
    "SELECT count(*) FROM a CROSS JOIN c",
];

#[tokio::test(flavor = "multi_thread")]
async fn joins_of_tables_and_exports_give_the_rows_of_a_naive_engine() {
    for seed in 0..3 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let dir = tempfile::tempdir().unwrap();
        let [of_a, of_b] = [spec("a", "k", "v", 4), spec("b", "j", "w", [4, 1, 7][seed as usize])];
        let of_export = spec("export", "i", "x", 1);
        let a = [batch(&of_a, 0..3_000, 900, &mut random), batch(&of_a, 3_000..4_000, 40, &mut random)];
        let b = [batch(&of_b, 500..1_500, 900, &mut random)];
        let c = batch(&of_export, 0..900, 300, &mut random);
        let d = batch(&of_export, 0..600, 20, &mut random);
        let mut database = Database::default();
        for (name, spec, batches) in [("a", &of_a, a.as_slice()), ("b", &of_b, b.as_slice())] {
            let table = table(&dir.path().join(name), spec, batches).await;
            database.add_table(name, table.provider().unwrap()).unwrap();
        }
        let (parquet, csv) = (dir.path().join("c.parquet"), dir.path().join("d.csv"));
        let mut writer = ArrowWriter::try_new(fs::File::create(&parquet).unwrap(), c.schema(), None).unwrap();
        writer.write(&c).unwrap();
        writer.close().unwrap();
        arrow::csv::Writer::new(fs::File::create(&csv).unwrap()).write(&d).unwrap();
        database.add_export("c", export(&parquet)).unwrap();
        database.add_export("d", export(&csv)).unwrap();
        let session = database.session_with(&QueryLimits::default()).unwrap();

        let truth = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        for (name, batches) in [("a", a.as_slice()), ("b", &b), ("c", &[c]), ("d", &[d])] {
            let table = MemTable::try_new(batches[0].schema(), vec![batches.to_vec()]).unwrap();
            truth.register_table(name, Arc::new(table)).unwrap();
        }
        for sql in STATEMENTS {
            let expected = sorted_rows(&truth.sql(sql).await.unwrap().collect().await.unwrap());
            let found = sorted_rows(&session.collect(sql, &Params::default()).await.unwrap());
            assert!(found == expected, "seed {seed}: {sql}: {} rows, not {}", found.len(), expected.len());
            assert!(!expected.is_empty(), "{sql}");
        }
    }
}

/// Two tables of a database, and two exports.
fn database(dir: &Path) {
    fs::create_dir(dir.join("db")).unwrap();
    done(
        dir,
        "create {}/db/events --column id:int64:not-null --column user:int64 --column at:timestamp:not-null --primary-key id --partitions 8",
    );
    done(
        dir,
        "create {}/db/users --column id:int64:not-null --column name:utf8 --primary-key id --partitions 4",
    );
    let event = |id: i64| format!("{id},{},2026-01-01T00:{:02}:{:02}Z\n", id % 10, id / 60, id % 60);
    fs::write(dir.join("events.csv"), format!("id,user,at\n{}", (0..600).map(event).collect::<String>()))
        .unwrap();
    let user = |id: i64| format!("{id},user {id}\n");
    fs::write(dir.join("users.csv"), format!("id,name\n{}", (0..8).map(user).collect::<String>())).unwrap();
    done(dir, "ingest {}/db/events {}/events.csv");
    done(dir, "ingest {}/db/users {}/users.csv");
    // Neither a table nor in the way.
    fs::create_dir(dir.join("db/notes")).unwrap();
    fs::write(dir.join("db/README"), "x").unwrap();
}

/// Runs a query whose SQL has blanks.
fn query(dir: &Path, places: &str, sql: &str) -> crate::common::Run {
    let file = dir.join("query.sql");
    fs::write(&file, sql).unwrap();
    run(dir, &format!("query {places} --format csv -f {{}}/query.sql"))
}

#[test]
fn a_folder_of_tables_is_a_database_and_exports_join_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    database(dir);
    let rows = |places: &str, sql: &str| {
        let found = query(dir, places, sql);
        assert_eq!(found.code, 0, "{places} {sql}\n{}", found.stderr);
        found.stdout.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let join = "SELECT name, count(*) AS n FROM events JOIN users ON events.user = users.id GROUP BY name ORDER BY name";
    let expected: Vec<String> = (0..8).map(|user| format!("user {user},60")).collect();
    assert_eq!(rows("{}/db", join), expected);
    // The table of the place keeps its short name.
    let short = join.replace("FROM events", "FROM t AS events");
    for users in ["{}/users.csv", "{}/db/users"] {
        for sql in [join, &short] {
            assert_eq!(
                rows(&format!("{{}}/db/events --table users={users}"), sql),
                expected,
                "{users} {sql}"
            );
        }
    }
    assert_eq!(
        rows("{}/db", "SELECT \"table\", sum(rows) FROM sys.partition_stats GROUP BY 1 ORDER BY 1"),
        ["events,600", "users,8"]
    );
    assert_eq!(rows("{}/db", "SELECT count(*) FROM \"users/.sys/partition_stats\""), ["4"]);
    assert_eq!(rows("{}/db", "SELECT $now"), ["2026-01-01T00:09:59"]);
    let plan = done(dir, "query {}/db --explain -f {}/query.sql");
    assert!(!plan.is_empty());
    let timed = done(dir, "bench queries {}/db --runs 1 --format json -f {}/query.sql");
    assert!(timed.contains("\"rows\""), "{timed}");
    // A folder of one table is a folder, too: the table has the name of its directory.
    fs::create_dir(dir.join("one")).unwrap();
    done(dir, "create {}/one/visits --name other --column id:int64:not-null --primary-key id");
    assert_eq!(rows("{}/one", "SELECT count(*) FROM visits"), ["0"]);
}

#[test]
fn a_query_reads_each_table_at_its_version() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    database(dir);
    fs::write(dir.join("more.csv"), "id,name\n8,user 8\n9,user 9\n").unwrap();
    done(dir, "ingest {}/db/users {}/more.csv");
    let counts = |places: &str| {
        let sql = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM users)";
        let answered = query(dir, places, sql);
        assert_eq!(answered.code, 0, "{places}: {}", answered.stderr);
        answered.stdout.lines().nth(1).unwrap().to_owned()
    };
    for (versions, expected) in [
        ("", "600,10"),
        ("--version users=1", "600,8"),
        ("--version users=0,events=0", "0,0"),
        ("--version users=1 --version events=0", "0,8"),
    ] {
        assert_eq!(counts(&format!("{{}}/db {versions}")), expected, "{versions}");
    }
    // Beside other tables, a version without a name is that of the main table.
    let both = "{}/db/events --table users={}/db/users";
    assert_eq!(counts(&format!("{both} --version 0")), "0,10");
    assert_eq!(counts(&format!("{both} --version users=1,t=0")), "0,8");
}

#[test]
fn exports_in_queries_take_the_options_of_inputs_and_note_what_they_leave_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    database(dir);
    fs::write(dir.join("users.txt"), "1;007;31/01/2026\n2;-;01/02/2026\n").unwrap();
    let options = "--table more={}/users.txt --input-format csv --delimiter ; --names user,code,day --null-value - \
                   --timestamp-format day=%d/%m/%Y";
    let sql = "SELECT * FROM more ORDER BY user";
    let found = query(dir, &format!("{{}}/db/events {options}"), sql);
    let rows = "user,code,day\n1,007,2026-01-31\n2,,2026-02-01\n";
    assert_eq!((found.stdout.as_str(), found.code), (rows, 0), "{}", found.stderr);
    let found = query(dir, &format!("{{}}/db/events {options} --type code:int32"), sql);
    assert_eq!(found.stdout, rows.replace("007", "7"), "{}", found.stderr);
    let two = format!("{{}}/db/events {options} --table u={{}}/users.txt");
    let found = query(dir, &format!("{two} --type u.code:int32"), "SELECT code FROM u ORDER BY user");
    assert_eq!(found.stdout, "code\n7\n\"\"\n", "{}", found.stderr);
    for (places, said) in [
        (two.clone() + " --type code:int32", "--type NAME.COLUMN:TYPE"),
        ("{}/db/events --delimiter ;".to_owned(), "and none is named"),
        ("{}/db/events --type code:int32".to_owned(), "names no export"),
        (format!("{{}}/db/events {options} --type absent:int32"), "absent"),
    ] {
        let refused = query(dir, &places, sql);
        assert!(refused.code != 0 && refused.stderr.contains(said), "{places}: {}", refused.stderr);
    }
    fs::create_dir(dir.join("days")).unwrap();
    fs::write(dir.join("days/1.csv"), "id,n\n1,a\n").unwrap();
    fs::write(dir.join("days/2.csv"), "id,late\n2,b\n").unwrap();
    let found = query(dir, "{}/db/events --table days={}/days", "SELECT * FROM days ORDER BY id");
    assert_eq!(found.stdout, "id,n\n1,a\n2,\n");
    for said in ["late of", "lacks columns, which are NULL in its rows: n"] {
        assert!(found.stderr.contains(said), "{}", found.stderr);
    }
}

#[test]
fn wrong_names_and_places_of_tables_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    database(dir);
    for (places, code, said) in [
        ("{}/db --table users={}/users.csv", 1, "two tables are named 'users'"),
        ("{}/db/events --table t={}/users.csv", 1, "two tables are named 't'"),
        ("{}/db --table users", 2, "write --table NAME=PLACE"),
        ("{}/db --table =x", 2, "write --table NAME=PLACE"),
        ("{}/db --table more={}/absent.csv", 1, "absent.csv"),
        ("{}/db --table a=- --table b=-", 1, "standard input"),
        ("{}/db/notes", 1, "is not a table"),
        ("{}/db --version 1", 2, "write --version NAME=1, with one of: events, users"),
        ("{}/db --version user=1", 2, "there is no such table; there are: events, users"),
        ("{}/db --version users=1 --version events=1,users=0", 2, "two versions of table users"),
        ("{}/db --version users=2", 1, "version 2"),
        ("{}/users.csv --version 1", 2, "exports have no versions"),
        ("{}/db/events --table more={}/db", 2, "is a folder of tables; name one of them"),
    ] {
        let found = query(dir, places, "SELECT 1");
        assert_eq!(found.code, code, "{places}: {}", found.stderr);
        assert!(
            found.stderr.contains(said) && found.stderr.lines().count() == 1,
            "{places}: {}",
            found.stderr
        );
    }
    for sql in
        ["SELECT * FROM events NATURAL LEFT JOIN users", "SELECT 1 FROM events NATURAL FULL JOIN users"]
    {
        let refused = query(dir, "{}/db", sql);
        assert!(refused.code == 1 && refused.stderr.contains("write ON"), "{sql}: {}", refused.stderr);
    }
    for inside in ["{}/db/users/*/*.parquet", "{}/db/users/partition=0000", "{}/db/users/_log"] {
        let refused = query(dir, &format!("{{}}/db/events --table x={inside}"), "SELECT * FROM x");
        assert!(
            refused.code == 1 && refused.stderr.contains("superseded rows"),
            "{inside}: {}",
            refused.stderr
        );
    }
    let unknown = query(dir, "{}/db --table more={}/users.csv", "SELECT * FROM user");
    assert!(unknown.stderr.contains("there are: more, events, users, sys."), "{}", unknown.stderr);
    let row = |id: i64| if id == 49_999 { format!("{id},{id},7\n") } else { format!("{id},{id}\n") };
    fs::write(dir.join("bad.csv"), format!("id,n\n{}", (0..50_000).map(row).collect::<String>())).unwrap();
    let bad = query(dir, "{}/db --table bad={}/bad.csv", "SELECT max(n + 1) FROM bad");
    assert_eq!(bad.code, 1, "{}", bad.stderr);
    assert!(
        bad.stderr.contains("bad.csv, line 50001: has 3 fields")
            && bad.stderr.starts_with("error: /")
            && bad.stderr.contains("--on-error reject"),
        "{}",
        bad.stderr
    );
}

#[test]
fn an_export_is_queried_where_a_table_is() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("users.csv"), "id,country\n1,PT\n2,FR\n3,PT\n").unwrap();
    fs::write(dir.join("visits.ndjson"), "{\"id\":1}\n{\"id\":1}\n{\"id\":3}\n").unwrap();
    let countries = "SELECT country, count(*) AS n FROM $ GROUP BY country ORDER BY country";
    for name in ["t", "users"] {
        let found = query(dir, "{}/users.csv", &countries.replace('$', name));
        assert_eq!(found.stdout, "country,n\nFR,1\nPT,2\n", "{}", found.stderr);
    }
    let joined = "SELECT country, count(*) AS n FROM t JOIN v ON t.id = v.id GROUP BY country";
    let found = query(dir, "{}/users.csv --table v={}/visits.ndjson", joined);
    assert_eq!(found.stdout, "country,n\nPT,3\n", "{}", found.stderr);
    // A table of the name `t` that is given comes first.
    let found =
        query(dir, "{}/users.csv --table t={}/visits.ndjson", "SELECT count(*) AS n FROM t WHERE id = 1");
    assert_eq!(found.stdout, "n\n2\n", "{}", found.stderr);
    let typed = query(dir, "{}/users.csv --type id:utf8", "SELECT max(id) AS id FROM t WHERE id < '3'");
    assert_eq!(typed.stdout, "id\n2\n", "{}", typed.stderr);
    let piped = evenkeel()
        .args(["query", "-", "SELECT sum(id) AS s FROM t", "--input-format", "csv", "--format", "csv"])
        .stdin(fs::File::open(dir.join("users.csv")).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), "s\n6\n");
    fs::write(dir.join("query.sql"), "SELECT count(*) FROM t").unwrap();
    done(dir, "bench queries {}/users.csv --runs 1 --format json -f {}/query.sql");
    for (places, code, said) in [
        ("{}/users.csv --version 1", 2, "exports have no versions"),
        ("{}/none.csv", 1, "none.csv"),
        ("{}/users.csv --table v=-  --table w=-", 1, "standard input"),
    ] {
        let found = query(dir, places, "SELECT 1");
        assert!(
            found.code == code && found.stderr.contains(said),
            "{places}: {} {}",
            found.code,
            found.stderr
        );
        assert_eq!(found.stderr.lines().count(), 1, "{}", found.stderr);
    }
}
