//! Looks at rows from all over an export: roles of the columns, and candidates for both keys.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use crate::evaluate::EvaluateError;
use crate::evaluate::candidates::considered::{ConsideredCandidate, Purpose};
use crate::evaluate::candidates::sampled_columns::Searched;
use crate::evaluate::candidates::search::{BYTES_LOOKED_AT, Finder, ROWS_LOOKED_AT};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::uniqueness::UniqueBy;
use crate::evaluate::options::{AdvisorOptions, AlsoCounted, EvaluateOptions};
use crate::evaluate::pass::batch::KeyParts;
use crate::evaluate::pass::evaluator::Evaluator;
use crate::evaluate::pass::time_column::time_column;
use crate::evaluate::roles::names::is_later;
use crate::evaluate::roles::{Role, RoleReport};
use evenkeel_input::source::{Export, Extent};
use evenkeel_model::note::Note;
use evenkeel_model::table::{Candidate, Column, ColumnType, only_time_column};
use evenkeel_model::text_value::TimestampFormat;
use evenkeel_placement::placement::Function;
use evenkeel_placement::placement::systems::About;

/// Maximum number of partition keys that are counted in addition to those that are judged.
const MAX_ALSO_COUNTED: usize = 24;

/// Outcome of a look at rows from all over the export.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) considered: Vec<ConsideredCandidate>,
    pub(crate) considered_from: Option<Extent>,
    pub(crate) roles: Vec<RoleReport>,
    pub(crate) natural_key: Vec<String>,
    pub(crate) identifying: Vec<String>,
    pub(crate) sorted_by: Option<String>,
    /// Number of rows that were looked at.
    pub(crate) rows: u64,
    /// Columns of seconds and other units since 1970 with fractions, with the formats that read
    /// them.
    pub(crate) fractional_times: BTreeMap<String, TimestampFormat>,
    /// Whether primary keys were searched for, and the search ended before one was found.
    pub(crate) search_cut_short: bool,
}

impl Look {
    /// Adds the figures of all rows to the reasons that were found from some of them. Returns a
    /// note on the examined rows, unless they were all rows.
    pub(crate) fn confirm(&mut self, evaluation: &Evaluation) -> Option<Note> {
        let extent = self.considered_from.filter(|extent| !extent.whole)?;
        for candidate in self.considered.iter_mut().filter(|candidate| candidate.kept) {
            if let Some(figures) = figures_of(candidate, evaluation) {
                candidate.reason = format!("{}; {figures}", candidate.reason);
            }
        }
        Some(Note::CandidatesFromSample {
            rows: extent.rows,
            of_rows: evaluation.sample.map_or(evaluation.rows, |sample| sample.rows_read),
            places: extent.places,
            inputs: extent.inputs,
            of_inputs: extent.of_inputs,
        })
    }

    /// Marks the keys that are unique by nature: keys that contain the row id or a natural key.
    pub(crate) fn mark_unique_by_nature(&self, evaluation: &mut Evaluation) {
        for key in &mut evaluation.primary_keys {
            let is_in_key = |column: &String| key.columns.contains(column);
            let identifies =
                self.roles.iter().any(|report| report.role == Role::RowId && is_in_key(&report.column));
            let is_natural = !self.natural_key.is_empty() && self.natural_key.iter().all(is_in_key);
            if let Some(uniqueness) = &mut key.uniqueness
                && uniqueness.by == UniqueBy::Chance
                && (identifies || is_natural)
            {
                uniqueness.by = UniqueBy::Nature;
            }
        }
    }
}

/// Infers the roles of the columns, and adds candidates if none is named.
pub(crate) fn look(
    export: &Export,
    options: &mut AdvisorOptions,
    widens: bool,
    stop: &AtomicBool,
) -> Result<Look, EvaluateError> {
    let given_roles = given_roles(export, &options.roles)?;
    // Keys that cannot be evaluated are refused before any row is read.
    let mut parts = KeyParts::default();
    let keys = options.evaluate.partition_keys.iter().chain(&options.evaluate.primary_keys);
    for key in keys.chain(&options.current_partition_key).chain(&options.current_primary_key) {
        parts.resolve(key, export.columns())?;
    }
    let evaluate = &mut options.evaluate;
    let wants_primary_keys = options.find_primary_keys && evaluate.primary_keys.is_empty();
    let wants_partition_keys = evaluate.partition_keys.is_empty();
    // The only point in time needs no evidence, unless its name says that it is later than a time
    // in a numeric column.
    let only = only_time_column(export.columns()).and_then(|position| export.columns().get(position));
    let only = only
        .filter(|column| column.column_type.is_timestamp() && !is_later(&column.name))
        .map(|column| column.name.clone());
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
    evaluate.time = given_time.clone().or_else(|| finder.time().map(str::to_owned));
    evaluate.time_reading = finder.time_reading().unwrap_or_default();
    time_column(export.columns(), evaluate)?;
    let kept = |considered: &[ConsideredCandidate]| {
        let kept = considered.iter().filter(|candidate| candidate.kept);
        kept.map(|candidate| Candidate::from_columns(&candidate.key)).collect::<Vec<_>>()
    };
    let mut considered = Vec::new();
    if wants_partition_keys {
        considered = finder.partition_keys(&evaluate.primary_keys);
        leave_out_longer(&mut considered, function);
        evaluate.partition_keys = kept(&considered);
    }
    if wants_primary_keys {
        let given = if wants_partition_keys { None } else { evaluate.partition_keys.first() };
        let primary_candidates = finder.primary_keys(given, &considered);
        evaluate.primary_keys = kept(&primary_candidates);
        considered.extend(primary_candidates);
    }
    let joined = options.joined.iter().filter(|join| finder.can_be_in_key(&join.column));
    let joined = joined.map(|join| Candidate::from_columns(std::slice::from_ref(&join.column)));
    let more = MoreKeys {
        joined: joined.filter(|_| wants_partition_keys).collect(),
        columns: finder.columns_that_place_rows().into_iter().filter(|_| wants_partition_keys).collect(),
    };
    let look = Look {
        considered,
        considered_from: (wants_partition_keys || wants_primary_keys).then_some(rows.extent),
        roles: finder.roles().to_vec(),
        natural_key: finder.natural_key(),
        identifying: finder.naturally_identifying(),
        sorted_by: finder.sorted_by(),
        rows: rows.extent.rows,
        fractional_times: finder.fractional_times(&rows.batches),
        search_cut_short: wants_primary_keys && finder.is_cut_short(),
    };
    add_more_keys(more, export, options);
    Ok(look)
}

/// Keys that may be judged or counted in addition to the candidates.
struct MoreKeys {
    /// Columns that join other tables.
    joined: Vec<Candidate>,
    /// Single columns that could place rows.
    columns: Vec<Candidate>,
}

/// Adds keys to be judged or counted in addition to the candidates: keys of joins, current keys,
/// and single columns.
fn add_more_keys(more: MoreKeys, export: &Export, options: &mut AdvisorOptions) {
    let evaluate = &mut options.evaluate;
    for key in more.joined.into_iter().chain(options.current_partition_key.clone()) {
        if !evaluate.partition_keys.contains(&key) {
            evaluate.partition_keys.push(key);
        }
    }
    let judged = options.current_primary_key.clone().filter(|_| options.find_primary_keys);
    if let Some(key) = judged.filter(|key| !evaluate.primary_keys.contains(key)) {
        evaluate.primary_keys.push(key);
    }
    match &options.also_counted {
        AlsoCounted::Keys(keys) => evaluate.also_counted.clone_from(keys),
        AlsoCounted::Columns if !more.columns.is_empty() => {
            let mut counted = evaluate.clone();
            for column in more.columns {
                count_too(column, export, &mut counted);
            }
            evaluate.also_counted = counted.also_counted;
        }
        AlsoCounted::Columns | AlsoCounted::Nothing => {}
    }
}

/// Counts a key in addition to the judged ones, if all functions accept its values and memory
/// suffices.
fn count_too(key: Candidate, export: &Export, options: &mut EvaluateOptions) {
    if options.also_counted.len() >= MAX_ALSO_COUNTED || options.partition_keys.contains(&key) {
        return;
    }
    let signed = |function: &Function| match function {
        Function::System(system) => !system.about().unsigned,
        Function::Ydb(_) => false,
    };
    let is_unsigned =
        |column: &Column| column.column_type == ColumnType::Uint64 && key.columns().contains(&column.name);
    if export.columns().iter().any(is_unsigned) && options.placements.iter().any(signed) {
        return;
    }
    options.also_counted.push(key);
    if Evaluator::new(export.columns(), options.clone()).is_err() {
        options.also_counted.pop();
    }
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

/// Arranges the roles that the user gave by the position of their columns.
fn given_roles(export: &Export, roles: &[(String, Role)]) -> Result<Vec<Option<Role>>, EvaluateError> {
    let columns = export.columns();
    let known = || columns.iter().map(|column| column.name.clone()).collect();
    if let Some((column, _)) =
        roles.iter().find(|(name, _)| !columns.iter().any(|column| column.name == *name))
    {
        return Err(EvaluateError::UnknownRoleColumn { column: column.clone(), known: known() });
    }
    let role = |name: &str| roles.iter().rev().find(|(column, _)| column == name).map(|(_, role)| *role);
    Ok(columns.iter().map(|column| role(&column.name)).collect())
}

/// Figures of all rows for a candidate.
fn figures_of(candidate: &ConsideredCandidate, evaluation: &Evaluation) -> Option<String> {
    match candidate.purpose {
        Purpose::PartitionKey => {
            let mut keys = evaluation.candidates.iter();
            let key = keys.find(|key| key.partition_key == candidate.key && key.distinct.exact)?;
            Some(format!("{} in all {} rows", key.distinct.estimate, evaluation.rows))
        }
        Purpose::PrimaryKey if evaluation.sample.is_none() => {
            let key = evaluation.primary_keys.iter().find(|key| key.columns == candidate.key)?;
            Some(match key.duplicate_rows {
                0 => format!("no key repeats in all {} rows", evaluation.rows),
                repeated => {
                    format!("{repeated} of all {} rows have a key that another row has", evaluation.rows)
                }
            })
        }
        Purpose::PrimaryKey => None,
    }
}
