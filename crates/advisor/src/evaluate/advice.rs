//! Judges the keys of an export: finds candidates, counts all rows in one pass, and recommends.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use crate::evaluate::EvaluateError;
use crate::evaluate::candidates::considered::ConsideredCandidate;
use crate::evaluate::candidates::few_values::FewValues;
use crate::evaluate::candidates::workload::{StatementReport, equality_columns};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::merged_profile::MergedProfile;
use crate::evaluate::figures::recommendation::{RankedKey, Recommendation};
use crate::evaluate::look::{Look, look};
use crate::evaluate::measured::{MeasuredDistribution, measure};
use crate::evaluate::options::{AdvisorOptions, AlsoCounted, EvaluateOptions};
use crate::evaluate::pass::evaluator::Evaluator;
use crate::evaluate::pass::examples::{find_examples, find_values};
use crate::evaluate::pass::partition_key::FoundKey;
use crate::evaluate::pass::reader::read_into;
use crate::evaluate::roles::RoleReport;
use crate::evaluate::roles::names::denotes_events;
use crate::evaluate::verdict::findings::find_findings;
use crate::evaluate::verdict::ranking::{Choice, Knowledge, recommend};
use crate::evaluate::widening::{read_as_times, widened_columns, wider_types};
use evenkeel_input::source::{Export, Extent, OnUnreadable, Unreadable};
use evenkeel_model::finding::Finding;
use evenkeel_model::note::Note;
use evenkeel_model::table::{Column, ColumnType};

/// A column of the export.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnReport {
    /// Name of the column.
    pub name: String,
    /// Type of the column in YDB.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
}

/// Report on the keys of an export.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdvisorReport {
    /// Names of the inputs, as given.
    pub inputs: Vec<String>,
    /// Bytes of the inputs as stored.
    pub input_bytes: u64,
    /// Columns, with the types that were hashed.
    pub columns: Vec<ColumnReport>,
    /// Role of each column, inferred or given.
    pub roles: Vec<RoleReport>,
    /// Measured figures of the candidates, before they are judged.
    #[serde(flatten)]
    pub evaluation: Evaluation,
    /// Candidates that were considered, if none were named.
    pub considered: Vec<ConsideredCandidate>,
    /// Rows that candidates were found from, if any had to be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub considered_from: Option<Extent>,
    /// Column that the sampled rows are sorted by, if it is not the time column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sorted_by: Option<String>,
    /// Profiles that were merged, if the rows themselves were not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<MergedProfile>,
    /// Rows in each partition of the existing table, if the inputs show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredDistribution>,
    /// Partitions that statements visit, over the recommended number of partitions.
    pub statements: Vec<StatementReport>,
    /// Candidates for the partition key, the best first.
    pub ranking: Vec<RankedKey>,
    /// Recommended keys and number of partitions, and why.
    pub recommendation: Recommendation,
    /// Findings, the most severe first.
    pub findings: Vec<Finding>,
    /// Whether a primary key was named or searched for.
    #[serde(skip)]
    pub wants_primary_key: bool,
    /// Rows that were left out because they cannot be read.
    pub unreadable_rows: u64,
    /// Remarks on the export that are not findings.
    pub notes: Vec<Note>,
    /// Whether values are replaced by numbers.
    pub masked: bool,
    /// Duration of the evaluation, in seconds.
    pub seconds: f64,
}

impl AdvisorReport {
    /// Recomputes the findings.
    pub(crate) fn find_findings(&mut self) {
        self.findings = find_findings(
            &self.evaluation,
            &self.statements,
            &self.ranking,
            &self.recommendation,
            self.wants_primary_key,
            self.sorted_by.as_deref(),
        );
    }
}

/// Judges the keys of an export. `progress` is called with the number of rows read so far; setting
/// `stop` cancels the evaluation.
///
/// # Errors
/// [`EvaluateError`] if the export cannot be read, or a named key cannot be evaluated.
pub fn advise(
    export: &Export,
    options: AdvisorOptions,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<AdvisorReport, EvaluateError> {
    advise_here(export, options, None, progress, stop).map(|(advice, _)| advice.report)
}

/// Machines that count the rows of an export in place of this process.
pub trait CountRows: Send + Sync {
    /// Returns the figures of the whole export, and the rows that were left out. `options` has all
    /// candidates; setting `stop` cancels the count.
    ///
    /// # Errors
    /// [`EvaluateError::Elsewhere`] if the machines fail, else the errors of an evaluation.
    fn count_rows(
        &self,
        export: &Export,
        options: &EvaluateOptions,
        on_unreadable: OnUnreadable,
        stop: &AtomicBool,
    ) -> Result<(Evaluation, Unreadable), EvaluateError>;
}

/// Like [`advise`], but other machines do the single pass over all rows. Everything else, mostly a
/// few rows before and after the pass, is read here.
///
/// # Errors
/// As for [`advise`], and the errors of `counter`.
pub fn advise_with(
    export: &Export,
    options: AdvisorOptions,
    counter: &dyn CountRows,
    stop: &AtomicBool,
) -> Result<AdvisorReport, EvaluateError> {
    let on_unreadable = options.on_unreadable;
    let count = |_: &Export, options: &EvaluateOptions, few_values: &mut FewValues| {
        // The rows are counted elsewhere, so no column can be counted here.
        few_values.keep_only(&[]);
        counter.count_rows(export, options, on_unreadable, stop)
    };
    advise_counted(export, options, false, count, stop).map(|advice| advice.report)
}

/// Counts of an evaluator as bytes, for profiles.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) state: Vec<u8>,
    pub(crate) checksum: u64,
    /// Whether distinct values are estimated, for each partition key.
    pub(crate) estimated: Vec<bool>,
    /// Whether the keys of all rows are kept, for each primary key.
    pub(crate) has_rows: Vec<bool>,
}

/// A report with its sources, apart from the rows.
#[derive(Debug)]
pub(crate) struct Advice {
    pub(crate) report: AdvisorReport,
    /// Options with the keys that were counted.
    pub(crate) options: AdvisorOptions,
    pub(crate) columns: Vec<Column>,
    pub(crate) declared: Option<Vec<Column>>,
    /// Inferences from sampled rows, before figures of all rows were added.
    pub(crate) look: Look,
    /// Heavy keys that the counts do not know.
    pub(crate) values: Vec<FoundKey>,
}

/// Judges the keys of an export, and returns the counts too, in about `save` bytes, if these are
/// wanted.
pub(crate) fn advise_here(
    export: &Export,
    options: AdvisorOptions,
    save: Option<u64>,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<(Advice, Option<Counting>), EvaluateError> {
    let on_unreadable = options.on_unreadable;
    let mut counting = None;
    let count = |export: &Export, options: &EvaluateOptions, few_values: &mut FewValues| {
        let mut evaluator = Evaluator::new(export.columns(), options.clone())?;
        let unreadable = read_into(&mut evaluator, progress, stop, |projection, each| {
            few_values.keep_only(projection);
            export.read_blocks(on_unreadable, projection, |block| {
                few_values.count(&block);
                each(block)
            })
        })?;
        if let Some(most) = save {
            counting = Some(Counting::new(&mut evaluator, most)?);
        }
        Ok((evaluator.finish()?, unreadable))
    };
    let advice = advise_counted(export, options, true, count, stop)?;
    Ok((advice, counting))
}

impl Counting {
    /// Returns the counts so far, in about `most` bytes.
    pub(crate) fn new(evaluator: &mut Evaluator, most: u64) -> Result<Self, EvaluateError> {
        let reductions = evaluator.reductions(most);
        let keys = evaluator.counters.partition_keys.iter().enumerate();
        let is_exact = |at: usize, bytes: Option<u64>| bytes.is_some() && !reductions.estimated.contains(&at);
        let estimated = keys.map(|(at, key)| !is_exact(at, key.keys().exact_bytes())).collect();
        let keys = evaluator.counters.primary_keys.iter().enumerate();
        let has_rows = keys.map(|(at, key)| key.has_rows() && !reductions.without_rows.contains(&at));
        let has_rows = has_rows.collect();
        let checksum = evaluator.counters.checksum;
        Ok(Self { state: evaluator.state_of(&reductions)?, checksum, estimated, has_rows })
    }
}

/// Evaluates an export with the figures that `count` returns. `widens` says whether `count` can
/// read columns as other types.
fn advise_counted(
    export: &Export,
    mut options: AdvisorOptions,
    widens: bool,
    count: impl FnOnce(
        &Export,
        &EvaluateOptions,
        &mut FewValues,
    ) -> Result<(Evaluation, Unreadable), EvaluateError>,
    stop: &AtomicBool,
) -> Result<Advice, EvaluateError> {
    let started = Instant::now();
    let mut notes = first_notes(export, &options);
    let requested = options.clone();
    let mut look = look(export, &mut options, widens, stop)?;
    let times = &look.fractional_times;
    let has_given_type = export.changed_types().keys().any(|name| times.contains_key(name));
    let mut timed = None;
    if widens && requested.also_counted == AlsoCounted::Nothing && !times.is_empty() && !has_given_type {
        let with_times = export.with_times(times);
        let mut time_options = requested;
        let formats = times.iter().map(|(name, format)| format!("{name}={format}"));
        time_options.reading.extend(formats.flat_map(|format| ["--timestamp-format".to_owned(), format]));
        // Numbers with exponents do not have such a format.
        if let Ok(second) = self::look(&with_times, &mut time_options, widens, stop)
            && second.rows == look.rows
        {
            notes.extend(read_as_times(times, export));
            (look, options, timed) = (second, time_options, Some(with_times));
        }
    }
    let export = timed.as_ref().unwrap_or(export);
    notes.extend(look.search_cut_short.then_some(Note::KeySearchCutShort));
    // Columns have the same types in all exports whose counts are merged, whatever their keys.
    let all = options.also_counted != AlsoCounted::Nothing;
    let types = if widens { wider_types(export, &options.evaluate, all) } else { BTreeMap::new() };
    notes.extend(widened_columns(export, &types, &options.evaluate));
    let widened = (!types.is_empty()).then(|| export.with_types(&types));
    let export = widened.as_ref().unwrap_or(export);
    // Rows that are counted like other rows are tried under the same conditions.
    if !matches!(options.also_counted, AlsoCounted::Keys(_)) {
        options.evaluate.equality_columns = equality_columns(&options.statements);
    }
    let mut few_values = FewValues::new(&look.considered, export.columns(), &options.evaluate.partitions);
    let (mut evaluation, unreadable) = count(export, &options.evaluate, &mut few_values)?;
    evaluation.candidates.truncate(options.evaluate.partition_keys.len());
    let more_values = few_values.settle(&mut look.considered).into_iter();
    let more_values = more_values.map(|column| Note::MoreValuesThanSampled { column });
    let inferred = look.clone();
    notes.extend(look.confirm(&evaluation));
    notes.extend(more_values);
    let values = find_values(export, options.on_unreadable, &mut evaluation.candidates, stop)?;
    find_examples(export, options.on_unreadable, &mut evaluation.primary_keys, stop)?;
    let unreadable_rows = unreadable.rows;
    notes.extend(export.notes_on(unreadable));
    let measured = measure(export, &options, stop)?;
    let evaluated = EvaluatedExport { evaluation, look, notes, unreadable_rows, measured };
    let report = evaluated.report(export, &options, started);
    Ok(Advice {
        report,
        columns: export.columns().to_vec(),
        declared: export.options().declared.clone(),
        options,
        look: inferred,
        values,
    })
}

/// Inferences from the rows of an export.
pub(crate) struct EvaluatedExport {
    pub(crate) evaluation: Evaluation,
    pub(crate) look: Look,
    pub(crate) notes: Vec<Note>,
    pub(crate) unreadable_rows: u64,
    pub(crate) measured: Option<MeasuredDistribution>,
}

impl EvaluatedExport {
    /// Judges the keys.
    pub(crate) fn report(self, export: &Export, options: &AdvisorOptions, started: Instant) -> AdvisorReport {
        let Self { mut evaluation, look, notes, unreadable_rows, measured } = self;
        look.mark_unique_by_nature(&mut evaluation);
        let knowledge = Knowledge {
            roles: &look.roles,
            natural_key: &look.natural_key,
            identifying: &look.identifying,
            joined: &options.joined,
            of_events: denotes_events(&options.table),
        };
        let Choice { partitions, ranking, statements, recommendation } =
            recommend(&evaluation, &options.statements, export, options, &knowledge);
        for report in &mut evaluation.candidates {
            let chosen = partitions.and_then(|partitions| report.over(partitions));
            report.over_time = chosen.and_then(|placement| placement.over_time.clone());
        }
        let column =
            |column: &Column| ColumnReport { name: column.name.clone(), column_type: column.column_type };
        let mut report = AdvisorReport {
            inputs: export.input_names(),
            input_bytes: export.stored_bytes(),
            columns: export.columns().iter().map(column).collect(),
            roles: look.roles,
            evaluation,
            considered: look.considered,
            considered_from: look.considered_from,
            sorted_by: look.sorted_by,
            profiles: Vec::new(),
            measured,
            statements,
            ranking,
            recommendation,
            findings: Vec::new(),
            wants_primary_key: options.find_primary_keys || !options.evaluate.primary_keys.is_empty(),
            unreadable_rows,
            notes,
            masked: false,
            seconds: started.elapsed().as_secs_f64(),
        };
        report.find_findings();
        report
    }
}

/// Notes that need no row.
fn first_notes(export: &Export, options: &AdvisorOptions) -> Vec<Note> {
    let mut notes = export.notes().to_vec();
    if !options.find_primary_keys && options.evaluate.primary_keys.is_empty() {
        let of_ydb =
            options.evaluate.placements.first().is_none_or(|function| function.ydb_function().is_some());
        notes.extend(of_ydb.then_some(Note::NoPrimaryKey));
    }
    notes.extend(options.left_out.iter().map(|reason| Note::PlacementsLeftOut { reason: reason.clone() }));
    notes
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
