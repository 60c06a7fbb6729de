//! Scores that the name of a column adds to its roles.

use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::scores::Scores;
use crate::evaluate::roles::{Role, names};

/// Whether values are UUIDs or long hexadecimal numbers.
fn is_opaque(form: &Form) -> bool {
    matches!(form, Form::Text(words) if words.opaque > 0.9)
}

/// Whether most values are numbers, as text.
fn is_mostly_numeric(form: &Form) -> bool {
    matches!(form, Form::Text(words) if words.numeric > 0.5)
}

pub(super) fn score_name(column: &Profile<'_>, scores: &mut Scores) {
    let weight = names::WEIGHT;
    let said = || format!("its name, {}", column.column.name);
    match column.hint {
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
            let is_text = matches!(column.form, Form::Text(_));
            scores.add(Role::Dimension, weight, said());
            scores.add(Role::Entity, if is_text { -3.0 } else { -1.5 } * weight, "");
        }
        // A code that no two rows share identifies them: a table of countries.
        Some(Hint::Dimension) if column.is_unique() && !column.is_time() => {
            scores.add(Role::RowId, 0.0, "");
            scores.add(Role::Measure, -weight, "");
        }
        Some(Hint::Dimension) => {
            scores.add(Role::Dimension, weight, said());
            scores.add(Role::RowId, -weight, "");
            scores.add(Role::Measure, -weight, "");
        }
        Some(Hint::Attribute) => {
            // A property that no two rows share is no dimension.
            let is_text = matches!(column.form, Form::Text(_)) && column.is_unique();
            scores.add(if is_text { Role::Text } else { Role::Dimension }, 3.0 * weight, said());
            scores.add(Role::Entity, -weight, "");
            scores.add(Role::RowId, -2.0 * weight, "");
            scores.add(Role::Measure, -weight, "");
        }
        // More digits than numbers hold, as amounts of a token, or results some of which are words.
        Some(Hint::Measure) if is_mostly_numeric(&column.form) => {
            scores.add(Role::Measure, 26.0, said());
            scores.add(Role::Entity, -6.0, "");
            scores.add(Role::RowId, -6.0, "");
        }
        Some(Hint::Measure) => {
            scores.add(Role::Measure, 2.0 * weight, said());
            scores.add(Role::Entity, -2.0 * weight, "");
            scores.add(Role::RowId, -weight, "");
            scores.add(Role::Dimension, -weight / 2.0, "");
        }
        // An address of a network or a ledger is no text; other long numbers are contents.
        Some(Hint::Text) if is_opaque(&column.form) && names::denotes_address(&column.column.name) => {}
        Some(Hint::Text) if is_opaque(&column.form) => {
            scores.add(Role::Text, 2.0 * weight, said());
            scores.add(Role::Entity, -weight, "");
            scores.add(Role::RowId, -2.0 * weight, "");
        }
        Some(Hint::Text) => {
            scores.add(Role::Text, weight, said());
            scores.add(Role::Entity, -weight, "");
            scores.add(Role::RowId, -weight, "");
        }
        Some(Hint::Line) => {
            scores.add(Role::LineNumber, weight, said());
            // A count without a parent is an offset, such as that of a record in a file.
            let is_offset = matches!(column.form, Form::Whole(_))
                && column.distinct > 64
                && names::denotes_count(&column.column.name);
            if is_offset {
                scores.add(Role::Measure, weight, said());
                scores.add(Role::Entity, -weight, "");
            } else {
                scores.add(Role::Measure, -1.0, "");
            }
        }
        None => {}
    }
}
