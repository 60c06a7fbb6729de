//! Exports whose right keys any engineer of the field would name, and the answers that are
//! accepted.
//!
//! Each export is judged as it is, and with its columns renamed and permuted and its rows shuffled.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod columns;
mod exports;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use arrow::array::RecordBatch;
use evenkeel_advisor::evaluate::{AdvisorOptions, AdvisorReport, EvaluateOptions, advise};
use evenkeel_input::source::{Export, find_inputs};
use evenkeel_model::units::PartitionCount;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use crate::exports::{Case, cases};

fn write(path: &Path, batch: &RecordBatch) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(20_000)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn answer(batch: &RecordBatch) -> AdvisorReport {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("export.parquet");
    write(&path, batch);
    let inputs = find_inputs(&[path.display().to_string()], None).unwrap();
    let export = Export::open(&inputs.paths, Default::default(), &Default::default()).unwrap();
    let nodes = vec![4, 16, 32];
    let options = AdvisorOptions {
        evaluate: EvaluateOptions {
            partitions: nodes.iter().map(|n| PartitionCount::for_nodes(*n).unwrap()).collect(),
            ..EvaluateOptions::default()
        },
        nodes,
        inputs: vec!["export.parquet".to_owned()],
        table: "export".to_owned(),
        ..AdvisorOptions::default()
    };
    advise(&export, options, &|_| {}, &AtomicBool::new(false)).unwrap()
}

/// Says why an answer is not accepted; `None` if it is.
fn refusal(case: &Case, report: &AdvisorReport, name: &dyn Fn(&str) -> String) -> Option<String> {
    let recommended = &report.recommendation;
    let mut partition_key: Vec<String> = recommended.partition_key.iter().map(|c| name(c)).collect();
    let primary_key: Vec<String> = recommended.primary_key.iter().map(|c| name(c)).collect();
    partition_key.sort();
    let accepted = case.accepted.iter().any(|key| {
        let mut key: Vec<String> = key.iter().map(|c| (*c).to_owned()).collect();
        key.sort();
        key == partition_key || (key.is_empty() && recommended.makeshift)
    });
    if !accepted {
        return Some(format!("HASH({})", partition_key.join(", ")));
    }
    if let Some(column) = primary_key.iter().find(|column| case.never.contains(&column.as_str())) {
        return Some(format!("PRIMARY KEY ({}): {column} is no key", primary_key.join(", ")));
    }
    let complete = case.identified_by.is_empty()
        || case
            .identified_by
            .iter()
            .any(|key| key.iter().all(|column| primary_key.iter().any(|c| c == column)));
    (!complete).then(|| format!("PRIMARY KEY ({}): its rows are not identified", primary_key.join(", ")))
}

fn describe(report: &AdvisorReport, name: &dyn Fn(&str) -> String) -> String {
    let roles: Vec<String> = report
        .roles
        .iter()
        .map(|role| format!("{}={} [{}]", name(&role.column), role.role, role.evidence.join("; ")))
        .collect();
    let ranking: Vec<String> = report
        .ranking
        .iter()
        .take(6)
        .map(|key| {
            let columns: Vec<String> = key.partition_key.iter().map(|c| name(c)).collect();
            format!("({}) q={} cost={:.3} {:?}", columns.join(","), key.qualifies, key.cost, key.verdict)
        })
        .collect();
    let keys: Vec<String> = report
        .evaluation
        .primary_keys
        .iter()
        .map(|key| {
            let columns: Vec<String> = key.columns.iter().map(|c| name(c)).collect();
            format!(
                "({}) conflicts={} by={:?}",
                columns.join(","),
                key.conflicting_rows,
                key.uniqueness.map(|u| u.by)
            )
        })
        .collect();
    format!("  {}\n  {}\n  {}\n", roles.join("\n  "), ranking.join("\n  "), keys.join("\n  "))
}

/// An export, and the new and former names of its columns, if they were renamed.
type Changed = (RecordBatch, Vec<(String, String)>);

/// A variant of each export, and the number of answers per hundred that may be refused.
struct Form {
    name: &'static str,
    most_refused: usize,
    /// Whether columns have other names.
    hides_names: bool,
    change: fn(&RecordBatch) -> Changed,
}

const FORMS: [Form; 3] = [
    Form {
        name: "as it is",
        most_refused: 0,
        hides_names: false,
        change: |batch| (batch.clone(), Vec::new()),
    },
    // The advice for a smaller export of the same table is the same.
    Form {
        name: "its first quarter",
        most_refused: 5,
        hides_names: false,
        change: |batch| (batch.slice(0, batch.num_rows().div_ceil(4)), Vec::new()),
    },
    Form {
        name: "disguised",
        most_refused: 10,
        hides_names: true,
        change: |batch| columns::disguised(batch, 0),
    },
];

/// Maps items on as many threads as there are cores, and returns the results in their order.
fn on_all_cores<T: Sync, R: Send>(items: &[T], map: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let every_nth = |first: usize| items.iter().enumerate().skip(first).step_by(cores);
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let map = &map;
        let threads: Vec<_> = (0..cores)
            .map(|first| {
                scope.spawn(move || every_nth(first).map(|(at, item)| (at, map(item))).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// `PANEL_ONLY` selects exports by name, `PANEL_VERBOSE` shows what answers rest on.
#[test]
fn experts_would_agree() {
    let only = std::env::var("PANEL_ONLY").ok();
    let verbose = std::env::var("PANEL_VERBOSE").is_ok();
    let selected: Vec<Case> = cases()
        .into_iter()
        .filter(|case| only.as_ref().is_none_or(|only| case.name.contains(only)))
        .collect();
    let judge = |case: &Case, whole: &RecordBatch, form: &Form| {
        let (batch, names) = (form.change)(whole);
        let name = |column: &str| {
            names
                .iter()
                .find(|(new, _)| new == column)
                .map_or_else(|| column.to_owned(), |(_, old)| old.clone())
        };
        let report = answer(&batch);
        let shown = if verbose { describe(&report, &name) } else { String::new() };
        (refusal(case, &report, &name), shown)
    };
    let judge_all = |case: &Case| {
        let whole = (case.rows)();
        let nobody_could_tell = |form: &Form| form.hides_names && case.by_name;
        FORMS.each_ref().map(|form| (!nobody_could_tell(form)).then(|| judge(case, &whole, form)))
    };
    let judged = on_all_cores(&selected, judge_all);
    let question_count =
        |form: &Form| selected.iter().filter(|case| !(form.hides_names && case.by_name)).count();
    let mut refused = [const { Vec::new() }; FORMS.len()];
    for (case, judged) in selected.iter().zip(judged) {
        for ((form, refused), judged) in FORMS.iter().zip(&mut refused).zip(judged) {
            let Some((reason, shown)) = judged else { continue };
            if let Some(reason) = reason {
                println!("{}, {}: {reason}; {}", case.name, form.name, case.why);
                refused.push(case.name);
            }
            if verbose {
                println!("{}, {}:\n{shown}", case.name, form.name);
            }
        }
    }
    for (form, refused) in FORMS.iter().zip(&refused) {
        let questions = question_count(form);
        println!("{}: {} of {questions} answers accepted", form.name, questions - refused.len());
    }
    for (form, refused) in FORMS.iter().zip(&refused) {
        assert!(
            refused.len() * 100 <= form.most_refused * question_count(form),
            "{}: {refused:?}",
            form.name
        );
    }
}
