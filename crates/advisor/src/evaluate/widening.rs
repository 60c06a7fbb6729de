//! Columns that are read as wider types than their own, so that keys can contain them.

use std::collections::BTreeMap;

use crate::evaluate::candidates::sampled_columns::wider_key_type;
use crate::evaluate::options::EvaluateOptions;
use evenkeel_input::source::Export;
use evenkeel_model::note::Note;
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::text_value::TimestampFormat;

/// Whether a column is in a key.
pub(crate) fn is_in_keys(column: &str, options: &EvaluateOptions) -> bool {
    let mut keys = options.partition_keys.iter().chain(&options.primary_keys);
    keys.any(|key| key.parts().iter().any(|part| part.column == column))
}

/// Returns the types as which the columns of the keys, or `all`, are read, if YDB does not accept
/// their own types in keys and the user did not name them.
pub(crate) fn wider_types(
    export: &Export,
    options: &EvaluateOptions,
    all: bool,
) -> BTreeMap<String, ColumnType> {
    let function = options.placements.first().copied().unwrap_or_default();
    let columns = export.columns().iter().filter(|column| all || is_in_keys(&column.name, options));
    columns
        .filter(|column| !export.changed_types().contains_key(&column.name))
        .filter_map(|column| Some((column.name.clone(), wider_key_type(function, column.column_type)?)))
        .collect()
}

/// Returns notes on columns of numbers that are read as times.
pub(crate) fn read_as_times(times: &BTreeMap<String, TimestampFormat>, export: &Export) -> Vec<Note> {
    let columns = export.columns().iter().filter(|column| times.contains_key(&column.name));
    let note = |column: &Column| Note::ReadWider {
        column: column.name.clone(),
        file_type: column.column_type,
        column_type: ColumnType::Timestamp,
    };
    columns.map(note).collect()
}

pub(crate) fn widened_columns(
    export: &Export,
    types: &BTreeMap<String, ColumnType>,
    options: &EvaluateOptions,
) -> Vec<Note> {
    let note = |column: &Column| {
        let (name, file_type) = (column.name.clone(), column.column_type);
        types.get(&name).map(|wider| Note::ReadWider { column: name, file_type, column_type: *wider })
    };
    export.columns().iter().filter(|column| is_in_keys(&column.name, options)).filter_map(note).collect()
}
