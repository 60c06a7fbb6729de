//! Cards of a key of a small export, some of whose figures are changed.

use evenkeel_advisor::evaluate::Intervals;
use evenkeel_model::units::Micros;
use evenkeel_stats::sketch::DistinctKeys;

use super::*;
use crate::testing::evaluated;

/// The card of the first key after `change` of the report.
fn card(change: impl Fn(&mut AdvisorReport)) -> String {
    let mut report = evaluated();
    change(&mut report);
    let mut page = String::new();
    let key = &report.evaluation.candidates[0];
    candidate(&mut page, &report, &report.ranking[0], key, &key.placements[0]);
    page
}

fn first(report: &mut AdvisorReport) -> &mut PlacementReport {
    &mut report.evaluation.candidates[0].placements[0]
}

#[test]
fn a_key_is_good_or_bad_and_its_name_is_text() {
    let page = |verdict: Verdict| {
        card(|report| {
            report.evaluation.candidates[0].partition_key = vec!["<b>".to_owned(), "c".to_owned()];
            first(report).verdict = verdict;
        })
    };
    let even = page(Verdict::Even);
    assert!(even.contains("<h2>HASH(&lt;b&gt;, c) <span class=\"badge good\">even</span></h2>"), "{even}");
    let heavy = page(Verdict::HeavyKeys);
    assert!(heavy.contains("<span class=\"badge bad\">heavy keys</span>"), "{heavy}");
    for (page, verdict) in [(even, Verdict::Even), (heavy, Verdict::HeavyKeys)] {
        assert!(page.contains(&format!("<p>{}</p>", escape(verdict.sentence()))), "{page}");
        assert!(page.ends_with("</section>\n"));
    }
}

#[test]
fn an_obstacle_is_on_the_card() {
    assert!(!card(|report| report.ranking[0].obstacle = None).contains("Cannot be chosen"));
    let page = card(|report| report.ranking[0].obstacle = Some("it is <i>".to_owned()));
    assert!(page.contains("<p>Cannot be chosen: it is &lt;i&gt;.</p>"), "{page}");
}

#[test]
fn a_card_has_the_course_over_time_or_why_there_is_none() {
    const NO_WINDOW: &str = "No window of time has enough rows to be judged.";
    let timeless = card(|_| ());
    assert!(!timeless.contains(NO_WINDOW) && !timeless.contains("over time, from"), "{timeless}");
    let few_rows = card(|report| report.evaluation.time = Some("at".to_owned()));
    assert!(few_rows.contains(NO_WINDOW), "{few_rows}");
    let windows: Vec<Window> = (0..48)
        .map(|number| Window {
            number,
            start_micros: number * Micros::HOUR.get(),
            rows_per_partition: vec![100, 101, 102, 103],
        })
        .collect();
    let with_time = |alike_next: Option<f64>| {
        card(|report| {
            let placement = first(report);
            let mut time = OverTime::from_windows(&windows, Micros::HOUR).unwrap();
            time.evidence.alike_next = alike_next;
            placement.windows = windows.clone();
            placement.over_time = Some(time);
        })
    };
    let page = with_time(Some(0.25));
    assert!(!page.contains(NO_WINDOW));
    assert!(
        page.contains("over time, from 1970-01-01 00:00:00 to 1970-01-02 23:00:00 in windows of "),
        "{page}"
    );
    assert!(page.contains("; from one window to the next 25.0 % of the rows stay"), "{page}");
    assert!(page.contains("<dt>peak of one partition</dt>"), "{page}");
    assert!(!with_time(None).contains("from one window to the next"));
}

#[test]
fn figures_of_a_sample_have_intervals() {
    assert!(!card(|_| ()).contains(" of all rows</dt>"));
    let interval = Interval { lower: 1.0, upper: 1.5 };
    let with = |cv: Option<Interval>| {
        card(|report| {
            first(report).intervals = Some(Intervals {
                max_over_mean: interval,
                cv,
                idle_fraction: interval,
                effective_partitions: Some(interval),
                share_of_fullest: interval,
                no_interval: None,
            });
        })
    };
    let page = with(Some(Interval { lower: 0.1, upper: 0.2 }));
    for figure in [
        "<dt>max / mean of all rows</dt><dd>1.000 to 1.500</dd>",
        "<dt>CV of all rows</dt><dd>10.0 % to 20.0 %</dd>",
        "<dt>effective partitions of all rows</dt><dd>1.0 to 1.5</dd>",
    ] {
        assert!(page.contains(figure), "{figure}: {page}");
    }
    let unknown = "<dt>CV of all rows</dt><dd>no interval: the sample has too few rows</dd>";
    assert!(with(None).contains(unknown));
}

#[test]
fn estimates_of_distinct_values_have_bounds() {
    let mut key = evaluated().evaluation.candidates.remove(0);
    assert_eq!(distinct(&key), "250");
    key.distinct = DistinctKeys { estimate: 1234, exact: false, lower: 1200, upper: 1300 };
    assert_eq!(distinct(&key), "1,234 (1,200 to 1,300)");
}

#[test]
fn words_become_a_sentence() {
    assert_eq!(sentence("the CV is 1 %"), "The CV is 1 %.");
    assert_eq!(sentence("übrig"), "Übrig.");
    assert_eq!(sentence(""), ".");
}
