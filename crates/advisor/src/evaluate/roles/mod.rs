//! Role of each column: what kind of thing its values are.
//!
//! Evidence is added up for every role that a column may have; the role with the highest score
//! wins. Values come first: cardinality, repeats, order, form, dependencies. A name adds or removes
//! a few times [`names::WEIGHT`] at most. The output names the evidence that decided.

pub(super) mod dependencies;
pub(super) mod names;
pub(super) mod numbering;
pub(super) mod profile;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::evaluate::roles::dependencies::Dependencies;
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::numbering::Numbering;
use crate::evaluate::roles::profile::{CarriedTimes, Form, Profile, Whole};
use evenkeel_model::table::ColumnType;
use evenkeel_model::time_reading::TimeReading;

/// Kind of thing that the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Identifier of a thing that has many rows: a user, a device, an account.
    Entity,
    /// Identifier of the row.
    RowId,
    /// Point in time.
    Time,
    /// One of few kinds: a country, a status.
    Dimension,
    /// Measurement or amount.
    Measure,
    /// Free text.
    Text,
    /// Number within a parent, such as a line of an order.
    LineNumber,
    /// The same value in all rows.
    Constant,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 8] = [
        Self::Entity,
        Self::RowId,
        Self::Time,
        Self::Dimension,
        Self::Measure,
        Self::Text,
        Self::LineNumber,
        Self::Constant,
    ];

    /// Returns the role as words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Entity => "entity",
            Self::RowId => "row id",
            Self::Time => "time",
            Self::Dimension => "dimension",
            Self::Measure => "measure",
            Self::Text => "text",
            Self::LineNumber => "line number",
            Self::Constant => "constant",
        }
    }

    /// Whether experts hash columns of the role; others are a makeshift.
    #[must_use]
    pub fn can_place_rows(self) -> bool {
        matches!(self, Self::Entity | Self::RowId | Self::Dimension)
    }

    /// Whether columns of the role belong in a primary key; others only if nothing else makes rows
    /// unique.
    #[must_use]
    pub fn can_identify_rows(self) -> bool {
        !matches!(self, Self::Measure | Self::Text | Self::Constant)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.words().replace(' ', "-"))
    }
}

/// Error of a role that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown role '{0}'; roles are: entity, row-id, time, dimension, measure, text, line-number, constant"
)]
pub struct RoleError(String);

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = text.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        Self::ALL
            .into_iter()
            .find(|role| role.to_string() == wanted)
            .ok_or_else(|| RoleError(evenkeel_model::bounded::quote(text).to_string()))
    }
}

/// Role of a column, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoleReport {
    /// Name of the column.
    pub column: String,
    /// Role of the column.
    pub role: Role,
    /// Evidence that decided, the strongest first.
    pub evidence: Vec<String>,
    /// Column that it is one-to-one with, if there is one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
    /// Other columns that it determines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub determines: Vec<String>,
    /// Columns within whose values it numbers the rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts_within: Vec<String>,
    /// Whether its rows are the parts of one thing, which is read as a whole: rows of one value arrive
    /// one after the other, or the name says so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub holds_parts: bool,
    /// Whether its name is that of the rows of the export: the id of a row, even if some rows share it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_of_rows: bool,
    /// Whether its name or its values are those of names: what a thing is called beside its id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_label: bool,
    /// Whether its values are IP addresses, which many share and few are looked up by.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_address: bool,
    /// Points in time that its values carry, if they are not of a type of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<CarriedTimes>,
    /// Rows with NULL, as a share of the sampled rows.
    pub null_share: f64,
    /// Whether the user gave the role.
    pub given: bool,
}

/// Weight of an entity that is known by a name: its id, if there is one, is what others refer to.
const LABEL: f64 = 0.3;

/// Weight of an entity that is known by its address.
const ADDRESS: f64 = 0.1;

impl RoleReport {
    /// Columns that together identify a thing of this column: the column itself, after those within which
    /// its things are numbered.
    pub(crate) fn thing(&self) -> Vec<String> {
        let parents = if self.role == Role::Entity { self.counts_within.as_slice() } else { &[] };
        [parents, std::slice::from_ref(&self.column)].concat()
    }

    /// Weight of an entity, beside those that have ids.
    pub(crate) fn identity(&self) -> f64 {
        if self.is_address {
            ADDRESS
        } else if self.is_label {
            LABEL
        } else {
            1.0
        }
    }
}

/// Scores of the roles of one column.
#[derive(Debug, Default)]
struct Scores {
    all: Vec<(Role, f64, String)>,
}

impl Scores {
    fn add(&mut self, role: Role, weight: f64, evidence: impl Into<String>) {
        self.all.push((role, weight, evidence.into()));
    }

    fn of(&self, role: Role) -> f64 {
        self.all.iter().filter(|(of, _, _)| *of == role).map(|(_, weight, _)| weight).sum()
    }

    /// The role with the highest score, and the evidence for it.
    fn decide(self, among: &[Role]) -> (Role, Vec<String>) {
        let best = among.iter().copied().reduce(|a, b| if self.of(b) > self.of(a) { b } else { a });
        let best = best.unwrap_or(Role::Dimension);
        let mut evidence: Vec<(f64, String)> = self
            .all
            .into_iter()
            .filter(|(role, weight, text)| *role == best && *weight > 0.0 && !text.is_empty())
            .map(|(_, weight, text)| (weight, text))
            .collect();
        evidence.sort_by(|a, b| b.0.total_cmp(&a.0));
        (best, evidence.into_iter().map(|(_, text)| text).collect())
    }
}

/// How the columns of the sampled rows depend on each other.
#[derive(Debug)]
pub(super) struct Relations {
    dependencies: Dependencies,
    numberings: Vec<Numbering>,
}

impl Relations {
    pub(super) fn of(columns: &[Profile<'_>]) -> Self {
        Self { dependencies: Dependencies::of(columns), numberings: Numbering::of_all(columns) }
    }

    fn numbering(&self, at: usize) -> &Numbering {
        self.numberings.get(at).unwrap_or(&Numbering::None)
    }
}

/// Infers the role of each column of an export with the name `export`. `given` has the roles that
/// the user gave, by position.
pub(super) fn infer_roles(
    export: &str,
    columns: &[Profile<'_>],
    relations: &Relations,
    given: &[Option<Role>],
) -> Vec<RoleReport> {
    let name = |index: &usize| columns.get(*index).map(|column| column.column.name.clone());
    let report = |(index, column): (usize, &Profile<'_>)| {
        let given = given.get(index).copied().flatten();
        let (role, evidence) = match given {
            Some(role) => (role, vec!["given with --role or --not-key".to_owned()]),
            None => infer(index, column, columns, relations),
        };
        RoleReport {
            column: column.column.name.clone(),
            role,
            evidence,
            copy_of: relations.dependencies.copy_of.get(index).copied().flatten().as_ref().and_then(name),
            determines: relations
                .dependencies
                .determines
                .get(index)
                .into_iter()
                .flatten()
                .filter_map(name)
                .collect(),
            counts_within: relations.numbering(index).parents().iter().filter_map(name).collect(),
            is_of_rows: names::is_of_rows(&column.column.name, export),
            is_address: matches!(&column.form, Form::Text(words) if words.addresses > 0.9),
            is_label: names::is_label(&column.column.name) || is_words(&column.form),
            holds_parts: column.gathered || names::is_whole(&column.column.name),
            times: column.times.filter(|times| role == Role::Time || !times.reading.is_time_alone()),
            null_share: column.nulls as f64 / column.rows.max(1) as f64,
            given: given.is_some(),
        }
    };
    columns.iter().enumerate().map(report).collect()
}

fn infer(
    index: usize,
    column: &Profile<'_>,
    columns: &[Profile<'_>],
    relations: &Relations,
) -> (Role, Vec<String>) {
    let column_type = column.column.column_type;
    if column.is_constant() || column.filled() == 0 {
        return (Role::Constant, vec!["one value in all sampled rows".to_owned()]);
    }
    if column_type.is_time() {
        return (Role::Time, vec![format!("type {column_type}")]);
    }
    if let Some(reading) = epoch(column) {
        return (Role::Time, vec![reading.to_string()]);
    }
    if let Some((reading, other)) = epoch_beside(column, columns) {
        return (Role::Time, vec![format!("{reading}, over the same range as {other}")]);
    }
    match column_type {
        ColumnType::Bool => return (Role::Dimension, vec!["true or false".to_owned()]),
        ColumnType::Interval | ColumnType::Interval64 => {
            return (Role::Measure, vec!["a length of time".to_owned()]);
        }
        ColumnType::Json | ColumnType::JsonDocument | ColumnType::Yson => {
            return (Role::Text, vec![format!("type {column_type}")]);
        }
        _ => {}
    }
    let mut scores = Scores::default();
    score_cardinality(column, &mut scores);
    score_relations(index, columns, relations, &mut scores);
    match &column.form {
        Form::Fractions => scores.add(Role::Measure, 6.0, "numbers with fractions"),
        Form::Whole(whole) => score_numbers(column, whole, &mut scores),
        Form::Text(words) => {
            scores.add(Role::Measure, -20.0, "");
            if column.numbers.is_none() {
                scores.add(Role::LineNumber, -20.0, "");
            }
            scores.add(Role::Text, -2.0, "");
            if words.mean_words >= 2.5 {
                scores.add(Role::Text, 7.0, format!("{:.1} words in each value", words.mean_words));
            }
            if words.mean_chars >= 40.0 && words.opaque < 0.5 {
                scores.add(Role::Text, 3.0, format!("{:.0} characters in each value", words.mean_chars));
                if words.codes < 0.5 {
                    scores.add(Role::Text, 3.0, "");
                    scores.add(Role::RowId, -3.0, "");
                }
            }
            if words.mean_chars > LONGEST_ID {
                scores.add(Role::Text, 6.0, format!("{:.0} characters in each value", words.mean_chars));
                scores.add(Role::RowId, -4.0, "");
                scores.add(Role::Entity, -4.0, "");
            } else if words.mean_chars >= 40.0
                && words.opaque < 0.5
                && !matches!(names::hint(&column.column.name), Some(Hint::Identifier | Hint::Entity))
            {
                scores.add(Role::Text, 2.0, "");
                scores.add(Role::RowId, -2.0, "");
            }
            if words.structured > 0.5 {
                scores.add(Role::Text, 14.0, "objects or lists with parts of their own");
                scores.add(Role::RowId, -8.0, "");
                scores.add(Role::Entity, -4.0, "");
            }
            if words.opaque > 0.9 {
                scores.add(Role::Entity, 2.0, "UUIDs or long hexadecimal numbers");
                scores.add(Role::RowId, 1.0, "UUIDs or long hexadecimal numbers");
            } else if words.codes > 0.9 && words.mean_chars >= 4.0 {
                scores.add(Role::Entity, 1.0, "codes with digits");
            }
        }
        Form::Other => {
            scores.add(Role::Measure, -20.0, "");
            scores.add(Role::LineNumber, -20.0, "");
        }
    }
    score_name(&column.column.name, &mut scores);
    scores.decide(&[Role::Entity, Role::RowId, Role::Dimension, Role::Measure, Role::Text, Role::LineNumber])
}

/// Whether values are words with blanks between them, and no codes.
fn is_words(form: &Form) -> bool {
    matches!(form, Form::Text(words) if words.mean_words >= 1.5 && words.codes < 0.1)
}

fn score_cardinality(column: &Profile<'_>, scores: &mut Scores) {
    let (rows, distinct) = (column.filled() as f64, column.distinct as f64);
    let per_value = rows / distinct.max(1.0);
    if column.is_unique() || (column.is_nearly_unique() && column.nulls == 0) {
        scores.add(Role::RowId, 4.0, "a value of its own in each sampled row");
        // Amounts from a wide range hardly repeat.
        if !column.is_unique() && matches!(column.form, Form::Whole(_)) && column.ascends < MOSTLY_ASCENDING {
            scores.add(Role::RowId, -3.0, "");
            scores.add(Role::Measure, 2.5, "numbers from a wide range, of which few repeat");
        }
        if column.rises_strictly {
            scores.add(Role::RowId, 4.0, "rises from row to row");
            scores.add(Role::Measure, -3.0, "");
        }
        scores.add(Role::Entity, -2.0, "");
    } else {
        scores.add(Role::RowId, -6.0, "");
        if column.rises && column.distinct > 50 {
            scores.add(Role::Entity, 3.0, "rows are sorted by it");
        }
    }
    scores.add(Role::LineNumber, -4.0, "");
    let many = column.likely.max(distinct);
    if many <= 64.0 {
        scores.add(Role::Dimension, 4.0, format!("{distinct:.0} values"));
        scores.add(Role::Entity, -1.0, "");
    } else if many <= 1_000.0 {
        scores.add(Role::Dimension, 1.0, format!("{distinct:.0} values"));
        scores.add(Role::Entity, 1.0, format!("{distinct:.0} values that repeat"));
    } else {
        scores.add(Role::Dimension, -3.0, "");
        if per_value >= 1.5 || column.likely < 0.9 * rows {
            scores.add(Role::Entity, 2.0, format!("{distinct:.0} values that repeat"));
        }
    }
}

fn score_relations(index: usize, columns: &[Profile<'_>], relations: &Relations, scores: &mut Scores) {
    let name = |at: usize| columns.get(at).map(|column| column.column.name.as_str()).unwrap_or_default();
    let numbering = relations.numbering(index);
    let parents: Vec<&str> = numbering.parents().iter().map(|at| name(*at)).collect();
    let parents = parents.join(" and ");
    let dependencies = &relations.dependencies;
    let determined = dependencies.determines.get(index).filter(|others| !others.is_empty());
    let follows = dependencies.follows.get(index).copied().flatten();
    match (numbering, determined, follows) {
        (Numbering::Things(_), ..) => {
            scores.add(Role::Entity, 8.0, format!("numbers things within each {parents}"));
            scores.add(Role::Measure, -3.0, "");
        }
        (Numbering::Lines(_), ..) | (Numbering::Serial(_), None, _) => {
            scores.add(Role::LineNumber, 14.0, format!("counts within each {parents}"));
        }
        (Numbering::Rising(_), ..) => {
            scores.add(Role::LineNumber, 9.0, format!("rises from row to row within each {parents}"));
        }
        (Numbering::None | Numbering::Serial(_), _, Some((a, b))) => {
            scores.add(Role::Measure, 3.0, format!("follows from {} and {}", name(a), name(b)));
            scores.add(Role::Entity, -4.0, "");
        }
        (Numbering::None | Numbering::Serial(_), _, None) => {}
    }
    let Some(determined) = determined else { return };
    let names: Vec<&str> = determined
        .iter()
        .filter_map(|other| columns.get(*other))
        .map(|other| other.column.name.as_str())
        .take(3)
        .collect();
    let weight = (1.0 + determined.len() as f64).min(4.0);
    scores.add(Role::Entity, weight, format!("determines {}", names.join(", ")));
}

fn score_numbers(column: &Profile<'_>, whole: &Whole, scores: &mut Scores) {
    scores.add(Role::Text, -20.0, "");
    if whole.negative {
        scores.add(Role::Measure, 3.0, "numbers below zero");
        scores.add(Role::Entity, -3.0, "");
        scores.add(Role::RowId, -2.0, "");
    }
    let many = column.distinct > 64;
    if many && whole.tail > 0.5 {
        scores.add(Role::Measure, 1.5, "a few values far above the others");
        if whole.dispersion < 1.7 && column.distinct > 200 {
            scores.add(Role::Measure, 2.0, "a smooth distribution");
        }
    }
    if many && whole.tail <= 0.02 && !whole.negative {
        scores.add(Role::Entity, 1.5, "numbers fill their range up to a sharp end");
        scores.add(Role::RowId, 1.0, "numbers fill their range up to a sharp end");
    }
    if many && whole.dispersion > 3.0 {
        let weight = whole.dispersion.ln().min(3.0);
        scores.add(Role::Entity, weight, "each number has a frequency of its own");
    }
    if many && (0.1..0.8).contains(&whole.zeros) {
        scores.add(Role::Measure, 2.0, "often zero");
    }
    if whole.rounded && whole.step < 10 {
        scores.add(Role::Measure, 1.5, "round numbers");
    }
    if matches!(
        column.column.column_type,
        ColumnType::Float | ColumnType::Double | ColumnType::Decimal { .. }
    ) {
        scores.add(Role::Measure, 2.0, format!("type {}", column.column.column_type));
    }
}

fn score_name(name: &str, scores: &mut Scores) {
    let weight = names::WEIGHT;
    let said = || format!("its name, {name}");
    match names::hint(name) {
        Some(Hint::Identifier) => {
            scores.add(Role::Entity, weight, said());
            scores.add(Role::RowId, weight, said());
            scores.add(Role::Measure, -weight, "");
        }
        Some(Hint::Entity) => {
            scores.add(Role::Entity, weight, said());
            scores.add(Role::RowId, weight / 2.0, said());
            scores.add(Role::Measure, -weight, "");
        }
        Some(Hint::Time) => {
            scores.add(Role::Dimension, weight, said());
            scores.add(Role::Entity, -1.5 * weight, "");
        }
        Some(Hint::Dimension) => {
            scores.add(Role::Dimension, weight, said());
            scores.add(Role::RowId, -weight, "");
            scores.add(Role::Measure, -weight, "");
        }
        Some(Hint::Attribute) => {
            scores.add(Role::Dimension, 3.0 * weight, said());
            scores.add(Role::Entity, -weight, "");
            scores.add(Role::RowId, -2.0 * weight, "");
            scores.add(Role::Measure, -weight, "");
        }
        Some(Hint::Measure) => {
            scores.add(Role::Measure, 1.5 * weight, said());
            scores.add(Role::Entity, -1.5 * weight, "");
            scores.add(Role::RowId, -weight, "");
            scores.add(Role::Dimension, -weight / 2.0, "");
        }
        Some(Hint::Text) => {
            scores.add(Role::Text, weight, said());
            scores.add(Role::Entity, -weight, "");
            scores.add(Role::RowId, -weight, "");
        }
        Some(Hint::Line) => {
            scores.add(Role::LineNumber, weight, said());
            scores.add(Role::Measure, -1.0, "");
        }
        None => {}
    }
}

/// Mean number of characters of a value above which it is content: a hash of 256 bits has 64 or 66.
const LONGEST_ID: f64 = 72.0;
/// Share of the rows with at least the value of the row before from which numbers may be times.
const MOSTLY_ASCENDING: f64 = 0.7;

/// Whether the name of a column is that of an identifier.
pub(crate) fn is_identifier(name: &str) -> bool {
    names::hint(name) == Some(Hint::Identifier)
}

/// Whether the name of a column is that of an amount.
pub(crate) fn names_measure(name: &str) -> bool {
    names::hint(name) == Some(Hint::Measure)
}

/// Returns how to read numbers as points in time if another column has times of about the same range:
/// the end of what has a start.
fn epoch_beside<'p>(column: &Profile<'_>, columns: &'p [Profile<'_>]) -> Option<(TimeReading, &'p str)> {
    let times = column.times.filter(|times| times.reading.is_time_alone())?;
    if matches!(names::hint(&column.column.name), Some(Hint::Identifier | Hint::Entity | Hint::Text)) {
        return None;
    }
    let is_beside = |other: &&Profile<'_>| {
        let known = other.times.filter(|_| other.column.name != column.column.name && epoch(other).is_some());
        known.is_some_and(|known| {
            let length = known.latest_micros.abs_diff(known.earliest_micros);
            let near = |a: i64, b: i64| a.abs_diff(b) <= length / 10;
            near(known.earliest_micros, times.earliest_micros)
                && near(known.latest_micros, times.latest_micros)
        })
    };
    let other = columns.iter().find(is_beside)?;
    Some((times.reading, &other.column.name))
}

/// Returns how to read numbers as points in time, if that is all they are and their name does not say
/// otherwise.
fn epoch(column: &Profile<'_>) -> Option<TimeReading> {
    let reading = column.times?.reading;
    if !reading.is_time_alone() {
        return None;
    }
    // "ts_ms" is a time in a unit that lengths of time have too.
    let hints = names::hints(&column.column.name);
    let varies = match hints.last() {
        _ if hints.contains(&Hint::Time) && hints.last() != Some(&Hint::Identifier) => true,
        None if names::is_later(&column.column.name) => true,
        Some(Hint::Identifier | Hint::Entity | Hint::Text) if !reading.is_written_out() => false,
        _ if reading.is_written_out() => true,
        // Rows mostly arrive, or are sorted within something, by time; telephone numbers are not.
        _ => column.distinct > 20 && column.ascends >= MOSTLY_ASCENDING && !column.is_serial(),
    };
    varies.then_some(reading)
}
