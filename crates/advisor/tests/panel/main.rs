//! Exports whose right keys any engineer of the field would name, and the answers that are accepted.
//!
//! Each export is judged as it is, and with its columns renamed and permuted and its rows shuffled.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod columns;
mod exports;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use arrow::array::RecordBatch;
use evenkeel_advisor::evaluate::{AdvisorOptions, AdvisorReport, EvaluateOptions, advise};
use evenkeel_input::source::{Export, OnUnreadable, find_inputs};
use evenkeel_model::table::YdbVersion;
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
    let inputs = find_inputs(&[path.display().to_string()]).unwrap();
    let export = Export::open(&inputs.paths, Default::default(), &Default::default()).unwrap();
    let nodes = vec![4, 16, 32];
    let options = AdvisorOptions {
        evaluate: EvaluateOptions {
            partitions: nodes.iter().map(|n| PartitionCount::for_nodes(*n).unwrap()).collect(),
            ..EvaluateOptions::default()
        },
        find_primary_keys: true,
        roles: Vec::new(),
        current_partition_key: None,
        statements: Vec::new(),
        on_unreadable: OnUnreadable::Fail,
        ingest_rate: None,
        nodes,
        nodes_given: false,
        inputs: vec!["export.parquet".to_owned()],
        reading: Vec::new(),
        table: "export".to_owned(),
        ydb_version: YdbVersion::default(),
        left_out: Vec::new(),
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
        key == partition_key
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

#[test]
fn experts_would_agree() {
    let only = std::env::var("PANEL_ONLY").ok();
    let verbose = std::env::var("PANEL_VERBOSE").is_ok();
    let (mut asked, mut refused) = (0, Vec::new());
    for case in cases() {
        if only.as_ref().is_some_and(|only| !case.name.contains(only.as_str())) {
            continue;
        }
        let batch = (case.rows)();
        let as_it_is = |column: &str| column.to_owned();
        let report = answer(&batch);
        asked += 1;
        if let Some(reason) = refusal(&case, &report, &as_it_is) {
            println!("{}: {reason}; {}\n{}", case.name, case.why, describe(&report, &as_it_is));
            refused.push(case.name.to_owned());
        } else if verbose {
            println!(
                "{}: ok {:?} {:?}\n{}",
                case.name,
                report.recommendation.partition_key,
                report.recommendation.primary_key,
                describe(&report, &as_it_is)
            );
        }
        for seed in 0..1 {
            let (renamed, names) = columns::disguised(&batch, seed);
            let name = |column: &str| names.iter().find(|(new, _)| new == column).unwrap().1.clone();
            let report = answer(&renamed);
            if let Some(reason) = refusal(&case, &report, &name) {
                println!("{} (disguised {seed}): {reason}", case.name);
                if verbose {
                    println!("{}", describe(&report, &name));
                }
                refused.push(format!("{} (disguised {seed})", case.name));
            }
            asked += 1;
        }
    }
    println!("{} of {asked} answers accepted", asked - refused.len());
    let by_itself = refused.iter().filter(|name| !name.contains("disguised")).count();
    assert_eq!(by_itself, 0, "{refused:?}");
    let disguised = refused.len() - by_itself;
    assert!(disguised * 100 <= 15 * asked, "{disguised} of {asked}: {refused:?}");
}
