//! Role of each column: the kind of its values.
//!
//! Evidence is added up for every role that a column may have; the role with the highest score
//! wins. Values come first: cardinality, repeats, order, form, dependencies. A name adds or removes
//! a few times [`names::WEIGHT`] at most. The output names the evidence that decided.

pub(super) mod carried_times;
mod certain;
mod companions;
pub(super) mod dependencies;
mod epochs;
pub(super) mod forms;
mod growing;
mod line_numbers;
mod name_scores;
pub(super) mod names;
mod naming;
pub(super) mod numbering;
pub(super) mod profile;
mod role_report;
mod scores;
mod sequences;
mod shared_values;
#[cfg(test)]
pub(in crate::evaluate) mod testing;
pub(super) mod texts;
mod value_numbers;
mod words;

use std::collections::HashMap;

pub use crate::evaluate::roles::role_report::RoleReport;
pub use crate::role::{Role, RoleError};

use crate::evaluate::roles::certain::{certain, is_smooth, sequence_of_bases};
use crate::evaluate::roles::companions::companions;
use crate::evaluate::roles::dependencies::Dependencies;
use crate::evaluate::roles::epochs::MOSTLY_ASCENDING;
use crate::evaluate::roles::forms::{Form, WholeNumbers};
use crate::evaluate::roles::name_scores::score_name;
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::naming::{Naming, is_end_of_range};
use crate::evaluate::roles::numbering::Numbering;
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::scores::{
    Scores, is_unique_code, is_unique_text, score_cardinality, score_numbers, score_relations, score_text,
};
use crate::evaluate::roles::shared_values::sharing_values;

/// Number of columns counting within the same values above which none of them numbers rows.
const MANY_COUNTERS: usize = 3;

/// Smallest number of a block, and number of blocks, of a chain.
const MIN_BLOCKS: i128 = 10_000;
const MANY_BLOCKS: usize = 1_000;

/// Mean number of words from which texts are not names of things.
const MAX_WORDS_OF_NAMES: f64 = 8.0;
/// Number of names up to which they are kinds.
const MIN_NAMES: usize = 64;

/// Dependencies between sampled columns.
#[derive(Debug)]
pub(super) struct Relations {
    dependencies: Dependencies,
    numberings: Vec<Numbering>,
    /// Another column of numbers that is correlated with each column.
    companions: Vec<Option<usize>>,
    /// Another column of texts that has mostly the same values as each column.
    sharing: Vec<Option<usize>>,
    /// Number of text columns with a distinct value in each row that are not named as identifiers.
    unique_texts: usize,
    /// First column of codes that no two rows share, if no column is named as an identifier of
    /// rows.
    first_code: Option<usize>,
    /// Whether a column has IP addresses.
    has_addresses: bool,
    /// Whether columns have numbers of processes and of their threads.
    has_threads: bool,
}

impl Relations {
    pub(super) fn from_columns(columns: &[Profile<'_>]) -> Self {
        let dependencies = Dependencies::from_columns(columns);
        let mut numberings = Numbering::find_all(columns);
        for (numbering, determined) in numberings.iter_mut().zip(&dependencies.determines) {
            // A number that determines its parent or another thing identifies a thing without its
            // parent.
            let is_id = |at: &usize| columns.get(*at).is_some_and(Profile::is_named_id);
            let says_more =
                |parents: &[usize]| determined.iter().any(|other| parents.contains(other) || is_id(other));
            if matches!(numbering, Numbering::Things(parents) if says_more(parents)) {
                *numbering = Numbering::None;
            }
        }
        let has_named_id = columns.iter().any(|column| column.is_unique() && column.is_named_id());
        Self {
            dependencies,
            numberings,
            companions: companions(columns),
            sharing: sharing_values(columns),
            first_code: columns.iter().position(is_unique_code).filter(|_| !has_named_id),
            unique_texts: columns.iter().filter(|column| is_unique_text(column)).count(),
            has_threads: [names::denotes_process, names::denotes_thread]
                .iter()
                .all(|is_of| columns.iter().any(|column| is_of(&column.column.name))),
            has_addresses: columns
                .iter()
                .any(|column| matches!(&column.form, Form::Text(words) if words.networks > 0.9)),
        }
    }

    /// Whether another column numbers rows within the values of a column.
    fn has_parts(&self, at: usize) -> bool {
        self.numberings.iter().any(|numbering| numbering.parents().contains(&at))
    }

    /// Whether several columns count within the same values: totals of each thing, since one number
    /// suffices for its rows.
    fn is_one_of_counters(&self, at: usize) -> bool {
        let counts =
            |numbering: &&Numbering| matches!(numbering, Numbering::Serial(_) | Numbering::Rising(_));
        let own = self.numbering(at);
        let others = self.numberings.iter().filter(counts);
        counts(&own) && others.filter(|other| other.parents() == own.parents()).count() >= MANY_COUNTERS
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
    let naming = Naming::from_columns(columns);
    let rows_have_id = columns.iter().any(|column| {
        (column.is_unique() && column.is_named_id()) || sequence_of_bases(column, columns).is_some()
    });
    let report = |(index, column): (usize, &Profile<'_>)| {
        let given = given.get(index).copied().flatten();
        let (role, mut evidence, is_vague) = match given {
            Some(role) => (role, vec!["given with --role or --not-key".to_owned()], false),
            None => infer(index, column, columns, relations),
        };
        let sharing = relations.sharing.get(index).copied().flatten().as_ref().and_then(name);
        let shares_values_with = sharing.filter(|_| role == Role::Entity);
        if let (Some(other), None) = (&shares_values_with, given) {
            evidence.push(format!("has mostly the values of {other}"));
        }
        let is_telling = column.hint.is_some()
            || relations.dependencies.determines.get(index).is_some_and(|others| !others.is_empty());
        let is_obscure = naming.is_obscure(index, is_telling);
        let is_of_rows = names::is_of_rows(&column.column.name, export);
        let is_of_versions = is_of_rows && naming.has_versions_of(column);
        let sequence = sequence_of_bases(column, columns);
        let has_codes = matches!(&column.form, Form::Text(words) if words.are_codes());
        // If rows have an identifier, a number without a telling name is rather an amount.
        let may_be_amount = is_obscure
            && role == Role::Entity
            && rows_have_id
            && sequence.is_none()
            && is_smooth(column)
            && !relations.has_parts(index);
        RoleReport {
            column: column.column.name.clone(),
            role,
            evidence,
            copy_of: relations.dependencies.copy_of.get(index).copied().flatten().as_ref().and_then(name),
            shares_values_with,
            determines: relations
                .dependencies
                .determines
                .get(index)
                .into_iter()
                .flatten()
                .filter_map(name)
                .collect(),
            counts_within: match sequence {
                Some(sequence) => name(&sequence).into_iter().collect(),
                None => relations.numbering(index).parents().iter().filter_map(name).collect(),
            },
            is_of_rows: is_of_rows && !is_of_versions,
            is_vague: is_vague || is_rarely_named(role, column, columns, is_of_rows) || may_be_amount,
            is_obscure,
            is_address: matches!(&column.form, Form::Text(words) if words.addresses > 0.9),
            is_page: names::denotes_page_view(&column.column.name)
                || (role == Role::RowId && names::denotes_stored(&column.column.name))
                || matches!(&column.form, Form::Text(words) if words.addresses - words.networks > 0.9),
            is_label: (names::is_label(&column.column.name) && !has_codes) || column.form.is_words(),
            is_kind: role == Role::Entity && column.hint == Some(Hint::Dimension),
            recurs: names::recurs(&column.column.name) || is_of_versions,
            is_contact: names::is_contact(&column.column.name),
            is_reference: naming.is_reference(&column.column.name),
            is_member: naming.is_member(&column.column.name),
            holds_parts: column.gathered || naming.is_whole(&column.column.name) || is_of_versions,
            times: column.times.filter(|times| role == Role::Time || !times.reading.is_time_alone()),
            null_share: column.nulls as f64 / column.rows.max(1) as f64,
            given: given.is_some(),
        }
    };
    let mut reports: Vec<RoleReport> = columns.iter().enumerate().map(report).collect();
    join_measurements(&mut reports);
    reports
}

/// Whether reads hardly ever name a value of a column in its role: the end of a range, a position in
/// a stream, or a load, whose rows have nothing in common.
fn is_rarely_named(role: Role, column: &Profile<'_>, columns: &[Profile<'_>], is_of_rows: bool) -> bool {
    let name = &column.column.name;
    match role {
        Role::Entity => is_end_of_range(column, columns) || (names::denotes_load(name) && !is_of_rows),
        Role::RowId => names::denotes_sequence(name) && columns.iter().any(Profile::is_time),
        _ => false,
    }
}

/// Fewest columns of a family of measurements.
const MIN_FAMILY: usize = 6;

/// Takes numbers that may be amounts for measurements, if many columns are named as they are but
/// for their numbers, and some of those have measurements: the bands of a pixel.
fn join_measurements(reports: &mut [RoleReport]) {
    let families: Vec<String> = reports.iter().map(|report| names::without_numbers(&report.column)).collect();
    let mut members: HashMap<&str, (usize, usize)> = HashMap::new();
    for (family, report) in families.iter().zip(reports.iter()) {
        let (all, measures) = members.entry(family).or_default();
        *all += 1;
        *measures += usize::from(report.role == Role::Measure);
    }
    // Names that are all alike tell nothing.
    let others = MIN_FAMILY..reports.len();
    for (family, report) in families.iter().zip(reports) {
        let (all, measures) = members.get(family.as_str()).copied().unwrap_or_default();
        let is_measured = others.contains(&all) && measures * 3 >= all;
        if is_measured && report.role == Role::Entity && report.is_vague && !report.given {
            report.role = Role::Measure;
            report.evidence = vec![format!("named {family}, as measurements are")];
            report.is_vague = false;
        }
    }
}

fn infer(
    index: usize,
    column: &Profile<'_>,
    columns: &[Profile<'_>],
    relations: &Relations,
) -> (Role, Vec<String>, bool) {
    if let Some((role, evidence)) =
        certain(column, columns).or_else(|| block_number(index, column, columns, relations))
    {
        return (role, evidence, false);
    }
    let (role, evidence, is_vague) = scored(index, column, columns, relations);
    if role == Role::Text
        && let Some(evidence) = name_of_thing(index, column, relations)
    {
        return (Role::Entity, vec![evidence], false);
    }
    (role, evidence, is_vague)
}

/// Returns the evidence that short texts are names of things, by which rows without an id are
/// looked up: those of each name arrive together, or another column follows from it.
fn name_of_thing(index: usize, column: &Profile<'_>, relations: &Relations) -> Option<String> {
    let dependencies = &relations.dependencies;
    let follows = || dependencies.determines.iter().any(|determined| determined.contains(&index));
    let determines = dependencies.determines.get(index).is_some_and(|determined| !determined.is_empty());
    let is_thing = matches!(&column.form, Form::Text(words) if words.may_be_names(MAX_WORDS_OF_NAMES))
        && column.hint != Some(Hint::Text)
        && column.nulls == 0
        && column.distinct > MIN_NAMES
        && column.distinct * 2 <= column.rows
        && (column.gathered || determines)
        && !follows();
    is_thing.then(|| match column.gathered {
        true => "names, whose rows arrive together".to_owned(),
        false => "names, from which another column follows".to_owned(),
    })
}

/// Fewest values that show that numbers are drawn from all of 16 bits.
const MIN_DRAWN: usize = 5_000;
/// Greatest distance of the least and the greatest number from the ends of 16 bits.
const MAX_FROM_END: i128 = 512;

/// Whether numbers are evenly drawn from 16 bits, as the ids of messages of a protocol are: equal
/// ones have nothing in common.
fn is_random_in_16_bits(column: &Profile<'_>, whole: &WholeNumbers) -> bool {
    column.distinct >= MIN_DRAWN
        && (0..=MAX_FROM_END).contains(&whole.least)
        && (65_535 - MAX_FROM_END..=65_535).contains(&whole.greatest)
        && is_smooth(column)
}

/// Distinguishes block numbers of a ledger from numbers of things: blocks are created in sequence,
/// so their numbers are another form of the time.
fn block_number(
    index: usize,
    column: &Profile<'_>,
    columns: &[Profile<'_>],
    relations: &Relations,
) -> Option<(Role, Vec<String>)> {
    let Form::Whole(whole) = &column.form else { return None };
    if !names::denotes_block(&column.column.name) {
        return None;
    }
    // Without any time, the heights of a chain count the minutes; blocks of a field are few.
    let is_height = || {
        whole.least >= MIN_BLOCKS && column.distinct >= MANY_BLOCKS && !columns.iter().any(Profile::is_time)
    };
    let determined = relations.dependencies.determines.get(index).into_iter().flatten();
    let time = determined.filter_map(|other| columns.get(*other)).find(|other| other.is_time());
    let evidence = match time {
        Some(time) => format!("numbers of blocks, each with one {}", time.column.name),
        None if column.ascends >= MOSTLY_ASCENDING && (columns.iter().any(is_of_ledger) || is_height()) => {
            "numbers of blocks, which rise from row to row".to_owned()
        }
        None => return None,
    };
    Some((Role::Time, vec![evidence]))
}

/// Whether a column is typical of ledgers, other than their block numbers.
fn is_of_ledger(column: &Profile<'_>) -> bool {
    names::denotes_transaction(&column.column.name)
        || matches!(&column.form, Form::Text(words) if words.opaque > 0.9)
}

/// Infers the role with the most evidence, and whether that is vague.
fn scored(
    index: usize,
    column: &Profile<'_>,
    columns: &[Profile<'_>],
    relations: &Relations,
) -> (Role, Vec<String>, bool) {
    let mut scores = Scores::default();
    score_cardinality(column, &mut scores);
    score_relations(index, columns, relations, &mut scores);
    match &column.form {
        Form::Fractions => {
            scores.add(Role::Measure, 6.0, "numbers with fractions");
            scores.add(Role::Entity, -6.0, "");
        }
        Form::Whole(whole) => {
            score_numbers(column, whole, &mut scores);
            let companion = relations.companions.get(index).copied().flatten();
            if let Some(other) = companion.and_then(|other| columns.get(other)) {
                let other = &other.column.name;
                scores.add(Role::Measure, 5.0, format!("rises and falls with {other}"));
                scores.add(Role::Entity, -3.0, "");
            }
        }
        Form::Text(words) => score_text(column, words, &mut scores),
        Form::Other => {
            scores.add(Role::Measure, -20.0, "");
            scores.add(Role::LineNumber, -20.0, "");
        }
    }
    score_name(column, &mut scores);
    // Texts are no amounts.
    let is_vague = match &column.form {
        Form::Text(_) => false,
        Form::Whole(whole) => scores.is_vague() || is_random_in_16_bits(column, whole),
        _ => scores.is_vague(),
    };
    let (role, evidence) = scores.decide(&[
        Role::Entity,
        Role::RowId,
        Role::Dimension,
        Role::Measure,
        Role::Text,
        Role::LineNumber,
    ]);
    (role, evidence, is_vague && role == Role::Entity)
}

/// Whether the name of a column denotes an identifier.
pub(crate) fn is_identifier(name: &str) -> bool {
    names::hint(name) == Some(Hint::Identifier)
}
