//! Results for programs: JSON, thresholds, drift from a baseline, and masked values.

use serde_json::{Value, json};

use crate::common::{done, json, run};
use crate::evaluate::FLIGHTS;

#[test]
fn the_json_has_what_programs_rely_on() {
    let dir = tempfile::tempdir().unwrap();
    let evaluation = json(
        dir.path(),
        &format!("evaluate {FLIGHTS} --partition-key dest --primary-key time_hour,dest --format json"),
    );
    let candidate = &evaluation["candidates"][0];
    let figures = [
        (&evaluation, vec!["/rows", "/recommendation/partitions"]),
        (
            candidate,
            vec![
                "/distinct/estimate",
                "/null_rows",
                "/heavy_hitters/0/rows",
                "/heavy_hitters/0/error",
                "/over_time/windows",
            ],
        ),
        (&candidate["over_time"]["effective_partitions"], vec!["/median", "/p10", "/min"]),
        (
            &candidate["placements"][0],
            vec![
                "/partitions",
                "/rows_per_partition/0",
                "/max_over_mean",
                "/cv",
                "/idle_fraction",
                "/effective_partitions",
                "/expected_cv_equal_keys",
                "/expected_cv_weighted",
            ],
        ),
        (&evaluation["primary_keys"][0], vec!["/duplicate_rows", "/conflicting_rows", "/in_order_fraction"]),
        (&evaluation["findings"][0], vec!["/measured", "/threshold"]),
    ];
    for (value, paths) in figures {
        for path in paths {
            assert!(value.pointer(path).is_some_and(Value::is_number), "{path} of {value}");
        }
    }
    assert_eq!(candidate["partition_key"], json!(["dest"]));
    assert_eq!(candidate["heavy_hitters"][0]["key"], json!(["ORD"]));
    assert_eq!(candidate["distinct"]["exact"], true);
    assert_eq!(candidate["placements"][0]["function"], "ydb");
    assert!(candidate["over_time"]["pattern"].is_string());
    assert_eq!(evaluation["primary_keys"][0]["columns"], json!(["time_hour", "dest"]));
    for list in ["/recommendation/partition_key", "/recommendation/primary_key", "/recommendation/reasons"] {
        assert!(evaluation.pointer(list).unwrap().is_array(), "{list}");
    }
    assert!(evaluation["findings"][0]["code"].is_string() && evaluation["findings"][0]["advice"].is_string());
}

#[test]
fn thresholds_make_a_check_of_it_and_a_baseline_shows_drift() {
    let dir = tempfile::tempdir().unwrap();
    for (name, campaigns) in [("before", "0.2"), ("after", "0.9")] {
        let arguments =
            format!("generate ad-events --rows 20000 --campaign-share {campaigns} --out {{}}/{name}");
        done(dir.path(), &arguments);
    }
    let keys =
        "--partition-key campaign_id --primary-key event_timestamp,user_id,campaign_id --partitions 16";
    for (threshold, code) in [
        ("max_over_mean>1.2", 3),
        ("max_over_mean>16", 0),
        ("distinct.estimate<10", 0),
        ("conflicting_rows>=0", 3),
        ("problems>0", 3),
        ("max_over_men>1", 2),
        ("max_over_mean", 2),
    ] {
        let run = run(dir.path(), &format!("evaluate {{}}/after {keys} --fail-on {threshold}"));
        assert_eq!(run.code, code, "{threshold}\n{}", run.stderr);
        assert_eq!(run.stderr.contains("is met:"), code == 3, "{threshold}\n{}", run.stderr);
    }
    let baseline = done(dir.path(), &format!("evaluate {{}}/before {keys} --format json"));
    std::fs::write(dir.path().join("baseline.json"), baseline).unwrap();
    let same =
        json(dir.path(), &format!("evaluate {{}}/before {keys} --baseline {{}}/baseline.json --format json"));
    assert!(same["drift"].as_array().unwrap().iter().all(|drift| drift["notable"] == false));
    let drifted = run(
        dir.path(),
        &format!("evaluate {{}}/after {keys} --baseline {{}}/baseline.json --fail-on drift>0"),
    );
    assert_eq!(drifted.code, 3);
    assert!(
        drifted.stdout.contains("SINCE THE BASELINE") && drifted.stdout.contains("heavy_hitters.0.share")
    );
    std::fs::write(dir.path().join("other.json"), "{}").unwrap();
    for file in ["other.json", "missing.json"] {
        let run = run(dir.path(), &format!("evaluate {{}}/after {keys} --baseline {{}}/{file}"));
        assert!(run.code == 1 || run.code == 2, "{file}");
    }
}

#[test]
fn masked_values_are_nowhere_in_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String =
        (0..200).map(|i| format!("secret-{},2026-01-01T00:00:{:02}Z,{i}\n", i % 3, i % 60)).collect();
    std::fs::write(
        dir.path().join("x.csv"),
        format!("who,at,n\n{rows}\"oops,2026-01-01,1\n").replace("\"oops", "oops"),
    )
    .unwrap();
    let arguments = "evaluate {}/x.csv --partition-key who --primary-key at,who --partitions 4 --mask-values --html {}/r.html";
    let answer = done(dir.path(), arguments);
    assert!(!answer.contains("secret"), "{answer}");
    for format in ["table --verbose", "json", "markdown"] {
        let text = done(dir.path(), &format!("{arguments} --format {format}"));
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("value 1"), "{text}");
    }
    let html = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(!html.contains("secret") && html.contains("value 1"));
}
