//! `evenkeel evaluate` with exports of several tables.

use std::fs;
use std::path::Path;

use crate::common::{done, json, run};

fn write(folder: &Path) {
    let mut users = String::from("id,email,created_at\n");
    for id in 0..3_000 {
        users.push_str(&format!("{id},u{id}@example.org,2025-01-{:02}T00:00:00\n", id % 28 + 1));
    }
    fs::write(folder.join("users.csv"), users).unwrap();
    let mut events = String::from("event,user_id,at,kind\n");
    for event in 0..30_000u64 {
        let user = event.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let (minute, second) = (event / 60 % 60, event % 60);
        let (day, hour) = (event / 86_400 + 1, event / 3_600 % 24);
        events.push_str(&format!(
            "{event},{},2026-01-{day:02}T{hour:02}:{minute:02}:{second:02},click\n",
            user % 3_000
        ));
    }
    fs::write(folder.join("events.csv"), events).unwrap();
}

#[test]
fn exports_of_several_tables_are_evaluated_with_the_joins_between_them() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let found = json(dir.path(), "evaluate {}/users.csv {}/events.csv --partitions 16 --format json");
    let join = &found["joins"][0];
    assert_eq!([&join["left"]["column"], &join["right"]["column"]], ["id", "user_id"], "{join}");
    assert_eq!((join["found"].as_bool(), join["local"].as_bool()), (Some(true), Some(true)), "{join}");
    assert_eq!(join["right"]["values_found"], 1.0);
    for (table, key) in [(0, "id"), (1, "user_id")] {
        assert_eq!(found["tables"][table]["recommendation"]["partition_key"][0], key, "table {table}");
    }
    // The rows of both tables with one user are in the same partition.
    let text = done(dir.path(), "evaluate {}/users.csv {}/events.csv --partitions 16");
    for part in
        ["JOINS\n", "users.id = events.user_id", "TABLE users\n", "TABLE events\n", "CREATE TABLE events"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let masked = done(dir.path(), "evaluate {}/users.csv {}/events.csv --mask-values --verbose");
    assert!(!masked.contains("@example.org"), "{masked}");
    done(dir.path(), "evaluate {}/users.csv {}/events.csv --html {}/report.html");
    for table in ["users", "events"] {
        let page = fs::read_to_string(dir.path().join(format!("report.{table}.html"))).unwrap();
        assert!(page.contains("<svg"), "{table}");
    }
}

#[test]
fn types_that_hash_differently_are_found_and_mended() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let both = "evaluate {}/users.csv {}/events.csv --join users.id=events.user_id --partitions 16";
    let local = |arguments: &str| {
        json(dir.path(), &format!("{arguments} --format json"))["joins"][0]["local"].clone()
    };
    assert_eq!(local(both), true);
    assert_eq!(local(&format!("{both} --type user_id:int32")), false);
    assert_eq!(local(&format!("{both} --type user_id:int32 --type id:int32")), true);
    let failing = run(dir.path(), &format!("{both} --type user_id:int32 --fail-on problems>0"));
    assert_eq!(failing.code, 3, "{}", failing.stderr);
    assert!(failing.stderr.contains("for the joins"), "{}", failing.stderr);
    let text = done(dir.path(), &format!("{both} --type user_id:int32"));
    assert!(text.contains("problem [join_types]"), "{text}");
}

#[test]
fn what_cannot_be_joined_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    for (arguments, part) in [
        ("{}/users.csv --join users.id=events.user_id", "--join joins two tables"),
        ("{}/users.csv {}/events.csv --join users.id", "the tables are: users, events"),
        ("{}/users.csv {}/events.csv --join user.id=events.user_id", "there is no table 'user'"),
        ("{}/users.csv {}/events.csv --join users.id=events.nobody", "it has: event, user_id, at, kind"),
        ("{}/users.csv {}/events.csv --partition-key id", "--partition-key applies to one table"),
        ("{}/users.csv {}/events.csv --role nobody=entity", "no table has a column 'nobody'"),
        ("{}/users.csv {}/users.csv --join users.id=users.id", "two of the exports are of a table 'users'"),
    ] {
        let run = run(dir.path(), &format!("evaluate {arguments}"));
        assert_eq!(run.code, 2, "{arguments}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{arguments}: {}", run.stderr);
        assert_eq!(run.stderr.trim_end().lines().count(), 1, "{}", run.stderr);
    }
    let crossed = run(dir.path(), "evaluate {}/users.csv {}/events.csv --fail-on problems>=0");
    assert_eq!(crossed.code, 3, "{}", crossed.stderr);
    assert!(crossed.stderr.contains("users: threshold"), "{}", crossed.stderr);
}
