//! Inferred columns of an input, with the evidence.

use std::collections::BTreeSet;

use crate::source::input_path::InputPath;
use crate::source::options::InputOptions;
use crate::source::path_columns::path_column_types;
use evenkeel_model::note::Note;
use evenkeel_model::table::{Column, ColumnType};

/// Columns inferred from a sample file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Columns in the order of the file.
    pub columns: Vec<Column>,
    /// Remarks on columns.
    pub notes: Vec<Note>,
    /// Text columns without a value in the examined records, whose type is therefore unknown.
    pub(crate) without_values: Vec<String>,
    /// Columns of text files whose types come from the examined records, and are not declared.
    pub(crate) guessed: BTreeSet<String>,
    /// Columns whose values are in the path of the file.
    pub(crate) of_path: BTreeSet<String>,
    /// Columns whose values are in the path if a row has none.
    pub(crate) of_path_if_missing: BTreeSet<String>,
}

impl Sample {
    /// Columns that the file declares.
    pub(super) fn declared(columns: Vec<Column>, notes: Vec<Note>) -> Self {
        Self {
            columns,
            notes,
            without_values: Vec::new(),
            guessed: BTreeSet::new(),
            of_path: BTreeSet::new(),
            of_path_if_missing: BTreeSet::new(),
        }
    }
}

impl Sample {
    /// Gives the columns of the path the type that fits their values in the paths of all inputs.
    pub(crate) fn read_path(&mut self, inputs: &[InputPath], options: &InputOptions) {
        if self.of_path.is_empty() && self.of_path_if_missing.is_empty() {
            return;
        }
        for (name, column_type) in path_column_types(inputs, options) {
            if options.types.contains_key(&name) {
                continue;
            }
            let Some(column) = self.columns.iter_mut().find(|column| column.name == name) else { continue };
            if self.of_path.contains(&name) {
                column.column_type = column_type.unwrap_or(ColumnType::Utf8);
                self.guessed.remove(&name);
                self.without_values.retain(|without| *without != name);
            } else if self.of_path_if_missing.contains(&name)
                && column_type.is_some_and(|of_path| of_path != column.column_type)
            {
                column.column_type = ColumnType::Utf8;
            }
        }
    }
}
