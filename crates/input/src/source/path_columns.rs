//! Columns whose values are in the path of a file: `dt=2026-01-31/country=FI/part-0.parquet`, as
//! written by Hive, Spark and DuckDB.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StringArray, new_null_array,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use percent_encoding::percent_decode_str;

use crate::source::error::SourceError;
use crate::source::guess::type_of_values;
use crate::source::input_path::InputPath;
use crate::source::options::{CELL_BYTES, InputOptions};
use crate::source::raw::{PathColumn, Positions, RawBatch, RawCells, RawPart, RawReader, UnreadText};
use crate::source::repeated_names::RenamedColumn;
use crate::source::type_names::TypedColumns;
use evenkeel_model::bounded::quote;
use evenkeel_model::table::ColumnType;

/// Folder name that means NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the columns in the names of the folders right above a file, the outermost first.
pub(super) fn path_columns(path: &Path) -> Vec<PathColumn> {
    let folders = path.parent().into_iter().flat_map(Path::ancestors);
    let names = folders.map_while(|folder| column_of(folder.file_name()?.to_str()?));
    let mut columns: Vec<PathColumn> = Vec::new();
    for column in names {
        // The innermost of two folders of one name counts.
        if columns.iter().all(|inner| inner.name != column.name) {
            columns.push(column);
        }
    }
    columns.reverse();
    columns
}

fn column_of(folder: &str) -> Option<PathColumn> {
    let (name, value) = folder.split_once('=')?;
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned());
    let name = decoded(name).filter(|name| !name.is_empty() && !name.contains(char::is_control))?;
    // Hive has no empty text in a path.
    let is_null = value.is_empty() || value == NULL;
    let value = if is_null { None } else { Some(decoded(value)?) };
    Some(PathColumn { name, value })
}

/// Returns the type that fits all values of each column in the paths of the inputs; `None` if there
/// are only NULLs.
pub(super) fn path_column_types(
    inputs: &[InputPath],
    options: &InputOptions,
) -> BTreeMap<String, Option<ColumnType>> {
    let mut values: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    for input in inputs {
        for PathColumn { name, value } in input.path().map(path_columns).unwrap_or_default() {
            values.entry(name).or_default().push(value);
        }
    }
    let column_type = |(name, values): (String, Vec<Option<String>>)| {
        let cells: BinaryArray = values.iter().map(|value| value.as_ref().map(String::as_bytes)).collect();
        let column_type = type_of_values(std::iter::once(&cells), &options.text_of(&name), false);
        (name, column_type)
    };
    values.into_iter().map(column_type).collect()
}

/// Adds the columns of the path to the rows of a file.
pub(super) struct WithPathColumns {
    inner: Box<dyn RawReader>,
    added: Arc<AddedColumns>,
    schema: Option<SchemaRef>,
}

/// Columns of the path of a file, for all threads that read its rows.
struct AddedColumns {
    /// Columns that the file itself does not have.
    columns: Vec<PathColumn>,
    /// Whether each of these columns is requested.
    wanted: Vec<bool>,
}

impl WithPathColumns {
    /// Adds the requested path columns to each row of `inner`. A column of the file takes
    /// precedence.
    pub(super) fn new(inner: Box<dyn RawReader>, columns: Vec<PathColumn>, requested: &[String]) -> Self {
        let known = inner.column_names().unwrap_or_default();
        let columns: Vec<PathColumn> =
            columns.into_iter().filter(|column| !known.contains(&column.name)).collect();
        let wanted = columns.iter().map(|column| requested.contains(&column.name)).collect();
        let field = |column: &PathColumn| Arc::new(Field::new(&column.name, DataType::Utf8, true));
        let schema = inner.file_schema().map(|schema| {
            let fields = schema.fields().iter().cloned().chain(columns.iter().map(field));
            Arc::new(Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone()))
        });
        Self { inner, added: Arc::new(AddedColumns { columns, wanted }), schema }
    }
}

impl AddedColumns {
    fn requested(&self) -> impl Iterator<Item = &PathColumn> {
        self.columns.iter().zip(&self.wanted).filter(|(_, wanted)| **wanted).map(|(column, _)| column)
    }

    fn text(&self, mut cells: Vec<(String, BinaryArray)>, rows: usize) -> RawCells {
        for column in self.requested() {
            let value = column.value.as_ref().map(String::as_bytes);
            match cells.iter_mut().find(|(name, _)| *name == column.name) {
                Some((_, members)) if value.is_none() || members.null_count() == 0 => {}
                // A value in a JSON object takes precedence, row by row, because rows may come in
                // any batches; NULL does not.
                Some((_, members)) => {
                    *members = members.iter().map(|member| member.or(value)).collect();
                }
                None => cells.push((column.name.clone(), std::iter::repeat_n(value, rows).collect())),
            }
        }
        RawCells::Text(cells)
    }

    fn arrays(&self, batch: &RecordBatch) -> Result<RawCells, SourceError> {
        let rows = batch.num_rows();
        let value = |column: &PathColumn| -> ArrayRef {
            match &column.value {
                Some(value) => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, rows))),
                None => new_null_array(&DataType::Utf8, rows),
            }
        };
        let field = |column: &PathColumn| Arc::new(Field::new(&column.name, DataType::Utf8, true));
        let fields: Fields =
            batch.schema().fields().iter().cloned().chain(self.requested().map(field)).collect();
        let arrays = batch.columns().iter().cloned().chain(self.requested().map(value)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::new(Schema::new_with_metadata(fields, batch.schema().metadata().clone()));
        RecordBatch::try_new_with_options(schema, arrays, &options)
            .map(RawCells::Arrow)
            .map_err(|source| SourceError::Arrow { file: "columns of the path".to_owned(), source })
    }

    /// Adds the requested columns to rows.
    fn add(&self, batch: RawBatch) -> Result<RawBatch, SourceError> {
        let cells = match batch.cells {
            RawCells::Text(cells) => {
                let rows = match (&batch.positions, cells.first()) {
                    (_, Some((_, values))) => values.len(),
                    (Positions::Lines(lines), None) => lines.len(),
                    (Positions::RowsFrom(_), None) => 0,
                };
                self.text(cells, rows)
            }
            RawCells::Arrow(arrays) => self.arrays(&arrays)?,
        };
        Ok(RawBatch { cells, ..batch })
    }

    /// Bytes that the requested columns add to a row.
    fn row_bytes(&self) -> usize {
        let value_bytes = |column: &PathColumn| column.value.as_ref().map_or(0, String::len);
        self.requested().map(|column| value_bytes(column) + CELL_BYTES).sum()
    }
}

impl RawReader for WithPathColumns {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        self.inner.next_batch()?.map(|batch| self.added.add(batch)).transpose()
    }

    fn next_part(&mut self) -> Result<Option<RawPart>, SourceError> {
        let part = match self.inner.next_part()? {
            None => return Ok(None),
            Some(RawPart::Read(batch)) => RawPart::Read(self.added.add(batch)?),
            Some(RawPart::Text(UnreadText { bytes, rows, read })) => {
                let added = Arc::clone(&self.added);
                let bytes = bytes.saturating_add(rows.saturating_mul(added.row_bytes()));
                let add = move |batch: Result<RawBatch, SourceError>| added.add(batch?);
                let read = Box::new(move || read().into_iter().map(add).collect());
                RawPart::Text(UnreadText { bytes, rows, read })
            }
        };
        Ok(Some(part))
    }

    fn unknown_columns(&self) -> Vec<String> {
        let mut unknown = self.inner.unknown_columns();
        let others = self.added.columns.iter().zip(&self.added.wanted).filter(|(_, wanted)| !**wanted);
        let others = others.map(|(column, _)| quote(&column.name).to_string());
        let others: Vec<String> = others.filter(|name| !unknown.contains(name)).collect();
        unknown.extend(others);
        unknown
    }

    fn column_names(&self) -> Option<Vec<String>> {
        let mut names = self.inner.column_names()?;
        names.extend(self.added.columns.iter().map(|column| column.name.clone()));
        Some(names)
    }

    fn renamed_columns(&self) -> &[RenamedColumn] {
        self.inner.renamed_columns()
    }

    fn path_columns(&self) -> &[PathColumn] {
        &self.added.columns
    }

    fn declared_columns(&self) -> Option<&TypedColumns> {
        self.inner.declared_columns()
    }

    fn row_count(&self) -> Option<u64> {
        self.inner.row_count()
    }

    fn file_schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    fn extremes(&self, column: &str) -> Option<(i64, i64)> {
        self.inner.extremes(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::escaped::EscapedReader;
    use crate::source::lines::tests::rows_in_lines;
    use crate::source::ndjson::NdjsonReader;

    fn path_columns_of(path: &str) -> Vec<(String, Option<String>)> {
        path_columns(Path::new(path)).into_iter().map(|column| (column.name, column.value)).collect()
    }

    #[test]
    fn folders_right_above_a_file_give_columns() {
        let pair = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(
            path_columns_of("t/dt=2026-01-31/c=FI/a.csv"),
            [pair("dt", "2026-01-31"), pair("c", "FI")]
        );
        assert_eq!(path_columns_of("dt=1/data/a.csv"), []);
        assert_eq!(path_columns_of("/x=1/y/dt=2/a.csv"), [pair("dt", "2")]);
        assert_eq!(path_columns_of("dt=a%3Ab%20c=d/a.csv"), [pair("dt", "a:b c=d")]);
        assert_eq!(path_columns_of(&format!("dt={NULL}/a.csv")), [("dt".to_owned(), None)]);
        assert_eq!(path_columns_of("dt=/a=b.csv"), [("dt".to_owned(), None)]);
        assert_eq!(path_columns_of("=1/a.csv"), []);
        assert_eq!(path_columns_of("a=1/a=2/x.csv"), [pair("a", "2")]);
        assert_eq!(path_columns_of("s3://bucket/t/dt=1/a.parquet"), [pair("dt", "1")]);
    }

    #[test]
    fn members_of_objects_precede_the_columns_of_the_path_in_any_batches() {
        let dt = "dt".to_owned();
        let text: String =
            (0..9).map(|row| if row % 4 == 1 { "{\"dt\": \"own\"}\n" } else { "{}\n" }).collect();
        let expected: Vec<&str> = (0..9).map(|row| if row % 4 == 1 { "own" } else { "path" }).collect();
        for batch_rows in 1..10 {
            let options = InputOptions { batch_rows, ..InputOptions::default() };
            let stream = Box::new(std::io::Cursor::new(text.clone().into_bytes()));
            let objects =
                NdjsonReader::open("x.ndjson", stream, std::slice::from_ref(&dt), &options).unwrap();
            let of_path = path_columns(Path::new("dt=path/x.ndjson"));
            let mut reader = WithPathColumns::new(Box::new(objects), of_path, std::slice::from_ref(&dt));
            let batches = std::iter::from_fn(|| reader.next_batch().unwrap());
            let found: Vec<String> =
                batches.flat_map(rows_in_lines).map(|(_, mut cells)| cells.pop().unwrap().unwrap()).collect();
            assert_eq!(found, expected, "{batch_rows}");
        }
    }

    #[test]
    fn rows_that_other_threads_read_have_the_columns_of_the_path() {
        let open = || {
            let names = ["dt", "b", "c"].map(str::to_owned);
            let text = "a\tb\n1\t2\n3\t\\N\n5\t6\n";
            let options = InputOptions { batch_rows: 2, ..InputOptions::default() };
            let stream = Box::new(text.as_bytes());
            let rows = EscapedReader::open_with_header("x.tsv", stream, &names, &options).unwrap();
            WithPathColumns::new(Box::new(rows), path_columns(Path::new("c=/b=9/dt=2026-01-31/x")), &names)
        };
        let some = |text: &str| Some(text.to_owned());
        let row = |line: u64, b: Option<String>| (line, vec![b, None, some("2026-01-31")]);
        let expected = [row(2, some("2")), row(3, None), row(4, some("6"))];
        let mut reader = open();
        let batches = std::iter::from_fn(|| reader.next_batch().unwrap());
        assert_eq!(batches.flat_map(rows_in_lines).collect::<Vec<_>>(), expected);
        let mut reader = open();
        let parts = std::iter::from_fn(|| reader.next_part().unwrap());
        let batches = parts.flat_map(RawPart::read).map(Result::unwrap);
        assert_eq!(batches.flat_map(rows_in_lines).collect::<Vec<_>>(), expected);
    }
}
