//! Rates of exports, the order of their rows in time, and rows without a time.

use std::path::Path;

use serde_json::Value;

use crate::common::{done, json, run};
use crate::simulate::{finding, number, strategy};

#[test]
fn rows_that_are_too_few_recommend_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // A counter, and random UUIDs: one row a minute.
    let mixed = |row: u64| u128::from(row.wrapping_mul(0x9E37_79B9_7F4A_7C15)) << 40;
    let uuid = |row: u64| uuid::Builder::from_random_bytes(mixed(row + 1).to_be_bytes()).into_uuid();
    let rows: String = (0..3000)
        .map(|row| {
            format!(
                "{row},{},2024-01-{:02}T{:02}:{:02}:00Z\n",
                uuid(row),
                row / 1440 + 1,
                row / 60 % 24,
                row % 60
            )
        })
        .collect();
    std::fs::write(dir.path().join("rows.csv"), format!("id,uuid,at\n{rows}")).unwrap();
    let simulate = |arguments: &str| {
        json(dir.path(), &format!("spanner simulate {{}}/rows.csv {arguments} --format json"))
    };
    // One row a minute is what comes, and no split is hot of it, whatever each row stands for in
    // size.
    let uuids = simulate("--primary-key uuid");
    assert_eq!(uuids["recommended"], "declared");
    assert!(finding(&uuids, "monotonic_key").is_none(), "{}", uuids["findings"]);
    assert_eq!(
        (&uuids["load"]["source"], number(&uuids["parameters"]["load_scale"])),
        (&"measured".into(), 1.0)
    );
    assert!((number(&uuids["load"]["rows_per_second"]) - 3000.0 / (2999.0 * 60.0)).abs() < 1e-9);
    assert!(!uuids["findings"].as_array().unwrap().iter().any(|finding| finding["severity"] == "problem"));
    // What is measured is the rate that was given.
    for (rate, score) in [(500, 20.0), (2500, 100.0), (20_000, 800.0)] {
        let found = simulate(&format!("--primary-key id --rate {rate} --strategies declared"));
        let highest = number(&strategy(&found, "declared")["outcome"]["whole"]["highest_score"]);
        assert!((0.9..1.3).contains(&(highest / score)), "{rate}: {highest}");
    }
    let counter = simulate("--primary-key id --rate 20000 --strategies declared,bit-reversed,uuid4");
    assert_eq!(counter["recommended"], "bit-reversed");
    for arguments in ["--primary-key id --rate 20000 --scale 1", "--primary-key id --scale 1000000"] {
        let unsure = simulate(arguments);
        assert_eq!(unsure["recommended"], Value::Null, "{arguments}");
        assert!(finding(&unsure, "too_few_rows").is_some(), "{arguments}");
        assert!(finding(&unsure, "monotonic_key").is_none_or(|finding| finding["severity"] == "note"));
    }
    // One column has no second to be swapped with.
    let told = run(dir.path(), "spanner simulate {}/rows.csv --primary-key id");
    assert!(told.code == 0 && told.stderr.contains("left out: swapped"), "{}", told.stderr);
}

/// 4000 clicks, one in 100 seconds: as they came, or shuffled.
fn clicks(dir: &Path, name: &str, is_shuffled: bool) {
    let mut rows: Vec<u64> = (0..4000).collect();
    if is_shuffled {
        rows.sort_by_key(|row| row.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
    let line = |row: u64| {
        let at = chrono::DateTime::from_timestamp(1_704_067_200 + row.cast_signed() * 100, 0).unwrap();
        let ip = row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
        // A second column of time, which most rows lack.
        let installed =
            if row.is_multiple_of(50) { at.format("%Y-%m-%dT%H:%M:%SZ").to_string() } else { String::new() };
        format!("{ip},{},{installed}\n", at.format("%Y-%m-%dT%H:%M:%SZ"))
    };
    let text: String = rows.into_iter().map(line).collect();
    std::fs::write(dir.join(name), format!("ip,click_time,attributed_time\n{text}")).unwrap();
}

#[test]
fn the_rate_is_measured_and_a_slow_one_is_no_problem() {
    let dir = tempfile::tempdir().unwrap();
    clicks(dir.path(), "clicks.csv", false);
    let command = "spanner simulate {}/clicks.csv --primary-key click_time,ip";
    let text = done(dir.path(), command);
    let first: Vec<&str> = text.lines().take(6).collect();
    let expected = "rate: 0.01 rows/s, ";
    assert!(
        first
            .iter()
            .any(|line| line.starts_with(expected) && line.contains("as measured: 4,000 rows over the")),
        "{text}"
    );
    assert!(
        first.iter().any(|line| line.starts_with("size: each row stands for") && line.contains("assumed")),
        "{text}"
    );
    assert!(!text.contains("problem ["), "{text}");
    assert!(text.contains("declared does no harm at this rate"), "{text}");
    // Rates that the user says are the user's.
    let load =
        |arguments: &str| json(dir.path(), &format!("{command} {arguments} --format json"))["load"].clone();
    for (arguments, source, rate) in
        [("", "measured", 0.01), ("--scale 500", "scaled", 5.0), ("--rate 7000", "given", 7000.0)]
    {
        let load = load(arguments);
        assert_eq!(load["source"], source);
        assert!((number(&load["rows_per_second"]) / rate - 1.0).abs() < 0.01, "{arguments}: {load}");
        assert!(number(&load["bytes_per_second"]) > 10.0 * rate, "{arguments}: {load}");
    }
}

#[test]
fn an_export_in_any_order_is_judged_by_the_order_of_its_times() {
    let dir = tempfile::tempdir().unwrap();
    clicks(dir.path(), "sorted.csv", false);
    clicks(dir.path(), "shuffled.csv", true);
    for arguments in ["", "--rate 20000", "--time click_time", "--scale 2000000"] {
        let simulate = |name: &str| {
            json(
                dir.path(),
                &format!(
                    "spanner simulate {{}}/{name} --primary-key click_time,ip {arguments} --format json"
                ),
            )
        };
        let (sorted, shuffled) = (simulate("sorted.csv"), simulate("shuffled.csv"));
        assert_eq!(
            (&sorted["load"]["is_sorted_by_time"], &shuffled["load"]["is_sorted_by_time"]),
            (&false.into(), &true.into())
        );
        assert_ne!(shuffled["recommended"], "declared", "{arguments}");
        assert_eq!(shuffled["recommended"], sorted["recommended"], "{arguments}");
        for name in ["declared", "swapped", "shard-16"] {
            let outcome = |simulation: &Value| strategy(simulation, name)["outcome"].clone();
            assert_eq!(outcome(&shuffled)["whole"], outcome(&sorted)["whole"], "{arguments} {name}");
        }
        assert_eq!(finding(&shuffled, "monotonic_key").unwrap()["subject"], "click_time", "{arguments}");
    }
    let told = done(dir.path(), "spanner simulate {}/shuffled.csv --primary-key click_time,ip");
    assert!(told.contains("note: the export is not in the order of click_time"), "{told}");
}

#[test]
fn rows_without_a_time_are_there_before_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let row = |row: u64| match row {
        0..3000 => format!("{row},\n"),
        _ => format!("{row},2024-01-01T{:02}:{:02}:00Z\n", row / 3600, row / 60 % 60),
    };
    std::fs::write(dir.path().join("x.csv"), format!("id,at\n{}", (0..10_000).map(row).collect::<String>()))
        .unwrap();
    let found =
        json(dir.path(), "spanner simulate {}/x.csv --primary-key id --strategies declared --format json");
    let space = &found["strategies"][0]["outcome"]["spaces"][0];
    assert_eq!((&space["rows"], &space["rows_in_time"]), (&10_000.into(), &7000.into()));
    assert!(number(&space["hottest_share"]) > 0.999);
    assert_eq!(finding(&found, "monotonic_key").unwrap()["subject"], "id");
}
