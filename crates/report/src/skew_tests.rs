//! Text on tables of a few partitions.

use evenkeel_engine::inspect::CommitBalance;
use evenkeel_model::units::Version;

use super::*;

fn table(counts: &[u64], verdict: Verdict) -> TableSkew {
    TableSkew {
        figures: SkewFigures::from_counts(counts),
        rows_per_partition: counts.to_vec(),
        bytes_per_partition: counts.iter().map(|count| count * 1024).collect(),
        portions_per_partition: vec![3; counts.len()],
        noise_floor: None,
        over_commits: Vec::new(),
        verdict,
    }
}

fn commit(version: u64) -> CommitBalance {
    CommitBalance {
        version: Version(version),
        rows: 10,
        share_of_fullest: 0.5,
        fullest_partition: 1,
        effective_partitions: 1.5,
    }
}

/// The words of the line that begins with some words.
fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().map(str::trim).find(|line| line.starts_with(start)).unwrap()
}

#[test]
fn each_partition_has_its_rows_and_a_bar() {
    let text = skew(&table(&[1000, 4000], Verdict::Uneven), Layout::Plain);
    let words: Vec<&str> = line(&text, "1 ").split_whitespace().collect();
    assert_eq!((words[1], words[words.len() - 2]), ("4,000", "3"), "{text}");
    assert_eq!(words[words.len() - 1], "█".repeat(30), "the fullest");
    assert!(line(&text, "0 ").ends_with("███████▌"), "a quarter of it");
}

#[test]
fn figures_of_other_systems_say_what_is_flagged() {
    let text = skew(&table(&[10, 40], Verdict::Uneven), Layout::Plain);
    assert!(line(&text, "Redshift skew_rows").contains("4.000"), "{text}");
    assert!(line(&text, "Synapse skew").contains("75.0 %"), "{text}");
    assert!(line(&text, "Synapse skew").ends_with("over the 10 % that Synapse flags"), "{text}");
    let even = skew(&table(&[100, 99], Verdict::Even), Layout::Plain);
    assert!(line(&even, "Synapse skew").ends_with("under the 10 % that Synapse flags"), "{even}");
    let empty = skew(&table(&[0, 40], Verdict::Uneven), Layout::Plain);
    assert!(line(&empty, "Redshift skew_rows").contains(" -  max / min"), "{empty}");
}

#[test]
fn the_verdict_is_explained_if_an_even_table_is_flagged() {
    const EXPLANATION: &str = "no hash would spread them better";
    for (counts, verdict, is_explained) in [
        ([10, 40], Verdict::Even, true),
        ([100, 99], Verdict::Even, false),
        ([10, 40], Verdict::HeavyKeys, false),
    ] {
        let text = skew(&table(&counts, verdict), Layout::Plain);
        let expected = format!("verdict: {}. {}", verdict.word(), verdict.sentence());
        assert!(text.contains(&expected), "{text}");
        assert_eq!(text.contains(EXPLANATION), is_explained, "{text}");
    }
}

#[test]
fn the_noise_floor_is_shown_if_keys_were_counted() {
    let mut even = table(&[100, 99], Verdict::Even);
    assert!(!skew(&even, Layout::Plain).contains("noise floor"));
    even.noise_floor = Some(NoiseFloor {
        distinct_keys: 1234,
        keys_per_partition: 617.0,
        heaviest_key_share: 0.125,
        expected_cv_equal_keys: 0.01,
        expected_cv_weighted: 0.02,
        expected_max_over_mean_equal_keys: 1.5,
        cv_of_heavy_keys: 0.01,
        cv_left: -0.005,
        deviations: 0.0,
    });
    let text = skew(&even, Layout::Plain);
    assert!(line(&text, "distinct partition keys").contains("1,234"), "{text}");
    assert!(line(&text, "heaviest key").contains("12.5 %"), "{text}");
    // These may be negative.
    assert!(line(&text, "heavy keys add").contains("+1.0 %"), "{text}");
    assert!(line(&text, "remainder").contains("-0.5 %"), "{text}");
}

#[test]
fn of_many_commits_the_first_and_the_last_are_shown() {
    let with_commits = |number: u64| {
        let mut table = table(&[10, 40], Verdict::Uneven);
        table.over_commits = (1001..=1000 + number).map(commit).collect();
        skew(&table, Layout::Plain)
    };
    let has_table = |text: &str| text.lines().any(|line| line.trim_start().starts_with("commit "));
    assert!(!has_table(&with_commits(0)) && has_table(&with_commits(1)));
    let all = with_commits(24);
    assert!(!all.contains("in the middle"), "{all}");
    let shown = |text: &str, version: u64| {
        let version = version.to_string();
        text.lines().any(|line| line.split_whitespace().next() == Some(version.as_str()))
    };
    assert!((1001..=1024).all(|version| shown(&all, version)), "{all}");
    let some = with_commits(30);
    assert!(some.contains("(6 commits in the middle are not shown; "), "{some}");
    for version in 1001..=1030 {
        let is_hidden = (1013..=1018).contains(&version);
        assert_eq!(shown(&some, version), !is_hidden, "{version}: {some}");
    }
}
