//! Evaluations of numbers that some systems cannot hold.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use parquet::arrow::ArrowWriter;

use super::*;
use crate::evaluate::advice::advise;
use crate::evaluate::options::EvaluateOptions;
use evenkeel_input::source::{Export, InputOptions, InputPath};
use evenkeel_model::note::Note;
use evenkeel_model::table::Candidate;

fn options(functions: &[&str]) -> AdvisorOptions {
    let evaluate = EvaluateOptions {
        partition_keys: vec![Candidate::from_columns(&["id"])],
        placements: functions.iter().map(|name| name.parse().unwrap()).collect(),
        ..EvaluateOptions::default()
    };
    AdvisorOptions { evaluate, find_primary_keys: false, ..AdvisorOptions::default() }
}

fn too_large() -> EvaluateError {
    EvaluateError::Elsewhere { reason: "a number is too large".to_owned(), too_large: true }
}

/// The functions of each run, and the outcome; a run fails if it has a system without unsigned
/// integers, and if `fails` returns an error.
fn runs(
    functions: &[&str],
    fails: impl Fn() -> Option<EvaluateError>,
) -> (Vec<Vec<String>>, Result<Vec<String>, EvaluateError>) {
    let runs = RefCell::new(Vec::new());
    let evaluated = without_unfit_systems(options(functions), |options| {
        let names: Vec<String> = options.evaluate.placements.iter().map(ToString::to_string).collect();
        runs.borrow_mut().push(names.clone());
        let is_unfit = names.iter().any(|name| ["kudu", "citus"].contains(&name.as_str()));
        match fails() {
            Some(error) => Err(error),
            None if is_unfit => Err(too_large()),
            None => Ok(options.left_out),
        }
    });
    (runs.into_inner(), evaluated)
}

#[test]
fn all_systems_without_unsigned_integers_are_left_out_at_once() {
    let (runs, left_out) = runs(&["kudu", "ydb", "citus", "clickhouse-cityhash64"], || None);
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert_eq!(runs[1], ["ydb", "clickhouse-cityhash64"]);
    let reason = "a number is too large; likewise all systems without unsigned integers";
    assert_eq!(left_out.unwrap(), [reason]);
}

#[test]
fn an_evaluation_that_succeeds_runs_once_with_all_functions() {
    let (runs, left_out) = runs(&["ydb", "clickhouse-cityhash64"], || None);
    assert_eq!(runs, [["ydb", "clickhouse-cityhash64"]]);
    assert!(left_out.unwrap().is_empty());
}

#[test]
fn other_errors_and_numbers_that_no_function_holds_are_returned_at_once() {
    let (other, error) = runs(&["ydb", "kudu"], || Some(EvaluateError::NoRows));
    assert!(other.len() == 1 && matches!(error, Err(EvaluateError::NoRows)), "{error:?}");
    let (only, error) = runs(&["kudu", "citus"], || None);
    assert!(only.len() == 1 && error.unwrap_err().is_too_large());
    let (fit, error) = runs(&["ydb"], || Some(too_large()));
    assert!(fit.len() == 1 && error.unwrap_err().is_too_large());
}

#[test]
fn a_report_names_the_systems_that_were_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.parquet");
    let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..100).map(|id| u64::MAX - id)));
    let rows = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let export =
        Export::open(&[InputPath::File(path)], InputOptions::default(), &Default::default()).unwrap();
    let evaluate = |functions: &[&str]| {
        without_unfit_systems(options(functions), |options| {
            advise(&export, options, &|_| (), &AtomicBool::new(false))
        })
        .unwrap()
    };
    let functions = |report: &crate::evaluate::AdvisorReport| -> Vec<String> {
        let mut functions: Vec<String> = report.evaluation.candidates[0]
            .placements
            .iter()
            .map(|placement| placement.function.to_string())
            .collect();
        functions.dedup();
        functions
    };
    let is_note = |note: &&Note| matches!(note, Note::PlacementsLeftOut { .. });
    let report = evaluate(&["ydb", "kudu"]);
    assert_eq!(functions(&report), ["ydb"]);
    let notes: Vec<String> = report.notes.iter().filter(is_note).map(ToString::to_string).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("kudu has no unsigned integers"), "{notes:?}");
    let report = evaluate(&["ydb"]);
    assert_eq!((functions(&report).len(), report.notes.iter().filter(is_note).count()), (1, 0));
}
