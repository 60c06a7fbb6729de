//! Statements beside an export: those that declare its table, and logs of queries.

use std::fmt::Write as _;

use crate::common::{done, json, run};
use crate::exports::{types, write};

#[test]
fn statements_of_other_systems_give_names_types_and_the_keys_to_judge() {
    let dir = tempfile::tempdir().unwrap();
    let postgres = "CREATE TABLE public.events (\n    id bigint NOT NULL,\n    user_id integer,\n    price numeric(10,2),\n    \
                    code text,\n    at timestamp with time zone\n);\nCREATE TABLE public.other (id int);\n\
                    ALTER TABLE ONLY public.events\n    ADD CONSTRAINT events_pkey PRIMARY KEY (user_id, id);\n\
                    SELECT create_distributed_table('events', 'user_id');\n";
    write(dir.path(), "schema.sql", postgres);
    let rows = |separator: &str| -> String {
        let row = |id: u64| {
            [
                id.to_string(),
                (id % 97).to_string(),
                "1.50".to_owned(),
                format!("00{id}"),
                "2026-01-02 03:04:05+00".to_owned(),
            ]
            .join(separator)
                + "\n"
        };
        (1..=2000).map(row).collect()
    };
    write(dir.path(), "plain.csv", rows(","));
    write(dir.path(), "named.csv", "id,user_id,price,code,at\n".to_owned() + &rows(","));
    write(dir.path(), "moved.csv", "user_id,id,price,code,at\n".to_owned() + &rows(","));
    write(dir.path(), "copy.tsv", rows("\t").replace("\t1.50", "\t\\N") + "\\.\n");
    let expected = ["id Int64", "user_id Int32", "price Decimal(10,2)", "code Utf8", "at Timestamp"];
    for (name, rows) in [("plain.csv", 2000), ("named.csv", 2000), ("moved.csv", 2000), ("copy.tsv", 2000)] {
        let report = json(
            dir.path(),
            &format!("evaluate {{}}/{name} --ddl {{}}/schema.sql --table events --format json"),
        );
        assert_eq!(report["rows"], rows, "{name}");
        let columns = report["columns"].as_array().unwrap().iter();
        let mut types: Vec<String> =
            columns.map(|column| format!("{} {}", column["name"], column["type"]).replace('"', "")).collect();
        if name == "moved.csv" {
            types.swap(0, 1);
        }
        assert_eq!(types, expected, "{name}");
        let keys = |list: &str, field: &str| {
            report[list].as_array().unwrap().iter().map(|key| key[field].clone()).collect::<Vec<_>>()
        };
        assert!(keys("candidates", "partition_key").contains(&serde_json::json!(["user_id"])), "{name}");
        assert!(keys("primary_keys", "columns").contains(&serde_json::json!(["user_id", "id"])), "{name}");
    }
    let text = done(dir.path(), "evaluate {}/plain.csv --ddl {}/schema.sql --table events");
    assert!(
        text.contains("CREATE TABLE events") && text.contains("evenkeel create events --ddl events.sql"),
        "{text}"
    );
    for (arguments, part) in [
        (
            "evaluate {}/plain.csv --ddl {}/schema.sql",
            "name one of them with --table: public.events, public.other",
        ),
        ("evaluate {}/plain.csv --ddl {}/schema.sql --table nope", "there is no table 'nope'"),
        ("evaluate {}/plain.csv --ddl {}/plain.csv", "there is no CREATE TABLE"),
        (
            "evaluate {}/plain.csv --ddl {}/schema.sql --table other",
            "line 1: has 5 fields, but 1 columns are named",
        ),
        ("evaluate {}/plain.csv --ddl {}/schema.sql --names a,b", "cannot be used with"),
    ] {
        let found = run(dir.path(), arguments);
        assert_ne!(found.code, 0, "{arguments}");
        assert!(found.stderr.contains(part), "{arguments}: {}", found.stderr);
    }
    done(
        dir.path(),
        "create {}/t --column id:int64:not-null --column user_id:int32:not-null --column code:utf8 --primary-key user_id,id",
    );
    let ingested = done(dir.path(), "ingest {}/t {}/plain.csv --ddl {}/schema.sql --table events");
    assert!(ingested.starts_with("version 1: 2,000 rows"), "{ingested}");
}

#[test]
fn a_query_log_weights_statements_by_their_runs() {
    let dir = tempfile::tempdir().unwrap();
    // Two ids that spread alike: the log decides.
    let mut rows = String::from("a_id,b_id,at\n");
    for row in 0..20_000u64 {
        let (a, b) = (row.wrapping_mul(7919) % 1009, row.wrapping_mul(104_729) % 1013);
        let _ = writeln!(
            rows,
            "{a},{b},2026-01-{:02}T{:02}:{:02}:00Z",
            row / 1440 % 28 + 1,
            row / 60 % 24,
            row % 60
        );
    }
    write(dir.path(), "events.csv", rows);
    let log = |a: u64, b: u64| {
        format!(
            "query,calls\n\"SELECT * FROM public.events WHERE a_id = $1\",{a}\n\"SELECT * FROM public.events WHERE b_id = $1\",{b}\n\
             \"SELECT * FROM public.users WHERE id = $1\",30\nCOMMIT,20\n\"SELECT nope FROM events\",10\n"
        )
    };
    for (a, b, best) in [(900, 40, "a_id"), (40, 900, "b_id")] {
        write(dir.path(), "pg_stat_statements.csv", log(a, b));
        let found =
            run(dir.path(), "evaluate {}/events.csv --queries {}/pg_stat_statements.csv --format json");
        assert_eq!(found.code, 0, "{}", found.stderr);
        let part = "94.0 % of 1,000 runs understood, as 2 statements; 2.0 % do not read; 3.0 % read other tables; 1.0 % cannot be \
                    planned, such as q3";
        assert!(found.stderr.contains(part), "{}", found.stderr);
        let report: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(
            report["recommendation"]["partition_key"],
            serde_json::json!([best]),
            "{}",
            report["ranking"]
        );
        let statements = report["statements"].as_array().unwrap();
        assert_eq!(statements[0]["runs"], 900.0);
        let ranking = report["ranking"].as_array().unwrap();
        let of = |key: &str| {
            ranking.iter().find(|ranked| ranked["partition_key"] == serde_json::json!([key])).unwrap()
        };
        let read = of(best)["mean_partitions_read"].as_f64().unwrap();
        let partitions = report["recommendation"]["partitions"].as_f64().unwrap();
        assert!((read - (900.0 + 40.0 * partitions) / 940.0).abs() < 1e-9, "{read}");
    }
    let refused = run(dir.path(), "evaluate {}/events.csv --queries {}/events.csv");
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("no column has the text of statements"), "{}", refused.stderr);
}

#[test]
fn a_header_with_other_names_than_the_statement_is_refused_and_case_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.csv", "id,name\nu1,bob\nu2,al\n");
    write(dir.path(), "other.sql", "CREATE TABLE t (id text, title text);");
    write(dir.path(), "upper.sql", "CREATE TABLE t (ID text, NAME text, PRIMARY KEY (ID));");
    let refused = run(dir.path(), "evaluate {}/a.csv --ddl {}/other.sql");
    assert!(refused.stderr.contains("some of the given names but also 'name'"), "{}", refused.stderr);
    let report = json(dir.path(), "evaluate {}/a.csv --ddl {}/upper.sql --format json");
    assert_eq!(
        (&report["rows"], &report["columns"][0]["name"]),
        (&serde_json::json!(2), &serde_json::json!("ID"))
    );
    // NULL in a row that stands in place of names does not make it a header.
    let rows = "1,\\N,bob\n".to_owned() + &(2..40).map(|id| format!("{id},7,al\n")).collect::<String>();
    let error = types("n.csv", &rows, "").unwrap_err();
    assert!(error.contains("looks like a row"), "{error}");
    let (columns, _) = types("e.csv", &("0,1\n".to_owned() + &"1,5\n".repeat(30)), "").unwrap();
    assert_eq!(columns, ["0 Int64", "1 Int64"]);
}

#[test]
fn masked_messages_hold_no_value_of_a_first_line_or_of_a_query_log() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "row.csv", "4711,secret\n".repeat(30));
    write(dir.path(), "partly.csv", "id,secret\n".to_owned() + &"1,x\n".repeat(30));
    write(dir.path(), "rows.csv", "id,n\n".to_owned() + &"1,2\n".repeat(30));
    write(dir.path(), "t.sql", "CREATE TABLE t (id int, n int);");
    write(dir.path(), "log.csv", "query,calls\n\"SELECT nope FROM t WHERE id = CAST('secret' AS INT)\",5\n");
    for arguments in [
        "evaluate {}/row.csv --mask-values",
        "evaluate {}/partly.csv --ddl {}/t.sql --mask-values",
        "evaluate {}/rows.csv --queries {}/log.csv --mask-values",
    ] {
        let found = run(dir.path(), arguments);
        let text = found.stdout + &found.stderr;
        assert!(
            !text.contains("secret") && !text.contains("4711") && !text.contains("nope"),
            "{arguments}: {text}"
        );
    }
}
