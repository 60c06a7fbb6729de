//! `evaluate --save`, `--like` and `--merge`, against one evaluation of all rows.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::common::{done, json, note, run};

/// Writes the events of a day as CSV: a user with a few heavy ones, an order, a time.
fn write_day(dir: &Path, day: u64, rows: u64) {
    let mut text = "user_id,order_id,country,created_at,amount\n".to_owned();
    for row in 0..rows {
        let mixed = (day * 1_000_003 + row).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) % 100_000;
        let user = if mixed < 10_000 { mixed % 3 } else { mixed % 700 };
        let second = row * 86_400 / rows;
        let _ = writeln!(
            text,
            "u{user},{},c{},2026-03-{:02} {:02}:{:02}:{:02},{}.5",
            day * rows + row,
            mixed % 5,
            day + 1,
            second / 3600,
            second / 60 % 60,
            second % 60,
            mixed % 90
        );
    }
    std::fs::write(dir.join(format!("day{day}.csv")), text).unwrap();
}

fn days() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    (0..3).for_each(|day| write_day(dir.path(), day, 4_000));
    dir
}

/// Figures without the time that they took, the names of the inputs, and what comes from samples.
fn figures(mut report: Value) -> Value {
    let fields = report.as_object_mut().unwrap();
    for field in [
        "seconds",
        "inputs",
        "input_bytes",
        "notes",
        "profiles",
        "considered",
        "considered_from",
        "roles",
        "findings",
        "recommendation",
    ] {
        fields.remove(field);
    }
    for key in report["primary_keys"].as_array_mut().unwrap() {
        key["late"].as_object_mut().unwrap().remove("at_most");
    }
    report
}

#[test]
fn days_that_are_merged_give_the_figures_of_all_days() {
    let dir = days();
    let dir = dir.path();
    let how = "--partition-key user_id --partition-key country,user_id --primary-key created_at,order_id \
               --primary-key user_id,created_at --partitions 16,5 --batch 1000 --format json";
    for day in 0..3 {
        done(dir, &format!("evaluate {{}}/day{day}.csv {how} --save {{}}/{day}.ek"));
    }
    let whole = json(dir, &format!("evaluate {{}}/day0.csv {{}}/day1.csv {{}}/day2.csv {how}"));
    let merged = json(dir, "evaluate --merge {}/2.ek {}/0.ek {}/1.ek --format json");
    assert_eq!(merged["rows"], 12_000);
    assert_eq!(merged["recommendation"]["primary_key"], whole["recommendation"]["primary_key"]);
    assert_eq!(merged["recommendation"]["partition_key"], whole["recommendation"]["partition_key"]);
    assert_eq!(merged["profiles"].as_array().unwrap().len(), 3);
    assert_eq!(figures(merged), figures(whole.clone()));
    // One profile that grows day by day.
    done(dir, "evaluate {}/day1.csv --merge {}/0.ek --save {}/all.ek");
    let grown = json(dir, "evaluate {}/day2.csv --merge {}/all.ek --save {}/all.ek --format json");
    assert_eq!(figures(grown), figures(whole.clone()));
    let alone = json(dir, "evaluate --merge {}/all.ek --format json");
    assert_eq!(figures(alone), figures(whole));
}

#[test]
fn days_whose_keys_are_searched_for_have_columns_in_common() {
    let dir = days();
    let dir = dir.path();
    done(dir, "evaluate {}/day0.csv --save {}/0.ek");
    done(dir, "evaluate {}/day1.csv --save {}/1.ek");
    done(dir, "evaluate {}/day2.csv --like {}/0.ek --save {}/2.ek");
    let merged = json(dir, "evaluate --merge {}/0.ek {}/1.ek {}/2.ek --format json");
    let whole = json(dir, "evaluate {}/day0.csv {}/day1.csv {}/day2.csv --format json");
    assert_eq!(merged["recommendation"]["partition_key"], whole["recommendation"]["partition_key"]);
    assert!(!merged["considered"].as_array().unwrap().is_empty());
    let user = merged["candidates"].as_array().unwrap().iter();
    let user = user.clone().find(|key| key["partition_key"] == serde_json::json!(["user_id"])).unwrap();
    assert_eq!((&user["distinct"]["estimate"], &user["distinct"]["exact"]), (&700.into(), &true.into()));
    // What applies to an evaluation applies to profiles.
    let crossed = run(dir, "evaluate --merge {}/0.ek {}/1.ek --fail-on rows>7999");
    assert_eq!(crossed.code, 3, "{}", crossed.stderr);
    std::fs::write(dir.join("q.sql"), "SELECT * FROM t WHERE user_id = 'u1'").unwrap();
    let planned = json(dir, "evaluate --merge {}/0.ek {}/2.ek --queries {}/q.sql --format json");
    assert_eq!(planned["statements"].as_array().unwrap().len(), 1);
    let masked = done(dir, "evaluate --merge {}/0.ek {}/1.ek --mask-values --verbose --format json");
    assert!(!masked.contains("u699") && !masked.contains("2026-03"));
}

#[test]
fn profiles_that_do_not_fit_are_refused_with_what_to_do() {
    let dir = days();
    let dir = dir.path();
    done(dir, "evaluate {}/day0.csv --partition-key user_id --primary-key order_id --save {}/0.ek");
    done(dir, "evaluate {}/day1.csv --partition-key country --primary-key order_id --save {}/1.ek");
    done(dir, "evaluate {}/day1.csv --partition-key user_id --partitions 8 --save {}/8.ek");
    done(dir, "evaluate {}/day1.csv --partition-key user_id --type amount:utf8 --save {}/typed.ek");
    std::fs::write(
        dir.join("less.csv"),
        "user_id,order_id,country,created_at\nu1,1,c1,2026-01-01 00:00:00\n",
    )
    .unwrap();
    std::fs::write(dir.join("text.ek"), "user_id,created_at\n1,2\n").unwrap();
    let bytes = std::fs::read(dir.join("0.ek")).unwrap();
    std::fs::write(dir.join("cut.ek"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::copy(dir.join("0.ek"), dir.join("again.ek")).unwrap();
    for (arguments, code, message) in [
        ("--merge {}/0.ek {}/1.ek", 2, "no partition key in common"),
        ("--merge {}/0.ek {}/8.ek", 2, "another --partitions or --nodes"),
        ("--merge {}/0.ek {}/typed.ek", 2, "column 'amount' is of type Utf8"),
        ("--merge {}/0.ek {}/again.ek", 2, "both have the 4,000 rows"),
        ("{}/day0.csv --merge {}/0.ek", 2, "both have the 4,000 rows"),
        ("--merge {}/text.ek", 1, "is not a profile"),
        ("--merge {}/cut.ek", 1, "is damaged"),
        ("--merge {}/none.ek", 1, "cannot read the profile"),
        ("--merge {}/0.ek --target doris", 2, "save the profiles with the same --target"),
        ("--merge {}/0.ek --partition-key country", 2, "cannot be used with"),
        ("{}/day0.csv --save {}/day0.csv", 2, "is not a profile, so it is not replaced"),
        ("{}/day0.csv --save {}", 2, "is not a profile, so it is not replaced"),
        ("{}/0.ek", 1, "name it after --merge"),
        ("{}/less.csv --like {}/0.ek", 2, "there is no column 'amount'"),
        ("{}/day0.csv --save {}/x.ek --mask-values", 2, "--mask-values should hide"),
        ("{}/day0.csv --save {}/none/x.ek", 2, "there is no folder"),
        ("{}/day0.csv --save {}/x.ek --sample 0.5", 2, "cannot be used with"),
        ("--save {}/x.ek", 2, "required"),
        ("--like {}/0.ek", 2, "required"),
    ] {
        let found = run(dir, &format!("evaluate {arguments}"));
        assert_eq!(found.code, code, "{arguments}: {}", found.stderr);
        assert!(found.stderr.contains(message), "{arguments}: {}", found.stderr);
    }
    assert!(!dir.join("x.ek").exists() && !dir.join("x.ek.tmp").exists());
    // A profile that cannot be merged is not replaced.
    run(dir, "evaluate {}/day0.csv --merge {}/0.ek --save {}/0.ek");
    assert_eq!(std::fs::read(dir.join("0.ek")).unwrap(), bytes);
}

#[test]
fn a_small_profile_says_what_it_estimates() {
    let dir = days();
    let dir = dir.path();
    let saved = run(
        dir,
        "evaluate {}/day0.csv --partition-key order_id --primary-key order_id --save {}/0.ek --profile-size 10kB",
    );
    assert!(saved.stderr.contains("estimates or sums of PRIMARY KEY (order_id)"), "{}", saved.stderr);
    done(dir, "evaluate {}/day1.csv --like {}/0.ek --save {}/1.ek --profile-size 10kB");
    let merged = json(dir, "evaluate --merge {}/0.ek {}/1.ek --format json");
    // Sketches would take more than so few values.
    assert_eq!(merged["candidates"][0]["distinct"]["estimate"], 8_000);
    let unknown = note(&merged, "repeats_unknown");
    assert!(unknown.is_some_and(|text| text.contains("(order_id)")), "{}", merged["notes"]);
}

#[test]
fn what_is_saved_does_not_change_the_answer() {
    let dir = days();
    let dir = dir.path();
    let plain = json(dir, "evaluate {}/day0.csv {}/day1.csv --format json");
    let saved = json(dir, "evaluate {}/day0.csv {}/day1.csv --save {}/x.ek --format json");
    let alone = json(dir, "evaluate --merge {}/x.ek --format json");
    for field in ["candidates", "primary_keys", "ranking", "considered", "roles", "time_range", "findings"] {
        assert_eq!(saved[field], plain[field], "{field}");
    }
    for field in ["ranking", "considered", "roles", "time_range"] {
        assert_eq!(alone[field], plain[field], "{field} of the profile");
    }
    for field in ["partition_key", "primary_key", "reasons", "alternatives"] {
        assert_eq!(alone["recommendation"][field], plain["recommendation"][field], "{field}");
    }
}

#[test]
fn reduced_profiles_merge_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    (0..5).for_each(|day| write_day(dir, day, 1_500));
    let how = "--partition-key user_id --primary-key created_at,order_id --primary-key order_id --partitions 4 --batch 700";
    done(dir, &format!("evaluate {{}}/day0.csv {how} --save {{}}/all.ek --profile-size 40kB"));
    for day in 1..5 {
        // The other columns come in another order.
        let text = std::fs::read_to_string(dir.join(format!("day{day}.csv"))).unwrap();
        let turned = text.lines().map(|line| line.split(',').rev().collect::<Vec<_>>().join(","));
        std::fs::write(dir.join(format!("day{day}.csv")), turned.collect::<Vec<_>>().join("\n")).unwrap();
        done(
            dir,
            &format!("evaluate {{}}/day{day}.csv --merge {{}}/all.ek --save {{}}/all.ek --profile-size 40kB"),
        );
    }
    let all = json(dir, "evaluate --merge {}/all.ek --format json");
    let whole = json(
        dir,
        &format!(
            "evaluate {{}}/day0.csv {{}}/day1.csv {{}}/day2.csv {{}}/day3.csv {{}}/day4.csv {how} --format json"
        ),
    );
    let keys = all["primary_keys"].as_array().unwrap();
    let with_time =
        keys.iter().find(|key| key["columns"] == serde_json::json!(["created_at", "order_id"])).unwrap();
    assert_eq!((&with_time["distinct_keys"], &with_time["duplicate_rows"]), (&7_500.into(), &0.into()));
    assert_eq!(all["candidates"][0]["distinct"], whole["candidates"][0]["distinct"]);
    let placed = |report: &Value| report["candidates"][0]["placements"][0]["rows_per_partition"].clone();
    assert_eq!(placed(&all), placed(&whole));
    // Rows behind the last full batch of a day are a batch: 3 of each day.
    assert_eq!(all["candidates"][0]["placements"][0]["per_batch"]["batches"], 15);
    // A day without rows changes nothing.
    std::fs::write(dir.join("none.ndjson"), "{\"user_id\":\"u\",\"order_id\":1,\"country\":\"c\",\"created_at\":\"2026-03-09 00:00:00\",\"amount\":0.5}\n").unwrap();
    let more = json(dir, "evaluate {}/none.ndjson --merge {}/all.ek --format json");
    assert_eq!(more["rows"], 7_501);
}
