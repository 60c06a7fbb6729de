//! Queues of nodes and partitions, compared with results by hand and with invariants.

use evenkeel_model::units::Micros;
use evenkeel_stats::throughput::Assignment;
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::capacity::{Capacities, Headroom, Rate};
use crate::testing::{SECOND, assert_close, plain_queue, rows_per_second};

/// Returns consecutive windows of ten seconds, with rows of ten bytes.
fn arrivals(windows: &[&[u64]]) -> Arrivals {
    let window = |(number, rows): (usize, &&[u64])| LoadWindow {
        start_micros: number as i64 * 10 * SECOND,
        rows: rows.to_vec(),
        bytes: rows.iter().map(|rows| rows * 10).collect(),
    };
    let windows = windows.iter().enumerate().filter(|(_, rows)| rows.iter().any(|rows| *rows > 0));
    Arrivals { window: Micros::new(10 * SECOND), scale: 1.0, windows: windows.map(window).collect() }
}

fn cluster(nodes: usize, node: f64) -> NodeCluster {
    NodeCluster {
        nodes,
        assignment: Assignment::RoundRobin,
        capacities: Capacities { node: rows_per_second(node), partition: Rate::default() },
        recovery: Micros::new(5 * SECOND),
    }
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
    // After 10 s 200 wait, after 20 s 100. In the third window 50 arrive, 100 leave and 50
    // wait; they leave in the step after it.
    let [first, last] = outcome.waiting_rows_by_window.as_slice() else { panic!() };
    [(*first, 200.0), (*last, 50.0), (outcome.served_rows, 300.0), (outcome.waiting_rows, 50.0)]
        .iter()
        .for_each(|(found, expected)| assert_close(*found, *expected));
    let peak = outcome.peak.unwrap();
    assert_eq!((peak.at_micros, peak.rows, peak.bytes), (10 * SECOND, 200.0, 2000.0));
    assert_eq!((outcome.most_waiting_seconds, outcome.nodes[0].most_waiting_rows), (20.0, 200.0));
    assert_eq!((outcome.waiting_from_micros, outcome.waiting_until_micros), (Some(0), Some(40 * SECOND)));
    assert_eq!(outcome.waiting_seconds, Some(40.0));
    // The last of the 300 rows arrives after 10 s and leaves after 30.
    assert_close(outcome.longest_delay_seconds.unwrap(), 20.0);
    // By Little's law: the area under 0, 200, 100, 50, 0 rows over 350 rows.
    assert_close(outcome.mean_delay_seconds.unwrap(), 10.0 * (100.0 + 150.0 + 75.0 + 25.0) / 350.0);
    assert_eq!(outcome.nodes[0].utilization, Some(350.0 / 200.0));
    assert_eq!(outcome.nodes[0].highest_utilization, Some(3.0));
}

#[test]
fn partitions_of_a_node_share_it_evenly_and_a_partition_has_one_writer() {
    // 100 rows fit: 20 of the small partition, and 80 of the large one.
    let shared = play(&arrivals(&[&[20, 200]]), &cluster(1, 10.0), None);
    assert_eq!(shared.waiting_rows_by_window, [120.0]);
    assert_close(shared.longest_delay_seconds.unwrap(), 20.0);
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
    // From 13 s to 18 s two partitions wait with 3 rows per second each; then each of the
    // others receives 9 rows per second.
    let peak = outcome.peak.unwrap();
    assert_eq!(peak.at_micros, 18 * SECOND);
    assert_close(peak.rows, 30.0);
    // Of 15 rows one node serves 2 s x 10 - 2 s x 9 = 2 in the second window, and 10 more in
    // each of the next: drained after 15 s.
    let waiting = &outcome.waiting_rows_by_window;
    assert_eq!(waiting.len(), 4);
    [0.0, 26.0, 6.0, 0.0].iter().zip(waiting).for_each(|(expected, found)| assert_close(*found, *expected));
    assert_close(outcome.utilization_after_loss.unwrap(), 0.9);
    // The first rows wait for at least 5 s.
    assert!(outcome.longest_delay_seconds.unwrap() >= 5.0);
    assert_close(outcome.served_rows, 720.0);
    assert_close(outcome.nodes.iter().map(|node| node.rows).sum(), 720.0 - 30.0);
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
    assert_close(outcome.waiting_rows, 1e12 - 1e-5);
    // 1e18 seconds; steps of a 64th of the elapsed time make it slightly longer.
    let drained = outcome.waiting_seconds.unwrap();
    assert!((1e18..1.02e18).contains(&drained), "{drained}");
    assert!((outcome.mean_delay_seconds.unwrap() / 5e17 - 1.0).abs() < 0.02);
}

/// Generates windows of up to five partitions, a cluster with rates of nodes and partitions,
/// and a fault.
fn scenes() -> impl Strategy<Value = (Vec<Vec<u64>>, NodeCluster, Option<NodeFault>)> {
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

fn played(windows: &[Vec<u64>], cluster: &NodeCluster, fault: Option<NodeFault>) -> RunOutcome {
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
        let stronger = NodeCluster { capacities: Capacities { node: times(node), partition: times(partition) }, ..cluster };
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
        let waiting = played(&windows, &cluster(1, rate), None).waiting_rows_by_window;
        for (found, expected) in waiting.iter().zip(plain_queue(&sums, rate)) {
            prop_assert!((found - expected).abs() < 1e-5, "{} {}", found, expected);
        }
    }

    #[test]
    fn partitions_with_a_node_each_are_queues_apart(
        windows in proptest::collection::vec(proptest::collection::vec(1u64..200, 4), 1..12), rate in 1.0f64..30.0,
    ) {
        let outcome = played(&windows, &cluster(4, rate), None);
        let queue_of = |partition: usize| plain_queue(&windows.iter().map(|rows| rows[partition]).collect::<Vec<_>>(), rate);
        let queues: Vec<Vec<f64>> = (0..4).map(queue_of).collect();
        for (window, found) in outcome.waiting_rows_by_window.iter().enumerate() {
            let expected: f64 = queues.iter().map(|queue| queue[window]).sum();
            prop_assert!((found - expected).abs() < 1e-5, "{} {}", found, expected);
        }
        for (node, queue) in outcome.nodes.iter().zip(&queues) {
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
        let headroom = Headroom::from_slices(slices.iter().map(|rows| (10.0, rows.as_slice())), &[rate; 3]);
        let at = |times: f64| play(&Arrivals { scale: times, ..all.clone() }, &cluster(3, rate), None);
        prop_assert_eq!(at(headroom.in_every_slice * 0.999).peak, None);
        prop_assert!(at(headroom.in_every_slice * 1.01).peak.is_some());
        // Played repeatedly, the backlog stays below the load of one round, or grows with every
        // round.
        let again = |times: f64, rounds: usize| {
            let rounds: Vec<Vec<u64>> = (0..rounds).flat_map(|_| windows.clone()).collect();
            let all = arrivals(&rounds.iter().map(Vec::as_slice).collect::<Vec<_>>());
            play(&Arrivals { scale: times, ..all }, &cluster(3, rate), None).waiting_rows
        };
        let below = headroom.in_the_long_run * 0.99;
        let of_round = windows.iter().flatten().sum::<u64>() as f64 * below;
        prop_assert!(again(below, 40) <= of_round, "{} {}", again(below, 40), of_round);
        prop_assert!(again(headroom.in_the_long_run * 1.05, 8) > again(headroom.in_the_long_run * 1.05, 4));
    }
}
