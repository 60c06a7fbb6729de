//! Advice on simulations made up of figures that decide one thing each.

use super::*;
use crate::simulate::key::KeyOrder;
use crate::simulate::result::{Load, RateSource, ReadReport};
use crate::simulate::splits::{HeatMap, ModelParameters, Period, Relief, SpaceFigures, Stuck, Timeline};

const ROWS: u64 = 1000;

fn space(name: &str, hottest_share: f64) -> SpaceFigures {
    SpaceFigures {
        name: name.to_owned(),
        rows: ROWS,
        bytes: 10 * ROWS,
        rows_in_time: ROWS,
        hottest_share,
        splits: Vec::new(),
    }
}

/// A strategy whose hottest split gets this share of the rows, and is never hot.
fn quiet(name: StrategyName, hottest_share: f64) -> StrategyReport {
    let whole = Period {
        rows: ROWS,
        hottest_rows: (hottest_share * ROWS as f64).round() as u64,
        highest_score: 4.0,
        splits: 2,
        ..Period::default()
    };
    let heat = HeatMap {
        cells: Vec::new(),
        spaces: Vec::new(),
        starts_at: Vec::new(),
        starts: Vec::new(),
        windows: (0, 0),
        patterns: vec![HeatPattern::EvenlyDistributed; 2],
        single_hot: None,
    };
    StrategyReport {
        strategy: name,
        words: String::new(),
        is_range: true,
        outcome: DatabaseOutcome {
            spaces: vec![space("t", hottest_share), space("by_note", hottest_share)],
            whole,
            timeline: Timeline::default(),
            relief: Relief::default(),
            stuck: Vec::new(),
            transactions: ROWS,
            splits_per_transaction: 1.0,
            most_splits_per_transaction: 1,
            two_phase_share: 0.0,
            heat,
        },
        reads: Vec::new(),
        indexes: Vec::new(),
    }
}

/// A strategy by its name, whose writes spread over the splits.
fn spread(name: &str) -> StrategyReport {
    quiet(StrategyName::Table(name.parse().unwrap()), 0.1)
}

/// A strategy whose writes all go to a place that moves with time, without making it hot.
fn moving(name: &str) -> StrategyReport {
    let mut report = quiet(StrategyName::Table(name.parse().unwrap()), 1.0);
    report.outcome.heat.patterns[0] = HeatPattern::MonotonicKeys;
    report
}

/// The same with a split that is hot in ten windows.
fn hot(mut report: StrategyReport) -> StrategyReport {
    report.outcome.relief.hot_windows = 10;
    report
}

fn with_stuck(mut report: StrategyReport, space: usize, obstacle: Obstacle, rows: u64) -> StrategyReport {
    report.outcome.stuck.push(Stuck { space, obstacle, splits: 1, rows });
    hot(report)
}

fn with_read(mut report: StrategyReport, splits: usize, ranges: Option<usize>) -> StrategyReport {
    report.reads.push(ReadReport { kind: ReadKind::History, splits, ranges, rows: None, newest_first: None });
    report
}

fn simulation(strategies: Vec<StrategyReport>) -> Simulation {
    let key = |column: &str| KeyOrder { column: column.to_owned(), descending: false };
    Simulation {
        model: true,
        inputs: vec!["rows.csv".to_owned()],
        rows: ROWS,
        bytes: 10 * ROWS,
        primary_key: vec![key("at"), key("user")],
        time: None,
        rate: None,
        load: Load {
            rows_per_second: None,
            bytes_per_second: None,
            source: RateSource::Measured,
            span_micros: 0,
            is_sorted_by_time: false,
        },
        late_rows: 0,
        read_length: None,
        owner: None,
        transaction_rows: 1,
        presplits: 0,
        parameters: ModelParameters::default(),
        is_scale_found: false,
        strategies,
        judged: None,
        nullable: Vec::new(),
        timed_uuids: Vec::new(),
        unsure: None,
        recommended: None,
        findings: Vec::new(),
        notes: Vec::new(),
        seconds: 0.0,
    }
}

/// Name of the recommended strategy, or `none`.
fn recommended(strategies: Vec<StrategyReport>) -> String {
    recommend(&simulation(strategies)).map_or("none".to_owned(), |name| name.to_string())
}

fn found(simulation: &Simulation) -> Vec<(FindingCode, Severity)> {
    advise(simulation).iter().map(|finding| (finding.code, finding.severity)).collect()
}

#[test]
fn of_the_keys_that_spread_writes_the_declared_one_is_kept_unless_its_reads_go_through_all_keys() {
    let stuck = || with_stuck(moving("declared"), 0, Obstacle::MovingHotspot, ROWS);
    assert_eq!(recommended(vec![stuck(), spread("shard-16")]), "shard-16");
    assert_eq!(recommended(vec![stuck()]), "none");
    assert_eq!(recommended(Vec::new()), "none");
    let others = || [hot(moving("swapped")), spread("shard-16")];
    let with = |report: StrategyReport| recommended(others().into_iter().chain([report]).collect());
    assert_eq!(with(spread("declared")), "declared");
    assert_eq!(with(with_read(spread("declared"), 900, Some(1))), "declared");
    assert_eq!(with(with_read(spread("declared"), 900, None)), "shard-16");
    // Up to three times the share of the most even strategy is as good.
    let declared = StrategyName::Table(Strategy::Declared);
    assert_eq!(with(quiet(declared, 0.29)), "declared");
    assert_eq!(with(quiet(declared, 0.31)), "shard-16");
}

#[test]
fn equal_strategies_differ_by_the_splits_that_reads_touch_and_then_by_their_order() {
    let read = |name, splits| with_read(spread(name), splits, Some(1));
    let of = |reports: [StrategyReport; 2]| {
        recommended([hot(moving("declared"))].into_iter().chain(reports).collect())
    };
    assert_eq!(of([read("shard-16", 16), read("uuid4", 3)]), "uuid4");
    assert_eq!(of([read("shard-16", 3), read("uuid4", 3)]), "shard-16");
    assert_eq!(of([read("uuid4", 3), read("shard-16", 3)]), "uuid4");
}

#[test]
fn hot_splits_that_dividing_does_not_cool_are_harmless_up_to_2_in_100_rows() {
    let shard = |space, rows| {
        let mut report = with_stuck(spread("shard-16"), space, Obstacle::SingleRow, rows);
        report.outcome.whole.by_load = 1;
        recommended(vec![hot(moving("declared")), report])
    };
    assert_eq!(shard(0, 20), "shard-16");
    assert_eq!(shard(0, 21), "none");
    assert_eq!(shard(1, ROWS), "shard-16", "indexes are judged apart");
    // A split that stays hot and is never divided is as bad as one that cannot be.
    let mut never = hot(spread("shard-16"));
    let with = |report: &StrategyReport| recommended(vec![hot(moving("declared")), report.clone()]);
    assert_eq!(with(&never), "none");
    never.outcome.relief.relieved_after = Some(3);
    assert_eq!(with(&never), "shard-16");
}

#[test]
fn at_a_low_rate_keys_that_follow_time_are_not_recommended_and_children_are() {
    assert_eq!(recommended(vec![moving("declared"), spread("uuid4")]), "uuid4");
    assert_eq!(recommended(vec![spread("declared"), spread("uuid4")]), "declared");
    let all_move = simulation(vec![moving("declared"), moving("swapped")]);
    assert!(all_move.is_quiet_and_moves() && recommend(&all_move).is_none());
    let children = [StrategyName::Apart, StrategyName::Interleaved].map(|name| quiet(name, 1.0));
    assert_eq!(recommended(children.to_vec()), "apart");
    // Neither partitions of a column table nor figures that say nothing are recommended.
    let mut hashed = spread("hash-16");
    hashed.is_range = false;
    assert_eq!(recommended(vec![moving("declared"), hashed]), "none");
    let unsure = Simulation { unsure: Some("few rows".to_owned()), ..simulation(vec![spread("declared")]) };
    assert_eq!(recommend(&unsure), None);
}

#[test]
fn a_key_that_follows_time_is_a_problem_once_it_is_hot() {
    let finding = |report: StrategyReport| advise(&simulation(vec![report])).pop();
    let problem = finding(hot(moving("declared"))).unwrap();
    assert_eq!((problem.code, problem.severity), (FindingCode::MonotonicKey, Severity::Problem));
    assert_eq!((problem.subject.to_string().as_str(), problem.measured), ("at", 1.0));
    assert!(problem.message.ends_with("dividing splits does not help"), "{}", problem.message);
    let note = finding(moving("declared")).unwrap();
    assert_eq!((note.code, note.severity), (FindingCode::MonotonicKey, Severity::Note));
    assert!(note.message.contains("it gets 100 of the 2500 rows per second"), "{}", note.message);
    assert!(note.message.ends_with("at this rate it does no harm"), "{}", note.message);
    // Of a few rows that go to one split anyway, nothing follows.
    let unsure = Simulation { unsure: Some("few".to_owned()), ..simulation(vec![hot(moving("declared"))]) };
    let expected =
        [(FindingCode::TooFewRows, Severity::Warning), (FindingCode::MonotonicKey, Severity::Note)];
    assert_eq!(found(&unsure), expected);
    // A time in front follows time, in whatever order the export is, if there are several splits.
    let one_place = || quiet(StrategyName::Table(Strategy::Declared), 0.95);
    assert_eq!(finding(one_place()), None);
    let mut by_time = Simulation { time: Some("at".to_owned()), ..simulation(vec![one_place()]) };
    assert_eq!(found(&by_time), [(FindingCode::MonotonicKey, Severity::Note)]);
    by_time.strategies[0].outcome.whole.splits = 1;
    assert_eq!(found(&by_time), []);
    // Alternatives to the judged key are not judged.
    let mut other = simulation(vec![spread("declared"), hot(moving("shard-16"))]);
    assert_eq!(found(&other), []);
    other.judged = Some(Strategy::Shards(16));
    assert_eq!(found(&other), [(FindingCode::MonotonicKey, Severity::Problem)]);
}

#[test]
fn a_row_that_is_hot_alone_is_found_in_the_table_and_not_in_indexes() {
    let of = |space| simulation(vec![with_stuck(spread("declared"), space, Obstacle::SingleRow, 250)]);
    let findings = advise(&of(0));
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.code, finding.severity), (FindingCode::HotRow, Severity::Problem));
    assert_eq!((finding.subject.to_string().as_str(), finding.measured), ("at, user", 0.25));
    assert_eq!(found(&of(1)), []);
}

#[test]
fn indexes_are_judged_by_their_own_splits_and_their_size() {
    let index = |hottest_share, bytes| IndexReport {
        name: "by_note".to_owned(),
        interleaved: false,
        entries: ROWS,
        hottest_share,
        bytes,
        splits: 1,
        matching_rows: 1,
        back_joins: 0,
    };
    let of = |index: IndexReport, is_hot: bool| {
        let mut report = spread("declared");
        report.outcome.heat.patterns[1] = HeatPattern::MonotonicKeys;
        if is_hot {
            report = with_stuck(report, 1, Obstacle::MovingHotspot, ROWS);
        }
        report.indexes.push(index);
        found(&simulation(vec![report]))
    };
    let (half, less) = (5 * ROWS, 5 * ROWS - 1);
    assert_eq!(of(index(0.9, less), false), [(FindingCode::MonotonicIndex, Severity::Note)]);
    assert_eq!(of(index(0.9, less), true), [(FindingCode::MonotonicIndex, Severity::Problem)]);
    assert_eq!(of(index(0.89, half), false), [(FindingCode::LargeIndex, Severity::Note)]);
    assert_eq!(of(index(0.89, less), true), []);
    let unknown = IndexReport { name: "of another table".to_owned(), ..index(1.0, 0) };
    assert_eq!(of(unknown, true), []);
}

#[test]
fn the_rest_is_worth_knowing_and_problems_come_first() {
    let mut report = with_stuck(spread("declared"), 0, Obstacle::SingleRow, 250);
    let newest_first = Some(false);
    let read = ReadReport { kind: ReadKind::History, splits: 1, ranges: Some(1), rows: None, newest_first };
    report.reads = vec![ReadReport { newest_first: Some(true), ..read.clone() }, read];
    report.outcome.two_phase_share = 0.5;
    let timed_uuids = vec![("at".to_owned(), 7), ("user".to_owned(), 1)];
    let expected = [
        (FindingCode::HotRow, Severity::Problem),
        (FindingCode::TimeOrderedUuid, Severity::Warning),
        (FindingCode::HistoryAscends, Severity::Note),
        (FindingCode::TwoPhaseCommits, Severity::Note),
        (FindingCode::TimeOrderedUuid, Severity::Note),
    ];
    let all = Simulation { timed_uuids, ..simulation(vec![report.clone()]) };
    assert_eq!(found(&all), expected);
    // Children in a table of their own are not next to their parent.
    report.strategy = StrategyName::Apart;
    report.outcome.stuck.clear();
    report.outcome.two_phase_share = 0.49;
    assert_eq!(found(&simulation(vec![report])), []);
}

#[test]
fn a_declared_key_that_does_no_harm_is_defended_if_another_is_recommended() {
    let with = |declared: StrategyReport, recommended: &str| {
        let recommended = Some(StrategyName::Table(recommended.parse().unwrap()));
        Simulation { recommended, ..simulation(vec![declared, spread("uuid4")]) }.harmless_declared()
    };
    let words = with(moving("declared"), "uuid4").unwrap();
    assert!(
        words.starts_with("declared does no harm at this rate: its hottest split gets 100 of the 2500 rows")
    );
    assert_eq!(with(moving("declared"), "declared"), None);
    assert_eq!(with(hot(moving("declared")), "uuid4"), None);
    assert_eq!(with(spread("declared"), "uuid4"), None);
    assert_eq!([0.129, 0.999, 1.0, 99.96, 100.4].map(few_digits), ["0.13", "1.00", "1.0", "100.0", "100"]);
}
