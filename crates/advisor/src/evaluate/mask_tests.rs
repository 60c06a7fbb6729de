//! Reports and errors whose values are masked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use arrow::error::ArrowError;

use super::*;
use crate::evaluate::advice::advise;
use crate::evaluate::options::{AdvisorOptions, EvaluateOptions};
use evenkeel_input::source::{Export, InputFormat, InputOptions, InputPath};
use evenkeel_model::finding::FindingCode;
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_model::workload::PlannedStatement;

/// Evaluates rows of one hour. One of nine persons has half of them, each id occurs twice, and a
/// statement quotes a value.
fn evaluated() -> AdvisorReport {
    let mut text = "person,id,at\n".to_owned();
    for row in 0..3600 {
        let person = (row % 16_u32).saturating_sub(7);
        let (minute, second) = (row / 60, row % 60);
        writeln!(text, "secret-{person},{},2041-09-23T07:{minute:02}:{second:02}Z", row / 2).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let of_tenant = folder.path().join("tenant=acme");
    std::fs::create_dir(&of_tenant).unwrap();
    let path = of_tenant.join("visits.csv");
    std::fs::write(&path, text).unwrap();
    let export = Export::open(&[InputPath::File(path)], InputOptions::default(), &BTreeMap::new()).unwrap();
    let evaluate = EvaluateOptions {
        partition_keys: vec!["person".parse().unwrap()],
        primary_keys: vec!["id".parse().unwrap()],
        partitions: vec![PartitionCount::new(4).unwrap()],
        time: Some("at".to_owned()),
        window: Some(Micros::MINUTE),
        ..EvaluateOptions::default()
    };
    let scans = Err("there is no 'secret-7'".to_owned());
    let statements = vec![PlannedStatement { name: "q".to_owned(), runs: 1.0, scans }];
    let options = AdvisorOptions { evaluate, statements, ..AdvisorOptions::default() };
    advise(&export, options, &|_| (), &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_masked_report_has_no_value_of_a_row_or_a_folder() {
    let mut report = evaluated();
    let json = |report: &AdvisorReport| serde_json::to_string(report).unwrap();
    for value in ["secret-0", "secret-7", "acme"] {
        assert!(json(&report).contains(value), "{value} is there to be masked");
    }
    report.mask_values();
    let masked = json(&report);
    for value in ["secret-", "acme", "2041-09-23"] {
        assert!(!masked.contains(value), "{value}: {masked}");
    }
    assert!(report.masked && report.inputs[0].ends_with("tenant=(masked)/visits.csv"), "{:?}", report.inputs);
    let hitters = &report.evaluation.candidates[0].heavy_hitters;
    let keys: Vec<&Value> = hitters.iter().flat_map(|hitter| &hitter.key).collect();
    assert_eq!(keys[..2], ["value 1", "value 2"]);
    assert_eq!(hitters[0].rows, 1800, "figures stay");
    let key = &report.evaluation.primary_keys[0];
    assert!(key.duplicate_rows == 1800 && !key.examples.is_empty(), "{key:?}");
    assert!(key.examples[0].first.contains("tenant=(masked)/visits.csv"), "{key:?}");
}

#[test]
fn times_are_told_from_the_first_one_on() {
    let mut report = evaluated();
    report.mask_values();
    let range = report.evaluation.time_range.as_ref().unwrap();
    assert_eq!((range.earliest_micros, range.latest_micros), (0, 3599 * Micros::SECOND.get()));
    let placement = &report.evaluation.candidates[0].placements[0];
    let time = placement.over_time.as_ref().unwrap();
    for window in [&time.worst_window, &time.peak] {
        assert!((0..=range.latest_micros).contains(&window.start_micros), "{window:?}");
    }
    let first = &placement.windows[0];
    assert_eq!((first.number, first.start_micros), (0, 0));
    assert!(report.notes.contains(&Note::TimesMasked));
}

#[test]
fn findings_are_those_of_the_masked_figures() {
    let mut report = evaluated();
    report.mask_values();
    assert_eq!(report.statements[0].problem.as_deref(), Some("it cannot be planned"));
    let finding = report.findings.iter().find(|finding| finding.code == FindingCode::StatementNotPlanned);
    assert_eq!(finding.unwrap().message, "it cannot be planned");
}

#[test]
fn a_report_is_masked_once() {
    let mut report = evaluated();
    report.mask_values();
    let once = report.clone();
    report.mask_values();
    assert_eq!(report, once);
}

#[test]
fn errors_keep_their_places_and_lose_their_values() {
    let placement = |source| EvaluateError::Placement { key: "k".to_owned(), source };
    let outside =
        placement(PlacementError::OutOfRange { column: 0, column_type: ColumnType::Date, value: 987_654 });
    assert!(outside.to_string().contains("987654"));
    assert_eq!(outside.masked().to_string(), "key (k): a value of key column 0 is outside Date");
    let secret = || "secret".to_owned();
    for too_large in [false, true] {
        let elsewhere = EvaluateError::Elsewhere { reason: secret(), too_large }.masked();
        assert_eq!(elsewhere.is_too_large(), too_large);
        assert!(!elsewhere.to_string().contains("secret"), "{elsewhere}");
    }
    let sort = EvaluateError::Sort { key: "k".to_owned(), source: ArrowError::ComputeError(secret()) };
    assert!(!sort.masked().to_string().contains("secret"));
    let too_large = placement(PlacementError::TooLarge { system: "kudu", column: 0 });
    let text = too_large.to_string();
    let masked = too_large.masked();
    assert!(masked.is_too_large() && masked.to_string() == text, "{masked}");
    assert!(matches!(EvaluateError::NoRows.masked(), EvaluateError::NoRows));
}

#[test]
fn errors_of_files_keep_the_name_of_the_file() {
    let (file, secret) = (|| "f.csv".to_owned(), || "secret".to_owned());
    let errors = [
        SourceError::Format { file: file(), format: InputFormat::Csv, reason: secret() },
        SourceError::Infer { file: file(), reason: secret() },
        SourceError::Arrow { file: file(), source: ArrowError::ParseError(secret()) },
        SourceError::RepeatedColumn { file: file(), column: secret() },
        SourceError::HeaderLikeRow { file: file(), name: secret(), column_type: ColumnType::Int64 },
        SourceError::OtherHeader { file: file(), unknown: secret(), given: vec!["id".to_owned()] },
    ];
    for error in errors {
        assert!(error.to_string().contains("secret"), "{error}");
        let masked = EvaluateError::Source(error).masked().to_string();
        assert!(masked.starts_with("f.csv: ") && !masked.contains("secret"), "{masked}");
    }
    let empty = mask_source(SourceError::Empty { file: file() });
    assert_eq!(empty.to_string(), "f.csv: is empty");
}
