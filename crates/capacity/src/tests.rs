//! Tests of the model against examples computed by hand, against a plain queue, and against rows
//! placed one by one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::CapacityError;
use evenkeel_input::source::{Export, InputOptions, InputPath, OnUnreadable};
use evenkeel_model::finding::FindingCode;
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_placement::placement::{Function, Placement, parse_key};

const SECOND: i64 = 1_000_000;

/// Returns consecutive windows of ten seconds, with rows of ten bytes.
fn arrivals(windows: &[&[u64]]) -> Arrivals {
    let window = |(number, rows): (usize, &&[u64])| ArrivalWindow {
        start_micros: number as i64 * 10 * SECOND,
        rows: rows.to_vec(),
        bytes: rows.iter().map(|rows| rows * 10).collect(),
    };
    let windows = windows.iter().enumerate().filter(|(_, rows)| rows.iter().any(|rows| *rows > 0));
    Arrivals { window: Micros::new(10 * SECOND), scale: 1.0, windows: windows.map(window).collect() }
}

fn rows_per_second(rate: f64) -> Rate {
    Rate { rows_per_second: Some(rate), bytes_per_second: None }
}

fn cluster(nodes: usize, node: f64) -> Cluster {
    Cluster {
        nodes,
        assignment: Assignment::RoundRobin,
        capacities: Capacities { node: rows_per_second(node), partition: Rate::default() },
        recovery: Micros::new(5 * SECOND),
    }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

#[test]
fn what_a_node_takes_does_not_wait() {
    let outcome = play(&arrivals(&[&[60, 40], &[100, 0]]), &cluster(1, 10.0), None);
    assert_eq!((outcome.arrived_rows, outcome.served_rows, outcome.waiting_rows), (200.0, 200.0, 0.0));
    assert_eq!((outcome.peak, outcome.waiting_from_micros, outcome.waiting_seconds), (None, None, Some(0.0)));
    assert_eq!((outcome.longest_delay_seconds, outcome.mean_delay_seconds), (Some(0.0), Some(0.0)));
    assert_eq!(outcome.nodes[0].utilization, Some(1.0));
}

#[test]
fn a_queue_grows_and_drains_as_computed_by_hand() {
    // The node serves 10 rows per second. 300 arrive in the first 10 s, none for 10 s, then 50.
    let outcome = play(&arrivals(&[&[300], &[0], &[50]]), &cluster(1, 10.0), None);
    // After 10 s 200 wait, after 20 s 100. In the third window 50 arrive, 100 leave and 50 wait;
    // they leave in the step after it.
    let [first, last] = outcome.waiting_rows_by_window.as_slice() else { panic!() };
    [(*first, 200.0), (*last, 50.0), (outcome.served_rows, 300.0), (outcome.waiting_rows, 50.0)]
        .iter()
        .for_each(|(found, expected)| close(*found, *expected));
    let peak = outcome.peak.unwrap();
    assert_eq!((peak.at_micros, peak.rows, peak.bytes), (10 * SECOND, 200.0, 2000.0));
    assert_eq!((outcome.most_waiting_seconds, outcome.nodes[0].most_waiting_rows), (20.0, 200.0));
    assert_eq!((outcome.waiting_from_micros, outcome.waiting_until_micros), (Some(0), Some(40 * SECOND)));
    assert_eq!(outcome.waiting_seconds, Some(40.0));
    // The last of the 300 rows arrives after 10 s and leaves after 30.
    close(outcome.longest_delay_seconds.unwrap(), 20.0);
    // By Little's law: the area under 0, 200, 100, 50, 0 rows over 350 rows.
    close(outcome.mean_delay_seconds.unwrap(), 10.0 * (100.0 + 150.0 + 75.0 + 25.0) / 350.0);
    assert_eq!(outcome.nodes[0].utilization, Some(350.0 / 200.0));
    assert_eq!(outcome.nodes[0].highest_utilization, Some(3.0));
}

#[test]
fn partitions_of_a_node_share_it_evenly_and_a_partition_has_one_writer() {
    // 100 rows fit: 20 of the small partition, and 80 of the large one.
    let shared = play(&arrivals(&[&[20, 200]]), &cluster(1, 10.0), None);
    assert_eq!(shared.waiting_rows_by_window, [120.0]);
    close(shared.longest_delay_seconds.unwrap(), 20.0);
    // A second node helps only the small one.
    assert_eq!(play(&arrivals(&[&[20, 200]]), &cluster(2, 10.0), None).waiting_rows_by_window, [100.0]);
    // A writer that serves 5 rows per second holds the node up, whatever the node's capacity.
    let mut narrow = cluster(1, 1000.0);
    narrow.capacities.partition = rows_per_second(5.0);
    let outcome = play(&arrivals(&[&[20, 200]]), &narrow, None);
    assert_eq!(
        (outcome.waiting_rows_by_window.as_slice(), outcome.most_waiting_seconds),
        ([150.0].as_slice(), 30.0)
    );
    assert_eq!(outcome.waiting_until_micros, Some(40 * SECOND));
}

#[test]
fn bytes_may_be_what_limits() {
    let mut in_bytes = cluster(1, 1000.0);
    in_bytes.capacities.node.bytes_per_second = Some(100.0);
    assert_eq!(
        play(&arrivals(&[&[300], &[50]]), &in_bytes, None).waiting_rows_by_window,
        play(&arrivals(&[&[300], &[50]]), &cluster(1, 10.0), None).waiting_rows_by_window
    );
}

#[test]
fn a_slow_node_takes_a_share_of_what_it_should() {
    let fault = NodeFault::Slow { node: 1, factor: 0.5 };
    let outcome = play(&arrivals(&[&[100, 100]]), &cluster(2, 10.0), Some(fault));
    let waiting: Vec<f64> = outcome.nodes.iter().map(|node| node.most_waiting_rows).collect();
    assert_eq!((waiting, outcome.nodes[1].utilization), (vec![0.0, 50.0], Some(2.0)));
    assert_eq!(outcome.nodes[1].most_waiting_seconds, 10.0);
}

#[test]
fn partitions_of_a_lost_node_wait_and_then_move_to_the_others() {
    // Three nodes with two partitions each serve 10 rows per second each; 60 rows per node in a
    // window.
    let windows: [&[u64]; 4] = [&[30; 6], &[30; 6], &[30; 6], &[30; 6]];
    let fault = NodeFault::Lost { node: 0, after_seconds: 13.0 };
    let outcome = play(&arrivals(&windows), &cluster(3, 10.0), Some(fault));
    let partitions: Vec<usize> = outcome.nodes.iter().map(|node| node.partitions).collect();
    assert_eq!(partitions, [0, 3, 3]);
    // From 13 s to 18 s two partitions wait with 3 rows per second each; then each of the others
    // receives 9 rows per second.
    let peak = outcome.peak.unwrap();
    assert_eq!(peak.at_micros, 18 * SECOND);
    close(peak.rows, 30.0);
    // Of 15 rows one node serves 2 s x 10 - 2 s x 9 = 2 in the second window, and 10 more in each
    // of the next: drained after 15 s.
    let waiting = &outcome.waiting_rows_by_window;
    assert_eq!(waiting.len(), 4);
    [0.0, 26.0, 6.0, 0.0].iter().zip(waiting).for_each(|(expected, found)| close(*found, *expected));
    close(outcome.utilization_after_loss.unwrap(), 0.9);
    // The first rows wait for at least 5 s.
    assert!(outcome.longest_delay_seconds.unwrap() >= 5.0);
    close(outcome.served_rows, 720.0);
    close(outcome.nodes.iter().map(|node| node.rows).sum(), 720.0 - 30.0);
}

#[test]
fn without_another_node_rows_are_never_served() {
    let fault = NodeFault::Lost { node: 0, after_seconds: 5.0 };
    let outcome = play(&arrivals(&[&[100], &[100]]), &cluster(1, 10.0), Some(fault));
    assert!(outcome.is_never_served());
    assert_eq!((outcome.served_rows, outcome.waiting_rows), (50.0, 150.0));
    assert_eq!((outcome.mean_delay_seconds, outcome.waiting_until_micros), (None, None));
}

#[test]
fn a_long_time_without_rows_is_none_of_waiting() {
    let mut far = arrivals(&[&[150], &[10]]);
    far.windows[1].start_micros = 50 * 365 * 86_400 * SECOND;
    let outcome = play(&far, &cluster(1, 10.0), None);
    assert_eq!(
        (outcome.waiting_until_micros, outcome.longest_delay_seconds),
        (Some(20 * SECOND), Some(10.0))
    );
}

#[test]
fn far_too_little_capacity_still_serves_everything_in_the_end() {
    let outcome = play(&arrivals(&[&[1_000_000_000_000]]), &cluster(1, 1e-6), None);
    close(outcome.waiting_rows, 1e12 - 1e-5);
    // 1e18 seconds; steps of a 64th of the elapsed time make it slightly longer.
    let drained = outcome.waiting_seconds.unwrap();
    assert!((1e18..1.02e18).contains(&drained), "{drained}");
    assert!((outcome.mean_delay_seconds.unwrap() / 5e17 - 1.0).abs() < 0.02);
}

/// Returns the backlog at the end of each window of ten seconds, for a single queue that serves
/// `rate` rows per second.
fn plain_queue(windows: &[u64], rate: f64) -> Vec<f64> {
    let mut waiting = 0.0;
    let next = |rows: &u64| {
        waiting = f64::max(waiting + *rows as f64 - rate * 10.0, 0.0);
        waiting
    };
    windows.iter().map(next).collect()
}

/// Generates windows of up to five partitions, a cluster with rates of nodes and partitions, and a
/// fault.
fn scenes() -> impl Strategy<Value = (Vec<Vec<u64>>, Cluster, Option<NodeFault>)> {
    let windows = proptest::collection::vec(proptest::collection::vec(0u64..200, 5), 1..12);
    (windows, 1usize..6, 1.0f64..60.0, 1.0f64..60.0, 0u8..3, 0usize..6, 0.1f64..80.0, 0usize..3).prop_map(
        |(windows, nodes, node, partition, limits, faulty, at, kind)| {
            let mut cluster = cluster(nodes, node);
            if limits > 0 {
                cluster.capacities.partition = rows_per_second(partition);
            }
            if limits > 1 {
                cluster.capacities.node = Rate::default();
            }
            let all = [Assignment::RoundRobin, Assignment::LeastLoaded, Assignment::Contiguous];
            cluster.assignment = all[faulty % 3];
            let faulty = faulty % nodes;
            let fault = match kind {
                0 => None,
                1 => Some(NodeFault::Slow { node: faulty, factor: (at / 80.0).min(1.0) }),
                _ => Some(NodeFault::Lost { node: faulty, after_seconds: at }),
            };
            (windows, cluster, fault)
        },
    )
}

fn played(windows: &[Vec<u64>], cluster: &Cluster, fault: Option<NodeFault>) -> Outcome {
    play(&arrivals(&windows.iter().map(Vec::as_slice).collect::<Vec<_>>()), cluster, fault)
}

proptest! {
    #[test]
    fn what_came_was_served_or_waits((windows, cluster, fault) in scenes()) {
        let outcome = played(&windows, &cluster, fault);
        let came: u64 = windows.iter().flatten().sum();
        let near = |found: f64, expected: f64| (found - expected).abs() <= 1e-6 * expected.max(1.0);
        prop_assert!(near(outcome.arrived_rows, came as f64));
        prop_assert!(near(outcome.served_rows + outcome.waiting_rows, came as f64));
        if let Some(last) = outcome.waiting_rows_by_window.last() {
            prop_assert!(near(*last, outcome.waiting_rows));
        }
        if let Some(longest) = outcome.longest_delay_seconds {
            prop_assert!(outcome.mean_delay_seconds.unwrap() <= longest + 1e-9);
            prop_assert!(longest <= outcome.waiting_seconds.unwrap() + 1e-6);
            prop_assert_eq!(longest > 1e-6, outcome.peak.is_some_and(|peak| peak.rows > 1e-6), "{:?}", outcome);
        }
    }

    #[test]
    fn more_capacity_never_makes_more_wait((windows, cluster, fault) in scenes(), more in 1.0f64..3.0) {
        let times = |rate: Rate| Rate { rows_per_second: rate.rows_per_second.map(|rows| rows * more), ..rate };
        let Capacities { node, partition } = cluster.capacities;
        let stronger = Cluster { capacities: Capacities { node: times(node), partition: times(partition) }, ..cluster };
        let (weak, strong) = (played(&windows, &cluster, fault), played(&windows, &stronger, fault));
        for (weak, strong) in weak.waiting_rows_by_window.iter().zip(&strong.waiting_rows_by_window) {
            prop_assert!(*strong <= weak * (1.0 + 1e-6) + 1e-6, "{} {}", strong, weak);
        }
        prop_assert!(strong.served_rows >= weak.served_rows * (1.0 - 1e-9) - 1e-6);
    }

    #[test]
    fn one_node_is_a_plain_queue_however_its_partitions_share_it(
        windows in proptest::collection::vec(proptest::collection::vec(0u64..200, 4), 1..12), rate in 1.0f64..90.0,
    ) {
        // Rows in every window, so that each is a step.
        let windows: Vec<Vec<u64>> = windows.iter().map(|rows| [rows.as_slice(), &[1]].concat()).collect();
        let sums: Vec<u64> = windows.iter().map(|rows| rows.iter().sum()).collect();
        let found = played(&windows, &cluster(1, rate), None).waiting_rows_by_window;
        for (found, expected) in found.iter().zip(plain_queue(&sums, rate)) {
            prop_assert!((found - expected).abs() < 1e-5, "{} {}", found, expected);
        }
    }

    #[test]
    fn partitions_with_a_node_each_are_queues_apart(
        windows in proptest::collection::vec(proptest::collection::vec(1u64..200, 4), 1..12), rate in 1.0f64..30.0,
    ) {
        let found = played(&windows, &cluster(4, rate), None);
        let of = |partition: usize| plain_queue(&windows.iter().map(|rows| rows[partition]).collect::<Vec<_>>(), rate);
        let queues: Vec<Vec<f64>> = (0..4).map(of).collect();
        for (window, found) in found.waiting_rows_by_window.iter().enumerate() {
            let expected: f64 = queues.iter().map(|queue| queue[window]).sum();
            prop_assert!((found - expected).abs() < 1e-5, "{} {}", found, expected);
        }
        for (node, queue) in found.nodes.iter().zip(&queues) {
            let most = queue.iter().copied().fold(0.0, f64::max);
            prop_assert!((node.most_waiting_rows - most).abs() < 1e-5);
        }
    }

    #[test]
    fn up_to_its_room_nothing_waits_and_in_the_long_run_all_is_served(
        windows in proptest::collection::vec(proptest::collection::vec(1u64..200, 3), 2..10), rate in 1.0f64..30.0,
    ) {
        let all = arrivals(&windows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let slices: Vec<Vec<f64>> = windows.iter().map(|rows| rows.iter().map(|rows| *rows as f64).collect()).collect();
        let room = Room::of(slices.iter().map(|rows| (10.0, rows.as_slice())), &[rate; 3]);
        let at = |times: f64| play(&Arrivals { scale: times, ..all.clone() }, &cluster(3, rate), None);
        prop_assert_eq!(at(room.in_every_slice * 0.999).peak, None);
        prop_assert!(at(room.in_every_slice * 1.01).peak.is_some());
        // Played repeatedly, the backlog stays below the load of one round, or grows with every
        // round.
        let again = |times: f64, rounds: usize| {
            let rounds: Vec<Vec<u64>> = (0..rounds).flat_map(|_| windows.clone()).collect();
            let all = arrivals(&rounds.iter().map(Vec::as_slice).collect::<Vec<_>>());
            play(&Arrivals { scale: times, ..all }, &cluster(3, rate), None).waiting_rows
        };
        let below = room.in_the_long_run * 0.99;
        let of_round = windows.iter().flatten().sum::<u64>() as f64 * below;
        prop_assert!(again(below, 40) <= of_round, "{} {}", again(below, 40), of_round);
        prop_assert!(again(room.in_the_long_run * 1.05, 8) > again(room.in_the_long_run * 1.05, 4));
    }
}

/// Writes a CSV whose rows have a second, a user and a note.
fn export(rows: &[(i64, u64, &str)]) -> (tempfile::TempDir, Export) {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "at,user,note\n".to_owned();
    for (second, user, note) in rows {
        let at = 1_700_000_000 + second;
        let at = chrono::DateTime::from_timestamp(at, 0).unwrap().format("%Y-%m-%dT%H:%M:%SZ");
        writeln!(text, "{at},{user},{note}").unwrap();
    }
    let path = dir.path().join("rows.csv");
    std::fs::write(&path, text).unwrap();
    let types = BTreeMap::from([("user".to_owned(), ColumnType::Uint64)]);
    let export = Export::open(&[InputPath::File(path)], InputOptions::default(), &types).unwrap();
    (dir, export)
}

fn options(shapes: &[(usize, u64)]) -> NodeOptions {
    let shape = |(nodes, partitions): &(usize, u64)| Shape {
        nodes: *nodes,
        partitions: PartitionCount::new(*partitions).unwrap(),
    };
    NodeOptions {
        partition_keys: vec!["user".parse().unwrap()],
        placement: Function::default(),
        shapes: shapes.iter().map(shape).collect(),
        assignment: Assignment::RoundRobin,
        capacities: Capacities { node: rows_per_second(1.0), partition: Rate::default() },
        headroom: 1.5,
        rate: None,
        time: None,
        window: Some(Micros::new(10 * SECOND)),
        faults: Vec::new(),
        recovery: Micros::MINUTE,
        longest_delay: None,
        on_unreadable: OnUnreadable::Fail,
    }
}

fn simulated(export: &Export, options: &NodeOptions) -> Result<NodeSimulation, CapacityError> {
    simulate_nodes(export, options, &|_| {}, &AtomicBool::new(false))
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    /// Places every row alone, counts it in its window and queues it at its node.
    #[test]
    fn rows_placed_one_by_one_make_the_same_queues(
        rows in proptest::collection::vec((0i64..100, 0u64..40), 1..200), nodes in 1usize..4, partitions in 1u64..9, seed in 0usize..200,
    ) {
        let rows: Vec<(i64, u64, &str)> = rows.iter().map(|(second, user)| (*second, *user, "abc")).collect();
        let (_dir, export) = export(&rows);
        let design = &simulated(&export, &options(&[(nodes, partitions)])).unwrap().designs[0];
        let placement = Placement::new(Function::default(), PartitionCount::new(partitions).unwrap(), vec![ColumnType::Uint64]);
        let mut by_node = vec![BTreeMap::<i64, u64>::new(); nodes];
        for (second, user, _) in &rows {
            let key = parse_key(&[ColumnType::Uint64], &[user.to_string()]).unwrap();
            let partition = placement.assign(&key).unwrap()[0].index();
            *by_node[partition % nodes].entry((1_700_000_000 + second).div_euclid(10)).or_default() += 1;
        }
        let outcome = &design.runs[0].outcome;
        for (node, windows) in outcome.nodes.iter().zip(&by_node) {
            prop_assert_eq!(node.rows, windows.values().sum::<u64>() as f64);
        }
        let (first, last) = (by_node.iter().flat_map(BTreeMap::keys).min().unwrap(), by_node.iter().flat_map(BTreeMap::keys).max().unwrap());
        let queues: Vec<Vec<f64>> = by_node.iter().map(|windows| {
            plain_queue(&(*first..=*last).map(|window| windows.get(&window).copied().unwrap_or(0)).collect::<Vec<_>>(), 1.0)
        }).collect();
        let waiting: Vec<f64> = (0..=(last - first) as usize)
            .filter(|window| by_node.iter().any(|windows| windows.contains_key(&(*first + *window as i64))))
            .map(|window| queues.iter().map(|queue| queue[window]).sum())
            .collect();
        prop_assert_eq!(waiting.len(), outcome.waiting_rows_by_window.len());
        for (found, expected) in outcome.waiting_rows_by_window.iter().zip(waiting) {
            prop_assert!((found - expected).abs() < 1e-6, "{} {}", found, expected);
        }
        // Neither the order of the rows nor the number of threads matters.
        let mut turned = rows.clone();
        turned.rotate_left(seed % rows.len());
        let (_dir, turned) = crate::tests::export(&turned);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + seed % 4).build().unwrap();
        let again = pool.install(|| simulated(&turned, &options(&[(nodes, partitions)]))).unwrap();
        prop_assert_eq!(&again.designs[0], design);
    }
}

#[test]
fn a_rate_keeps_the_ups_and_downs_and_headroom_is_that_of_the_busiest_window() {
    // 20 rows, then 40, then nothing for a minute, then 30.
    let seconds = (0..20).chain((0..40).map(|row| 10 + row % 10)).chain((0..30).map(|row| 80 + row % 10));
    let rows: Vec<(i64, u64, &str)> =
        seconds.map(|second: i64| (second, second.cast_unsigned(), "x")).collect();
    let (_dir, export) = export(&rows);
    let mut options = options(&[(2, 8)]);
    options.capacities = Capacities::default();
    let own = simulated(&export, &options).unwrap();
    // The first window has 10 of the 20 rows, the second the other 10 and the 40.
    assert_eq!((own.arrivals.windows, own.arrivals.busiest_rows_per_second), (3, 5.0));
    assert_eq!(own.arrivals.average_rows_per_second, 3.0);
    assert_eq!(own.designs[0].capacities.node.rows_per_second, Some(5.0 * 1.5 / 2.0));
    options.rate = Some(3000.0);
    let scaled = simulated(&export, &options).unwrap();
    assert_eq!((scaled.parameters.scale, scaled.arrivals.busiest_rows_per_second), (1000.0, 5000.0));
    assert_eq!(scaled.designs[0].over_nodes, own.designs[0].over_nodes);
    close(
        scaled.designs[0].sustained_rows_per_second.unwrap() / 1000.0,
        own.designs[0].sustained_rows_per_second.unwrap(),
    );
    // Without capacities, no number of nodes is better than another.
    options.shapes.push(Shape { nodes: 4, partitions: PartitionCount::new(8).unwrap() });
    let several = simulated(&export, &options).unwrap();
    assert!(several.recommended.is_none() && several.unsure.unwrap().contains("--node-rows-per-second"));
}

#[test]
fn the_smallest_design_that_keeps_up_is_recommended() {
    // 16 users with 100 rows each, evenly over 100 seconds: 16 rows per second.
    let rows: Vec<(i64, u64, &str)> =
        (0..1600i64).map(|row| (row / 16, row.cast_unsigned() % 16, "x")).collect();
    let (_dir, export) = export(&rows);
    let mut options = options(&[(1, 4), (2, 2), (2, 16), (4, 4), (4, 64)]);
    options.assignment = Assignment::LeastLoaded;
    options.capacities.node = rows_per_second(9.5);
    options.faults = vec![Fault::Lost("hottest@busiest".parse().unwrap())];
    options.window = Some(Micros::new(5 * SECOND));
    let found = simulated(&export, &options).unwrap();
    let keeps_up: Vec<bool> = found.designs.iter().map(|design| design.runs[0].keeps_up).collect();
    let with_loss: Vec<bool> = found.designs.iter().map(DesignReport::keeps_up_with_faults).collect();
    assert!(!keeps_up[0] && keeps_up[4], "{keeps_up:?}");
    assert!(!with_loss[..3].contains(&true), "{with_loss:?}");
    let recommended = found.recommended.unwrap();
    let first = (3..5).find(|design| with_loss[*design]).unwrap();
    assert_eq!((recommended.nodes, recommended.partitions), (4, found.designs[first].partitions));
    assert_eq!(recommended.keeps_up_with, ["--lost hottest@busiest"]);
    let subjects: Vec<&str> = found
        .findings
        .iter()
        .filter(|finding| finding.code == FindingCode::FallsBehind)
        .map(|finding| finding.subject.as_str())
        .collect();
    assert_eq!(subjects.len(), 1, "{:?}", found.findings);
}

#[test]
fn a_key_that_follows_time_is_hot_at_a_time_alone() {
    let rows: Vec<(i64, u64, &str)> =
        (0..16_000i64).map(|row| (row / 100, row.cast_unsigned(), "x")).collect();
    let (_dir, export) = export(&rows);
    let mut options = options(&[(4, 4)]);
    options.partition_keys = vec!["trunc(at, 10s)".parse().unwrap(), "user".parse().unwrap()];
    options.capacities.node = rows_per_second(40.0);
    let found = simulated(&export, &options).unwrap();
    let [moving, even] = found.designs.as_slice() else { panic!() };
    close(moving.over_nodes.max_over_mean_at_a_time, 4.0);
    assert!(moving.over_nodes.in_total.max_over_mean < 2.5 && even.over_nodes.max_over_mean_at_a_time < 1.2);
    assert!(!moving.runs[0].keeps_up && even.runs[0].keeps_up);
    // At any time one node gets the whole load, so without a queue four nodes handle no more than
    // one.
    close(moving.rows_per_second_without_queue.unwrap(), 40.0);
    assert!(
        found.findings.iter().any(|finding| finding.code == FindingCode::MovingHotspot),
        "{:?}",
        found.findings
    );
    assert_eq!(found.recommended.unwrap().partition_key, ["user"]);
}

/// Returns all permutations of a slice.
fn permutations<T: Clone>(of: &[T]) -> Vec<Vec<T>> {
    let Some((first, rest)) = of.split_first() else { return vec![Vec::new()] };
    let with_first = |rest: Vec<T>| {
        (0..=rest.len()).map(move |at| [&rest[..at], std::slice::from_ref(first), &rest[at..]].concat())
    };
    permutations(rest).into_iter().flat_map(with_first).collect()
}

#[test]
fn the_order_in_which_keys_and_designs_are_named_decides_nothing() {
    // Users are even; notes follow from users, but their few values are uneven; times advance.
    let rows: Vec<(i64, u64, &str)> = (0..8000i64)
        .map(|row| {
            let user = evenkeel_placement::placement::hash_bytes(&row.to_le_bytes()) % 3000;
            (row / 50, user, ["a", "b", "c"][(user % 3) as usize])
        })
        .collect();
    let (_dir, export) = export(&rows);
    let keys = ["user", "note", "trunc(at, 10s)", "user, note"];
    let recommended = |keys: &[&str], shapes: &[(usize, u64)], node: f64| {
        let mut options = options(shapes);
        options.partition_keys = keys.iter().map(|key| key.parse().unwrap()).collect();
        options.capacities.node = rows_per_second(node);
        let found = simulated(&export, &options).unwrap().recommended;
        found.map(|found| (found.partition_key, found.nodes, found.partitions))
    };
    assert_eq!(permutations(&keys).len(), 24);
    for keys in permutations(&keys) {
        assert_eq!(recommended(&keys, &[(4, 16)], 30.0), Some((vec!["user".to_owned()], 4, 16)), "{keys:?}");
    }
    for shapes in permutations(&[(2, 8), (4, 16), (3, 12)]) {
        let found = recommended(&["note", "user"], &shapes, 30.0);
        assert_eq!(found, Some((vec!["user".to_owned()], 2, 8)), "{shapes:?}");
    }
    // With enough capacity every key keeps up; the more even and simpler one is still preferred.
    for keys in permutations(&["trunc(at, 10s)", "user", "note"]) {
        assert_eq!(recommended(&keys, &[(2, 8)], 1e6), Some((vec!["user".to_owned()], 2, 8)), "{keys:?}");
    }
}

#[test]
fn a_window_hides_no_moment() {
    // Each second has its own partition, and a window of a minute spreads them: queues show
    // nothing.
    let rows: Vec<(i64, u64, &str)> =
        (0..24_000i64).map(|row| (row / 100, row.cast_unsigned(), "x")).collect();
    let (_dir, export) = export(&rows);
    let mut options = options(&[(4, 4)]);
    options.window = Some(Micros::MINUTE);
    options.partition_keys = vec!["at".parse().unwrap(), "user".parse().unwrap()];
    options.capacities.node = rows_per_second(60.0);
    let found = simulated(&export, &options).unwrap();
    let [moving, even] = found.designs.as_slice() else { panic!() };
    close(moving.sustained_rows_per_second.unwrap(), 60.0);
    assert!(!moving.is_sustained && !moving.runs[0].keeps_up && even.runs[0].keeps_up);
    let of_moving = |code: FindingCode| found.findings.iter().find(|finding| finding.code == code).unwrap();
    assert!(of_moving(FindingCode::MovingHotspot).subject.starts_with("(at)"), "{:?}", found.findings);
    let behind = of_moving(FindingCode::FallsBehind);
    assert!(behind.message.contains("it sustains 60: at a time one node gets 100 % of them"), "{behind:?}");
    assert_eq!(found.recommended.unwrap().partition_key, ["user"]);
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let (_dir, export) = export(&[(0, 1, "x"), (50, 2, "y")]);
    let error = |change: &dyn Fn(&mut NodeOptions)| {
        let mut options = options(&[(2, 8), (4, 16)]);
        change(&mut options);
        simulated(&export, &options).unwrap_err().to_string()
    };
    assert_eq!(
        error(&|options| options.faults = vec![Fault::Slow("2:0.5".parse().unwrap())]),
        "--slow 2:0.5: there is no node 2; a design with 2 nodes has the nodes 0 to 1"
    );
    assert!(
        error(&|options| options.faults = vec![Fault::Lost("1@2h".parse().unwrap())])
            .starts_with("--lost 1@2h: all rows have arrived by then, within 0.02 hours"),
    );
    assert_eq!(
        error(&|options| options.time = Some("user".to_owned())),
        "column 'user' is not a point in time or a date"
    );
    assert_eq!(
        error(&|options| options.time = Some("when".to_owned())),
        "there is no column 'when'; there are: at, user, note"
    );
    assert!(
        error(&|options| options.partition_keys = vec!["User".parse().unwrap()]).contains("no column 'User'")
    );
    assert_eq!(
        error(&|options| options.partition_keys = vec!["hour(user)".parse().unwrap()]),
        "hour(user): a column of type Uint64 is not a point in time that can be truncated"
    );
}
