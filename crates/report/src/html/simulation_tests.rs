//! Labels and lines next to a heat map.

use super::*;

fn keys(number: usize) -> Vec<String> {
    (0..number).map(|key| format!("k{key}")).collect()
}

#[test]
fn up_to_five_keys_from_the_first_to_the_last_are_labels() {
    assert_eq!(labels(&keys(9)), ["k0", "k2", "k4", "k6", "k8"]);
    assert_eq!(labels(&keys(5)), ["k0", "k1", "k2", "k3", "k4"]);
    assert_eq!(labels(&keys(2)), ["k0", "k1"]);
    assert_eq!(labels(&keys(1)), ["k0"]);
    assert!(labels(&[]).is_empty());
}

#[test]
fn a_label_is_cut_after_26_characters() {
    let (fits, long) = ("ü".repeat(26), "ü".repeat(27));
    assert_eq!(labels(&[fits.clone(), long]), [fits.clone(), format!("{fits}…")]);
}

#[test]
fn lines_are_shares_of_the_height() {
    let period = |rows: u64, hottest_rows: u64, splits: usize| Period {
        rows,
        hottest_rows,
        splits,
        ..Period::default()
    };
    let mut timeline = Timeline { periods: vec![period(10, 5, 4), period(0, 0, 2)], windows_of_period: 1 };
    let text = lines(&timeline);
    // Half of the rows, then none; all of the splits, then half.
    assert!(text.contains("<polyline class=\"line\" points=\"240.0,40.0 720.0,80.0\"/>"), "{text}");
    assert!(text.contains("<polyline class=\"dashes\" points=\"240.0,0.0 720.0,40.0\"/>"), "{text}");
    assert!(text.contains("live splits, 0 to 4 (dashes); 1 window for each point"), "{text}");
    timeline.windows_of_period = 2;
    assert!(lines(&timeline).contains("; 2 windows for each point"));
    let nothing = lines(&Timeline::default());
    assert!(nothing.contains("class=\"line\" points=\"\"") && !nothing.contains("NaN"), "{nothing}");
}
