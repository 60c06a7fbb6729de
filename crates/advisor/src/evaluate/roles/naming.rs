//! Facts that the names of all columns of an export give about each of them.

use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names;
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::profile::Profile;

/// The names of the columns of an export together.
#[derive(Debug)]
pub(super) struct Naming {
    /// Whether each column is one of many whose names differ in a number.
    counted: Vec<bool>,
    /// Whether the name of some column gives a hint.
    tells: bool,
    /// Whether rows are messages, which have a text, an author and a conversation.
    has_talks: bool,
    has_traces: bool,
    has_log: bool,
    /// Whether rows are changes of the rows of another table, whose ids repeat.
    has_changes: bool,
}

impl Naming {
    pub(super) fn from_columns(columns: &[Profile<'_>]) -> Self {
        let counted = names::counted(columns.iter().map(|column| column.column.name.as_str()));
        let has = |is_one: fn(&str) -> bool| columns.iter().any(|column| is_one(&column.column.name));
        let is_message = |column: &Profile<'_>| {
            column.hint == Some(Hint::Text)
                && matches!(&column.form, Form::Text(words) if words.mean_words > 2.0)
        };
        let tells = columns
            .iter()
            .enumerate()
            .any(|(index, column)| column.hint.is_some() && !is_set(&counted, index));
        Self {
            tells,
            counted,
            has_talks: columns.iter().any(is_message)
                && has(names::denotes_talk)
                && has(names::denotes_author),
            has_traces: has(names::denotes_trace),
            has_log: has(names::denotes_log),
            has_changes: has(names::denotes_operation)
                && (has(names::denotes_log) || has(names::denotes_deletion) || has(names::denotes_sequence)),
        }
    }

    /// Whether a column is obscure in an export whose names tell: `is_telling` says whether its
    /// name or its values do. A column named by a number is a property, even if other columns
    /// follow from it.
    pub(super) fn is_obscure(&self, index: usize, is_telling: bool) -> bool {
        self.tells && (!is_telling || is_set(&self.counted, index))
    }

    /// Whether a name denotes a reference of a row to others.
    pub(super) fn is_reference(&self, name: &str) -> bool {
        names::denotes_before(name)
            || names::denotes_transmission(name)
            || (self.has_log && names::denotes_commit(name))
    }

    /// Whether a name denotes a member of a conversation or of a trace.
    pub(super) fn is_member(&self, name: &str) -> bool {
        (self.has_talks && names::denotes_author(name)) || (self.has_traces && names::denotes_span(name))
    }

    /// Whether the rows with one value of a column that identifies rows are versions of one row.
    pub(super) fn has_versions_of(&self, column: &Profile<'_>) -> bool {
        self.has_changes && !column.is_unique()
    }

    /// Whether a name denotes something that has parts.
    pub(super) fn is_whole(&self, name: &str) -> bool {
        names::is_whole(name) || (self.has_talks && names::denotes_talk(name))
    }
}

/// Whether numbers are one end of ranges whose other end is in another column: positions in a
/// sequence, by which no read looks up rows. The stations at both ends of a trip are no range.
pub(super) fn is_end_of_range(column: &Profile<'_>, columns: &[Profile<'_>]) -> bool {
    let Some(own) = column.numbers.as_ref().filter(|_| names::has_end(&column.column.name)) else {
        return false;
    };
    let is_other_end = |other: &Profile<'_>| {
        let Some(is_first) = names::is_first_of(&column.column.name, &other.column.name) else {
            return false;
        };
        let in_order = |(own, other): (&i128, &i128)| if is_first { own <= other } else { own >= other };
        other.numbers.as_ref().is_some_and(|others| own.iter().zip(others).all(in_order))
    };
    columns.iter().any(is_other_end)
}

fn is_set(flags: &[bool], index: usize) -> bool {
    flags.get(index).copied().unwrap_or_default()
}
