//! Columns and rows to read from a columnar file.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use arrow::datatypes::Schema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderBuilder, ArrowReaderMetadata, RowSelection};
use parquet::file::metadata::ParquetMetaData;

use crate::source::error::SourceError;
use crate::source::options::{InputOptions, READ_BATCH_BYTES};

/// Returns the positions of the requested columns in the file, and the names of the others. A
/// requested name that appears twice is rejected.
pub(super) fn split_columns(
    file: &str,
    schema: &Schema,
    columns: &[String],
) -> Result<(Vec<usize>, Vec<String>), SourceError> {
    let mut wanted = Vec::new();
    let mut unknown = Vec::new();
    for column in columns {
        if schema.fields().iter().filter(|field| field.name() == column).count() > 1 {
            return Err(SourceError::RepeatedColumn { file: file.to_owned(), column: column.clone() });
        }
    }
    for (index, field) in schema.fields().iter().enumerate() {
        if columns.contains(field.name()) { wanted.push(index) } else { unknown.push(field.name().clone()) }
    }
    Ok((wanted, unknown))
}

/// Part of a Parquet file to read.
#[derive(Clone)]
pub(super) struct Selection {
    /// Positions of the columns in the file.
    columns: Vec<usize>,
    groups: Vec<usize>,
    /// Number of rows to skip at the beginning of those groups; `most` limits the rows to read
    /// after them.
    skipped: usize,
    most: Option<usize>,
    /// Rows of those groups to read, if not all.
    chosen: Option<RowSelection>,
    /// Number of rows before the first one that is read.
    pub(super) first_row: u64,
    /// Number of rows in the whole file.
    pub(super) row_count: u64,
    pub(super) unknown: Vec<String>,
    batch_rows: usize,
}

impl Selection {
    pub(super) fn new(
        file: &str,
        schema: &Schema,
        metadata: &ArrowReaderMetadata,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let (mut wanted, unknown) = split_columns(file, schema, columns)?;
        let is_unprojected = |index: &usize| {
            let field = schema.field(*index);
            options.unprojected.get(field.name()) == Some(field.data_type())
        };
        wanted.retain(|index| !is_unprojected(index));
        let metadata = metadata.metadata();
        let groups = metadata.row_groups();
        let bytes: i64 = groups.iter().map(|group| group.total_byte_size()).sum();
        let rows: i64 = groups.iter().map(|group| group.num_rows()).sum();
        let row_bytes = usize::try_from(bytes / rows.max(1)).unwrap_or(0).max(1);
        let rows_of: Vec<u64> =
            groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).collect();
        let wanted_groups = match &options.rows {
            Some(rows) => groups_with(&rows_of, rows),
            None => (0, groups.len()),
        };
        if !options.places.is_empty() {
            let (groups, chosen) = groups_and_rows(&rows_of, &options.places);
            return Ok(Self {
                groups,
                skipped: 0,
                most: None,
                chosen: Some(chosen),
                // The numbers of the rows no longer match their positions in the file.
                first_row: 0,
                row_count: rows_of.iter().sum(),
                columns: wanted,
                unknown,
                batch_rows: (READ_BATCH_BYTES / row_bytes).clamp(1, options.batch_rows.max(1)),
            });
        }
        let rows_before = rows_of.iter().take(wanted_groups.0).sum();
        let first_row = options.rows.as_ref().map_or(rows_before, |rows| rows.start.max(rows_before));
        let most = options.rows.as_ref().map(|rows| rows.end.saturating_sub(first_row));
        let length = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        Ok(Self {
            groups: (wanted_groups.0..wanted_groups.1).collect(),
            skipped: length(first_row - rows_before),
            most: most.map(length),
            chosen: None,
            first_row,
            row_count: rows_of.iter().sum(),
            columns: wanted,
            unknown,
            batch_rows: (READ_BATCH_BYTES / row_bytes).clamp(1, options.batch_rows.max(1)),
        })
    }

    /// Returns the positions in the file of the columns to read, in ascending order.
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Splits the columns into at most `most` parts that take about the same time to decode, with
    /// at least `least` bytes (stored and decoded) on average.
    pub(super) fn split(&self, metadata: &ParquetMetaData, most: usize, least: u64) -> Vec<Self> {
        let schema = metadata.file_metadata().schema_descr();
        let mut bytes: BTreeMap<usize, u64> = self.columns.iter().map(|column| (*column, 0)).collect();
        for group in self.groups.iter().filter_map(|group| metadata.row_groups().get(*group)) {
            for (leaf, chunk) in group.columns().iter().enumerate() {
                if let Some(bytes) = bytes.get_mut(&schema.get_column_root_idx(leaf)) {
                    let both = chunk.compressed_size().saturating_add(chunk.uncompressed_size());
                    *bytes += u64::try_from(both).unwrap_or(0);
                }
            }
        }
        let all: u64 = bytes.values().sum();
        let count = usize::try_from(all / least.max(1)).unwrap_or(usize::MAX).clamp(1, most.max(1));
        let mut parts = vec![(0, Vec::new()); count.min(self.columns.len().max(1))];
        // The largest first, each to the smallest part so far.
        let mut columns: Vec<(usize, u64)> = bytes.into_iter().collect();
        columns.sort_by_key(|(column, bytes)| (Reverse(*bytes), *column));
        for (column, bytes) in columns {
            if let Some((sum, part)) = parts.iter_mut().min_by_key(|(sum, part)| (*sum, part.len())) {
                *sum += bytes;
                part.push(column);
            }
        }
        let parts = parts.into_iter().map(|(_, mut columns)| {
            columns.sort_unstable();
            Self { columns, ..self.clone() }
        });
        parts.collect()
    }

    /// Configures a builder to read this selection.
    pub(super) fn configure<T>(&self, builder: ArrowReaderBuilder<T>) -> ArrowReaderBuilder<T> {
        let mask = ProjectionMask::roots(builder.parquet_schema(), self.columns.iter().copied());
        let builder = builder
            .with_projection(mask)
            .with_row_groups(self.groups.clone())
            .with_batch_size(self.batch_rows);
        let builder = match &self.chosen {
            Some(chosen) => builder.with_row_selection(chosen.clone()),
            None => builder,
        };
        let builder = if self.skipped > 0 { builder.with_offset(self.skipped) } else { builder };
        match self.most {
            Some(most) => builder.with_limit(most),
            None => builder,
        }
    }
}

/// Returns the position of the first row group that has some of these rows, and the position after
/// the last; `rows_of` holds the number of rows of each group.
fn groups_with(rows_of: &[u64], rows: &Range<u64>) -> (usize, usize) {
    let ends = rows_of.iter().scan(0, |end, rows| {
        *end += rows;
        Some(*end)
    });
    let start = ends.clone().take_while(|end| *end <= rows.start).count();
    let begins = std::iter::once(0).chain(ends).take(rows_of.len());
    (start, begins.take_while(|begin| *begin < rows.end).count().max(start))
}

/// Returns the row groups that have rows of these places, and the selection of those rows among the
/// rows of these groups.
fn groups_and_rows(rows_of: &[u64], places: &[Range<u64>]) -> (Vec<usize>, RowSelection) {
    let (mut groups, mut ranges) = (Vec::new(), Vec::new());
    let (mut begin, mut before, mut rows_of_groups) = (0u64, 0usize, 0usize);
    for (group, rows) in rows_of.iter().enumerate() {
        let end = begin + rows;
        let within = |row: u64| usize::try_from(row.clamp(begin, end) - begin).unwrap_or(usize::MAX);
        let here = places.iter().filter(|place| place.start < end && place.end > begin);
        ranges.extend(here.map(|place| before + within(place.start)..before + within(place.end)));
        if ranges.last().is_some_and(|range: &Range<usize>| range.end > before) {
            groups.push(group);
            rows_of_groups += within(end);
            before += within(end);
        }
        begin = end;
    }
    (groups, RowSelection::from_consecutive_ranges(ranges.into_iter(), rows_of_groups))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use parquet::arrow::arrow_reader::RowSelector;

    use super::*;

    /// Numbers of rows of the row groups of some files, each of eight rows.
    const FILES: [&[u64]; 5] = [&[8], &[3, 1, 4], &[2, 0, 6], &[0, 5, 3, 0], &[1; 8]];

    /// Returns the group of each row of a file.
    fn group_of_row(rows_of: &[u64]) -> Vec<usize> {
        let rows = |(group, rows): (usize, &u64)| std::iter::repeat_n(group, *rows as usize);
        rows_of.iter().enumerate().flat_map(rows).collect()
    }

    #[test]
    fn the_groups_of_a_range_are_those_of_its_rows() {
        for rows_of in FILES {
            let groups = group_of_row(rows_of);
            for (start, end) in (0..10).flat_map(|start| (start..12).map(move |end| (start, end))) {
                let (first, last) = groups_with(rows_of, &(start..end));
                assert!(first <= last && last <= rows_of.len(), "{rows_of:?} {start}..{end}");
                for (row, group) in groups.iter().enumerate() {
                    let is_wanted = (start..end).contains(&(row as u64));
                    assert!(!is_wanted || (first..last).contains(group), "{rows_of:?} {start}..{end} {row}");
                }
                // The range begins in the first of these groups, whose rows before it are skipped.
                let before: u64 = rows_of[..first].iter().sum();
                assert!(before <= start, "{rows_of:?} {start}..{end}");
                assert!(start >= 8 || start < before + rows_of[first], "{rows_of:?} {start}..{end}");
            }
        }
    }

    #[test]
    fn places_select_their_rows_and_the_groups_that_have_any() {
        for (rows_of, rows) in FILES.iter().flat_map(|file| (1u8..=255).map(move |rows| (file, rows))) {
            let groups = group_of_row(rows_of);
            let is_chosen = |row: usize| rows >> row & 1 == 1;
            let mut places: Vec<Range<u64>> = Vec::new();
            for row in (0..8u64).filter(|row| is_chosen(*row as usize)) {
                match places.last_mut() {
                    Some(place) if place.end == row => place.end += 1,
                    _ => places.push(row..row + 1),
                }
            }
            let mut expected: Vec<usize> =
                (0..8).filter(|row| is_chosen(*row)).map(|row| groups[row]).collect();
            expected.dedup();
            let (found, selection) = groups_and_rows(rows_of, &places);
            assert_eq!(found, expected, "{rows_of:?} {places:?}");
            let selectors: Vec<RowSelector> = selection.into();
            let selected: Vec<bool> =
                selectors.iter().flat_map(|part| std::iter::repeat_n(!part.skip, part.row_count)).collect();
            let expected: Vec<bool> =
                (0..8).filter(|row| found.contains(&groups[*row])).map(is_chosen).collect();
            assert_eq!(selected, expected, "{rows_of:?} {places:?}");
        }
    }

    #[test]
    fn columns_are_split_by_name_and_a_name_twice_is_refused() {
        let fields = ["a", "b", "c", "b"].map(|name| Field::new(name, DataType::Int64, true));
        let schema = Schema::new(fields.to_vec());
        let split = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            split_columns("x.parquet", &schema, &names)
        };
        let (wanted, unknown) = split(&["c", "a", "z"]).unwrap();
        assert_eq!((wanted, unknown), (vec![0, 2], vec!["b".to_owned(), "b".to_owned()]));
        let error = split(&["a", "b"]).unwrap_err();
        assert!(matches!(error, SourceError::RepeatedColumn { column, .. } if column == "b"));
    }
}
