//! Judges the keys of an export: finds candidates, counts all rows in one pass, and recommends.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use crate::evaluate::EvaluateError;
use crate::evaluate::candidates::considered::{ConsideredCandidate, Purpose};
use crate::evaluate::candidates::few_values::FewValues;
use crate::evaluate::candidates::sampled_columns::{Searched, wider_key_type};
use crate::evaluate::candidates::search::{BYTES_LOOKED_AT, Finder, ROWS_LOOKED_AT};
use crate::evaluate::candidates::workload::{StatementReport, equality_columns};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::recommendation::{RankedKey, Recommendation};
use crate::evaluate::figures::uniqueness::UniqueBy;
use crate::evaluate::options::AdvisorOptions;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::Evaluator;
use crate::evaluate::pass::examples::{find_examples, find_values};
use crate::evaluate::pass::reader::read_into;
use crate::evaluate::pass::time_column::time_column;
use crate::evaluate::roles::{Role, RoleReport};
use crate::evaluate::verdict::findings::find_findings;
use crate::evaluate::verdict::ranking::{Choice, Knowledge, recommend};
use evenkeel_input::source::{Export, Extent, Unreadable};
use evenkeel_model::finding::Finding;
use evenkeel_model::note::Note;
use evenkeel_model::table::{Candidate, Column, ColumnType, only_time_column};
use evenkeel_placement::placement::Function;
use evenkeel_placement::placement::systems::About;

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
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Bytes of the inputs as stored.
    pub input_bytes: u64,
    /// Columns, with the types that were hashed.
    pub columns: Vec<ColumnReport>,
    /// Role of each column, inferred or given.
    pub roles: Vec<RoleReport>,
    /// Figures of all candidates.
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
    /// Partitions that statements visit, over the recommended number of partitions.
    pub statements: Vec<StatementReport>,
    /// Candidates for the partition key, the best first.
    pub ranking: Vec<RankedKey>,
    /// Recommended keys, and why.
    pub recommendation: Recommendation,
    /// Findings, the most severe first.
    pub findings: Vec<Finding>,
    /// Whether a primary key was named or searched for.
    #[serde(skip)]
    pub wants_primary_key: bool,
    /// Rows that were left out because they cannot be read.
    pub unreadable_rows: u64,
    /// Further notes.
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
    let on_unreadable = options.on_unreadable;
    let count = |export: &Export, options: &EvaluateOptions, few_values: &mut FewValues| {
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
    assess_counted(export, options, true, count, stop)
}

/// Like [`advise`], but the caller counts the rows: `count` receives the options with all
/// candidates, and returns the figures of the whole export and the rows that it left out.
///
/// # Errors
/// As for [`advise`], and any error of `count`.
pub fn advise_with(
    export: &Export,
    options: AdvisorOptions,
    count: impl FnOnce(&EvaluateOptions) -> Result<(Evaluation, Unreadable), EvaluateError>,
    stop: &AtomicBool,
) -> Result<AdvisorReport, EvaluateError> {
    let count = |_: &Export, options: &EvaluateOptions, few_values: &mut FewValues| {
        // The rows are counted elsewhere, so no column can be counted here.
        few_values.keep_only(&[]);
        count(options)
    };
    assess_counted(export, options, false, count, stop)
}

/// Evaluates an export with the figures that `count` returns. `widens` says whether `count` can read
/// columns as other types.
fn assess_counted(
    export: &Export,
    mut options: AdvisorOptions,
    widens: bool,
    count: impl FnOnce(
        &Export,
        &EvaluateOptions,
        &mut FewValues,
    ) -> Result<(Evaluation, Unreadable), EvaluateError>,
    stop: &AtomicBool,
) -> Result<AdvisorReport, EvaluateError> {
    let started = Instant::now();
    let mut notes = export.notes().to_vec();
    if !options.find_primary_keys && options.evaluate.primary_keys.is_empty() {
        let of_ydb = options.evaluate.placements.first().is_none_or(|function| function.of_ydb().is_some());
        notes.extend(of_ydb.then_some(Note::NoPrimaryKey));
    }
    notes.extend(options.left_out.iter().map(|reason| Note::PlacementsLeftOut { reason: reason.clone() }));
    let Look {
        mut considered,
        considered_from,
        roles,
        natural_key,
        identifying,
        sorted_by,
        search_cut_short,
    } = look(export, &mut options, widens, stop)?;
    notes.extend(search_cut_short.then_some(Note::KeySearchCutShort));
    let types = if widens { wider_types(export, &options.evaluate) } else { BTreeMap::new() };
    let widened = (!types.is_empty()).then(|| export.with_types(&types));
    notes.extend(export.columns().iter().filter_map(|column| {
        let (name, found) = (column.name.clone(), column.column_type);
        types.get(&name).map(|wider| Note::ReadWider { column: name, found, column_type: *wider })
    }));
    let export = widened.as_ref().unwrap_or(export);
    options.evaluate.equality_columns = equality_columns(&options.statements);
    let mut few_values = FewValues::new(&considered, export.columns(), &options.evaluate.partitions);
    let (mut evaluation, unreadable) = count(export, &options.evaluate, &mut few_values)?;
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
    for key in &mut evaluation.primary_keys {
        let identifies =
            |report: &RoleReport| report.role == Role::RowId && key.columns.contains(&report.column);
        let by_nature = roles.iter().any(identifies)
            || (!natural_key.is_empty() && natural_key.iter().all(|column| key.columns.contains(column)));
        if let Some(uniqueness) =
            key.uniqueness.as_mut().filter(|uniqueness| by_nature && uniqueness.by == UniqueBy::Chance)
        {
            uniqueness.by = UniqueBy::Nature;
        }
    }
    let Choice { partitions, ranking, statements, recommendation } = recommend(
        &evaluation,
        &options.statements,
        export,
        &options,
        &Knowledge {
            roles: &roles,
            natural_key: &natural_key,
            identifying: &identifying,
            joined: &options.joined,
        },
    );
    for report in &mut evaluation.candidates {
        let chosen = partitions.and_then(|partitions| report.over(partitions));
        report.over_time = chosen.and_then(|placement| placement.over_time.clone());
    }
    let wants_primary_key = options.find_primary_keys || !options.evaluate.primary_keys.is_empty();
    let mut assessment = AdvisorReport {
        inputs: export.input_names(),
        input_bytes: export.stored_bytes(),
        columns: export
            .columns()
            .iter()
            .map(|column| ColumnReport { name: column.name.clone(), column_type: column.column_type })
            .collect(),
        roles,
        evaluation,
        considered,
        considered_from,
        sorted_by,
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

/// Outcome of a look at rows from all over the export.
struct Look {
    considered: Vec<ConsideredCandidate>,
    considered_from: Option<Extent>,
    roles: Vec<RoleReport>,
    natural_key: Vec<String>,
    identifying: Vec<String>,
    sorted_by: Option<String>,
    /// Whether primary keys were searched for, and the search ended before one was found.
    search_cut_short: bool,
}

/// Infers the roles of the columns, and adds candidates if none are named.
fn look(
    export: &Export,
    options: &mut AdvisorOptions,
    widens: bool,
    stop: &AtomicBool,
) -> Result<Look, EvaluateError> {
    let given_roles = given_roles(export, &options.roles)?;
    let evaluate = &mut options.evaluate;
    let wants_primary_keys = options.find_primary_keys && evaluate.primary_keys.is_empty();
    let wants_partition_keys = evaluate.partition_keys.is_empty();
    // The only point in time needs no evidence.
    let only = only_time_column(export.columns()).and_then(|position| export.columns().get(position));
    let only = only.filter(|column| column.column_type.is_timestamp()).map(|column| column.name.clone());
    let given_time = evaluate.time.clone().or(only);
    let most = (ROWS_LOOKED_AT, BYTES_LOOKED_AT);
    let rows = export.rows_across::<EvaluateError>(options.on_unreadable, most, stop)?;
    let function = evaluate.placements.first().copied().unwrap_or_default();
    let searched = Searched {
        export: &options.table,
        columns: export.columns(),
        time: given_time.as_deref(),
        partitions: &evaluate.partitions,
        function,
        given: &given_roles,
        widens,
    };
    let finder = Finder::new(&searched, &rows);
    evaluate.time = finder.time().map(str::to_owned);
    evaluate.time_reading = finder.time_reading().unwrap_or_default();
    time_column(export.columns(), evaluate)?;
    let kept = |considered: &[ConsideredCandidate]| {
        let kept = considered.iter().filter(|candidate| candidate.kept);
        kept.map(|candidate| Candidate::of_columns(&candidate.key)).collect::<Vec<_>>()
    };
    let mut considered = Vec::new();
    if wants_partition_keys {
        considered = finder.partition_keys(&evaluate.primary_keys);
        leave_out_longer(&mut considered, function);
        evaluate.partition_keys = kept(&considered);
    }
    if wants_primary_keys {
        let given = if wants_partition_keys { None } else { evaluate.partition_keys.first() };
        let found = finder.primary_keys(given, &considered);
        evaluate.primary_keys = kept(&found);
        considered.extend(found);
    }
    let joined = options.joined.iter().filter(|_| wants_partition_keys);
    let joined = joined.filter(|join| finder.can_be_in_key(&join.column));
    let joined = joined.map(|join| Candidate::of_columns(std::slice::from_ref(&join.column)));
    for key in joined.chain(options.current_partition_key.clone()) {
        if !evaluate.partition_keys.contains(&key) {
            evaluate.partition_keys.push(key);
        }
    }
    Ok(Look {
        considered,
        considered_from: (wants_partition_keys || wants_primary_keys).then_some(rows.extent),
        roles: finder.roles().to_vec(),
        natural_key: finder.natural_key(),
        identifying: finder.naturally_identifying(),
        sorted_by: finder.sorted_by(),
        search_cut_short: wants_primary_keys && finder.is_cut_short(),
    })
}

/// Drops keys with more columns than a system hashes.
fn leave_out_longer(considered: &mut [ConsideredCandidate], function: Function) {
    let Function::System(system) = function else { return };
    let About { name, most_columns, .. } = system.about();
    for candidate in considered.iter_mut().filter(|candidate| candidate.key.len() > *most_columns) {
        candidate.kept = false;
        candidate.reason = match most_columns {
            1 => format!("{name} hashes one column"),
            most => format!("{name} hashes at most {most} columns"),
        };
    }
}

/// Returns the types as which the columns of the keys are read, if YDB takes their own in no key and
/// the user did not name them.
fn wider_types(export: &Export, options: &EvaluateOptions) -> BTreeMap<String, ColumnType> {
    let function = options.placements.first().copied().unwrap_or_default();
    let in_keys = |column: &Column| {
        let mut keys = options.partition_keys.iter().chain(&options.primary_keys);
        keys.any(|key| key.parts().iter().any(|part| part.column == column.name))
    };
    let columns = export.columns().iter().filter(|column| in_keys(column));
    columns
        .filter(|column| !export.changed_types().contains_key(&column.name))
        .filter_map(|column| Some((column.name.clone(), wider_key_type(function, column.column_type)?)))
        .collect()
}

/// Arranges the roles that the user gave by the position of their columns.
fn given_roles(export: &Export, roles: &[(String, Role)]) -> Result<Vec<Option<Role>>, EvaluateError> {
    let columns = export.columns();
    let known = || columns.iter().map(|column| column.name.clone()).collect();
    if let Some((column, _)) =
        roles.iter().find(|(name, _)| !columns.iter().any(|column| column.name == *name))
    {
        return Err(EvaluateError::UnknownRoleColumn { column: column.clone(), known: known() });
    }
    let role = |name: &str| roles.iter().rev().find(|(of, _)| of == name).map(|(_, role)| *role);
    Ok(columns.iter().map(|column| role(&column.name)).collect())
}

/// Adds the figures of all rows to the reasons that were found from some of them.
fn confirm(considered: &mut [ConsideredCandidate], evaluation: &Evaluation) {
    for candidate in considered.iter_mut().filter(|candidate| candidate.kept) {
        let found = match candidate.purpose {
            Purpose::PartitionKey => {
                let mut keys = evaluation.candidates.iter();
                let key = keys.find(|key| key.partition_key == candidate.key && key.distinct.exact);
                key.map(|key| format!("{} in all {} rows", key.distinct.estimate, evaluation.rows))
            }
            Purpose::PrimaryKey if evaluation.sample.is_none() => {
                let key = evaluation.primary_keys.iter().find(|key| key.columns == candidate.key);
                key.map(|key| match key.duplicate_rows {
                    0 => format!("no key repeats in all {} rows", evaluation.rows),
                    repeated => {
                        format!("{repeated} of all {} rows have a key that another has", evaluation.rows)
                    }
                })
            }
            Purpose::PrimaryKey => None,
        };
        if let Some(found) = found {
            candidate.reason = format!("{}; {found}", candidate.reason);
        }
    }
}
