//! Nodes on exports: figures against those of an evaluation and of SQL, and what is refused.

use std::path::Path;

use serde_json::{Value, json as value};

use crate::common::{Run, done, evenkeel, json, run};

/// Ad events: 50,000 rows over two days.
fn events(dir: &Path) {
    done(dir, "generate ad-events --rows 50000 --out {}/exports");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn design<'a>(simulation: &'a Value, key: &str, nodes: u64, partitions: u64) -> &'a Value {
    let is_asked = |design: &&Value| {
        design["partition_key"][0] == key && design["nodes"] == nodes && design["partitions"] == partitions
    };
    simulation["designs"].as_array().unwrap().iter().find(is_asked).unwrap()
}

/// What does not depend on the machine.
fn timeless(mut simulation: Value) -> Value {
    simulation["seconds"] = Value::Null;
    simulation
}

#[test]
fn rows_are_placed_as_an_evaluation_places_them_and_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let command = "capacity {}/exports --partition-key user_id --partition-key campaign_id \
                   --partition-key hour(event_timestamp) --nodes 2,4 --partitions 8,16 --node-rows-per-second 2000 --rate 5000 \
                   --partition-bytes-per-second 1MB --slow hottest:0.5 --lost 1@6h --lost hottest@busiest --format json";
    let simulation = json(dir.path(), command);
    assert_eq!(simulation["model"], true);
    assert_eq!(simulation["designs"].as_array().unwrap().len(), 12);
    let evaluation = json(
        dir.path(),
        "evaluate {}/exports --partition-key user_id --partition-key campaign_id --partition-key hour(event_timestamp) \
         --no-primary-keys --partitions 8,16 --format json",
    );
    for (candidate, key) in evaluation["candidates"].as_array().unwrap().iter().zip([
        "user_id",
        "campaign_id",
        "hour(event_timestamp)",
    ]) {
        for placement in candidate["placements"].as_array().unwrap() {
            let partitions = placement["partitions"].as_u64().unwrap();
            for nodes in [2, 4] {
                let found = design(&simulation, key, nodes, partitions);
                for figure in ["rows", "max", "min", "max_over_mean", "cv", "effective_partitions"] {
                    assert_eq!(
                        found["over_partitions"]["in_total"][figure], placement[figure],
                        "{key} {partitions} {figure}"
                    );
                }
                let floor = &found["over_partitions"]["noise_floor"];
                assert_eq!(floor["expected_cv_weighted"], placement["expected_cv_weighted"], "{key}");
                let rows = placement["rows_per_partition"].as_array().unwrap();
                for (node, outcome) in found["runs"][0]["nodes"].as_array().unwrap().iter().enumerate() {
                    let of_node = rows.iter().skip(node).step_by(nodes as usize);
                    let rows: u64 = of_node.map(|rows| rows.as_u64().unwrap()).sum();
                    let expected = rows as f64 * number(&simulation["parameters"]["scale"]);
                    assert!((number(&outcome["rows"]) / expected - 1.0).abs() < 1e-9, "{key} {node}");
                }
            }
        }
    }
    for run in
        simulation["designs"].as_array().unwrap().iter().flat_map(|design| design["runs"].as_array().unwrap())
    {
        let sum = number(&run["served_rows"]) + number(&run["waiting_rows"]);
        assert!((sum / number(&run["arrived_rows"]) - 1.0).abs() < 1e-9, "{run}");
    }
    let rate = number(&simulation["arrivals"]["average_rows_per_second"]);
    assert!((rate - 5000.0).abs() < 1e-6, "{rate}");
    // Two nodes of 2000 rows per second cannot take 5000, four can if rows are even at any moment.
    let keeps_up =
        |key: &str, nodes, partitions| &design(&simulation, key, nodes, partitions)["runs"][0]["keeps_up"];
    assert_eq!(keeps_up("user_id", 2, 8), false);
    assert_eq!(keeps_up("user_id", 4, 16), true);
    for key in ["campaign_id", "hour(event_timestamp)"] {
        assert_eq!(keeps_up(key, 4, 16), false, "{key}");
    }
    let recommended = &simulation["recommended"];
    assert_eq!((&recommended["partition_key"][0], &recommended["nodes"]), (&"user_id".into(), &4.into()));
    // All of an hour is on one partition.
    let moving = design(&simulation, "hour(event_timestamp)", 4, 16);
    assert!(number(&moving["over_partitions"]["max_over_mean_at_a_time"]) > 15.9);
}

#[test]
fn nothing_depends_on_threads_on_the_order_of_rows_or_on_other_designs() {
    let dir = tempfile::tempdir().unwrap();
    let row = |row: u64| {
        format!("2026-01-{:02}T{:02}:00:00Z,user {}\n", 1 + row / 4800, row * row % 24, row * 37 % 900)
    };
    let mut rows: Vec<String> = (0..20_000).map(row).collect();
    let write = |name: &str, rows: &[String]| {
        std::fs::write(dir.path().join(name), format!("at,user_id\n{}", rows.concat())).unwrap();
    };
    write("rows.csv", &rows);
    rows.reverse();
    write("turned.csv", &rows);
    let command = |input: &str, shapes: &str| {
        format!(
            "capacity {{}}/{input} --partition-key user_id --window 10m {shapes} --node-rows-per-second 0.2 --format json"
        )
    };
    let with_threads = |threads: &str| {
        let dir = dir.path().display().to_string();
        let command = command("rows.csv", "--nodes 3 --partitions 7,64");
        let words = command.split_whitespace().map(|word| word.replace("{}", &dir));
        let output = evenkeel().args(words).env("RAYON_NUM_THREADS", threads).output().unwrap();
        timeless(serde_json::from_slice(&output.stdout).unwrap())
    };
    let one = with_threads("1");
    assert_eq!(one, with_threads("4"));
    let turned = json(dir.path(), &command("turned.csv", "--nodes 3 --partitions 7,64"));
    assert_eq!(one["designs"], turned["designs"]);
    let alone = json(dir.path(), &command("rows.csv", "--nodes 3 --partitions 64"));
    assert_eq!(one["designs"][1], alone["designs"][0]);
}

#[test]
fn results_come_as_text_and_markdown_with_what_is_assumed() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let command = "capacity {}/exports --partition-key user_id --nodes 4 --partitions-per-node 1,2,4,8";
    let text = done(dir.path(), command);
    for part in [
        "NODES: A MODEL, NOT A MEASUREMENT",
        "assumed, as no capacity is given: all nodes of a design together handle 1.5 times the rows of the busiest window",
        "a lost node stays lost; 1m later",
        "recommended: HASH(user_id), 4 nodes,",
        "note [assumed_capacity]",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let rows = text.lines().filter(|line| line.trim_start().starts_with("user_id "));
    assert_eq!(rows.count(), 4 + 8, "{text}");
    let markdown = done(dir.path(), &format!("{command} --format markdown --lost none"));
    assert!(markdown.contains("## Backlog\n\n| partition key"), "{markdown}");
    let shapes = json(dir.path(), &format!("{command} --lost none --format json"));
    let shapes: Vec<u64> =
        shapes["designs"].as_array().unwrap().iter().map(|d| d["partitions"].as_u64().unwrap()).collect();
    assert_eq!(shapes, [4, 8, 16, 32]);
}

#[test]
fn fewer_partitions_than_nodes_are_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let simulation = json(
        dir.path(),
        "capacity {}/exports --partition-key user_id --nodes 8 --partitions 6,12 --lost none --format json",
    );
    let codes: Vec<(&str, &str)> = simulation["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["code"].as_str().unwrap(), finding["subject"].as_str().unwrap()))
        .collect();
    assert!(codes.contains(&("idle_nodes", "(user_id), 8 nodes, 6 partitions")), "{codes:?}");
    assert!(codes.contains(&("uneven_assignment", "(user_id), 8 nodes, 12 partitions")), "{codes:?}");
}

#[test]
fn rows_without_times_come_at_a_rate_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "id,name\n".to_owned();
    (0..1000).for_each(|id| text.push_str(&format!("{id},x\n")));
    std::fs::write(dir.path().join("rows.csv"), text).unwrap();
    let refused = run(dir.path(), "capacity {}/rows.csv --partition-key id");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("name a column of time with --time"), "{}", refused.stderr);
    let simulation = json(
        dir.path(),
        "capacity {}/rows.csv --partition-key id --rate 100 --window 1s --nodes 1 --partitions 1 --node-rows-per-second 80 \
         --lost none --format json",
    );
    let run = &simulation["designs"][0]["runs"][0];
    // 100 rows come in each of ten seconds, and 80 are served.
    assert_eq!(simulation["arrivals"]["windows"], 10);
    assert!((number(&run["waiting_rows"]) - 200.0).abs() < 1e-6, "{run}");
    assert!((number(&run["longest_delay_seconds"]) - 2.5).abs() < 0.51, "{run}");
    assert_eq!(simulation["time"], Value::Null);
}

#[test]
fn rows_without_a_time_are_left_out_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let text = "at,id\n2026-01-01T00:00:00Z,1\n,2\n2026-01-01T00:00:09Z,3\n";
    std::fs::write(dir.path().join("rows.csv"), text).unwrap();
    let simulation = json(
        dir.path(),
        "capacity {}/rows.csv --partition-key id --window 1s --nodes 1 --lost none --format json",
    );
    assert_eq!((&simulation["rows"], &simulation["rows_without_time"]), (&3.into(), &1.into()));
    assert_eq!(simulation["designs"][0]["runs"][0]["arrived_rows"], 2.0);
    assert_eq!(
        simulation["notes"],
        value!([{"code": "rows_without_time", "text": "left out 1 row without a time"}])
    );
}

#[test]
fn what_cannot_be_is_refused_before_it_is_played() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 2000 --out {}/exports");
    let with = |more: &str| -> Run {
        run(dir.path(), &format!("capacity {{}}/exports --partition-key user_id {more}"))
    };
    for (more, reason) in [
        (
            "--nodes 2,4 --slow 3:0.5",
            "--slow 3:0.5: there is no node 3; a design with 2 nodes has the nodes 0 to 1",
        ),
        ("--lost 4@1h", "--lost 4@1h: there is no node 4; a design with 4 nodes has the nodes 0 to 3"),
        ("--slow 1:0", "above 0 and at most 1"),
        ("--slow 1:-2", "above 0 and at most 1"),
        ("--slow 1", "such as 2:0.5"),
        ("--lost 1", "such as 2@6h"),
        ("--lost 1@90d", "all rows have arrived by then"),
        ("--lost none --lost 1@1h", "--lost none"),
        ("--time user_id", "column 'user_id' cannot be read as points in time"),
        ("--time when", "there is no time column 'when'"),
        ("--partition-key nobody", "there is no column 'nobody'"),
        ("--partition-key hour(user_id)", "is not a point in time"),
        ("--node-rows-per-second 0", "write a number above 0"),
        ("--node-bytes-per-second 0", "a rate must be above 0"),
        ("--nodes 0", "0 is not in"),
        ("--partitions 0", "a table has 1 to 100000 partitions"),
        ("--placement oracle", "unknown placement function 'oracle'"),
        ("--assign random", "known: round-robin, least-loaded, contiguous"),
        ("--partitions 100000 --window 1us", "windows of 1us are too short"),
        ("--type nobody:int64", "there is no column 'nobody'"),
        ("--placement ydb-cloud-logs", "needs a key of at least two columns"),
        ("--partitions 4 --partitions-per-node 4", "cannot be used with"),
    ] {
        let refused = with(more);
        assert_eq!(refused.code, 2, "{more}\n{}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains(reason), "{more}\n{}", refused.stderr);
    }
    assert_eq!(run(dir.path(), "capacity {}/exports").code, 2);
}
