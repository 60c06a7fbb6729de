//! From an export to an answer: find candidates, read once, judge.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use arrow::array::RecordBatch;
use serde::Serialize;

use crate::evaluate::EvaluateError;
use crate::evaluate::evaluator::{Evaluation, Evaluator, time_column};
use crate::evaluate::examples::{find_examples, find_values};
use crate::evaluate::fan_out::{StatementReport, equality_columns};
use crate::evaluate::find::{BYTES_LOOKED_AT, Considered, FewValues, Finder, ROWS_LOOKED_AT, Role};
use crate::evaluate::findings::find_findings;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::recommend::{Choice, RankedKey, Recommendation, recommend};
use evenkeel_input::source::{Export, Extent, OnUnreadable, Unreadable};
use evenkeel_model::finding::Finding;
use evenkeel_model::note::Note;
use evenkeel_model::table::{Candidate, ColumnType, YdbVersion};
use evenkeel_model::workload::PlannedStatement;

/// What is wanted of an export.
#[derive(Debug, Clone)]
pub struct AssessOptions {
    /// Keys and how they are evaluated; candidates are found where none are named.
    pub evaluate: EvaluateOptions,
    /// Whether primary keys are found and judged where none are named.
    pub find_primary_keys: bool,
    /// Statements whose fan-out is wanted.
    pub statements: Vec<PlannedStatement>,
    /// What is done with rows that cannot be read.
    pub on_unreadable: OnUnreadable,
    /// Inserts that the table is to take, in bytes per second; that of the export itself where it is not given.
    pub ingest_rate: Option<f64>,
    /// Numbers of nodes that the numbers of partitions follow from, where they do.
    pub nodes: Vec<u64>,
    /// Whether these are the user's.
    pub nodes_given: bool,
    /// The inputs as they were named, for what is proposed.
    pub inputs: Vec<String>,
    /// Arguments that say how they are read, likewise.
    pub reading: Vec<String>,
    /// Name of the table in what is proposed.
    pub table: String,
    /// The version of YDB that the proposed YQL is for.
    pub ydb_version: YdbVersion,
    /// Placement functions that were left out before, each with the reason.
    pub left_out: Vec<String>,
}

/// A column of the export.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnReport {
    /// Its name.
    pub name: String,
    /// Its type in YDB.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
}

/// What an export says about keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The inputs.
    pub inputs: Vec<String>,
    /// Their bytes as stored.
    pub input_bytes: u64,
    /// Columns with the types that were hashed.
    pub columns: Vec<ColumnReport>,
    /// Figures of all candidates.
    #[serde(flatten)]
    pub evaluation: Evaluation,
    /// Candidates that were thought of, where none were named.
    pub considered: Vec<Considered>,
    /// The rows that candidates were found from, if any had to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub considered_from: Option<Extent>,
    /// What statements visit, over the recommended number of partitions.
    pub statements: Vec<StatementReport>,
    /// Candidates for the partition key, the best first.
    pub ranking: Vec<RankedKey>,
    /// What to choose, and why.
    pub recommendation: Recommendation,
    /// What to look out for, the gravest first.
    pub findings: Vec<Finding>,
    /// Whether a primary key was named or searched for.
    #[serde(skip)]
    pub wants_primary_key: bool,
    /// Rows that were left out because they cannot be read.
    pub unreadable_rows: u64,
    /// What else is worth knowing.
    pub notes: Vec<Note>,
    /// Whether values are replaced by numbers.
    pub masked: bool,
    /// Seconds that it took.
    pub seconds: f64,
}

impl Assessment {
    /// Finds anew what to look out for.
    pub(super) fn find_findings(&mut self) {
        self.findings = find_findings(
            &self.evaluation,
            &self.statements,
            &self.ranking,
            &self.recommendation,
            self.wants_primary_key,
        );
    }
}

/// Judges keys on an export. `progress` is called with the rows read so far; `stop` ends it before its end.
///
/// # Errors
/// [`EvaluateError`] where the export cannot be read, or a key that was named cannot be evaluated.
pub fn assess(
    export: &Export,
    options: AssessOptions,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<Assessment, EvaluateError> {
    let on_unreadable = options.on_unreadable;
    let count = |options: &EvaluateOptions, few_values: &mut FewValues| {
        let mut evaluator = Evaluator::new(export.columns(), options.clone())?;
        let unreadable = read_into(&mut evaluator, progress, stop, |asked, each| {
            few_values.keep_only(asked);
            export.read_blocks(on_unreadable, asked, |block| {
                few_values.count(&block);
                each(block)
            })
        })?;
        Ok((evaluator.finish()?, unreadable))
    };
    assess_counted(export, options, count, stop)
}

/// As [`assess`], with the rows counted by someone else: `count` gives the figures of the whole export under the options it is given,
/// which have all candidates, and the rows that it left out.
///
/// # Errors
/// As for [`assess`], and what `count` says.
pub fn assess_with(
    export: &Export,
    options: AssessOptions,
    count: impl FnOnce(&EvaluateOptions) -> Result<(Evaluation, Unreadable), EvaluateError>,
    stop: &AtomicBool,
) -> Result<Assessment, EvaluateError> {
    let count = |options: &EvaluateOptions, few_values: &mut FewValues| {
        // Nobody here sees the rows.
        few_values.keep_only(&[]);
        count(options)
    };
    assess_counted(export, options, count, stop)
}

fn assess_counted(
    export: &Export,
    mut options: AssessOptions,
    count: impl FnOnce(&EvaluateOptions, &mut FewValues) -> Result<(Evaluation, Unreadable), EvaluateError>,
    stop: &AtomicBool,
) -> Result<Assessment, EvaluateError> {
    let started = Instant::now();
    let mut notes = export.notes().to_vec();
    if !options.find_primary_keys && options.evaluate.primary_keys.is_empty() {
        let of_ydb = options.evaluate.placements.first().is_none_or(|function| function.of_ydb().is_some());
        notes.extend(of_ydb.then_some(Note::NoPrimaryKey));
    }
    notes.extend(options.left_out.iter().map(|reason| Note::PlacementsLeftOut { reason: reason.clone() }));
    let (mut considered, considered_from) = find_candidates(export, &mut options, stop)?;
    options.evaluate.equality_columns = equality_columns(&options.statements);
    let mut few_values = FewValues::new(&considered, export.columns(), &options.evaluate.partitions);
    let (mut evaluation, unreadable) = count(&options.evaluate, &mut few_values)?;
    if let Some(extent) = considered_from.filter(|extent| !extent.whole) {
        let rows = evaluation.sample.map_or(evaluation.rows, |sample| sample.rows_read);
        notes.push(Note::CandidatesFromSample {
            rows: extent.rows,
            of_rows: rows,
            places: extent.places,
            inputs: extent.inputs,
            of_inputs: extent.of_inputs,
        });
        confirm(&mut considered, &evaluation);
    }
    for column in few_values.settle(&mut considered) {
        notes.push(Note::MoreValuesThanSampled { column });
    }
    find_values(export, options.on_unreadable, &mut evaluation.candidates, stop)?;
    find_examples(export, options.on_unreadable, &mut evaluation.primary_keys, stop)?;
    if let Some(first) = unreadable.first {
        let (rows, place) = (unreadable.rows, first.place());
        notes.push(Note::RowsLeftOut { rows, place, first: Some(first.reason) });
    }
    let Choice { partitions, ranking, statements, recommendation } =
        recommend(&evaluation, &options.statements, export, &options);
    for report in &mut evaluation.candidates {
        let chosen = partitions.and_then(|partitions| report.over(partitions));
        report.over_time = chosen.and_then(|placement| placement.over_time.clone());
    }
    let wants_primary_key = options.find_primary_keys || !options.evaluate.primary_keys.is_empty();
    let mut assessment = Assessment {
        inputs: export.input_names(),
        input_bytes: export.stored_bytes(),
        columns: export
            .columns()
            .iter()
            .map(|column| ColumnReport { name: column.name.clone(), column_type: column.column_type })
            .collect(),
        evaluation,
        considered,
        considered_from,
        statements,
        ranking,
        recommendation,
        findings: Vec::new(),
        wants_primary_key,
        unreadable_rows: unreadable.rows,
        notes,
        masked: false,
        seconds: started.elapsed().as_secs_f64(),
    };
    assessment.find_findings();
    Ok(assessment)
}

/// Adds candidates where none are named.
fn find_candidates(
    export: &Export,
    options: &mut AssessOptions,
    stop: &AtomicBool,
) -> Result<(Vec<Considered>, Option<Extent>), EvaluateError> {
    let evaluate = &mut options.evaluate;
    let primary_keys_wanted = options.find_primary_keys && evaluate.primary_keys.is_empty();
    if !evaluate.partition_keys.is_empty() && !primary_keys_wanted {
        return Ok((Vec::new(), None));
    }
    let time = time_column(export.columns(), evaluate.time.as_deref())?.map(|(_, name)| name);
    let most = (ROWS_LOOKED_AT, BYTES_LOOKED_AT);
    let rows = export.rows_across::<EvaluateError>(options.on_unreadable, most, stop)?;
    let function = evaluate.placements.first().copied().unwrap_or_default();
    let finder = Finder::new(export.columns(), &rows, time.as_deref(), &evaluate.partitions, function);
    let mut considered = Vec::new();
    let given_primary = evaluate.primary_keys.clone();
    let of = |considered: &[Considered]| {
        let kept = considered.iter().filter(|candidate| candidate.kept);
        kept.map(|candidate| Candidate::of_columns(&candidate.key)).collect::<Vec<_>>()
    };
    let mut found_primary = Vec::new();
    if given_primary.is_empty() && options.find_primary_keys {
        let found = finder.primary_keys(evaluate.partition_keys.first());
        found_primary = of(&found);
        evaluate.primary_keys.clone_from(&found_primary);
        considered.extend(found);
    }
    if evaluate.partition_keys.is_empty() {
        let found = finder.partition_keys(&given_primary, &found_primary);
        evaluate.partition_keys = of(&found);
        considered.splice(0..0, found);
    }
    Ok((considered, Some(rows.extent)))
}

/// Adds what all rows have to what was seen of some of them.
fn confirm(considered: &mut [Considered], evaluation: &Evaluation) {
    for candidate in considered.iter_mut().filter(|candidate| candidate.kept) {
        let found = match candidate.role {
            Role::PartitionKey => {
                let mut keys = evaluation.candidates.iter();
                let key = keys.find(|key| key.partition_key == candidate.key && key.distinct.exact);
                key.map(|key| format!("{} in all {} rows", key.distinct.estimate, evaluation.rows))
            }
            Role::PrimaryKey if evaluation.sample.is_none() => {
                let key = evaluation.primary_keys.iter().find(|key| key.columns == candidate.key);
                key.map(|key| match key.duplicate_rows {
                    0 => format!("no key repeats in all {} rows", evaluation.rows),
                    repeated => {
                        format!("{repeated} of all {} rows have a key that another has", evaluation.rows)
                    }
                })
            }
            Role::PrimaryKey => None,
        };
        if let Some(found) = found {
            candidate.reason = format!("{}; {found}", candidate.reason);
        }
    }
}

/// Takes blocks of batches; whether to go on.
type Blocks<'a> = &'a mut dyn FnMut(Vec<RecordBatch>) -> bool;

/// Reads rows in a thread of its own, while they are counted in this one and its helpers. `read` gives the rows of the columns that are
/// asked for.
pub(super) fn read_into(
    evaluator: &mut Evaluator,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
    read: impl FnOnce(&[bool], Blocks<'_>) -> Result<Unreadable, EvaluateError> + Send,
) -> Result<Unreadable, EvaluateError> {
    let (sender, receiver) = sync_channel::<Vec<RecordBatch>>(1);
    let asked = evaluator.asked();
    std::thread::scope(|scope| {
        // Where nobody receives any more, counting has failed, and says so itself.
        let reading = scope.spawn(move || read(&asked, &mut |block| sender.send(block).is_ok()));
        let counted = evaluator.add_all(
            || receiver.recv().ok(),
            |rows_read| {
                progress(rows_read);
                if stop.load(Ordering::Relaxed) { Err(EvaluateError::Interrupted) } else { Ok(()) }
            },
        );
        drop(receiver);
        let read = reading.join().unwrap_or(Err(EvaluateError::Interrupted));
        counted.and(read)
    })
}
