//! Evidence for each role of a column, as scores that are added up.

use crate::evaluate::roles::epochs::MOSTLY_ASCENDING;
use crate::evaluate::roles::forms::{Form, WholeNumbers};
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::numbering::Numbering;
use crate::evaluate::roles::profile::{FEW_ROWS, Profile};
use crate::evaluate::roles::texts::Words;
use crate::evaluate::roles::{Relations, Role, names};
use evenkeel_model::table::ColumnType;

/// Mean number of characters of a value above which it is content: a hash of 256 bits has 64 or 66.
const LONGEST_ID: f64 = 72.0;

/// Share of the rows in the middle half of the range above which numbers crowd around a mean; a
/// normal distribution has 0.75.
const CROWDED: f64 = 0.68;

/// Scores of the roles of one column.
#[derive(Debug, Default)]
pub(super) struct Scores {
    all: Vec<(Role, f64, String)>,
    /// Weight of the evidence for an entity that holds for many amounts, too.
    vague: f64,
}

impl Scores {
    pub(super) fn add(&mut self, role: Role, weight: f64, evidence: impl Into<String>) {
        self.all.push((role, weight, evidence.into()));
    }

    /// Adds evidence for an entity that holds for many amounts, too.
    fn add_vague(&mut self, weight: f64, evidence: String) {
        self.vague += weight;
        self.add(Role::Entity, weight, evidence);
    }

    /// Whether the only evidence for an entity also holds for many amounts.
    pub(super) fn is_vague(&self) -> bool {
        let of_entity = self.all.iter().filter(|(role, weight, _)| *role == Role::Entity && *weight > 0.0);
        self.vague > 0.0 && of_entity.map(|(_, weight, _)| weight).sum::<f64>() <= self.vague
    }

    fn total(&self, role: Role) -> f64 {
        self.all.iter().filter(|(other, _, _)| *other == role).map(|(_, weight, _)| weight).sum()
    }

    /// The role with the highest score, and the evidence for it.
    pub(super) fn decide(self, among: &[Role]) -> (Role, Vec<String>) {
        let best = among.iter().copied().reduce(|a, b| if self.total(b) > self.total(a) { b } else { a });
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

/// Scores of texts.
pub(super) fn score_text(column: &Profile<'_>, words: &Words, scores: &mut Scores) {
    scores.add(Role::Measure, -20.0, "");
    if column.numbers.is_none() {
        scores.add(Role::LineNumber, -20.0, "");
    }
    scores.add(Role::Text, -2.0, "");
    // A few sentences that many rows share are categories.
    if words.mean_words >= 2.5 && !is_of_few_values(column) {
        scores.add(Role::Text, 7.0, format!("{:.1} words in each value", words.mean_words));
    }
    // The path of a resource may be its id, however long it is.
    let is_path = column.hint == Some(Hint::Identifier) && words.are_codes() && words.structured < 0.1;
    if is_path {
        scores.add(Role::Text, -3.0, "");
    } else if words.mean_chars >= 40.0 && words.opaque < 0.5 {
        scores.add(Role::Text, 3.0, format!("{:.0} characters in each value", words.mean_chars));
        if words.codes < 0.5 {
            scores.add(Role::Text, 3.0, "");
            scores.add(Role::RowId, -3.0, "");
        }
    }
    if words.mean_chars > LONGEST_ID && !is_path {
        scores.add(Role::Text, 6.0, format!("{:.0} characters in each value", words.mean_chars));
        scores.add(Role::RowId, -4.0, "");
        scores.add(Role::Entity, -4.0, "");
    } else if words.mean_chars >= 40.0 && words.opaque < 0.5 && !column.is_named_id() {
        scores.add(Role::Text, 2.0, "");
        scores.add(Role::RowId, -2.0, "");
    }
    // The id of a visitor may consist of a random number, a dot and a time.
    if words.decimals > 0.5 && column.hint != Some(Hint::Identifier) {
        scores.add(Role::Measure, 26.0, "numbers with fractions, as text");
        scores.add(Role::Entity, -6.0, "");
        scores.add(Role::RowId, -6.0, "");
    }
    if words.structured > 0.5 {
        scores.add(Role::Text, 14.0, "objects or lists with several parts");
        scores.add(Role::RowId, -8.0, "");
        scores.add(Role::Entity, -4.0, "");
    }
    if words.networks > 0.9 {
        // A client or a host, even if each row of a short export has another one.
        scores.add(Role::RowId, -6.0, "");
    }
    if words.opaque > 0.9 {
        scores.add(Role::Entity, 2.0, "UUIDs or long hexadecimal numbers");
        scores.add(Role::RowId, 1.0, "UUIDs or long hexadecimal numbers");
    } else if words.codes > 0.9 && words.mean_chars >= 4.0 {
        scores.add(Role::Entity, 1.0, "codes with digits");
    }
}

/// Whether a few values occur in many rows each.
fn is_of_few_values(column: &Profile<'_>) -> bool {
    column.likely.max(column.distinct as f64) <= FEW_VALUES
        && column.distinct * MIN_ROWS_OF_A_KIND <= column.filled()
}

pub(super) fn score_cardinality(column: &Profile<'_>, scores: &mut Scores) {
    let (rows, distinct) = (column.filled() as f64, column.distinct as f64);
    let per_value = rows / distinct.max(1.0);
    if column.is_nearly_unique() && column.nulls == 0 {
        scores.add(Role::RowId, 4.0, "a different value in each sampled row");
        // Amounts from a wide range rarely repeat.
        if !column.is_unique() && matches!(column.form, Form::Whole(_)) && column.ascends < MOSTLY_ASCENDING {
            scores.add(Role::RowId, -3.0, "");
            scores.add(Role::Measure, 2.5, "numbers from a wide range, few of which repeat");
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
    if column.is_unique() && column.rows <= FEW_ROWS {
        // Few values in a few rows are no evidence.
    } else if many <= FEW_VALUES && per_value >= ROWS_OF_A_CATEGORY {
        scores.add(Role::Dimension, 4.0, format!("{distinct:.0} values"));
        scores.add(Role::Entity, -1.0, "");
    } else if many <= 1_000.0 {
        scores.add(Role::Dimension, 1.0, format!("{distinct:.0} values"));
        scores.add_vague(1.0, format!("{distinct:.0} values that repeat"));
    } else {
        scores.add(Role::Dimension, -3.0, "");
        if per_value >= 1.5 || column.likely < 0.9 * rows {
            scores.add_vague(2.0, format!("{distinct:.0} values that repeat"));
        }
    }
}

/// Maximum number of distinct values of a category.
const FEW_VALUES: f64 = 64.0;
/// Minimum mean number of rows with each value of a category: a few rows have few values for that
/// reason alone.
const ROWS_OF_A_CATEGORY: f64 = 2.0;

/// Mean number of rows per value above which texts are categories, whatever their length.
const MIN_ROWS_OF_A_KIND: usize = 20;

/// Maximum number of values with which angles, shares and bytes fill their range.
const FEW_NUMBERS: usize = 1_000;

/// Largest mean number of characters of texts with digits that are codes of things.
const LONGEST_CODE: f64 = 12.0;
/// Greatest number of a port.
const LAST_PORT: i128 = 65_535;

/// Number of unique text columns above which they are contents: rows have one or two identifiers.
const MANY_UNIQUE: usize = 3;

/// Whether a column has numbers that may be ports.
fn is_like_a_port(column: &Profile<'_>) -> bool {
    let in_range = |whole: &WholeNumbers| whole.least >= 0 && (1_024..=LAST_PORT).contains(&whole.greatest);
    column.hint.is_none()
        && matches!(&column.form, Form::Whole(whole) if in_range(whole))
        && column.distinct > 64
}

/// Whether a column is a text with a distinct value in each row, and is not named as an identifier.
pub(super) fn is_unique_text(column: &Profile<'_>) -> bool {
    // A short code names a thing; longer texts describe it.
    let is_code = |words: &Words| words.are_codes() && words.mean_chars <= LONGEST_CODE;
    let is_content = |words: &Words| !is_code(words) && words.networks < 0.9 && words.opaque < 0.9;
    matches!(&column.form, Form::Text(words) if is_content(words))
        && column.is_nearly_unique()
        && !column.is_named_id()
}

/// Whether a column has one word with digits in each row, and each only once.
pub(super) fn is_unique_code(column: &Profile<'_>) -> bool {
    let is_code =
        |words: &Words| words.are_codes() && words.mean_chars <= LONGEST_ID && words.structured < 0.1;
    matches!(&column.form, Form::Text(words) if is_code(words)) && column.is_unique()
}

/// Scores of a column by the other columns of the export.
fn score_company(index: usize, columns: &[Profile<'_>], relations: &Relations, scores: &mut Scores) {
    if relations.unique_texts >= MANY_UNIQUE
        && relations.first_code != Some(index)
        && columns.get(index).is_some_and(is_unique_text)
    {
        scores.add(Role::Text, 4.0, "several columns have a different value in each row");
        scores.add(Role::RowId, -4.0, "");
    }
    if relations.has_addresses && columns.get(index).is_some_and(is_like_a_port) {
        scores.add(Role::Dimension, 6.0, "port numbers next to addresses");
        scores.add(Role::Entity, -6.0, "");
    }
    let is_of_system = |column: &Profile<'_>| {
        let name = &column.column.name;
        names::denotes_process(name) || names::denotes_thread(name)
    };
    if relations.has_threads && columns.get(index).is_some_and(is_of_system) {
        scores.add(Role::Dimension, 6.0, "a process or thread ID of the operating system");
        scores.add(Role::Entity, -8.0, "");
    }
}

pub(super) fn score_relations(
    index: usize,
    columns: &[Profile<'_>],
    relations: &Relations,
    scores: &mut Scores,
) {
    score_company(index, columns, relations, scores);
    let name = |at: usize| columns.get(at).map(|column| column.column.name.as_str()).unwrap_or_default();
    let numbering = relations.numbering(index);
    let is_amount = columns
        .get(index)
        .is_some_and(|column| column.hint == Some(Hint::Measure) && matches!(column.form, Form::Whole(_)));
    let is_counter = || {
        columns.get(index).is_some_and(|column| column.hint.is_none())
            && columns.iter().any(|column| column.hint.is_some())
            && columns.iter().any(Profile::is_time)
            && relations.is_one_of_counters(index)
    };
    let parents: Vec<&str> = numbering.parents().iter().map(|at| name(*at)).collect();
    let parents = parents.join(" and ");
    let dependencies = &relations.dependencies;
    let determined = dependencies.determines.get(index).filter(|others| !others.is_empty());
    let follows = dependencies.follows.get(index).copied().flatten();
    match (numbering, determined, follows) {
        // A counter of hours, of distance, of starts: its name would suggest that it numbers rows.
        (Numbering::Things(_), ..) if is_amount => {
            scores.add(Role::Measure, 6.0, format!("adds up within each {parents}"));
        }
        (Numbering::Rising(_), ..) if is_amount => {
            scores.add(Role::Measure, 9.0, format!("adds up within each {parents}"));
        }
        (Numbering::Serial(_) | Numbering::Rising(_), ..) if is_counter() => {
            scores.add(Role::Measure, 9.0, format!("adds up within each {parents}, as others do"));
        }
        (Numbering::Lines(_) | Numbering::Serial(_), ..)
            if is_amount
                && columns.get(index).is_some_and(|column| names::is_in_unit(&column.column.name)) =>
        {
            scores.add(Role::Measure, 9.0, format!("adds up within each {parents}"));
        }
        (Numbering::Things(_), ..) => {
            scores.add(Role::Entity, 8.0, format!("numbers things within each {parents}"));
            scores.add(Role::Measure, -3.0, "");
        }
        (Numbering::Lines(_), ..) | (Numbering::Serial(_), None, _) => {
            // Texts are rarely numbers of lines, which their evidence outweighs.
            let is_text = columns.get(index).is_some_and(|column| column.numbers.is_none());
            let weight = if is_text { 34.0 } else { 14.0 };
            scores.add(Role::LineNumber, weight, format!("counts within each {parents}"));
        }
        (Numbering::Countdown(_), ..) => {
            scores.add(Role::Measure, 12.0, format!("counts down within each {parents}"));
        }
        (Numbering::Rising(_), ..) => {
            scores.add(Role::LineNumber, 9.0, format!("rises from row to row within each {parents}"));
        }
        (Numbering::Growing(parent), ..) => {
            scores.add(Role::Measure, 9.0, format!("grows within each {}", name(*parent)));
        }
        // A column that determines others too is one-to-one with the pair.
        (Numbering::None, None, Some((a, b))) => {
            scores.add(Role::Measure, 3.0, format!("follows from {} and {}", name(a), name(b)));
            scores.add(Role::Entity, -4.0, "");
        }
        (Numbering::None | Numbering::Serial(_), ..) => {}
    }
    let Some(determined) = determined else { return };
    let names: Vec<&str> = determined
        .iter()
        .filter_map(|other| columns.get(*other))
        .map(|other| other.column.name.as_str())
        .take(3)
        .collect();
    // Of a number that is named as an amount, others follow by chance.
    let weight = (1.0 + determined.len() as f64).min(if is_amount { 1.0 } else { 4.0 });
    scores.add(Role::Entity, weight, format!("determines {}", names.join(", ")));
}

pub(super) fn score_numbers(column: &Profile<'_>, whole: &WholeNumbers, scores: &mut Scores) {
    scores.add(Role::Text, -20.0, "");
    if whole.negative {
        scores.add(Role::Measure, 3.0, "numbers below zero");
        scores.add(Role::Entity, -3.0, "");
        scores.add(Role::RowId, -2.0, "");
    }
    let many = column.distinct > 64;
    // A number that is named like a time but is not a point in time is a duration.
    if column.hint == Some(Hint::Time) {
        scores.add(Role::Entity, -3.0, "");
        if many && names::is_duration(&column.column.name) {
            scores.add(Role::Measure, 4.0, "a length of time");
        }
    }
    if many && whole.tail > 0.5 {
        scores.add(Role::Measure, 1.5, "a few values far above the others");
        if whole.dispersion < 1.7 && column.distinct > 200 {
            scores.add(Role::Measure, 2.0, "a smooth distribution");
        }
    }
    if many && whole.tail <= 0.02 && !whole.negative {
        let evidence = "numbers fill their range up to a sharp end";
        // Angles and shares do so, too.
        if column.distinct <= FEW_NUMBERS {
            scores.add_vague(1.5, evidence.to_owned());
        } else {
            scores.add(Role::Entity, 1.5, evidence);
        }
        scores.add(Role::RowId, 1.0, "numbers fill their range up to a sharp end");
    }
    if many && whole.dispersion > 3.0 {
        let weight = whole.dispersion.ln().min(3.0);
        scores.add(Role::Entity, weight, "each number has its own frequency");
    }
    if many && whole.dispersion < 3.0 && whole.middle >= CROWDED {
        scores.add(Role::Measure, 3.0, "numbers that crowd around a mean");
    }
    if column.rises && names::denotes_step(&column.column.name) && !column.is_named_id() {
        scores.add(Role::Dimension, 6.0, "rising steps");
        scores.add(Role::Entity, -6.0, "");
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

#[cfg(test)]
#[path = "scores_tests.rs"]
mod tests;
