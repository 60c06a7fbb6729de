//! The evaluation of a small export, for the tests of several modules.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use evenkeel_advisor::evaluate::{AdvisorOptions, AdvisorReport, EvaluateOptions, advise};
use evenkeel_input::source::{Export, InputOptions, InputPath};
use evenkeel_model::units::PartitionCount;

/// Evaluates two partition keys over 4 and 8 partitions: 1000 rows of 250 users, and of four kinds,
/// of which `<b>` has 70 % and the others 10 % of the rows each.
pub(crate) fn evaluated() -> AdvisorReport {
    evaluated_with(&[])
}

/// The same with primary keys.
pub(crate) fn evaluated_with(primary_keys: &[&str]) -> AdvisorReport {
    let mut text = "user,kind,amount\n".to_owned();
    for row in 0..1000 {
        let kind = ["<b>", "one", "two", "three"][(row % 10_usize).saturating_sub(6)];
        writeln!(text, "u{},{kind},{row}", row % 250).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, text).unwrap();
    let export = Export::open(&[InputPath::File(path)], InputOptions::default(), &BTreeMap::new()).unwrap();
    let evaluate = EvaluateOptions {
        partition_keys: vec!["user".parse().unwrap(), "kind".parse().unwrap()],
        primary_keys: primary_keys.iter().map(|key| key.parse().unwrap()).collect(),
        partitions: [4, 8].map(|count| PartitionCount::new(count).unwrap()).to_vec(),
        ..EvaluateOptions::default()
    };
    let options = AdvisorOptions { evaluate, ..AdvisorOptions::default() };
    advise(&export, options, &|_| (), &AtomicBool::new(false)).unwrap()
}
