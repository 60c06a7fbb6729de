//! Order of designs, and the findings about them.

use super::*;
use crate::capacity::Capacities;
use crate::outcome::RunOutcome;
use crate::result::{ArrivalFigures, FaultKind, FaultReport, NodeParameters, RunReport, Unevenness};
use evenkeel_model::units::Micros;
use evenkeel_stats::skew::{KeyWeights, NoiseFloor, SkewFigures};
use evenkeel_stats::throughput::Assignment;

/// Unevenness of a load that stays the same over time, of a million keys.
fn steady(counts: &[u64]) -> Unevenness {
    let in_total = SkewFigures::from_counts(counts);
    let rows = in_total.rows;
    let keys = KeyWeights { distinct: 1_000_000, rows, heaviest: 1, sum_of_squares: u128::from(rows) };
    Unevenness {
        noise_floor: NoiseFloor::from_weights(&in_total, &keys),
        max_over_mean_at_a_time: in_total.max_over_mean,
        max_over_mean_at_a_time_by_chance: 1.0,
        sustained_over_mean: in_total.max_over_mean,
        in_total,
    }
}

/// A run whose rows wait for 90 s or, if it keeps up, for half a second.
fn run(keeps_up: bool, lost: Option<&str>) -> RunReport {
    let delay = if keeps_up { 0.5 } else { 90.0 };
    let fault = lost.map(|requested| FaultReport {
        requested: requested.to_owned(),
        kind: FaultKind::Lost,
        node: 1,
        factor: 0.0,
        at_micros: 0,
    });
    let outcome = RunOutcome {
        arrived_rows: 100.0,
        served_rows: 100.0,
        waiting_rows: 7.0,
        peak: None,
        most_waiting_seconds: delay,
        waiting_from_micros: None,
        waiting_until_micros: None,
        waiting_seconds: Some(delay),
        longest_delay_seconds: Some(delay),
        mean_delay_seconds: Some(0.1),
        utilization_after_loss: lost.map(|_| 1.2),
        waiting_rows_by_window: Vec::new(),
        nodes: Vec::new(),
    };
    RunReport { fault, outcome, keeps_up, seconds_to_drain: None }
}

/// A design of even nodes that keeps up without a fault.
fn design(key: &str, nodes: usize, counts: &[u64]) -> DesignReport {
    let candidate: evenkeel_model::table::Candidate = key.parse().unwrap();
    DesignReport {
        partition_key: candidate.part_names(),
        candidate,
        nodes,
        partitions: counts.len(),
        partitions_per_node: counts.len() as f64 / nodes as f64,
        capacities: Capacities::default(),
        over_partitions: steady(counts),
        over_nodes: steady(&vec![1000; nodes]),
        rows_per_second_without_queue: None,
        sustained_rows_per_second: Some(1000.0),
        is_sustained: true,
        rows_per_second_in_the_long_run: None,
        limited_by_partition: false,
        runs: vec![run(true, None)],
    }
}

fn simulation(designs: Vec<DesignReport>) -> NodeSimulation {
    NodeSimulation {
        model: true,
        inputs: Vec::new(),
        rows: 1_000_000,
        bytes: 0,
        rows_without_time: 0,
        time: None,
        parameters: NodeParameters {
            placement: "ydb".to_owned(),
            assignment: Assignment::RoundRobin,
            window: Micros::SECOND,
            scale: 1.0,
            rate: None,
            capacities: Capacities::default(),
            headroom: None,
            recovery: Micros::MINUTE,
            longest_delay: Micros::SECOND,
        },
        arrivals: ArrivalFigures {
            windows: 1,
            average_rows_per_second: 1000.0,
            average_bytes_per_second: 0.0,
            busiest_rows_per_second: 1000.0,
            busiest_bytes_per_second: 0.0,
            busiest_start_micros: 0,
        },
        designs,
        unsure: None,
        recommended: None,
        findings: Vec::new(),
        notes: Vec::new(),
        seconds: 0.0,
    }
}

fn codes(design: DesignReport) -> Vec<FindingCode> {
    advise(&simulation(vec![design])).iter().map(|finding| finding.code).collect()
}

/// Each design is better than the next by one criterion, and worse by all less important ones.
#[test]
fn designs_are_ranked_by_faults_nodes_partitions_evenness_and_simplicity() {
    let survives = |survives: bool, design: DesignReport| {
        let runs = vec![run(true, None), run(survives, Some("--lost 1@1h"))];
        DesignReport { runs, ..design }
    };
    let uneven = |design: DesignReport| DesignReport { over_nodes: steady(&[2000, 1000]), ..design };
    let almost_even = |key| survives(false, uneven(design(key, 2, &[1500, 1000, 1000])));
    let mut designs = vec![
        survives(true, design("z, y", 3, &[3000, 1000, 1000])),
        survives(false, design("z, y", 1, &[3000, 1000, 1000])),
        survives(false, design("z, y", 2, &[3000, 1000])),
        survives(false, design("z, y", 2, &[3000, 1000, 1000])),
        survives(false, uneven(design("z, y", 2, &[1000; 3]))),
        almost_even("z"),
        almost_even("date(at)"),
        almost_even("a, b"),
        almost_even("b, a"),
    ];
    while designs.len() > 1 {
        let best = (designs[0].partition_key.clone(), designs[0].nodes, designs[0].partitions);
        for turn in 0..designs.len() {
            let mut turned = designs.clone();
            turned.rotate_left(turn);
            let (design, unsure) = recommend(&simulation(turned));
            let design = design.unwrap();
            assert_eq!(
                (design.partition_key, design.nodes, design.partitions, unsure),
                (best.0.clone(), best.1, best.2, None),
                "{turn}"
            );
        }
        designs.remove(0);
    }
}

#[test]
fn without_a_capacity_or_a_design_that_keeps_up_nothing_is_recommended() {
    let mut unlimited = simulation(vec![design("a", 2, &[1; 4]), design("a", 4, &[1; 4])]);
    unlimited.parameters.headroom = Some(1.5);
    let (recommended, unsure) = recommend(&unlimited);
    assert!(recommended.is_none() && unsure.unwrap().starts_with("no capacity is given"));
    // With one number of nodes, designs can still be compared.
    unlimited.designs.truncate(1);
    assert_eq!(recommend(&unlimited).0.unwrap().nodes, 2);
    let failing = DesignReport { runs: vec![run(false, None)], ..design("a", 2, &[1; 4]) };
    for designs in [Vec::new(), vec![failing]] {
        let (recommended, unsure) = recommend(&simulation(designs));
        assert!(recommended.is_none() && unsure.unwrap().starts_with("no design keeps up"));
    }
}

#[test]
fn nodes_without_partitions_or_with_different_numbers_of_them_are_reported() {
    assert_eq!(codes(design("a", 4, &[1000; 3])), [FindingCode::IdleNodes]);
    assert_eq!(codes(design("a", 4, &[1000; 4])), []);
    assert_eq!(codes(design("a", 4, &[1000; 5])), [FindingCode::UnevenAssignment]);
    assert_eq!(codes(design("a", 4, &[1000; 8])), []);
    // Of 21 partitions, one of two nodes has 11, 4.8 % more than the mean; 10 of 19 are 5.3 %.
    assert_eq!(codes(design("a", 2, &[1000; 21])), []);
    assert_eq!(codes(design("a", 2, &[1000; 19])), [FindingCode::UnevenAssignment]);
}

#[test]
fn a_partition_is_hot_from_115_hundredths_of_the_share_of_a_node_on() {
    assert_eq!(codes(design("a", 2, &[57_000, 43_000])), []);
    assert_eq!(codes(design("a", 2, &[58_000, 42_000])), [FindingCode::HotPartition]);
    // A single node has all partitions anyway.
    assert_eq!(codes(design("a", 1, &[58_000, 42_000])), []);
}

#[test]
fn few_keys_are_reported_only_if_they_make_partitions_uneven() {
    let with_keys = |distinct: u64, counts: &[u64]| {
        let mut design = design("a", 1, counts);
        let skew = &design.over_partitions.in_total;
        let keys = KeyWeights { distinct, rows: skew.rows, heaviest: 1, sum_of_squares: 1 };
        design.over_partitions.noise_floor = NoiseFloor::from_weights(skew, &keys);
        codes(design)
    };
    assert_eq!(with_keys(199, &[60_000, 40_000]), [FindingCode::FewDistinctKeys]);
    assert_eq!(with_keys(200, &[60_000, 40_000]), []);
    assert_eq!(with_keys(199, &[57_000, 43_000]), []);
}

#[test]
fn a_key_whose_designs_all_fall_behind_has_one_finding() {
    let failing = |nodes| DesignReport {
        is_sustained: false,
        sustained_rows_per_second: Some(250.0),
        runs: vec![run(false, None), run(false, Some("--lost 1@1h"))],
        ..design("a", nodes, &[1000; 4])
    };
    let findings = advise(&simulation(vec![failing(1), failing(4), failing(2)]));
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.code, finding.severity), (FindingCode::FallsBehind, Severity::Problem));
    assert_eq!(finding.subject.to_string(), "(a), 4 nodes, 4 partitions");
    assert_eq!((finding.measured, finding.threshold), (90.0, 1.0));
    assert_eq!(
        finding.message,
        "rows wait up to 90.0 s, more than 1.0 s; 1000 rows arrive per second on average, but it sustains 250: \
             at any moment one node gets 25 % of them; the same holds for 2 other designs of this key"
    );
}

#[test]
fn after_a_loss_rows_may_wait_for_the_recovery_too() {
    let mut lost = design("a", 2, &[1000; 4]);
    lost.runs.push(run(false, Some("--lost 1@1h")));
    let findings = advise(&simulation(vec![lost.clone()]));
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.code, finding.threshold), (FindingCode::NoFaultHeadroom, 61.0));
    assert!(
        finding.message.starts_with("keeps up, but not with --lost 1@1h (node 1): rows wait up to 90.0 s")
    );
    assert!(finding.message.ends_with("would run at 120 % of its capacity"), "{}", finding.message);
    lost.runs[1].outcome.longest_delay_seconds = None;
    let never = advise(&simulation(vec![lost])).remove(0);
    assert!(never.message.contains("7 rows are never served: no other node is left"), "{never:?}");
}

#[test]
fn few_rows_and_assumed_capacities_are_reported_last() {
    let mut simulation = simulation(vec![design("a", 4, &[1000; 3])]);
    simulation.rows = 29;
    simulation.parameters.headroom = Some(1.5);
    let codes: Vec<FindingCode> = advise(&simulation).iter().map(|finding| finding.code).collect();
    assert_eq!(codes, [FindingCode::IdleNodes, FindingCode::FewRows, FindingCode::AssumedCapacity]);
    // Ten rows for each of three partitions are enough.
    simulation.rows = 30;
    assert!(!advise(&simulation).iter().any(|finding| finding.code == FindingCode::FewRows));
}
