//! Simulations of small exports: their queues, sustained rates and recommendations.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::capacity::{Capacities, Rate};
use crate::fault::RequestedFault;
use crate::testing::{SECOND, assert_close, plain_queue, rows_per_second};
use evenkeel_input::source::{InputOptions, InputPath, OnUnreadable};
use evenkeel_model::finding::FindingCode;
use evenkeel_model::table::ColumnType;
use evenkeel_placement::placement::{Function, Placement, parse_key};
use evenkeel_stats::throughput::Assignment;

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
        let (_dir, turned) = self::export(&turned);
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
    assert_close(
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
    options.faults = vec![RequestedFault::Lost("hottest@busiest".parse().unwrap())];
    options.window = Some(Micros::new(5 * SECOND));
    let simulation = simulated(&export, &options).unwrap();
    let keeps_up: Vec<bool> = simulation.designs.iter().map(|design| design.runs[0].keeps_up).collect();
    let with_loss: Vec<bool> =
        simulation.designs.iter().map(|design| design.runs.iter().all(|run| run.keeps_up)).collect();
    assert!(!keeps_up[0] && keeps_up[4], "{keeps_up:?}");
    assert!(!with_loss[..3].contains(&true), "{with_loss:?}");
    let recommended = simulation.recommended.unwrap();
    let first = (3..5).find(|design| with_loss[*design]).unwrap();
    assert_eq!((recommended.nodes, recommended.partitions), (4, simulation.designs[first].partitions));
    assert_eq!(recommended.keeps_up_with, ["--lost hottest@busiest"]);
    let subjects: Vec<String> = simulation
        .findings
        .iter()
        .filter(|finding| finding.code == FindingCode::FallsBehind)
        .map(|finding| finding.subject.to_string())
        .collect();
    assert_eq!(subjects.len(), 1, "{:?}", simulation.findings);
}

#[test]
fn a_key_that_follows_time_is_hot_at_a_time_alone() {
    let rows: Vec<(i64, u64, &str)> =
        (0..16_000i64).map(|row| (row / 100, row.cast_unsigned(), "x")).collect();
    let (_dir, export) = export(&rows);
    let mut options = options(&[(4, 4)]);
    options.partition_keys = vec!["trunc(at, 10s)".parse().unwrap(), "user".parse().unwrap()];
    options.capacities.node = rows_per_second(40.0);
    let simulation = simulated(&export, &options).unwrap();
    let [moving, even] = simulation.designs.as_slice() else { panic!() };
    assert_close(moving.over_nodes.max_over_mean_at_a_time, 4.0);
    assert!(moving.over_nodes.in_total.max_over_mean < 2.5 && even.over_nodes.max_over_mean_at_a_time < 1.2);
    assert!(!moving.runs[0].keeps_up && even.runs[0].keeps_up);
    // At any time one node gets the whole load, so without a queue four nodes handle no more
    // than one.
    assert_close(moving.rows_per_second_without_queue.unwrap(), 40.0);
    assert!(
        simulation.findings.iter().any(|finding| finding.code == FindingCode::MovingHotspot),
        "{:?}",
        simulation.findings
    );
    assert_eq!(simulation.recommended.unwrap().partition_key, ["user"]);
}

/// Returns all permutations of a slice.
fn permutations<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let Some((first, rest)) = items.split_first() else { return vec![Vec::new()] };
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
        let design = simulated(&export, &options).unwrap().recommended;
        design.map(|design| (design.partition_key, design.nodes, design.partitions))
    };
    assert_eq!(permutations(&keys).len(), 24);
    for keys in permutations(&keys) {
        assert_eq!(recommended(&keys, &[(4, 16)], 30.0), Some((vec!["user".to_owned()], 4, 16)), "{keys:?}");
    }
    for shapes in permutations(&[(2, 8), (4, 16), (3, 12)]) {
        let actual = recommended(&["note", "user"], &shapes, 30.0);
        assert_eq!(actual, Some((vec!["user".to_owned()], 2, 8)), "{shapes:?}");
    }
    // With enough capacity every key keeps up; the more even and simpler one is still
    // preferred.
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
    let simulation = simulated(&export, &options).unwrap();
    let [moving, even] = simulation.designs.as_slice() else { panic!() };
    assert_close(moving.sustained_rows_per_second.unwrap(), 60.0);
    assert!(!moving.is_sustained && !moving.runs[0].keeps_up && even.runs[0].keeps_up);
    let of_moving =
        |code: FindingCode| simulation.findings.iter().find(|finding| finding.code == code).unwrap();
    assert!(
        of_moving(FindingCode::MovingHotspot).subject.to_string().starts_with("(at)"),
        "{:?}",
        simulation.findings
    );
    let behind = of_moving(FindingCode::FallsBehind);
    assert!(
        behind.message.contains("it sustains 60: at any moment one node gets 100 % of them"),
        "{behind:?}"
    );
    assert_eq!(simulation.recommended.unwrap().partition_key, ["user"]);
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
        error(&|options| options.faults = vec![RequestedFault::Slow("2:0.5".parse().unwrap())]),
        "--slow 2:0.5: there is no node 2; a design with 2 nodes has the nodes 0 to 1"
    );
    assert!(
        error(&|options| options.faults = vec![RequestedFault::Lost("1@2h".parse().unwrap())])
            .starts_with("--lost 1@2h: all rows have arrived by then, within 0.02 hours"),
    );
    assert_eq!(
        error(&|options| options.time = Some("user".to_owned())),
        "column 'user' cannot be read as points in time"
    );
    assert_eq!(
        error(&|options| options.time = Some("when".to_owned())),
        "there is no time column 'when'; there are: at"
    );
    assert!(
        error(&|options| options.partition_keys = vec!["User".parse().unwrap()]).contains("no column 'User'")
    );
    assert_eq!(
        error(&|options| options.partition_keys = vec!["hour(user)".parse().unwrap()]),
        "key (hour(user)): column 'user' of type Uint64 is not a point in time"
    );
}
