//! Encodes columns as the bytes of keys.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::simulate::design::generator::Generator;
use crate::simulate::design::part::Part;
use crate::simulate::error::SimulateError;
use crate::simulate::splits::Key;
use evenkeel_model::table::Column;

/// Encodes columns as the bytes of keys, in up to three sections: the first column, the rest of the
/// root's key, and everything after it.
#[derive(Debug)]
pub(super) struct Encoder {
    sections: Vec<RowConverter>,
    /// Number of columns in each section.
    columns: Vec<usize>,
    /// Tag that follows the root's key.
    tag: Option<u8>,
    /// Number of sections of the root's key.
    root_sections: usize,
}

/// Entries of a batch.
pub(crate) struct Entries {
    sections: Vec<Rows>,
    tag: Option<u8>,
    root_sections: usize,
    /// Size of each entry, in bytes.
    bytes: Vec<u32>,
    /// Whether each row lacks an entry; `None` if all rows have one.
    missing: Option<Vec<bool>>,
}

impl Encoder {
    /// Creates the encoder of keys with these parts. The generated ones come from `generator`.
    pub(super) fn new(
        parts: &[Part],
        columns: &[Column],
        generator: Option<&Generator>,
    ) -> Result<Self, SimulateError> {
        let tag = parts.iter().find_map(|part| if let Part::Tag(tag) = part { Some(*tag) } else { None });
        let mut groups: Vec<Vec<SortField>> = vec![Vec::new()];
        let mut root_sections = usize::MAX;
        for part in parts {
            let first_is_full = groups.len() == 1 && groups.first().is_some_and(|group| !group.is_empty());
            if matches!(part, Part::Tag(_)) {
                root_sections = groups.len();
                groups.push(Vec::new());
                continue;
            }
            if first_is_full {
                groups.push(Vec::new());
            }
            if let Some(group) = groups.last_mut() {
                group.push(sort_field(part, columns, generator));
            }
        }
        let groups: Vec<Vec<SortField>> = groups.into_iter().filter(|group| !group.is_empty()).collect();
        let columns = groups.iter().map(Vec::len).collect();
        let root_sections = root_sections.min(groups.len());
        let sections = groups.into_iter().map(RowConverter::new).collect::<Result<_, _>>()?;
        Ok(Self { sections, columns, tag, root_sections })
    }

    /// Encodes the values of the parts, except for the tag. `bytes` are the sizes of the entries,
    /// and `missing` marks rows without an entry.
    pub(super) fn entries(
        &self,
        values: &[ArrayRef],
        bytes: Vec<u32>,
        missing: Option<Vec<bool>>,
    ) -> Result<Entries, SimulateError> {
        let mut rest = values;
        let mut sections = Vec::new();
        for (converter, count) in self.sections.iter().zip(&self.columns) {
            let (section, after) = rest.split_at((*count).min(rest.len()));
            sections.push(converter.convert_columns(section)?);
            rest = after;
        }
        Ok(Entries { sections, tag: self.tag, root_sections: self.root_sections, bytes, missing })
    }

    /// Returns the first column of keys, as text.
    pub(super) fn first_column<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Vec<String>, SimulateError> {
        let Some(converter) = self.sections.first() else { return Ok(Vec::new()) };
        let parser = converter.parser();
        let columns = converter.convert_rows(keys.map(|key| parser.parse(key)))?;
        let Some(column) = columns.first() else { return Ok(Vec::new()) };
        let format = FormatOptions::default().with_null("NULL");
        let text = ArrayFormatter::try_new(column, &format)?;
        Ok((0..column.len()).map(|row| text.value(row).to_string()).collect())
    }
}

fn sort_field(part: &Part, columns: &[Column], generator: Option<&Generator>) -> SortField {
    let data_type = match part {
        Part::Column(key) => match columns.get(key.column).map(|column| column.column_type.arrow_type()) {
            // Text is read as views.
            Some(DataType::Utf8) => DataType::Utf8View,
            other => other.unwrap_or(DataType::Int64),
        },
        Part::Generated(_) => generator.map_or(DataType::Int64, Generator::data_type),
        Part::Derived { .. } | Part::Tag(_) => DataType::Int64,
    };
    SortField::new_with_options(data_type, part.sort_options())
}

impl Entries {
    /// Returns the entry of a row and its size in bytes, or `None` if the row has no entry. Writes
    /// the key to `buffer`.
    #[inline]
    pub(crate) fn entry<'a>(&self, row: usize, buffer: &'a mut Vec<u8>) -> Option<(Key<'a>, u32)> {
        if self.missing.as_ref().is_some_and(|missing| missing.get(row) == Some(&true)) {
            return None;
        }
        buffer.clear();
        let (mut lead, mut root) = (0, 0);
        for (number, section) in self.sections.iter().enumerate() {
            if number == self.root_sections
                && let Some(tag) = self.tag
            {
                buffer.push(tag);
            }
            buffer.extend_from_slice(section.row(row).data());
            if number == 0 {
                lead = buffer.len();
            }
            if number + 1 == self.root_sections {
                root = buffer.len();
            }
        }
        if let (Some(tag), true) = (self.tag, self.root_sections == self.sections.len()) {
            buffer.push(tag);
        }
        let bytes = self.bytes.get(row).copied().unwrap_or(0);
        // If no other table shares the key space, each row is a root.
        let root = if self.tag.is_some() { root } else { buffer.len() };
        Some((Key { bytes: buffer, lead, root }, bytes))
    }
}
