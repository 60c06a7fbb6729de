//! Designs for loads of a few rows, whose figures are computed by hand.

use std::collections::BTreeMap;

use super::*;
use crate::testing::{SECOND, assert_close, rows_per_second};
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_stats::throughput::Assignment;

/// 100 rows in each of two windows: 60, 20, 60 and 60 in the partitions in total.
const TWO_WINDOWS: [&[u64]; 2] = [&[60, 20, 20, 0], &[0, 0, 40, 60]];
/// Too few rows for windows to be judged: 6, 2, 6 and 2 in the partitions in total.
const FEW_ROWS: [&[u64]; 2] = [&[6, 2, 2, 0], &[0, 0, 4, 2]];

/// Returns consecutive windows of ten seconds, with rows of ten bytes.
fn arrivals(windows: &[&[u64]]) -> Arrivals {
    let window = |(number, rows): (usize, &&[u64])| LoadWindow {
        start_micros: number as i64 * 10 * SECOND,
        rows: rows.to_vec(),
        bytes: rows.iter().map(|rows| rows * 10).collect(),
    };
    let windows = windows.iter().enumerate().map(window).collect();
    Arrivals { window: Micros::new(10 * SECOND), scale: 1.0, windows }
}

fn figures(windows: &[&[u64]]) -> ArrivalFigures {
    let sums: Vec<u64> = windows.iter().map(|rows| rows.iter().sum()).collect();
    let busiest = sums.iter().copied().max().unwrap();
    let average = sums.iter().sum::<u64>() as f64 / (10.0 * sums.len() as f64);
    let place = sums.iter().position(|rows| *rows == busiest).unwrap();
    ArrivalFigures {
        windows: windows.len(),
        average_rows_per_second: average,
        average_bytes_per_second: average * 10.0,
        busiest_rows_per_second: busiest as f64 / 10.0,
        busiest_bytes_per_second: busiest as f64,
        busiest_start_micros: place as i64 * 10 * SECOND,
    }
}

fn count(partitions: usize) -> PartitionCount {
    PartitionCount::new(partitions as u64).unwrap()
}

fn load(windows: &[&[u64]]) -> CountedKey {
    let arrivals = arrivals(windows);
    let partitions = count(arrivals.partitions());
    let totals = Totals::from_arrivals(&arrivals);
    let rows: u64 = totals.rows.iter().sum();
    CountedKey {
        weights: KeyWeights { distinct: rows, rows, heaviest: 1, sum_of_squares: u128::from(rows) },
        arrivals: BTreeMap::from([(partitions, arrivals)]),
        concentrations: BTreeMap::from([(partitions, Concentration::from_amounts(&totals.bytes, None))]),
    }
}

/// Parameters with nodes that serve this many rows per second.
fn parameters(node: f64) -> NodeParameters {
    NodeParameters {
        placement: "ydb".to_owned(),
        assignment: Assignment::RoundRobin,
        window: Micros::new(10 * SECOND),
        scale: 1.0,
        rate: None,
        capacities: Capacities { node: rows_per_second(node), partition: Rate::default() },
        headroom: None,
        recovery: Micros::MINUTE,
        longest_delay: Micros::SECOND,
    }
}

/// Reports on two nodes.
fn report(
    windows: &[&[u64]],
    parameters: &NodeParameters,
    faults: &[RequestedFault],
) -> Result<DesignReport, CapacityError> {
    let figures = figures(windows);
    let shape = Shape { nodes: 2, partitions: count(windows[0].len()) };
    let key: Candidate = "user".parse().unwrap();
    Design { parameters, figures: &figures, shape }.report(&key, &load(windows), faults)
}

#[test]
fn unevenness_is_that_of_the_whole_time_and_that_of_each_window() {
    // In turn, the nodes get 80 and 20 rows, then 40 and 60.
    let design = report(&TWO_WINDOWS, &parameters(100.0), &[]).unwrap();
    let (partitions, nodes) = (&design.over_partitions, &design.over_nodes);
    assert_eq!((partitions.in_total.max, partitions.in_total.min, partitions.in_total.rows), (60, 20, 200));
    assert_eq!((nodes.in_total.max, nodes.in_total.min, nodes.in_total.rows), (120, 80, 200));
    assert_close(partitions.max_over_mean_at_a_time, (60.0 + 60.0) / (25.0 + 25.0));
    assert_close(nodes.max_over_mean_at_a_time, (80.0 + 60.0) / (50.0 + 50.0));
    assert_close(design.partitions_per_node, 2.0);
    // Side by side, they get 80 and 20, then 0 and 100.
    let contiguous = NodeParameters { assignment: Assignment::Contiguous, ..parameters(100.0) };
    let nodes = report(&TWO_WINDOWS, &contiguous, &[]).unwrap().over_nodes;
    assert_eq!((nodes.in_total.max, nodes.in_total.min), (120, 80));
    assert_close(nodes.max_over_mean_at_a_time, (80.0 + 100.0) / (50.0 + 50.0));
}

#[test]
fn the_busiest_node_or_partition_limits_what_is_sustained() {
    // One node has 12 of 16 rows, one partition 6.
    let limited = |node: f64, partition: Rate| {
        let mut parameters = parameters(node);
        parameters.capacities.partition = partition;
        report(&FEW_ROWS, &parameters, &[]).unwrap()
    };
    let by_node = limited(10.0, Rate::default());
    assert!(!by_node.limited_by_partition && by_node.is_sustained && by_node.runs[0].keeps_up);
    assert_close(by_node.sustained_rows_per_second.unwrap(), 10.0 / 0.75);
    // The load is 0.8 rows per second. A node has at most 8 rows in a window, and 12 in both.
    assert_close(by_node.rows_per_second_without_queue.unwrap(), 0.8 * 100.0 / 8.0);
    assert_close(by_node.rows_per_second_in_the_long_run.unwrap(), 0.8 * 200.0 / 12.0);
    let by_partition = limited(10.0, rows_per_second(4.0));
    assert!(by_partition.limited_by_partition);
    assert_close(by_partition.sustained_rows_per_second.unwrap(), 4.0 / 0.375);
    // Of two limits, the lower one counts; a row has ten bytes.
    let by_bytes = limited(10.0, Rate { rows_per_second: Some(4.0), bytes_per_second: Some(20.0) });
    assert_close(by_bytes.sustained_rows_per_second.unwrap(), 2.0 / 0.375);
    let weak = limited(0.5, Rate::default());
    assert!(!weak.is_sustained && !weak.runs[0].keeps_up);
}

#[test]
fn capacities_that_are_not_given_follow_from_the_headroom() {
    let capacities = |headroom: Option<f64>, capacities: Capacities| {
        let parameters = NodeParameters { headroom, capacities, ..parameters(1.0) };
        let shape = Shape { nodes: 4, partitions: count(4) };
        // Ten rows per second.
        let figures = figures(&TWO_WINDOWS);
        Design { parameters: &parameters, figures: &figures, shape }.capacities()
    };
    let bytes = |rate: f64| Rate { rows_per_second: None, bytes_per_second: Some(rate) };
    let assumed = capacities(Some(1.5), Capacities::default());
    assert_eq!(assumed, Capacities { node: rows_per_second(3.75), partition: bytes(DEFAULT_PARTITION_RATE) });
    let given = Capacities { node: bytes(7.0), partition: rows_per_second(2.0) };
    assert_eq!(capacities(None, given), given);
    let of_nodes = Capacities { node: bytes(7.0), partition: Rate::default() };
    assert_eq!(
        capacities(None, of_nodes),
        Capacities { partition: bytes(DEFAULT_PARTITION_RATE), ..of_nodes }
    );
}

#[test]
fn faults_have_a_run_each_with_their_node_and_time() {
    let windows: [&[u64]; 2] = [&[10, 0], &[0, 60]];
    let lost = |text: &str| RequestedFault::Lost(text.parse().unwrap());
    let faults =
        [lost("hottest@busiest"), lost("0@19s"), RequestedFault::Slow("hottest:0.5".parse().unwrap())];
    let runs = report(&windows, &parameters(100.0), &faults).unwrap().runs;
    let of_run = |run: &RunReport| {
        run.fault.as_ref().map(|fault| (fault.kind, fault.node, fault.factor, fault.at_micros / SECOND))
    };
    let expected = [
        None,
        Some((FaultKind::Lost, 1, 0.0, 10)),
        Some((FaultKind::Lost, 0, 0.0, 19)),
        Some((FaultKind::Slow, 1, 0.5, 0)),
    ];
    assert_eq!(runs.iter().map(of_run).collect::<Vec<_>>(), expected);
    // The last window ends after 20 seconds.
    let late = report(&windows, &parameters(100.0), &[lost("0@20s")]).unwrap_err().to_string();
    assert!(late.starts_with("--lost 0@20s: all rows have arrived by then, within 0.01 hours"), "{late}");
}

#[test]
fn a_number_of_partitions_that_was_not_counted_is_refused() {
    let (parameters, figures) = (parameters(1.0), figures(&FEW_ROWS));
    let shape = Shape { nodes: 2, partitions: count(5) };
    let key: Candidate = "user".parse().unwrap();
    let design = Design { parameters: &parameters, figures: &figures, shape };
    assert!(matches!(design.report(&key, &load(&FEW_ROWS), &[]), Err(CapacityError::Columns)));
}

#[test]
fn the_hottest_node_is_the_first_of_those_with_the_highest_sum() {
    for (loads, node_of, nodes, expected) in [
        (&[1.0, 5.0, 5.0, 1.0][..], &[0, 1, 2, 3][..], 4, 1),
        (&[1.0, 5.0, 5.0, 1.0], &[0, 1, 1, 0], 2, 1),
        (&[1.0, 5.0, 5.0, 1.0], &[0, 0, 1, 1], 2, 0),
        (&[], &[], 0, 0),
    ] {
        assert_eq!(hottest(loads, node_of, nodes), expected, "{node_of:?}");
    }
}

#[test]
fn a_backlog_drains_from_the_fault_on() {
    let cluster = NodeCluster {
        nodes: 1,
        assignment: Assignment::RoundRobin,
        capacities: Capacities::default(),
        recovery: Micros::MINUTE,
    };
    let fault = FaultReport {
        requested: "--lost 0@10s".to_owned(),
        kind: FaultKind::Lost,
        node: 0,
        factor: 0.0,
        at_micros: 10 * SECOND,
    };
    for (until, expected) in [(None, None), (Some(9), None), (Some(10), None), (Some(25), Some(15.0))] {
        let waiting_until_micros = until.map(|seconds: i64| seconds * SECOND);
        let outcome = play(&arrivals(&FEW_ROWS), &cluster, None);
        let outcome = RunOutcome { waiting_until_micros, ..outcome };
        assert_eq!(drained_after(&fault, &outcome), expected, "{until:?}");
    }
}
