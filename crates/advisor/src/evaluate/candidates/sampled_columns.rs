//! The columns of sampled rows, with their roles, and whether they can be in a key.

use arrow::array::RecordBatch;

use crate::evaluate::nulls::can_be_filled_in;
use crate::evaluate::roles::carried_times::CarriedTimes;
use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::{is_later, is_of_birth, is_of_creation, is_of_creator, is_of_events};
use crate::evaluate::roles::numbering::counts_lines_of;
use crate::evaluate::roles::profile::Profile;
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

/// Largest number of distinct points in time that are dates of things, by which nobody sorts.
const FEW_TIMES: usize = 64;

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

/// Digits of which every number is an Int64.
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
        let names_events = is_of_events(export) || time.as_deref().is_some_and(is_of_events);
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
            let is_id = key.len() == 1 && self.columns.get(*at).is_some_and(Profile::is_unique);
            let Some(report) = self.roles.get_mut(*at).filter(|report| !report.given) else { continue };
            report.role = match report.role {
                Role::Text if is_id => Role::RowId,
                Role::Text => Role::Entity,
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
        let counts = |line: &usize| {
            let profiles: Vec<&Profile<'_>> =
                parents_of(*line).iter().filter_map(|at| self.columns.get(*at)).collect();
            let is_free =
                self.roles.get(*line).is_some_and(|report| !report.given && report.counts_within.is_empty());
            is_free && self.columns.get(*line).is_some_and(|column| counts_lines_of(column, &profiles))
        };
        let Some(line) = key.iter().copied().find(counts) else { return };
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
    let records = columns.iter().any(|column| is_of_creator(&column.column.name));
    let rank = |column: &Profile<'_>| {
        let nulls = (column.nulls * 100).div_ceil(column.rows.max(1));
        let of_days = |times: CarriedTimes| times.reading.resolution() >= Micros::DAY;
        let is_date = (is_native(column) && !column.column.column_type.is_timestamp())
            || column.times.is_some_and(of_days);
        let name = &column.column.name;
        let is_record = records && is_of_creation(name);
        (is_of_birth(name), is_date, nulls, is_later(name), is_record, !column.rises, !is_native(column))
    };
    let times = of_role(Role::Time).filter(|(column, _)| is_native(column) || column.times.is_some());
    let best = times.min_by_key(|(column, _)| rank(column));
    let best = best.or_else(|| of_role(Role::RowId).find(|(_, report)| report.times.is_some()));
    best.map(|(column, _)| column.column.name.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Date32Array, Float64Array, Int8Array};

    use super::*;
    use crate::evaluate::candidates::testing::{TestExport, numbers, numbers_after_nulls, texts, times};

    #[test]
    fn a_type_is_widened_only_if_the_system_refuses_it_and_takes_the_wider_one() {
        let decimal = |precision, scale| ColumnType::Decimal { precision, scale };
        let wider =
            |function: &str, column_type: ColumnType| wider_key_type(function.parse().unwrap(), column_type);
        for (function, column_type, expected) in [
            ("ydb", ColumnType::Int8, Some(ColumnType::Int32)),
            ("ydb", ColumnType::Int16, Some(ColumnType::Int32)),
            ("ydb", ColumnType::Int32, None),
            ("ydb", ColumnType::Uuid, Some(ColumnType::Utf8)),
            ("ydb", ColumnType::Date32, Some(ColumnType::Timestamp64)),
            ("ydb", ColumnType::Date, None),
            ("ydb", ColumnType::Double, None),
            ("ydb", decimal(18, 0), Some(ColumnType::Int64)),
            // Some of these are no Int64.
            ("ydb", decimal(19, 0), None),
            ("ydb", decimal(18, 1), None),
            ("kudu", ColumnType::Uuid, Some(ColumnType::Utf8)),
            ("kudu", ColumnType::Int8, None),
            ("mongodb", ColumnType::Uuid, None),
            ("mongodb", ColumnType::Date32, Some(ColumnType::Timestamp64)),
        ] {
            assert_eq!(wider(function, column_type), expected, "{function} {column_type}");
        }
        for function in Function::all() {
            for column_type in ColumnType::ALL {
                let Some(wider) = wider_key_type(function, column_type) else { continue };
                assert_eq!(wider_key_type(function, wider), None, "{function} {column_type}");
            }
        }
    }

    #[test]
    fn what_keeps_a_column_out_of_keys_is_said() {
        let whole: ArrayRef = Arc::new(Float64Array::from_iter_values((0..100u32).map(f64::from)));
        let small: ArrayRef = Arc::new(Int8Array::from_iter_values(0..100));
        let mut export = TestExport::new(&[
            ("user", Role::Entity, numbers_after_nulls(100, 5, |row| row / 2)),
            ("shop", Role::Entity, numbers_after_nulls(100, 6, |row| row / 2)),
            ("kind", Role::Dimension, numbers_after_nulls(100, 1, |row| row % 7)),
            ("one", Role::Entity, numbers(100, |_| 1)),
            ("at", Role::Time, times(100, |_| 0)),
            ("whole", Role::Entity, whole),
            ("small", Role::Entity, small),
        ]);
        let expected = [
            Some("5 of the 100 rows have NULL, and key columns are NOT NULL"),
            Some("6 of the 100 rows have NULL, and key columns are NOT NULL"),
            Some("1 of the 100 rows have NULL, and key columns are NOT NULL"),
            Some("all of the 100 rows have one value"),
            // The rows of another export have another time.
            None,
            Some("YDB accepts no Double in a key; its numbers are whole, and as Int64 it could be in one"),
            Some("YDB accepts no Int8 in a key; as Int32 it could be in one"),
        ];
        {
            let sampled = export.sampled();
            let found: Vec<Option<String>> =
                sampled.columns.iter().map(|column| sampled.obstacle(column)).collect();
            assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
            // Of an entity, a twentieth of the rows is filled in.
            let can_place: Vec<bool> =
                (0..7).map(|at| sampled.partition_key_obstacle(at).is_none()).collect();
            assert_eq!(can_place, [true, false, false, false, true, false, false]);
        }
        export.widens = true;
        let sampled = export.sampled();
        let can_be_in_key: Vec<bool> = (0..7).map(|at| sampled.can_be_in_key(at)).collect();
        assert_eq!(can_be_in_key, [false, false, false, false, true, false, true]);
    }

    #[test]
    fn the_event_time_is_the_one_in_whose_order_rows_arrive() {
        let rising = || times(100, |row| row * 60);
        let mixed = || times(100, |row| row * 37 % 100 * 60);
        let half_null: ArrayRef = {
            let date = |row: i32| (row % 2 == 0).then_some(20_000 + row);
            Arc::new(Date32Array::from_iter((0..100).map(date)))
        };
        let dates: ArrayRef = Arc::new(Date32Array::from_iter_values(20_000..20_100));
        let ids = || numbers(100, |row| row * 7_919 % 1_009);
        for (columns, expected) in [
            (vec![("updated_at", rising()), ("created_at", mixed())], Some("created_at")),
            (vec![("birth_date", rising()), ("updated_at", mixed())], Some("updated_at")),
            (vec![("day", dates.clone()), ("at", mixed())], Some("at")),
            (vec![("first", mixed()), ("second", rising())], Some("second")),
            (vec![("first", mixed()), ("second", mixed())], Some("first")),
            // Rarely filled, it is the time of few events.
            (vec![("day", half_null.clone()), ("id", ids())], None),
            (vec![("day", half_null), ("date", dates)], Some("date")),
            (vec![("id", ids())], None),
        ] {
            let columns: Vec<_> =
                columns.into_iter().map(|(name, array)| (name, None::<Role>, array)).collect();
            let mut export = TestExport::new(&columns);
            assert_eq!(export.sampled().time.as_deref(), expected, "{columns:?}");
            // The user knows better.
            export.time = Some("id");
            assert_eq!(export.sampled().time.as_deref(), Some("id"));
        }
    }

    #[test]
    fn a_copy_gives_way_only_to_an_original_that_can_be_in_a_key() {
        let name = texts(200, |row| format!("Ann {}th", row * 31 % 20));
        let code = numbers(200, |row| row * 31 % 20);
        let fractions: ArrayRef =
            Arc::new(Float64Array::from_iter_values((0..200u32).map(|row| f64::from(row * 31 % 20))));
        for (id, is_copy) in [(code, true), (fractions, false)] {
            let export =
                TestExport::new(&[("user_id", Role::Entity, id), ("user_name", Role::Entity, name.clone())]);
            let sampled = export.sampled();
            assert_eq!(sampled.roles[1].copy_of.as_deref(), Some("user_id"));
            assert_eq!([sampled.is_copy(0), sampled.is_copy(1)], [false, is_copy]);
        }
    }

    #[test]
    fn rows_have_moments_if_they_have_many_times_that_are_not_later() {
        for (name, moments, expected) in [("at", 64, false), ("at", 65, true), ("updated_at", 65, false)] {
            let export = TestExport::new(&[(name, Role::Time, times(500, |row| row % moments))]);
            let sampled = export.sampled();
            assert_eq!(sampled.key_time(), Some(0));
            assert_eq!(sampled.has_moments(), expected, "{name} {moments}");
            // The name of the export says nothing of events.
            assert!(!sampled.has_events());
        }
    }

    #[test]
    fn a_natural_key_makes_texts_things_and_numbers_lines_unless_the_user_said_otherwise() {
        let export = TestExport::new(&[
            ("a", None, numbers(50, |row| row % 3)),
            ("b", None, numbers(50, |row| row % 5)),
            ("c", Some(Role::Text), texts(50, |row| format!("t{row}"))),
            ("d", None, numbers(50, |row| row % 7)),
        ]);
        let mut sampled = export.sampled();
        for (at, role) in [(0, Role::Text), (1, Role::Measure), (3, Role::Dimension)] {
            sampled.roles[at].role = role;
        }
        sampled.promote(&[0, 1, 2, 3, 99]);
        let roles: Vec<Role> = sampled.roles.iter().map(|report| report.role).collect();
        assert_eq!(roles, [Role::Entity, Role::LineNumber, Role::Text, Role::Dimension]);
    }

    /// The roles, and within what each column counts, of a key of a thing with `things` values
    /// within each of `wholes` others, and of its lines.
    fn promoted(wholes: i64, things: i64, key: &[usize]) -> Vec<(Role, Vec<String>)> {
        let rows: Vec<(i64, i64, i64)> = (0..wholes * things)
            .flat_map(|pair| (1..=2 + pair * 7 % 5).map(move |line| (pair / things, pair % things, line)))
            .collect();
        let column =
            |of: fn(&(i64, i64, i64)) -> i64| numbers(rows.len() as i64, |row| of(&rows[row as usize]));
        let export = TestExport::new(&[
            ("whole", None::<Role>, column(|row| row.0)),
            ("thing", None, column(|row| row.1)),
            ("line", None, column(|row| row.2)),
        ]);
        let mut sampled = export.sampled();
        for report in &mut sampled.roles {
            report.role = Role::Dimension;
            report.counts_within.clear();
        }
        sampled.promote_parents(key);
        sampled.roles.into_iter().map(|report| (report.role, report.counts_within)).collect()
    }

    #[test]
    fn lines_within_two_columns_make_the_finer_one_a_thing_of_the_other() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let lines = (Role::LineNumber, names(&["whole", "thing"]));
        let other = (Role::Dimension, Vec::new());
        let thing = (Role::Entity, names(&["whole"]));
        assert_eq!(promoted(4, 20, &[0, 1, 2]), [other.clone(), thing, lines.clone()]);
        // With this many values, it identifies a thing alone.
        assert_eq!(promoted(4, 81, &[0, 1, 2]), [other.clone(), other.clone(), lines]);
        // A key of two columns has no lines within two.
        assert_eq!(promoted(4, 20, &[0, 2]), [other.clone(), other.clone(), other]);
    }
}
