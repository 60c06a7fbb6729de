//! The columns of sampled rows, with their roles, and whether they can be in a key.

use arrow::array::RecordBatch;

use crate::evaluate::nulls::can_be_filled_in;
use crate::evaluate::roles::carried_times::CarriedTimes;
use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::{
    Hint, denotes_birth, denotes_creation, denotes_creator, denotes_events, is_later,
};
use crate::evaluate::roles::numbering::{EQUAL_PARENTS, are_equally_many, counts_lines_of};
use crate::evaluate::roles::profile::{Profile, codes_together, distinct_together, rows_of_codes};
use crate::evaluate::roles::{Relations, Role, RoleReport, infer_roles};
use evenkeel_input::source::RowsAcross;
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_placement::placement::Function;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// Export that is searched for candidates, and their purpose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Searched<'a> {
    /// Name of the export.
    pub(crate) export: &'a str,
    pub(crate) columns: &'a [Column],
    /// The time column, if the user named one that exists.
    pub(crate) time: Option<&'a str>,
    pub(crate) partitions: &'a [PartitionCount],
    pub(crate) function: Function,
    /// Roles that the user gave, by position.
    pub(crate) given: &'a [Option<Role>],
    /// Whether columns of narrow types can be read as wider ones, which keys take.
    pub(crate) widens: bool,
}

/// If one part of a key has this many times the values of the other parts, it identifies a thing
/// alone.
const MANY_TIMES: usize = 20;

/// Maximum number of distinct points in time for a column to hold dates of things, not of events.
const FEW_TIMES: usize = 64;

/// Fewest texts that may label the things within others.
const MIN_LABELS: usize = 10;
/// Mean number of wholes that have a label from which it means another thing in each of them.
const SHARED: f64 = 1.5;
/// Fewest groups of rows of a whole, each of which has all its things.
const MIN_GROUPS: usize = 2;
/// Share of the rows in groups that have all things of their whole above which the others are taken
/// for incomplete.
const MOSTLY_WHOLE: f64 = 0.9;

/// Columns of sampled rows.
pub(super) struct SampledColumns<'a> {
    pub(super) columns: Vec<Profile<'a>>,
    pub(super) roles: Vec<RoleReport>,
    pub(super) rows: usize,
    /// Whether these are all rows.
    pub(super) whole: bool,
    pub(super) time: Option<String>,
    /// Whether the name of the export or of its time indicates that its rows are events.
    names_events: bool,
    pub(super) fewest_partitions: usize,
    function: Function,
    /// Whether columns of narrow types can be read as wider ones, which keys take.
    widens: bool,
}

/// Number of digits that always fit an Int64.
const DIGITS_OF_INT64: u8 = 18;

/// Returns the wider type that a system accepts in keys for values of a type; `None` if it accepts
/// the type itself, or no such type exists.
pub(crate) fn wider_key_type(function: Function, column_type: ColumnType) -> Option<ColumnType> {
    let wider = match column_type {
        ColumnType::Int8 | ColumnType::Int16 => ColumnType::Int32,
        ColumnType::Uuid => ColumnType::Utf8,
        ColumnType::Date32 => ColumnType::Timestamp64,
        ColumnType::Decimal { precision: ..=DIGITS_OF_INT64, scale: 0 } => ColumnType::Int64,
        _ => return None,
    };
    (!takes(function, column_type) && takes(function, wider)).then_some(wider)
}

/// Whether a system accepts keys of a type: YDB, or the system of `function`.
fn takes(function: Function, column_type: ColumnType) -> bool {
    match function {
        Function::Ydb(_) => column_type.is_key_type(),
        Function::System(system) => {
            !matches!(column_type, ColumnType::Decimal { .. }) && system.refuses(column_type).is_none()
        }
    }
}

impl<'a> SampledColumns<'a> {
    /// Inspects rows of an export.
    pub(super) fn new(searched: &Searched<'a>, rows: &RowsAcross) -> Self {
        let Searched { export, columns, time, partitions, function, given, widens } = *searched;
        let whole = rows.extent.whole;
        let columns: Vec<Profile<'a>> = columns
            .par_iter()
            .enumerate()
            .map(|(index, column)| Profile::new(column, index, &rows.batches, whole))
            .collect();
        let roles = infer_roles(export, &columns, &Relations::from_columns(&columns), given);
        let time = time.map(str::to_owned).or_else(|| event_time(&columns, &roles));
        let names_events = denotes_events(export) || time.as_deref().is_some_and(denotes_events);
        Self {
            names_events,
            rows: rows.batches.iter().map(RecordBatch::num_rows).sum(),
            whole,
            time,
            fewest_partitions: partitions.iter().map(|count| count.len()).min().unwrap_or(1),
            columns,
            roles,
            function,
            widens,
        }
    }

    /// Takes the texts of a natural key for names of things, which are looked up, and its measures
    /// for numbers of rows. A text that alone distinguishes the rows is their id.
    pub(super) fn promote(&mut self, key: &[usize]) {
        for at in key {
            let column = self.columns.get(*at);
            let is_id = key.len() == 1 && column.is_some_and(Profile::is_unique);
            // A message or a comment is no name, although no two rows may share it.
            let is_content = column.is_some_and(|column| column.hint == Some(Hint::Text));
            let Some(report) = self.roles.get_mut(*at).filter(|report| !report.given) else { continue };
            report.role = match report.role {
                Role::Text if is_id => Role::RowId,
                Role::Text if !is_content => Role::Entity,
                Role::Measure => Role::LineNumber,
                _ => continue,
            };
            report.evidence = vec!["no columns distinguish rows without it".to_owned()];
        }
    }

    /// Takes the columns within which another one of a natural key counts for the thing that has
    /// the lines: the orders of each district of each warehouse.
    pub(super) fn promote_parents(&mut self, key: &[usize]) {
        if key.len() < 3 || self.has_time(key) {
            return;
        }
        let parents_of =
            |line: usize| -> Vec<usize> { key.iter().copied().filter(|at| *at != line).collect() };
        // A text whose name tells nothing may label things within others; a product is the same
        // one in each store.
        let may_label = |at: &usize| {
            let is_free = self.roles.get(*at).is_some_and(|report| {
                !report.given && report.counts_within.is_empty() && report.role.can_place_rows()
            });
            let is_label = |column: &Profile<'_>| {
                column.hint.is_none() && column.numbers.is_none() && column.distinct >= MIN_LABELS
            };
            is_free && self.columns.get(*at).is_some_and(is_label)
        };
        let counts = |line: &usize| {
            let profiles: Vec<&Profile<'_>> =
                parents_of(*line).iter().filter_map(|at| self.columns.get(*at)).collect();
            let is_free =
                self.roles.get(*line).is_some_and(|report| !report.given && report.counts_within.is_empty());
            is_free && self.columns.get(*line).is_some_and(|column| counts_lines_of(column, &profiles))
        };
        let line = key.iter().copied().find(counts);
        let within = |at: usize| Some((at, self.whole_of_things(at, &parents_of(at))?));
        let mut labels = key.iter().copied().filter(may_label).filter_map(within);
        let part =
            line.and_then(within).or_else(|| labels.find(|(label, whole)| self.has_own(*whole, *label)));
        if let Some((part, whole)) = part {
            self.promote_part(part, whole);
            return;
        }
        let Some(line) = line else { return };
        let parents = parents_of(line);
        let names =
            |places: &[usize]| -> Vec<String> { places.iter().map(|at| self.name(*at).to_owned()).collect() };
        let Some(main) = parents.iter().copied().max_by_key(|at| self.distinct(*at)) else { return };
        let others: Vec<usize> = parents.iter().copied().filter(|at| *at != main).collect();
        let most_of_others = others.iter().map(|at| self.distinct(*at)).max().unwrap_or(0);
        // A person with a few kinds of vaccines is one without them, too.
        let stands_alone = self.distinct(main) > MANY_TIMES * most_of_others;
        let (of_line, of_main) = (names(&parents), names(&others));
        let of_main = (!stands_alone).then_some((main, Role::Entity, of_main));
        for (at, role, within) in [Some((line, Role::LineNumber, of_line)), of_main].into_iter().flatten() {
            if let Some(report) = self.roles.get_mut(at).filter(|report| !report.given) {
                let evidence = match role {
                    Role::LineNumber => format!("counts within each {}", within.join(", ")),
                    _ => format!("identifies the thing of the lines together with {}", within.join(" and ")),
                };
                (report.role, report.counts_within) = (role, within);
                (report.evidence, report.is_vague, report.holds_parts) = (vec![evidence], false, true);
            }
        }
    }

    /// Takes a column for the things within each value of another one.
    fn promote_part(&mut self, part: usize, whole: usize) {
        let within = self.name(whole).to_owned();
        if let Some(report) = self.roles.get_mut(part) {
            report.evidence = vec![format!("distinguishes things within each {within}")];
            (report.role, report.counts_within, report.is_vague) = (Role::Entity, vec![within], false);
        }
    }

    /// Whether the values of `whole` have some values of another column each, rather than all of
    /// them, and share these.
    fn has_own(&self, whole: usize, part: usize) -> bool {
        let both: Vec<&Profile<'_>> = [whole, part].iter().filter_map(|at| self.columns.get(*at)).collect();
        let pairs = distinct_together(&both, 0..self.rows);
        let parts = self.distinct(part);
        pairs * 2 <= self.distinct(whole) * parts && pairs as f64 >= SHARED * parts as f64
    }

    /// Returns the parent within which a column numbers things rather than lines: each of them has
    /// a row for each combination of the other parents, as a precinct of a county has for each
    /// candidate.
    fn whole_of_things(&self, number: usize, parents: &[usize]) -> Option<usize> {
        let number = self.columns.get(number)?;
        let all: Vec<&Profile<'_>> = parents.iter().filter_map(|at| self.columns.get(*at)).collect();
        let (groups, group_count) = codes_together(&all);
        let rows_of_groups = rows_of_codes(&groups, group_count);
        let numbers_things = |whole: &&usize| {
            let Some(whole) = self.columns.get(**whole) else { return false };
            let (things, thing_count) = codes_together(&[whole, number]);
            let mut seen = vec![false; thing_count];
            let is_first = |thing: &u32| {
                seen.get_mut(*thing as usize).is_some_and(|seen| !std::mem::replace(seen, true))
            };
            let firsts: Vec<bool> = things.iter().map(is_first).collect();
            let of_things: Vec<u32> =
                whole.codes.iter().zip(firsts).filter(|(_, first)| *first).map(|(whole, _)| *whole).collect();
            let things_of_wholes = rows_of_codes(&of_things, whole.distinct);
            let is_whole = |(group, whole): &(&u32, &u32)| {
                rows_of_groups.get(**group as usize) == things_of_wholes.get(**whole as usize)
            };
            let in_whole_groups = groups.iter().zip(&whole.codes).filter(is_whole).count();
            // If all have equally many, they have the same ones, such as the months of each year.
            !are_equally_many(things_of_wholes.iter().map(|things| *things as i128), EQUAL_PARENTS)
                && group_count >= MIN_GROUPS * whole.distinct
                && in_whole_groups as f64 >= MOSTLY_WHOLE * groups.len() as f64
        };
        let mut wholes = parents.to_vec();
        wholes.sort_by_key(|at| std::cmp::Reverse(self.distinct(*at)));
        wholes.iter().find(numbers_things).copied()
    }

    /// Whether one of some columns is a time.
    pub(super) fn has_time(&self, columns: &[usize]) -> bool {
        columns.iter().any(|at| self.role(*at) == Role::Time)
    }

    pub(super) fn role(&self, at: usize) -> Role {
        self.roles.get(at).map_or(Role::Dimension, |report| report.role)
    }

    pub(super) fn is_copy(&self, at: usize) -> bool {
        let original = self.roles.get(at).and_then(|report| report.copy_of.as_deref());
        let first = original
            .and_then(|original| self.columns.iter().position(|column| column.column.name == original));
        first.is_some_and(|first| self.columns.get(first).is_some_and(|first| self.obstacle(first).is_none()))
    }

    pub(super) fn name(&self, at: usize) -> &str {
        self.columns.get(at).map(|column| column.column.name.as_str()).unwrap_or_default()
    }

    /// Whether a column is the time column, and no id that begins with a time.
    pub(super) fn is_time(&self, at: usize) -> bool {
        self.time.as_deref() == Some(self.name(at))
            && self.time_reading().is_some_and(TimeReading::is_time_alone)
    }

    /// Reading of the time column as points in time; `None` if it has none.
    pub(super) fn time_reading(&self) -> Option<TimeReading> {
        let time = self.time.as_deref()?;
        let column = self.columns.iter().find(|column| column.column.name == time)?;
        let native = column.column.column_type.is_time().then_some(TimeReading::Native);
        native.or(column.times.map(|times| times.reading))
    }

    /// Returns why a column cannot be in any key; `None` if it can.
    pub(super) fn obstacle(&self, profile: &Profile<'_>) -> Option<String> {
        let column_type = profile.column.column_type;
        if !self.is_taken(profile) {
            let who =
                self.function.ydb_function().map_or_else(|| self.function.to_string(), |_| "YDB".to_owned());
            let wider = match column_type {
                ColumnType::Int8 | ColumnType::Int16 => "; as Int32 it could be in one",
                ColumnType::Float | ColumnType::Double if matches!(profile.form, Form::Whole(_)) => {
                    "; its numbers are whole, and as Int64 it could be in one"
                }
                ColumnType::Uuid => "; as Utf8 it could be in one",
                _ => "",
            };
            return Some(format!("{who} accepts no {column_type} in a key{wider}"));
        }
        if profile.nulls > 0 {
            let (nulls, rows) = (profile.nulls, self.rows_in_words());
            return Some(format!("{nulls} of {rows} have NULL, and key columns are NOT NULL"));
        }
        let constant = profile.is_constant() && !profile.column.column_type.is_time();
        constant.then(|| format!("all of {} have one value", self.rows_in_words()))
    }

    /// Returns why a column cannot be in a partition key; `None` if it can. Unlike columns of
    /// a natural key, an entity may be NULL in a few rows, which are given a value.
    pub(super) fn partition_key_obstacle(&self, at: usize) -> Option<String> {
        let profile = self.columns.get(at)?;
        let is_filled_in = self.role(at) == Role::Entity
            && can_be_filled_in(profile.nulls as u64, self.rows as u64)
            && self.is_taken(profile)
            && !profile.is_constant();
        if is_filled_in { None } else { self.obstacle(profile) }
    }

    pub(super) fn rows_in_words(&self) -> String {
        if self.whole { format!("the {} rows", self.rows) } else { format!("{} sampled rows", self.rows) }
    }

    /// Whether the system accepts the type of a column in a key.
    pub(super) fn is_taken(&self, profile: &Profile<'_>) -> bool {
        let column_type = profile.column.column_type;
        takes(self.function, column_type)
            || (self.widens && wider_key_type(self.function, column_type).is_some())
    }

    /// Whether a column can be in a key.
    pub(super) fn can_be_in_key(&self, at: usize) -> bool {
        self.columns.get(at).is_some_and(|column| self.obstacle(column).is_none())
    }

    /// Whether rows that are equal in one column are equal in another one.
    pub(super) fn determines(&self, from: usize, to: usize) -> bool {
        let determined = self.roles.get(from).map(|report| report.determines.as_slice());
        determined.is_some_and(|determined| determined.iter().any(|name| name == self.name(to)))
    }

    /// Number of values of a column in the sampled rows.
    pub(super) fn distinct(&self, at: usize) -> usize {
        self.columns.get(at).map_or(0, |column| column.distinct)
    }

    /// The time column, if it can be in a key.
    pub(super) fn key_time(&self) -> Option<usize> {
        (0..self.columns.len()).find(|at| self.is_time(*at) && self.can_be_in_key(*at))
    }

    /// Whether rows have many different moments, rather than a few dates.
    pub(super) fn has_moments(&self) -> bool {
        self.key_time().is_some_and(|time| self.distinct(time) > FEW_TIMES && !is_later(self.name(time)))
    }

    /// Whether rows are events, each at a different moment.
    pub(super) fn has_events(&self) -> bool {
        self.names_events && self.has_moments()
    }

    /// Names of columns.
    pub(super) fn names(&self, columns: &[usize]) -> Vec<&str> {
        columns.iter().map(|at| self.name(*at)).collect()
    }
}

/// The time column in whose order rows seem to arrive: no births, points in time before dates, full
/// columns before columns with NULLs, the time of an event before that of its receipt or end,
/// sorted columns first, points in time before numbers. Without any, the time at the beginning of
/// the row ids.
fn event_time(columns: &[Profile<'_>], roles: &[RoleReport]) -> Option<String> {
    let of_role = |role: Role| {
        let columns = columns.iter().zip(roles);
        columns.filter(move |(column, report)| report.role == role && column.filled() * 2 > column.rows)
    };
    let is_native = |column: &Profile<'_>| column.column.column_type.is_time();
    // If the user who created a record is known, the time of creation is the record's time.
    let records = columns.iter().any(|column| denotes_creator(&column.column.name));
    let rank = |column: &Profile<'_>| {
        let nulls = (column.nulls * 100).div_ceil(column.rows.max(1));
        let of_days = |times: CarriedTimes| times.reading.resolution() >= Micros::DAY;
        let is_date = (is_native(column) && !column.column.column_type.is_timestamp())
            || column.times.is_some_and(of_days);
        let name = &column.column.name;
        let is_record = records && denotes_creation(name);
        (denotes_birth(name), is_date, nulls, is_later(name), is_record, !column.rises, !is_native(column))
    };
    let times = of_role(Role::Time).filter(|(column, _)| is_native(column) || column.times.is_some());
    let best = times.min_by_key(|(column, _)| rank(column));
    let best = best.or_else(|| of_role(Role::RowId).find(|(_, report)| report.times.is_some()));
    best.map(|(column, _)| column.column.name.clone())
}

#[cfg(test)]
#[path = "sampled_columns_tests.rs"]
mod tests;
