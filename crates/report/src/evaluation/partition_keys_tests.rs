//! Text on the evaluation of a small export, some of whose figures are changed.

use evenkeel_advisor::evaluate::StatementReport;
use evenkeel_stats::sketch::DistinctKeys;

use super::*;
use crate::testing::evaluated;

/// An evaluation of three keys, by several functions over the recommended number of partitions.
fn with_functions(names: &[&str]) -> AdvisorReport {
    let mut report = evaluated();
    let mut third = report.evaluation.candidates[0].clone();
    third.partition_key = vec!["third".to_owned()];
    report.evaluation.candidates.push(third);
    let mut third = report.ranking[0].clone();
    third.partition_key = vec!["third".to_owned()];
    report.ranking.push(third);
    report.recommendation.partitions = 4;
    for key in &mut report.evaluation.candidates {
        let of_name = |name: &&str| {
            let mut placement = key.placements[0].clone();
            placement.function = name.parse().unwrap();
            placement
        };
        key.placements = names.iter().map(of_name).collect();
        assert_eq!(key.placements[0].skew.partitions, 4);
    }
    report
}

fn lines_with(text: &str, word: &str) -> usize {
    text.lines().filter(|line| line.contains(word)).count()
}

#[test]
fn keys_are_in_the_order_of_their_ranking_over_the_recommended_partitions() {
    let names = |report: &AdvisorReport| -> Vec<(String, u32)> {
        let name = |(_, key, placement): (&RankedKey, &PartitionKeyReport, &PlacementReport)| {
            (key.partition_key.join(", "), placement.skew.partitions as u32)
        };
        ranked(report).map(name).collect()
    };
    let mut report = evaluated();
    for partitions in [4, 8] {
        report.recommendation.partitions = partitions;
        let expected: Vec<(String, u32)> =
            report.ranking.iter().map(|ranked| (ranked.partition_key.join(", "), partitions)).collect();
        assert_eq!(expected.len(), 2);
        assert_eq!(names(&report), expected);
        report.ranking.reverse();
    }
    // Figures that were not evaluated are left out.
    report.ranking[0].partition_key = vec!["nothing".to_owned()];
    assert_eq!(names(&report).len(), 1);
    report.recommendation.partitions = 5;
    assert!(names(&report).is_empty());
    assert_eq!(candidates(&report, Layout::Plain) + &partitions(&report, Layout::Markdown), "");
}

#[test]
fn figures_of_a_sample_have_their_interval_and_estimates_are_marked() {
    let mut key = evaluated().evaluation.candidates.remove(0);
    let mut placement = key.placements.remove(0);
    (placement.skew.max_over_mean, placement.skew.cv) = (1.25, 0.5);
    let cv = |placement: &PlacementReport| with_interval(placement.skew.cv, placement, |i| i.cv, percent);
    assert_eq!((max_over_mean(&placement).as_str(), cv(&placement).as_str()), ("1.25", "50.0 %"));
    let interval = Interval { lower: 1.0, upper: 1.5 };
    placement.intervals = Some(Intervals {
        max_over_mean: interval,
        cv: None,
        idle_fraction: interval,
        effective_partitions: None,
        share_of_fullest: interval,
        no_interval: None,
    });
    assert_eq!(max_over_mean(&placement), "1.25 (1.00 to 1.50)");
    assert_eq!(cv(&placement), "50.0 % (no interval)");
    assert_eq!(distinct_values(&key), "250");
    key.distinct = DistinctKeys { estimate: 1234, exact: false, lower: 1200, upper: 1300 };
    assert_eq!(distinct_values(&key), "~1,234");
    key.heavy_hitters.clear();
    assert_eq!(heaviest_share(&key), "-");
}

#[test]
fn partitions_that_statements_read_are_shown_if_a_statement_can_be_planned() {
    let mut report = evaluated();
    let statement = |problem: Option<&str>| StatementReport {
        statement: "q".to_owned(),
        runs: 1.0,
        fixed_columns: Vec::new(),
        problem: problem.map(str::to_owned),
        fan_out: Vec::new(),
    };
    report.ranking[0].mean_partitions_read = Some(977.26);
    report.ranking[1].obstacle = Some("a reason".to_owned());
    report.statements = vec![statement(Some("no table"))];
    let text = candidates(&report, Layout::Plain);
    assert!(!has_statements(&report) && !text.contains("977.3"), "{text}");
    assert_eq!(lines_with(&text, "; cannot be chosen"), 1);
    report.statements.push(statement(None));
    let text = candidates(&report, Layout::Plain);
    assert!(has_statements(&report) && text.contains("977.3"), "{text}");
    assert!(text.contains("read: partitions that a statement visits on average"), "{text}");
}

#[test]
fn the_three_heaviest_values_are_shown_if_they_are_heavy() {
    let mut report = evaluated();
    let text = heaviest(&report, Layout::Plain);
    // Three of the four kinds; a user has 0.4 % of the rows.
    assert_eq!((lines_with(&text, "kind"), lines_with(&text, "user")), (3, 0), "{text}");
    let line = text.lines().find(|line| line.contains("<b>")).unwrap();
    assert!(line.contains("700") && line.contains("exact") && line.contains("70.0 %"), "{line}");
    for key in &mut report.evaluation.candidates {
        key.heavy_hitters.truncate(1);
        key.heavy_hitters.iter_mut().for_each(|hitter| hitter.error = 1500);
    }
    let text = heaviest(&report, Layout::Plain);
    assert!(lines_with(&text, "kind") == 1 && text.contains("+1,500"), "{text}");
    report.evaluation.candidates.iter_mut().for_each(|key| key.heavy_hitters.clear());
    assert_eq!(heaviest(&report, Layout::Plain), "");
}

#[test]
fn of_many_functions_only_the_best_keys_are_shown() {
    let text = counts(&evaluated(), Layout::Plain);
    assert!(text.contains("over 4") && text.contains("over 8"), "{text}");
    assert_eq!((lines_with(&text, "user"), lines_with(&text, "kind")), (1, 1), "{text}");
    let functions = ["ydb", "ydb-modulo", "ydb-cloud-logs:20:60", "ydb-cloud-logs:10:60", "kudu"];
    let few = counts(&with_functions(&functions[..4]), Layout::Plain);
    assert_eq!((lines_with(&few, "third"), lines_with(&few, "more keys")), (4, 0), "{few}");
    let many = counts(&with_functions(&functions), Layout::Plain);
    assert_eq!((lines_with(&many, "third"), lines_with(&many, "1 more keys: ")), (0, 1), "{many}");
    assert_eq!(counts(&with_functions(&["ydb"]), Layout::Plain), "", "one placement needs no table");
}

#[test]
fn functions_of_other_systems_are_described_and_left_out_ones_have_a_reason() {
    let mut report = with_functions(&["ydb", "kudu", "citus"]);
    let about = ["kudu", "citus"].map(|name| match name.parse::<Function>().unwrap() {
        Function::System(system) => system.about(),
        Function::Ydb(_) => panic!("{name}"),
    });
    let line = |about: &About| format!("{}: {}, {}\n", about.name, about.status.word(), about.source);
    assert_eq!(other_systems(&report), about.map(line).concat());
    let [ydb, kudu, _] = report.evaluation.candidates[0].placements.as_slice() else { panic!() };
    assert_eq!((checked(ydb), checked(kudu)), ("ydb".to_owned(), format!("kudu ({})", kudu.status.word())));
    let names = report.evaluation.candidates.iter_mut().map(|key| {
        key.left_out = vec!["a reason".to_owned()];
        key.partition_key.join(", ")
    });
    let names: Vec<String> = names.collect();
    report.evaluation.candidates[0].left_out.push("another".to_owned());
    report.evaluation.candidates[1].null_rows = 7;
    let text = other_systems(&report);
    let left_out = format!("left out for ({}), ({}) and 1 more: a reason\n", names[0], names[1]);
    assert!(text.contains(&left_out), "{text}");
    assert!(text.contains(&format!("left out for ({}): another\n", names[0])), "{text}");
    let nulls = format!("7 of 1,000 rows have NULL in {}: kudu takes no NULL in a key; ", names[1]);
    assert!(text.contains(&nulls), "{text}");
    // Of many systems, the sources are left to the documentation.
    let many = other_systems(&with_functions(&["kudu", "citus", "spark", "hive"]));
    assert!(many.starts_with("verified: agrees with") && many.lines().count() == 1, "{many}");
}
