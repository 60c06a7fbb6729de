//! Predictions against the tables that are made of the same export, and benches of ingests and
//! queries.

use serde_json::Value;

use crate::common::{done, evenkeel, json, project, run};
use crate::evaluate::{FLIGHTS, numbers, placement};

#[test]
fn what_is_predicted_is_what_create_and_ingest_make() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 30000 --seed 7 --out {}/exports --rows-per-file 7000");
    for (input, keys) in [
        ("{}/exports", "--primary-key event_timestamp,user_id,campaign_id --partition-key user_id"),
        ("{}/exports", "--primary-key event_timestamp,user_id,campaign_id --partition-key campaign_id"),
        (FLIGHTS, "--primary-key time_hour,carrier,flight --partition-key carrier,flight"),
    ] {
        let evaluation =
            json(dir.path(), &format!("evaluate {input} {keys} --partitions 16 --name t --format json"));
        let predicted = numbers(&placement(&evaluation["candidates"][0], 16)["rows_per_partition"]);
        let table = dir.path().join("t");
        // The commands that the answer proposes, word by word.
        for command in evaluation["recommendation"]["commands"].as_array().unwrap().iter().take(2) {
            let command = command.as_str().unwrap().strip_prefix("evenkeel ").unwrap();
            let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            words[1] = table.display().to_string();
            let output = evenkeel().args(&words).output().unwrap();
            assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let skew = json(dir.path(), "skew {}/t --format json");
        let inspected = json(dir.path(), "inspect {}/t --format json");
        let stored: u64 = numbers(&skew["rows_per_partition"]).iter().sum();
        assert_eq!(inspected["rows"].as_u64().unwrap(), stored);
        let repeated = evaluation["primary_keys"][0]["duplicate_rows"].as_u64().unwrap();
        if repeated == 0 {
            assert_eq!(numbers(&skew["rows_per_partition"]), predicted, "{keys}");
            for figure in ["max_over_mean", "cv", "idle_fraction", "effective_partitions"] {
                assert_eq!(skew[figure], evaluation["candidates"][0]["placements"][0][figure], "{figure}");
            }
        } else {
            assert_eq!(stored + repeated, predicted.iter().sum::<u64>(), "{keys}");
        }
        std::fs::remove_dir_all(&table).unwrap();
    }
}

#[test]
fn a_bench_really_ingests_what_was_predicted() {
    let dir = tempfile::tempdir().unwrap();
    let bench = json(
        dir.path(),
        &format!(
            "bench ingest {FLIGHTS} --partition-key carrier --partition-key date(time_hour) --primary-key \
             time_hour,carrier,flight --nodes 4 --batch 100000 --format json --dir {{}}/kept"
        ),
    );
    assert_eq!(bench["partitions"], 16);
    for key in bench["keys"].as_array().unwrap() {
        assert_eq!(key["rows"], 336_776);
        let batches = key["batches"].as_array().unwrap();
        assert_eq!(batches.len(), 4);
        for batch in batches {
            let rows: u64 = numbers(&batch["rows_per_partition"]).iter().sum();
            assert_eq!(batch["rows"], rows);
            let bytes: u64 = numbers(&batch["bytes_per_partition"]).iter().sum();
            assert_eq!(batch["bytes"], bytes);
            let seconds = batch["seconds_per_partition"].as_array().unwrap();
            let portions = seconds.iter().filter(|seconds| seconds.as_f64().unwrap() > 0.0).count();
            assert_eq!(batch["portions"], portions);
        }
        assert_eq!(key["backlog"]["resource"], "node");
        assert!(
            key["backlog"]["rate_without_backlog"].as_f64()
                <= key["backlog"]["rate_in_the_long_run"].as_f64()
        );
    }
    let carrier = json(dir.path(), "inspect {}/kept/table-0 --format json");
    assert_eq!(carrier["rows"], 336_776);
    let evaluation = json(
        dir.path(),
        &format!("evaluate {FLIGHTS} --partition-key carrier --partitions 16 --format json"),
    );
    assert_eq!(
        bench["keys"][0]["rows_per_partition"],
        evaluation["candidates"][0]["placements"][0]["rows_per_partition"]
    );
    let refused =
        run(dir.path(), &format!("bench ingest {FLIGHTS} --partition-key tailnum --primary-key time_hour"));
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("is NULL"), "{}", refused.stderr);
    let scenario = json(dir.path(), "bench ad-events --rows 20000 --batch 5000 --rate 200000 --format json");
    assert_eq!(scenario["ingest"]["keys"].as_array().unwrap().len(), 5);
    assert!(scenario["ingest"]["keys"][0]["utilization"].as_f64().unwrap() > 0.0);
    assert_eq!(scenario["queries"][0]["answers"].as_array().unwrap().len(), 4);
}

#[test]
fn commands_carry_how_the_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..500).map(|i| format!("{i};01.02.2026 10:{:02};{},5\n", i % 60, i % 7)).collect();
    std::fs::write(dir.path().join("orders.csv"), format!("id;at;price\n{rows}")).unwrap();
    let output = evenkeel()
        .arg("evaluate")
        .arg(dir.path().join("orders.csv"))
        .args([
            "--delimiter",
            ";",
            "--decimal-comma",
            "--timestamp-format",
            "%d.%m.%Y %H:%M",
            "--partition-key",
            "id",
        ])
        .args(["--primary-key", "at,id", "--partitions", "2", "--name", "orders table", "--format", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let evaluation: Value = serde_json::from_slice(&output.stdout).unwrap();
    for command in evaluation["recommendation"]["commands"].as_array().unwrap().iter().take(2) {
        let program = env!("CARGO_BIN_EXE_evenkeel");
        let command = command.as_str().unwrap().replacen("evenkeel", program, 1);
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(&command)
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let inspected = json(&dir.path().join("orders table"), "inspect {} --format json");
    assert_eq!(inspected["rows"], 500);
}

#[test]
fn queries_are_timed_on_an_open_table() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 5000 --out {}/events");
    done(dir.path(), &format!("create {{}}/t --ddl {}", project("data/ad_events.sql").display()));
    done(dir.path(), "ingest {}/t {}/events");
    let query = project("queries/clicks_of_campaign.sql");
    let query = query.display();
    let timed = json(
        dir.path(),
        &format!("bench queries {{}}/t -f {query} --param campaign=1 --runs 3 --format json"),
    );
    assert_eq!((timed[0]["rows"].as_u64(), timed[0]["millis"].as_array().unwrap().len()), (Some(1), 3));
    let millis: Vec<f64> =
        timed[0]["millis"].as_array().unwrap().iter().map(|m| m.as_f64().unwrap()).collect();
    assert!(millis.contains(&timed[0]["median_millis"].as_f64().unwrap()), "{timed}");
    let table = done(dir.path(), "bench queries {}/t SELECT/**/count(*)/**/FROM/**/t --runs 1");
    assert!(table.contains("16 of 16") && table.contains("median ms"), "{table}");
    for (arguments, code, message) in [
        ("", 2, "no queries given; pass them after the table, or with -f FILE"),
        ("SELECT/**/1 --param campaign=1", 2, "no query uses the parameter of --param campaign=1"),
        ("-f {}/nothing.sql", 1, "nothing.sql: cannot read"),
        ("SELECT/**/nope/**/FROM/**/t", 1, "nope"),
        ("SELECT/**/1 --runs 0", 2, "0 is not in 1.."),
    ] {
        let refused = run(dir.path(), &format!("bench queries {{}}/t {arguments}"));
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
}
