//! Reports on small exports, and the ways to count their rows.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use evenkeel_input::source::{InputOptions, InputPath};
use evenkeel_model::units::PartitionCount;

const ROWS: u64 = 1000;

/// Rows of 250 users, each with an id of its own.
fn export(folder: &tempfile::TempDir) -> Export {
    let mut text = "id,user,kind\n".to_owned();
    for row in 0..ROWS {
        writeln!(text, "{row},u{},{}", row % 250, ["a", "b", "c"][row as usize % 3]).unwrap();
    }
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, text).unwrap();
    Export::open(&[InputPath::File(path)], InputOptions::default(), &BTreeMap::new()).unwrap()
}

fn options() -> AdvisorOptions {
    let evaluate = EvaluateOptions {
        partition_keys: vec!["user".parse().unwrap(), "kind".parse().unwrap()],
        primary_keys: vec!["id".parse().unwrap()],
        partitions: vec![PartitionCount::new(4).unwrap()],
        ..EvaluateOptions::default()
    };
    AdvisorOptions { evaluate, ..AdvisorOptions::default() }
}

/// Counts rows in this process, or fails, and keeps the options.
#[derive(Default)]
struct Machines {
    fails: bool,
    options: Mutex<Vec<EvaluateOptions>>,
}

impl CountRows for Machines {
    fn count_rows(
        &self,
        export: &Export,
        options: &EvaluateOptions,
        on_unreadable: OnUnreadable,
        stop: &AtomicBool,
    ) -> Result<(Evaluation, Unreadable), EvaluateError> {
        self.options.lock().unwrap().push(options.clone());
        if self.fails {
            return Err(EvaluateError::Elsewhere { reason: "no machine".to_owned(), too_large: false });
        }
        let mut evaluator = Evaluator::new(export.columns(), options.clone())?;
        let unreadable = read_into(&mut evaluator, &|_| (), stop, |projection, each| {
            export.read_blocks(on_unreadable, projection, each)
        })?;
        Ok((evaluator.finish()?, unreadable))
    }
}

#[test]
fn machines_count_the_rows_once_and_the_report_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let export = export(&folder);
    let stop = AtomicBool::new(false);
    let here = advise(&export, options(), &|_| (), &stop).unwrap();
    let machines = Machines::default();
    let elsewhere = advise_with(&export, options(), &machines, &stop).unwrap();
    assert_eq!((here.evaluation.rows, here.evaluation.candidates.len()), (ROWS, 2));
    assert_eq!(elsewhere.evaluation, here.evaluation);
    assert_eq!(elsewhere.ranking, here.ranking);
    assert_eq!(elsewhere.recommendation, here.recommendation);
    assert_eq!(elsewhere.findings, here.findings);
    let asked = machines.options.into_inner().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].partition_keys, options().evaluate.partition_keys);
}

#[test]
fn an_error_of_the_machines_ends_the_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    let machines = Machines { fails: true, ..Machines::default() };
    let failed = advise_with(&export(&folder), options(), &machines, &AtomicBool::new(false));
    assert_eq!(failed.unwrap_err().to_string(), "no machine");
}

#[test]
fn progress_reaches_all_rows_and_a_stop_ends_the_count() {
    let folder = tempfile::tempdir().unwrap();
    let export = export(&folder);
    let (rows, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    advise(&export, options(), &|read| rows.store(read, Ordering::Relaxed), &stop).unwrap();
    assert_eq!(rows.into_inner(), ROWS);
    let stopped = advise(&export, options(), &|_| stop.store(true, Ordering::Relaxed), &stop);
    assert!(matches!(stopped, Err(EvaluateError::Interrupted)), "{stopped:?}");
}

#[test]
fn counts_are_returned_if_they_are_wanted_and_as_small_as_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let export = export(&folder);
    let counted = |save: Option<u64>| {
        let (advice, counting) =
            advise_here(&export, options(), save, &|_| (), &AtomicBool::new(false)).unwrap();
        assert_eq!(advice.report.evaluation.rows, ROWS);
        counting
    };
    assert!(counted(None).is_none());
    let all = counted(Some(u64::MAX)).unwrap();
    assert_eq!((all.estimated.as_slice(), all.has_rows.as_slice()), (&[false; 2][..], &[true][..]));
    let least = counted(Some(0)).unwrap();
    assert_eq!(least.has_rows, [false]);
    assert!(least.state.len() < all.state.len(), "{} {}", least.state.len(), all.state.len());
    assert_eq!(least.checksum, all.checksum);
}

#[test]
fn only_ydb_needs_a_primary_key_and_functions_that_were_left_out_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let export = export(&folder);
    let notes = |function: &str, primary_key: Option<&str>, find_primary_keys: bool| {
        let evaluate = EvaluateOptions {
            primary_keys: primary_key.iter().map(|key| key.parse().unwrap()).collect(),
            placements: vec![function.parse().unwrap()],
            ..EvaluateOptions::default()
        };
        first_notes(&export, &AdvisorOptions { evaluate, find_primary_keys, ..AdvisorOptions::default() })
    };
    assert!(notes("ydb", None, false).contains(&Note::NoPrimaryKey));
    for (function, primary_key, find) in
        [("kudu", None, false), ("ydb", Some("id"), false), ("ydb", None, true)]
    {
        assert!(!notes(function, primary_key, find).contains(&Note::NoPrimaryKey), "{function} {find}");
    }
    let reasons = ["one", "two"].map(str::to_owned);
    let left_out = AdvisorOptions { left_out: reasons.to_vec(), ..AdvisorOptions::default() };
    let expected = reasons.map(|reason| Note::PlacementsLeftOut { reason });
    assert!(first_notes(&export, &left_out).ends_with(&expected));
}
