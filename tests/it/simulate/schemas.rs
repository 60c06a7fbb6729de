//! Schemas that are read, judged, recommended and printed.

use serde_json::Value;

use crate::common::{done, json, run};
use crate::simulate::{events, finding, number};

#[test]
fn a_schema_is_judged_by_what_its_rows_do() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let schema = |key: &str| {
        let text = format!(
            "CREATE TABLE Other (x INT64) PRIMARY KEY (x);\n\
             CREATE TABLE Events (event_timestamp TIMESTAMP NOT NULL, user_id STRING(MAX) NOT NULL, campaign_id INT64)\n  \
             PRIMARY KEY ({key});\n\
             CREATE NULL_FILTERED INDEX ByTime ON Events(event_timestamp) STORING (campaign_id);\n\
             CREATE INDEX ByUser ON Events(user_id, event_timestamp DESC);"
        );
        std::fs::write(dir.path().join("schema.sql"), text).unwrap();
        json(
            dir.path(),
            "spanner simulate {}/exports --ddl {}/schema.sql --table events --strategies declared --rate 20000 --format json",
        )
    };
    let by_time = schema("event_timestamp, user_id");
    assert_eq!(by_time["load"]["source"], "given");
    let found = finding(&by_time, "monotonic_key").unwrap();
    assert_eq!((&found["severity"], &found["subject"]), (&"problem".into(), &"event_timestamp".into()));
    assert!(number(&found["measured"]) > 0.99);
    assert_eq!(finding(&by_time, "monotonic_index").unwrap()["subject"], "ByTime");
    assert_eq!(by_time["recommended"], Value::Null);
    // A key that begins with a time-like type is not blamed for that alone, nor one that begins
    // with a user.
    let by_user = schema("user_id, event_timestamp");
    assert!(finding(&by_user, "monotonic_key").is_none(), "{}", by_user["findings"]);
    assert!(
        finding(&by_user, "history_ascends").is_some() && finding(&by_user, "two_phase_commits").is_some()
    );
    assert_eq!(by_user["recommended"], "declared");
    let descending = schema("user_id, event_timestamp DESC");
    assert!(finding(&descending, "history_ascends").is_none());
    assert_eq!(descending["primary_key"][1]["descending"], true);
    // Where so little comes that one split takes it, it does no harm.
    let quiet = json(
        dir.path(),
        "spanner simulate {}/exports --primary-key event_timestamp,user_id --scale 1 --strategies declared,uuid4 --format json",
    );
    assert_eq!(finding(&quiet, "monotonic_key").unwrap()["severity"], "note");
    // All the same its writes follow time, and those of the other do not.
    assert_eq!(quiet["recommended"], "uuid4");
}

#[test]
fn the_recommended_schema_is_printed_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    for target in ["spanner", "spanner-postgres"] {
        let text = done(
            dir.path(),
            &format!(
                "spanner simulate {{}}/exports --primary-key event_timestamp,user_id --rate 20000 --print-ddl {target} --html {{}}/s.html"
            ),
        );
        assert!(text.contains("recommended: swapped"), "{text}");
        let ddl = text
            .split_once("CREATE TABLE exports")
            .map(|(_, rest)| format!("CREATE TABLE exports{rest}"))
            .unwrap();
        std::fs::write(dir.path().join("schema.sql"), ddl).unwrap();
        let again = json(
            dir.path(),
            "spanner simulate {}/exports --ddl {}/schema.sql --strategies declared --format json",
        );
        assert_eq!(again["primary_key"][0]["column"], "user_id");
    }
    let html = std::fs::read_to_string(dir.path().join("s.html")).unwrap();
    assert_eq!(html.matches("<img class=\"heat\"").count(), 10);
    assert!(!html.contains("<script") && !html.contains("http"));

    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let google = done(dir.path(), "spanner ddl {}/t --target spanner --strategy shard-16");
    assert!(google.contains("ShardId INT64 NOT NULL AS (MOD(MOD(FARM_FINGERPRINT(CONCAT("), "{google}");
    let bytes = done(dir.path(), "spanner ddl {}/t --target spanner --strategy uuid4-bytes");
    assert!(
        bytes.contains("EntryId BYTES(16) NOT NULL")
            && bytes.contains("-- the application generates EntryId")
    );
    let integers = done(dir.path(), "spanner ddl {}/t --target spanner-postgres --strategy uuid4-int64");
    assert!(integers.contains("PRIMARY KEY (entryhigh, entrylow, event_timestamp"), "{integers}");
    // Without rows the types decide, with rows what they do.
    let by_types = run(dir.path(), "spanner ddl {}/t --target spanner");
    assert!(by_types.stdout.contains("PRIMARY KEY (user_id, event_timestamp, campaign_id)"));
    assert!(by_types.stderr.contains("the table has no rows"), "{}", by_types.stderr);
    done(dir.path(), "ingest {}/t {}/exports --compact off");
    let by_rows = run(dir.path(), "spanner ddl {}/t --target spanner");
    assert!(by_rows.stdout.contains("PRIMARY KEY (user_id, event_timestamp, campaign_id)"));
    assert!(by_rows.stderr.contains("by the rows of the table, each standing for"), "{}", by_rows.stderr);
    assert!(done(dir.path(), "ddl {}/t").contains("PARTITION BY HASH"));
    for (arguments, message) in [
        ("ddl {}/t --strategy swapped", "unexpected argument '--strategy'"),
        ("spanner ddl {}/t --target mysql", "unknown target 'mysql'; known: spanner, spanner-postgres"),
        ("spanner ddl {}/t --target spanner --strategy uuid7", "no schema is written for it"),
    ] {
        let refused = run(dir.path(), arguments);
        assert!(refused.code == 2 && refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
}

#[test]
fn the_rows_of_a_table_decide_its_key_not_its_types() {
    let dir = tempfile::tempdir().unwrap();
    // No time leads the key, but a number that counts up.
    let row =
        |row: u64| format!("{row},2024-01-01T{:02}:{:02}:{:02}Z\n", row / 7200, row / 120 % 60, row / 2 % 60);
    let rows: String = (0..40_000).map(row).collect();
    std::fs::write(dir.path().join("orders.csv"), format!("id,placed\n{rows}")).unwrap();
    let ddl = "CREATE TABLE orders (id Int64 NOT NULL, placed Timestamp NOT NULL, PRIMARY KEY (id, placed)) \
               PARTITION BY HASH(id) WITH (STORE = COLUMN, PARTITION_COUNT = 4);";
    std::fs::write(dir.path().join("orders.sql"), ddl).unwrap();
    done(dir.path(), "create {}/orders --ddl {}/orders.sql");
    assert!(done(dir.path(), "spanner ddl {}/orders --target spanner").contains("PRIMARY KEY (id, placed)"));
    done(dir.path(), "ingest {}/orders {}/orders.csv");
    let chosen = run(dir.path(), "spanner ddl {}/orders --target spanner");
    assert!(chosen.stderr.contains("strategy shard-16"), "{}", chosen.stderr);
    assert!(chosen.stdout.contains("PRIMARY KEY (ShardId, id, placed)"), "{}", chosen.stdout);
}

#[test]
fn indexes_and_parents_are_declared_with_what_is_recommended() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let users: String = (0..50).map(|user| format!("u{user:09},n{user}\n")).collect();
    std::fs::write(dir.path().join("users.csv"), format!("user_id,name\n{users}")).unwrap();
    let schema = "CREATE TABLE Users (User_Id STRING(MAX) NOT NULL, Name STRING(MAX)) PRIMARY KEY (User_Id);
        CREATE TABLE Events (User_Id STRING(36) NOT NULL, Event_Timestamp TIMESTAMP NOT NULL, Campaign_Id INT64,
          TimeShard INT64 NOT NULL AS (MOD(ABS(FARM_FINGERPRINT(CAST(Event_Timestamp AS STRING))), 8)) STORED
        ) PRIMARY KEY (User_Id, Event_Timestamp DESC), INTERLEAVE IN PARENT Users ON DELETE CASCADE;
        CREATE UNIQUE NULL_FILTERED INDEX ByCampaign ON Events(User_Id, Campaign_Id) STORING (Event_Timestamp), INTERLEAVE IN Users;
        CREATE INDEX ByTime ON Events(TimeShard, Event_Timestamp);";
    std::fs::write(dir.path().join("schema.sql"), schema).unwrap();
    let alone = run(
        dir.path(),
        "spanner simulate {}/exports --ddl {}/schema.sql --table events --strategies declared --print-ddl spanner --format json",
    );
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    assert!(
        alone.stderr.contains("Events is interleaved in Users; its keys are modelled alone"),
        "{}",
        alone.stderr
    );
    let simulation: Value = serde_json::from_str(&alone.stdout).unwrap();
    let ddl = simulation["ddl"].as_str().unwrap();
    for statement in [
        "  User_Id STRING(36) NOT NULL,\n",
        "  TimeShard INT64 NOT NULL AS (MOD(ABS(FARM_FINGERPRINT(CAST(Event_Timestamp AS STRING))), 8)) STORED,\n",
        ") PRIMARY KEY (User_Id, Event_Timestamp DESC),\n  INTERLEAVE IN PARENT Users ON DELETE CASCADE;",
        "CREATE UNIQUE NULL_FILTERED INDEX ByCampaign ON Events (User_Id, Campaign_Id),\n  INTERLEAVE IN Users;",
        "CREATE INDEX ByTime ON Events (TimeShard, Event_Timestamp);",
    ] {
        assert!(ddl.contains(statement), "{statement}\n{ddl}");
    }
    // Parent and children in one order, from the same statements.
    let both = "spanner simulate {}/users.csv --ddl {}/schema.sql --interleave {}/exports --print-ddl spanner-postgres --format json";
    let tree = run(dir.path(), both);
    assert_eq!(tree.code, 0, "{}", tree.stderr);
    let simulation: Value = serde_json::from_str(&tree.stdout).unwrap();
    assert_eq!(simulation["strategies"][0]["outcome"]["spaces"][0]["name"], "Users and children");
    let (written, recommended) = (simulation["ddl"].as_str().unwrap(), &simulation["recommended"]);
    assert_eq!(recommended, "interleaved");
    assert!(written.contains("INTERLEAVE IN PARENT \"Users\";"), "{written}");
    assert!(
        written.contains("CREATE TABLE \"Users\" (") && written.contains("CREATE TABLE \"Events\" ("),
        "{written}"
    );
    for (arguments, message) in [
        (
            "{}/users.csv --primary-key user_id --interleave {}/exports",
            "give --child-key, or --ddl with both tables",
        ),
        (
            "{}/users.csv --ddl {}/schema.sql --table Events --interleave {}/exports",
            "no table is interleaved in Events",
        ),
        ("{}/users.csv --ddl {}/schema.sql --interleave {}/exports --child-table x", "there is no table 'x'"),
    ] {
        let refused = run(dir.path(), &format!("spanner simulate {arguments}"));
        assert!(refused.code == 2 && refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
}

#[test]
fn schemas_that_are_not_understood_say_where() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let table = "CREATE TABLE T (user_id STRING(MAX), event_timestamp TIMESTAMP) PRIMARY KEY (user_id, event_timestamp)";
    for (statements, code, message) in [
        (format!("{table}\nCREATE INDEX i ON T(user_id);"), 2, "line 2, column 1: expected a semicolon before the next statement"),
        (
            format!("{table};\nCREATE INDEX i ON U(user_id);"),
            2,
            "schema.sql: line 2, column 19: CREATE INDEX i: index i is of table U, which is not declared here; add its statement; declared are T",
        ),
        (
            "CREATE TABLE T (user_id STRNG(MAX)) PRIMARY KEY (user_id);".to_owned(),
            2,
            "schema.sql: line 1, column 25: CREATE TABLE T: column user_id: the type STRNG is unknown",
        ),
        (
            format!("{table},\n  INTERLEAVE IN PARENT Users ON DELETE CASCADE;"),
            2,
            "schema.sql: line 2, column 24: CREATE TABLE T: it is interleaved in Users, which is not declared here; add the statement of Users",
        ),
        (
            "CREATE TABLE T (user_id STRING(MAX)) PRIMARY KEY (users_id);".to_owned(),
            2,
            "the primary key names users_id, which is not a column of T; declare it; T has user_id",
        ),
        (format!("{table};\n{table};"), 2, "schema.sql: line 2, column 14: CREATE TABLE T: table T is declared twice"),
        (format!("{table};\nCREATE INDEX i ON T(user_id) STORNG (event_id);"), 0, "index i: left out: STORNG (event_id)"),
        (
            "CREATE TABLE T (s INT64 AS (MOD(user_id, 4)) STORED, user_id STRING(MAX), event_timestamp TIMESTAMP) PRIMARY KEY (s, event_timestamp);".to_owned(),
            2,
            "generates 's' by an expression that is not modelled",
        ),
        ("CREATE TABLE T (email STRING(MAX)) PRIMARY KEY (email);".to_owned(), 2, "the column is that of table T in"),
        (
            "CREATE TABLE T (s INT64 AS (MOD(FARM_FINGERPRINT(user_id), 4)) STORED, user_id STRING(MAX)) PRIMARY KEY (user_id);
             CREATE INDEX i ON T(s);"
                .to_owned(),
            0,
            "index i has only a shard: it is left out",
        ),
    ] {
        std::fs::write(dir.path().join("schema.sql"), &statements).unwrap();
        let told = run(dir.path(), "spanner simulate {}/exports --ddl {}/schema.sql --strategies declared --rate 100");
        assert_eq!(told.code, code, "{statements}: {}", told.stderr);
        assert!(told.stderr.contains(message), "{statements}: {}", told.stderr);
    }
    // A shard of an index is made of what it says, and printed as it stands.
    let sharded = "CREATE TABLE T (user_id STRING(MAX), event_timestamp TIMESTAMP NOT NULL,
          s INT64 AS (MOD(FARM_FINGERPRINT(event_type), 16)) STORED, event_type STRING(MAX)) PRIMARY KEY (user_id, event_timestamp);
        CREATE INDEX ByTime ON T(s, event_timestamp);";
    std::fs::write(dir.path().join("schema.sql"), sharded).unwrap();
    let simulation = json(
        dir.path(),
        "spanner simulate {}/exports --ddl {}/schema.sql --strategies declared --print-ddl spanner --format json",
    );
    assert!(simulation["ddl"].as_str().unwrap().contains("CREATE INDEX ByTime ON T (s, event_timestamp);"));
    // Few types of events make few shards.
    let heat = &simulation["strategies"][0]["outcome"]["heat"];
    let of_index = heat["spaces"].as_array().unwrap().iter().zip(heat["starts_at"].as_array().unwrap());
    let shards: std::collections::BTreeSet<&str> =
        of_index.filter(|(space, _)| **space == 1).map(|(_, start)| start.as_str().unwrap()).collect();
    assert!((2..=5).contains(&shards.len()), "{shards:?}");
}
