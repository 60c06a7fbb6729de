//! Intervals of the figures of a sample, and figures with little memory.

use crate::common::{done, json, run};
use crate::evaluate::FLIGHTS;

#[test]
fn a_sample_gives_intervals_that_hold_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let keys = format!(
        "evaluate {FLIGHTS} --partition-key dest --primary-key time_hour,dest,flight --partitions 16 --format json"
    );
    let whole = json(dir.path(), &keys);
    let sample = json(dir.path(), &format!("{keys} --sample 0.05"));
    assert_eq!(sample["sample"]["rows_read"], 336_776);
    let sampled = sample["rows"].as_u64().unwrap();
    assert!((15_000..19_000).contains(&sampled), "{sampled}");
    let intervals = &sample["candidates"][0]["placements"][0]["intervals"];
    for figure in ["max_over_mean", "cv", "idle_fraction", "effective_partitions", "share_of_fullest"] {
        let truth = whole["candidates"][0]["placements"][0][figure].as_f64().unwrap();
        let (lower, upper) =
            (intervals[figure]["lower"].as_f64().unwrap(), intervals[figure]["upper"].as_f64().unwrap());
        // A twentieth of the interval to each side: one of twenty intervals may miss, and this one
        // is fixed by its seed.
        let slack = (upper - lower) / 20.0;
        assert!(lower - slack <= truth && truth <= upper + slack, "{figure}: {truth} in {lower} to {upper}");
        assert!(upper - lower < 0.2 * upper, "{figure}: {lower} to {upper}");
    }
    assert!(whole["candidates"][0]["placements"][0].get("intervals").is_none());
}

#[test]
fn with_the_least_memory_every_figure_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 1000000 --out {}/exports");
    let keys = "--partition-key event_id --partition-key user_id,event_timestamp --partition-key campaign_id \
                --partition-key user_id --partition-key user_id,campaign_id --partition-key event_id,campaign_id \
                --partition-key user_id,event_type --partition-key event_id,user_id \
                --primary-key event_timestamp,user_id,campaign_id --partitions 16 --format json";
    let refused = run(dir.path(), &format!("evaluate {{}}/exports {keys} --memory 10MiB"));
    assert_eq!(refused.code, 2);
    let least = refused.stderr.split("need at least ").nth(1).and_then(|rest| rest.split(" MiB").next());
    let least: f64 = least.unwrap_or_else(|| panic!("{}", refused.stderr)).parse().unwrap();
    // Six keys with a million values each take 14 MB, of the 8 MB that each gets.
    let little = format!("--memory {}MiB", least.ceil() as u64);
    let [plenty, little] = ["--memory 2GiB", &little]
        .map(|memory| json(dir.path(), &format!("evaluate {{}}/exports {keys} {memory}")));
    for (of_plenty, of_little) in
        plenty["candidates"].as_array().unwrap().iter().zip(little["candidates"].as_array().unwrap())
    {
        assert_eq!(of_plenty["distinct"]["exact"], true);
        assert_eq!(of_plenty, of_little);
    }
    assert_eq!(little["primary_keys"], plenty["primary_keys"]);
}

#[test]
fn a_sample_of_few_rows_says_that_there_is_no_interval_of_the_cv() {
    let dir = tempfile::tempdir().unwrap();
    let csv: String = (0..3_000).map(|row| format!("{row},{}\n", row % 50)).collect();
    std::fs::write(dir.path().join("a.csv"), format!("id,user\n{csv}")).unwrap();
    let keys = "evaluate {}/a.csv --partition-key user --partitions 16 --no-primary-keys --sample";
    let few = json(dir.path(), &format!("{keys} 0.02 --format json"));
    let intervals = &few["candidates"][0]["placements"][0]["intervals"];
    assert!(intervals["cv"].is_null() && intervals["max_over_mean"]["lower"].is_number(), "{intervals}");
    assert!(intervals["no_interval"].as_str().unwrap().contains("no interval of the CV"), "{intervals}");
    assert!(done(dir.path(), &format!("{keys} 0.02 --verbose")).contains("(no interval)"));
    assert!(done(dir.path(), &format!("{keys} 0.02")).contains(" to "));
    let all = json(dir.path(), &format!("{keys} 1 --format json"));
    let placement = &all["candidates"][0]["placements"][0];
    for figure in ["max_over_mean", "cv", "idle_fraction", "effective_partitions", "share_of_fullest"] {
        let (truth, interval) = (placement[figure].as_f64().unwrap(), &placement["intervals"][figure]);
        for end in ["lower", "upper"] {
            assert!(
                (interval[end].as_f64().unwrap() - truth).abs() < 1e-9,
                "{figure}: {interval} of {truth}"
            );
        }
    }
}
