//! The recommended table, and the figures that it follows from.

use serde_json::json;

use crate::common::{done, json};
use crate::evaluate::{FLIGHTS, placement};

#[test]
fn the_story_of_the_ydb_documentation_comes_out_in_numbers() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 120000 --out {}/exports");
    let evaluation = json(
        dir.path(),
        "evaluate {}/exports --partition-key date(event_timestamp) --partition-key hour(event_timestamp) \
         --partition-key trunc(event_timestamp,5m) --partition-key campaign_id --partition-key user_id \
         --partition-key user_id,event_timestamp --primary-key event_timestamp,user_id,campaign_id \
         --primary-key user_id,event_timestamp,campaign_id --partitions 16 --queries queries --batch 5000 --format json",
    );
    let candidate = |key: &str| {
        let candidates = evaluation["candidates"].as_array().unwrap();
        candidates
            .iter()
            .find(|c| c["partition_key"] == json!(key.split(", ").collect::<Vec<_>>()))
            .unwrap()
            .clone()
    };
    // Time at low resolution sends everything of a moment to one partition.
    for key in ["date(event_timestamp)", "hour(event_timestamp)"] {
        let time = candidate(key)["over_time"].clone();
        assert_eq!(time["pattern"], "sequential", "{key}");
        assert!(time["share_of_fullest"]["median"].as_f64().unwrap() > 0.99, "{key}");
        assert!(time["effective_partitions"]["median"].as_f64().unwrap() < 1.05, "{key}");
        let capacity = placement(&candidate(key), 16)["capacity"].clone();
        assert!(capacity["sustained"].as_f64().unwrap() < 1.05e6, "{key}: one partition's rate");
    }
    assert!(
        placement(&candidate("hour(event_timestamp)"), 16)["effective_partitions"].as_f64().unwrap() > 6.0
    );
    // One campaign can have 80 % of the events.
    let campaign = candidate("campaign_id");
    assert_eq!(campaign["over_time"]["pattern"], "concentrated");
    assert!((campaign["heavy_hitters"][0]["share"].as_f64().unwrap() - 0.8).abs() < 0.02);
    assert!(placement(&campaign, 16)["share_of_heaviest_partition"].as_f64().unwrap() > 0.8);
    // user_id and (user_id, event_timestamp) balance, in total and at any time.
    for key in ["user_id", "user_id, event_timestamp"] {
        let even = candidate(key);
        assert_eq!(even["over_time"]["pattern"], "even", "{key}");
        let placement = placement(&even, 16);
        assert_eq!(placement["verdict"], "even", "{key}");
        assert_eq!(placement["causes"]["hash_function"], 0.0, "{key}");
        assert!(placement["capacity"]["sustained"].as_f64().unwrap() > 14e6, "{key}");
    }
    // What the documentation leaves unsaid: a longer key makes the events of one user visit every
    // partition.
    let statements = evaluation["statements"].as_array().unwrap();
    let user = statements.iter().find(|s| s["statement"] == "events_of_user").unwrap();
    let visits = |key: &str| {
        let fan_out = user["fan_out"].as_array().unwrap();
        let key = json!(key.split(", ").collect::<Vec<_>>());
        fan_out.iter().find(|f| f["partition_key"] == key).unwrap()["partitions_read"].as_u64().unwrap()
    };
    assert_eq!((visits("user_id"), visits("user_id, event_timestamp")), (1, 16));
    assert_eq!(evaluation["recommendation"]["partition_key"], json!(["user_id"]));
    assert_eq!(
        evaluation["recommendation"]["primary_key"],
        json!(["event_timestamp", "user_id", "campaign_id"])
    );
    // Rows come in the order of time, so that key appends; a key that begins with the user
    // rewrites.
    let keys = evaluation["primary_keys"].as_array().unwrap();
    assert!(keys[0]["in_order_fraction"].as_f64().unwrap() > 0.95);
    assert!(keys[1]["in_order_fraction"].as_f64().unwrap() < 0.1);
    assert!(keys[0]["layout"]["write_amplification"].as_f64().unwrap() < 1.1);
    assert!(keys[1]["layout"]["write_amplification"].as_f64().unwrap() > 1.5);
    let hour = keys[0]["pruning"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["condition"] == "an hour of event_timestamp");
    assert!(hour.unwrap()["portions_pruned"].as_f64().unwrap() > 0.8);
    let codes: Vec<&str> =
        evaluation["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    for code in ["moving_hotspot", "constant_hotspot", "heavy_key", "few_distinct_keys", "fan_out"] {
        assert!(codes.contains(&code), "{code}: {codes:?}");
    }
}

#[test]
fn a_key_of_the_time_alone_is_a_hotspot_however_long_the_windows() {
    let dir = tempfile::tempdir().unwrap();
    for window in ["", "--window 6h", "--window 7d"] {
        let evaluation = json(
            dir.path(),
            &format!(
                "evaluate {FLIGHTS} --partition-key time_hour --partition-key flight --partitions 16,64,128 {window} --format json"
            ),
        );
        for placement in evaluation["candidates"][0]["placements"].as_array().unwrap() {
            assert_eq!(placement["verdict"], "moving", "{window}");
            assert_eq!(placement["capacity"]["sustained"], 1e6, "{window}");
        }
        assert_eq!(evaluation["recommendation"]["partition_key"], json!(["flight"]), "{window}");
    }
}

#[test]
fn the_recommendation_follows_the_rate_the_skew_and_the_placement() {
    let dir = tempfile::tempdir().unwrap();
    let recommended = |arguments: &str| {
        let evaluation = json(dir.path(), &format!("evaluate {FLIGHTS} {arguments} --format json"));
        evaluation["recommendation"].clone()
    };
    let primary_key = "--primary-key time_hour,carrier,flight";
    // flight sustains 12 MB/s over 16 partitions: enough for 10, not for 16.
    for (rate, partitions) in [("10MB", 16), ("16MB", 64)] {
        let found = recommended(&format!(
            "{primary_key} --partition-key flight --partitions 16,64 --ingest-rate {rate}"
        ));
        assert_eq!(found["partitions"], partitions, "{rate}: {found}");
    }
    // Two keys are even enough for little; the one that statements need fewer partitions of is
    // chosen, unless its rate is short.
    std::fs::write(dir.path().join("q.sql"), "SELECT * FROM t WHERE flight = 15").unwrap();
    let keys = format!(
        "{primary_key} --partition-key flight --partition-key carrier,flight --queries {{}}/q.sql --partitions 16"
    );
    assert_eq!(recommended(&keys)["partition_key"], json!(["flight"]));
    let fast = recommended(&format!("{keys} --ingest-rate 13MB"));
    assert_eq!(fast["partition_key"], json!(["carrier", "flight"]), "{fast}");
    let modulo = recommended(&format!("{primary_key} --partition-key flight --placement ydb-modulo"));
    assert!(modulo["commands"][0].as_str().unwrap().contains("--placement ydb-modulo"), "{modulo}");
    let poor = recommended("--partition-key year --primary-key year,time_hour,carrier,flight");
    for (reason, begin) in
        ["no good key was found", "no candidate spreads rows evenly"].into_iter().enumerate()
    {
        assert!(poor["reasons"][reason].as_str().unwrap().starts_with(begin), "{poor}");
    }
}
