//! Findings about the balance and the uniqueness of keys, which follow their figures.

use serde_json::{Value, json};

use crate::at_a_time::{SECOND, close, random, rows, write};
use crate::common::{json, run};

/// Codes of findings about the balance of a key.
const OF_BALANCE: [&str; 8] = [
    "moving_hotspot",
    "periodic_hotspot",
    "constant_hotspot",
    "few_distinct_keys",
    "heavy_key",
    "hash_defect",
    "uneven_ranges",
    "uneven_partitions",
];

#[test]
fn one_key_has_one_rate_in_every_model() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(&dir.join("rows.csv"), &rows(900, 200, 1_000));
    let keys = ["user", "kind", "id", "user,kind", "trunc(at, 1m)"];
    let keys_of: String =
        keys.iter().map(|key| format!(" --partition-key {}", key.replace(' ', ""))).collect();
    let evaluated = json(
        dir,
        &format!("evaluate {{}}/rows.csv{keys_of} --partitions 16 --no-primary-keys --format json"),
    );
    // Each partition on its own, which is what one partition for each node is.
    let ingested = json(
        dir,
        &format!(
            "bench ingest {{}}/rows.csv{keys_of} --partitions 16 --primary-key at,id --batch 20000 --format json"
        ),
    );
    let modeled =
        json(dir, &format!("capacity {{}}/rows.csv{keys_of} --nodes 16 --partitions 16 --format json"));
    for (at, key) in keys.iter().enumerate() {
        let rate = &evaluated["candidates"][at]["placements"][0]["capacity"]["sustained"];
        let rate = rate.as_f64().unwrap();
        close(&ingested["keys"][at]["backlog"]["sustained_rate"], rate, 0.02);
        let concentration = &modeled["designs"][at]["over_partitions"]["sustained_over_mean"];
        close(concentration, 16e6 / rate, 0.02);
        assert!(rate < if *key == "user" || *key == "id" { 16.1e6 } else { 15e6 }, "{key}: {rate}");
    }
}

#[test]
fn findings_follow_the_verdict_whatever_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for (shape, seconds, per_second, step) in [
        (0, 2_000, 20, 1),
        (1, 300, 100, SECOND),
        (2, 5, 1, 1),
        (3, 40, 20, 1),
        (4, 700, 3, 60 * SECOND),
        (5, 30, 1_000, 1),
    ] {
        let mut rows = rows(seconds, per_second, step);
        for row in &mut rows {
            match shape {
                // A few users with many rows, a user of every row, a hundred users, users who take
                // turns.
                0 if row.id % 7 < 3 => row.user = row.id % 3,
                1 => row.user = row.id,
                3 => row.user %= 100,
                4 => row.user = row.id / 300,
                // Users with more and more rows.
                5 => row.user = (random(5, row.id) % 1_000_000).isqrt() * 7 % 2_000,
                _ => {}
            }
        }
        write(&dir.path().join("rows.csv"), &rows);
        for partitions in [2, 16, 64, 300] {
            let evaluation = json(
                dir.path(),
                &format!(
                    "evaluate {{}}/rows.csv --type kind:utf8 --partition-key at,kind --partition-key at --partition-key user \
                     --partition-key kind --partition-key id --partition-key kind,user --partition-key hour(at) \
                     --partitions {partitions} --placement ydb,ydb-modulo,cassandra --no-primary-keys --format json"
                ),
            );
            let findings = evaluation["findings"].as_array().unwrap();
            let about_rows = findings.iter().filter(|finding| finding["code"] == "few_rows").count();
            let mut withheld = 0;
            for key in evaluation["candidates"].as_array().unwrap() {
                let placement = &key["placements"][0];
                let verdict = placement["verdict"].as_str().unwrap();
                seen.insert(verdict.to_owned());
                let name: Vec<&str> = key["partition_key"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|part| part.as_str().unwrap())
                    .collect();
                let subject = format!("HASH({})", name.join(", "));
                let grave: Vec<&str> = findings
                    .iter()
                    .filter(|finding| finding["subject"] == subject && finding["severity"] != "note")
                    .map(|finding| finding["code"].as_str().unwrap())
                    .filter(|code| OF_BALANCE.contains(code))
                    .collect();
                let context = format!("{shape} {partitions} {subject} {verdict}: {grave:?} {placement}");
                match verdict {
                    "even" | "few_rows" => assert!(grave.is_empty(), "{context}"),
                    _ => assert!(!grave.is_empty(), "{context}"),
                }
                withheld += usize::from(verdict == "few_rows");
                let moves = |pattern: &Value| pattern == "sequential" || pattern == "periodic";
                let pattern = &placement["over_time"]["pattern"];
                if verdict != "few_rows" {
                    assert_eq!(verdict == "moving", moves(pattern), "{context}");
                    assert!(verdict != "even" || pattern.is_null() || pattern == "even", "{context}");
                }
                if verdict == "even" {
                    assert!(placement["max_over_mean"].as_f64().unwrap() < 1.334, "{context}");
                    assert!(
                        placement["effective_partitions"].as_f64().unwrap() >= 0.9 * f64::from(partitions),
                        "{context}"
                    );
                }
                let words = placement["causes"]["words"].as_str().unwrap();
                assert_eq!(
                    words.contains("not the hash function"),
                    matches!(verdict, "heavy_keys" | "few_keys"),
                    "{context}"
                );
                assert!(
                    !grave.contains(&"hash_defect") || verdict == "uneven" || verdict == "moving",
                    "{context}"
                );
            }
            assert_eq!(about_rows, usize::from(withheld > 0), "{shape} {partitions}");
        }
    }
    for verdict in ["even", "moving", "few_rows", "few_keys", "heavy_keys"] {
        assert!(seen.contains(verdict), "{verdict}: {seen:?}");
    }
}

#[test]
fn five_rows_are_too_few_and_nothing_else_is_said_of_their_balance() {
    let dir = tempfile::tempdir().unwrap();
    let text = "id,at,user,price\n1,2026-01-01T00:00:00Z,a,5\n2,2026-01-01T00:00:01Z,b,5\n3,2026-01-01T00:00:02Z,a,7\n\
                4,2026-01-01T00:00:03Z,c,9\n5,2026-01-01T00:00:04Z,a,5\n";
    std::fs::write(dir.path().join("five.csv"), text).unwrap();
    let evaluation = json(dir.path(), "evaluate {}/five.csv --format json");
    let findings = evaluation["findings"].as_array().unwrap();
    let few: Vec<_> = findings.iter().filter(|finding| finding["code"] == "few_rows").collect();
    assert_eq!((few.len(), &few[0]["severity"]), (1, &json!("problem")));
    for finding in findings {
        assert!(!OF_BALANCE.contains(&finding["code"].as_str().unwrap()), "{finding}");
    }
    let problems = findings.iter().filter(|finding| finding["severity"] == "problem").count();
    assert_eq!(problems, 1, "{findings:?}");
    assert!(
        !evaluation["recommendation"]["reasons"].to_string().contains("no candidate spreads rows evenly")
    );
}

#[test]
fn an_export_without_a_usable_key_is_a_problem() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        "floats.csv",
        (0..300).map(|i| format!("{}.5,{}.25\n", i, i % 7)).fold("a,b\n".to_owned(), |t, r| t + &r),
    );
    let with_nulls = |i: i32| {
        format!(
            "{},{}\n",
            if i % 9 == 0 { String::new() } else { i.to_string() },
            if i % 8 == 0 { "" } else { "x" }
        )
    };
    write("nulls.csv", (0..300).map(with_nulls).fold("a,b\n".to_owned(), |t, r| t + &r));
    for (name, keys) in [("floats", ""), ("nulls", ""), ("nulls", "--partition-key a --primary-key a,b")] {
        let arguments = format!("evaluate {{}}/{name}.csv {keys} --partitions 4 --fail-on problems>0");
        let found = run(dir.path(), &arguments);
        assert_eq!(found.code, 3, "{name} {keys}: {}", found.stderr);
        for code in ["no_usable_partition_key", "no_usable_primary_key"] {
            assert!(found.stdout.contains(code), "{name} {keys}: {}", found.stdout);
        }
    }
    write("good.csv", (0..3000).map(|i| format!("{i},{}\n", i % 3)).fold("id,b\n".to_owned(), |t, r| t + &r));
    let found =
        run(dir.path(), "evaluate {}/good.csv --partition-key id --partitions 4 --fail-on problems>0");
    assert_eq!(found.code, 0, "{}{}", found.stdout, found.stderr);
}

#[test]
fn unique_by_chance_is_not_unique_by_nature() {
    let dir = tempfile::tempdir().unwrap();
    let rows = rows(3_000, 1, 1);
    write(&dir.path().join("rows.csv"), &rows);
    let evaluation = json(
        dir.path(),
        "evaluate {}/rows.csv --type kind:utf8 --partition-key user --primary-key at --primary-key id --primary-key at,kind --primary-key at,id \
         --partitions 4 --format json",
    );
    let by: Vec<&Value> =
        evaluation["primary_keys"].as_array().unwrap().iter().map(|key| &key["uniqueness"]["by"]).collect();
    assert_eq!(by, [&json!("chance"), &json!("nature"), &json!("chance"), &json!("many_values")]);
    let about = |key: &str| {
        let of_key = |finding: &&Value| finding["subject"] == format!("PRIMARY KEY ({key})");
        let findings = evaluation["findings"].as_array().unwrap().iter();
        findings.filter(of_key).any(|finding| finding["code"] == "unique_by_chance")
    };
    assert_eq!([about("at"), about("id"), about("at, kind"), about("at, id")], [true, false, true, false]);
    let only = json(
        dir.path(),
        "evaluate {}/rows.csv --partition-key at --primary-key at --partitions 4 --format json",
    );
    let reasons = only["recommendation"]["reasons"].to_string();
    assert!(
        reasons.contains("by chance, not by nature") && !reasons.contains("none of them is lost"),
        "{reasons}"
    );
    let warned = |finding: &Value| finding["code"] == "unique_by_chance" && finding["severity"] == "warning";
    assert!(only["findings"].as_array().unwrap().iter().any(warned), "{only}");
}
