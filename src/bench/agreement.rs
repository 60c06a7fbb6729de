//! Checks that an evaluation, a bench of ingest and a simulation of nodes agree on the rate that a
//! key sustains, and on whether a given rate is within it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use evenkeel_advisor::evaluate::{EvaluateOptions, Evaluator, PlacementReport};
use evenkeel_capacity::{Assignment, Capacities, NodeOptions, NodeSimulation, Rate, Shape, simulate_nodes};
use evenkeel_input::source::{Export, InputOptions, InputPath, OnUnreadable};
use evenkeel_model::units::{ByteSize, Micros, PartitionCount};
use evenkeel_placement::placement::Function;
use evenkeel_stats::throughput::Capacity;

const PARTITIONS: u64 = 8;
/// Largest relative difference between rates that agree.
const TOLERANCE: f64 = 0.01;

/// Keys of every kind: even, few values, one heavy value, time alone in three lengths, and time
/// with a column of many values.
const KEYS: [&str; 9] = [
    "user",
    "at, country",
    "id",
    "country",
    "heavy",
    "at",
    "trunc(at, 10s)",
    "date(at)",
    "trunc(at, 10s), user",
];

fn mixed(row: u64) -> u64 {
    evenkeel_placement::placement::hash_bytes(&row.to_le_bytes())
}

/// Creates an export of 12,000 rows, 100 per second, in the order of `at` or shuffled.
fn export(is_shuffled: bool) -> (tempfile::TempDir, Arc<Export>) {
    let dir = tempfile::tempdir().unwrap();
    let mut rows: Vec<u64> = (0..12_000).collect();
    if is_shuffled {
        rows.sort_by_key(|row| mixed(*row));
    }
    let mut text = "at,id,user,country,heavy,note\n".to_owned();
    for row in rows {
        let at = chrono::DateTime::from_timestamp(1_700_000_000 + row.cast_signed() / 100, 0).unwrap();
        let at = at.format("%Y-%m-%dT%H:%M:%SZ");
        let user = mixed(row + 1_000_000) % 5000;
        let country = ["de", "fr", "it"][(mixed(row + 2_000_000) % 3) as usize];
        let heavy = if mixed(row + 3_000_000) % 10 < 6 { 7 } else { mixed(row) % 1000 };
        writeln!(text, "{at},{row},u{user:05},{country},h{heavy},abcdefgh").unwrap();
    }
    let path = dir.path().join("rows.csv");
    std::fs::write(&path, text).unwrap();
    let export = Export::open(&[InputPath::File(path)], InputOptions::default(), &Default::default());
    (dir, Arc::new(export.unwrap()))
}

fn evaluated(export: &Export, key: &str) -> PlacementReport {
    let options = EvaluateOptions {
        partition_keys: vec![key.parse().unwrap()],
        partitions: vec![PartitionCount::new(PARTITIONS).unwrap()],
        ..EvaluateOptions::default()
    };
    let mut evaluator = Evaluator::new(export.columns(), options).unwrap();
    export
        .read::<evenkeel_advisor::evaluate::EvaluateError>(OnUnreadable::Fail, |_, batch| {
            evaluator.add(&batch)?;
            Ok(true)
        })
        .unwrap();
    evaluator.finish().unwrap().candidates.remove(0).placements.remove(0)
}

fn simulated(export: &Export, key: &str, rate: Option<f64>) -> NodeSimulation {
    let rate_of_partition = Rate { rows_per_second: None, bytes_per_second: Some(1e6) };
    let options = NodeOptions {
        partition_keys: vec![key.parse().unwrap()],
        placement: Function::default(),
        shapes: vec![Shape { nodes: 2, partitions: PartitionCount::new(PARTITIONS).unwrap() }],
        assignment: Assignment::RoundRobin,
        // Only partitions have a limit, as in an evaluation.
        capacities: Capacities { node: Rate::default(), partition: rate_of_partition },
        headroom: 1.5,
        rate,
        time: None,
        window: None,
        faults: Vec::new(),
        recovery: Micros::MINUTE,
        longest_delay: None,
        on_unreadable: OnUnreadable::Fail,
    };
    simulate_nodes(export, &options, &|_| {}, &AtomicBool::new(false)).unwrap()
}

async fn benched(export: &Arc<Export>, key: &str) -> KeyBench {
    let options = BenchOptions {
        partition_keys: vec![key.parse().unwrap()],
        primary_key: "at, id".parse().unwrap(),
        partitions: PartitionCount::new(PARTITIONS).unwrap(),
        batch_rows: 4000,
        rows_per_second: None,
        limits: Limits { partition_rate: 1e6, nodes: None },
        memory: ByteSize::mib(512),
    };
    let folder = tempfile::tempdir().unwrap();
    let bench = bench_ingest(Arc::clone(export), &options, folder.path(), &|_| {}).await;
    bench.unwrap().keys.remove(0)
}

fn agree(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() <= TOLERANCE, "{what}: {found} and {expected}");
}

#[tokio::test]
async fn one_key_gets_one_answer() {
    for is_shuffled in [false, true] {
        let (_dir, export) = export(is_shuffled);
        for key in KEYS {
            let what = format!("{key}, shuffled: {is_shuffled}");
            let placement = evaluated(&export, key);
            let capacity: Capacity = placement.capacity;
            let bench = benched(&export, key).await;
            let backlog = bench.backlog.as_ref().unwrap();
            agree(backlog.sustained_rate, capacity.sustained, &what);
            assert_eq!(backlog.is_sustained, capacity.sustains(backlog.offered_rate), "{what}");
            assert!(backlog.rate_without_backlog <= backlog.sustained_rate, "{what}");
            let own = simulated(&export, key, None);
            let row_bytes = own.arrivals.average_bytes_per_second / own.arrivals.average_rows_per_second;
            agree(own.designs[0].sustained_rows_per_second.unwrap() * row_bytes, capacity.sustained, &what);
            // The verdicts agree at rates below and above the sustained one.
            let loads: Vec<Vec<u64>> =
                bench.batches.iter().map(|batch| batch.bytes_per_partition.clone()).collect();
            let load = LoadAtATime { partitions: &capacity, windows: &placement.windows };
            let limits = Limits { partition_rate: 1e6, nodes: None };
            for times in [0.98, 1.02] {
                let rate = capacity.sustained * times;
                let backlog = Backlog::simulate(&loads, limits, load, Some(rate)).unwrap();
                let simulation = simulated(&export, key, Some(rate / row_bytes));
                let design = &simulation.designs[0];
                let verdicts = [capacity.sustains(rate), backlog.is_sustained, design.is_sustained];
                assert_eq!(verdicts, [times < 1.0; 3], "{what} at {times}");
                assert!(design.is_sustained || !design.runs[0].keeps_up, "{what} at {times}");
                assert!(design.is_sustained || simulation.recommended.is_none(), "{what} at {times}");
            }
        }
    }
}

/// Checks figures that would differ if each command had its own model.
#[test]
fn a_key_that_follows_time_sustains_one_partition_and_an_even_one_all() {
    let (_dir, export) = export(false);
    for key in ["at", "trunc(at, 10s)", "date(at)"] {
        agree(evaluated(&export, key).capacity.sustained, 1e6, key);
    }
    for key in ["user", "id"] {
        let sustained = evaluated(&export, key).capacity.sustained;
        assert!(sustained > 0.85 * 8e6, "{key}: {sustained}");
    }
}
