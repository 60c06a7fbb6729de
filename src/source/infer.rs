//! Columns from a sample file.

use std::io::BufReader;
use std::path::Path;

use arrow::array::{Array, BinaryArray};
use arrow::datatypes::{DataType, Schema};
use arrow::json::reader::infer_json_schema;

use crate::source::discover::InputPath;
use crate::source::open::open_decompressed;
use crate::source::{Input, InputFormat, InputOptions, RawCells, SourceError};
use crate::table::{Column, ColumnType};
use crate::text_value::{TextFormat, parse_text_column};

/// Records of a text file that are looked at to find its types.
const SAMPLE_RECORDS: usize = 100_000;

/// The columns of a file with the types that YDB has for them. A column takes NULL unless the file says it has none.
/// Text files are judged by their first 100,000 records: whole numbers are Int64 (Uint64 where they need it), other
/// numbers Double, dates Date, points in time Timestamp, everything else Utf8. A number with leading zeros is text.
///
/// # Errors
/// [`SourceError`] where the file cannot be read, has no record, or has a column without a YDB type.
pub fn infer_columns(path: &Path, options: &InputOptions) -> Result<Vec<Column>, SourceError> {
    let input_path = InputPath::File(path.to_owned());
    let input = Input::open(&input_path, &[], options)?;
    if let Some(schema) = input.file_schema() {
        return columns_of_schema(input.name(), schema);
    }
    if input.format() == InputFormat::Ndjson {
        return ndjson_columns(&input_path, path, options);
    }
    let names = input.unknown_columns();
    let candidates = names.into_iter().map(|name| (name, Guess::any())).collect();
    guess_columns(&input_path, options, candidates)
}

fn columns_of_schema(file: &str, schema: &Schema) -> Result<Vec<Column>, SourceError> {
    schema
        .fields()
        .iter()
        .map(|field| {
            let column_type =
                ColumnType::from_arrow(field.data_type()).map_err(|error| SourceError::Infer {
                    file: file.to_owned(),
                    reason: format!("column '{}': {error}", field.name()),
                })?;
            Ok(Column { name: field.name().clone(), column_type, nullable: field.is_nullable() })
        })
        .collect()
}

/// JSON has types of its own; only its strings are guessed.
fn ndjson_columns(
    input_path: &InputPath,
    path: &Path,
    options: &InputOptions,
) -> Result<Vec<Column>, SourceError> {
    let file = path.display().to_string();
    let stream = open_decompressed(path)?;
    let (schema, _) = infer_json_schema(BufReader::new(stream), Some(SAMPLE_RECORDS))
        .map_err(|error| SourceError::Infer { file: file.clone(), reason: error.to_string() })?;
    let candidates = schema.fields().iter().map(|field| {
        let guess = match field.data_type() {
            DataType::Utf8 | DataType::Null => Ok(Guess::text()),
            // Nested values are kept as JSON text.
            DataType::List(_) | DataType::Struct(_) => Ok(Guess::only(ColumnType::Json)),
            DataType::Int64 => Ok(Guess::integer()),
            other => ColumnType::from_arrow(other).map(Guess::only),
        };
        guess.map(|guess| (field.name().clone(), guess)).map_err(|error| SourceError::Infer {
            file: file.clone(),
            reason: format!("column '{}': {error}", field.name()),
        })
    });
    let candidates = candidates.collect::<Result<Vec<_>, _>>()?;
    guess_columns(input_path, options, candidates)
}

/// The types that a column may still have, the most special first.
struct Guess {
    candidates: Vec<ColumnType>,
    seen_value: bool,
}

impl Guess {
    fn any() -> Self {
        let mut guess = Self::integer();
        guess.candidates.extend([ColumnType::Double, ColumnType::Bool]);
        guess.candidates.extend(Self::text().candidates);
        guess
    }

    fn integer() -> Self {
        Self { candidates: vec![ColumnType::Int64, ColumnType::Uint64], seen_value: false }
    }

    fn text() -> Self {
        Self {
            candidates: vec![ColumnType::Date, ColumnType::Timestamp, ColumnType::Utf8],
            seen_value: false,
        }
    }

    fn only(column_type: ColumnType) -> Self {
        Self { candidates: vec![column_type], seen_value: false }
    }

    fn look_at(&mut self, cells: &BinaryArray, format: &TextFormat) {
        if cells.null_count() == cells.len() {
            return;
        }
        self.seen_value = true;
        let leading_zeros = cells.iter().flatten().any(has_leading_zero);
        let words = cells.iter().flatten().all(is_true_or_false);
        let mut candidates = std::mem::take(&mut self.candidates);
        if candidates.len() > 1 {
            candidates.retain(|column_type| match column_type {
                ColumnType::Int64 | ColumnType::Uint64 | ColumnType::Double if leading_zeros => false,
                ColumnType::Bool if !words => false,
                _ => parse_text_column(cells, *column_type, format).faults.is_empty(),
            });
        }
        self.candidates = candidates;
    }

    /// A column that was never seen to hold a value is text.
    fn column_type(&self) -> ColumnType {
        let first = self.candidates.first().copied().unwrap_or(ColumnType::Utf8);
        if self.seen_value || self.candidates.len() == 1 { first } else { ColumnType::Utf8 }
    }
}

fn has_leading_zero(cell: &[u8]) -> bool {
    let digits = cell.trim_ascii();
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    matches!(digits, [b'0', b'0'..=b'9', ..])
}

fn is_true_or_false(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    cell.eq_ignore_ascii_case(b"true") || cell.eq_ignore_ascii_case(b"false")
}

fn guess_columns(
    path: &InputPath,
    options: &InputOptions,
    mut candidates: Vec<(String, Guess)>,
) -> Result<Vec<Column>, SourceError> {
    let names: Vec<String> = candidates.iter().map(|(name, _)| name.clone()).collect();
    let mut input = Input::open(path, &names, options)?;
    let mut records = 0;
    while records < SAMPLE_RECORDS
        && let Some(batch) = input.next_batch()?
    {
        if let RawCells::Text(columns) = &batch.cells {
            for ((_, guess), (_, cells)) in candidates.iter_mut().zip(columns) {
                guess.look_at(cells, &options.text);
            }
            records += columns.first().map_or(0, |(_, cells)| cells.len());
        }
    }
    if records == 0 {
        let reason = "there is no record to find types from".to_owned();
        return Err(SourceError::Infer { file: input.name().to_owned(), reason });
    }
    let column = |(name, guess): (String, Guess)| Column::nullable(name, guess.column_type());
    Ok(candidates.into_iter().map(column).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(name: &str, content: &str) -> Result<Vec<(String, String)>, SourceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let columns = infer_columns(&path, &InputOptions::default())?;
        Ok(columns.into_iter().map(|c| (c.name, c.column_type.to_string())).collect())
    }

    fn types(found: &[(String, String)]) -> Vec<&str> {
        found.iter().map(|(_, t)| t.as_str()).collect()
    }

    #[test]
    fn csv_columns_get_the_most_special_type_that_fits_all_values() {
        let found = inferred(
            "a.csv",
            "i,u,f,b,d,t,s,zip,none,1or2\n1,1,1,true,2026-01-31,2026-01-31T10:00:00Z,x,00123,,1\n\
             -2,18446744073709551615,1.5,FALSE,2026-02-01,2026-01-31,2026-01-31,10001,,two\n",
        )
        .unwrap();
        let expected =
            ["Int64", "Uint64", "Double", "Bool", "Date", "Timestamp", "Utf8", "Utf8", "Utf8", "Utf8"];
        assert_eq!(types(&found), expected);
    }

    #[test]
    fn ndjson_keeps_the_types_of_json_and_finds_times_in_strings() {
        let found = inferred(
            "a.jsonl",
            "{\"i\": 1, \"s\": \"1\", \"t\": \"2026-01-31T10:00:00Z\", \"l\": [1], \"b\": true}\n{\"i\": 2, \"f\": 1.5}\n",
        )
        .unwrap();
        let by_name: std::collections::BTreeMap<_, _> = found.into_iter().collect();
        let expected = [
            ("b", "Bool"),
            ("f", "Double"),
            ("i", "Int64"),
            ("l", "Json"),
            ("s", "Utf8"),
            ("t", "Timestamp"),
        ];
        assert_eq!(by_name, expected.into_iter().map(|(n, t)| (n.to_owned(), t.to_owned())).collect());
    }

    #[test]
    fn a_file_without_records_is_refused() {
        assert!(matches!(inferred("a.csv", "a,b\n"), Err(SourceError::Infer { .. })));
        assert!(matches!(inferred("a.csv", ""), Err(SourceError::Empty { .. })));
    }
}
