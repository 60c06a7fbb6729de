//! NDJSON: reads objects into columns of text cells.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::{BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::BinaryBuilder;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::source::error::SourceError;
use crate::source::extended_json::{self, Kind};
use crate::source::format::MAX_RECORD_BYTES;
use crate::source::options::{InputOptions, PART_BYTES, READ_BATCH_BYTES};
use crate::source::raw::{Positions, RawBatch, RawCells, RawPart, RawReader, UnreadText};
use crate::source::reject::{Reject, RowPosition};
use crate::source::stream::{TextStream, buffered, drain};
use evenkeel_model::bounded::quote;
use evenkeel_model::note::Fault;

/// Maximum number of unknown names to remember; objects may have any number of them.
const UNKNOWN_NAMES: usize = 100;

/// Reads one JSON object per line. A string becomes its text, `null` becomes NULL, a value of
/// Extended JSON its text, and anything else its JSON text.
pub(super) struct NdjsonReader {
    file: String,
    stream: TextStream,
    objects: Arc<Objects>,
    line: u64,
    /// Number of blocks of lines read.
    blocks: usize,
    batch_rows: usize,
}

/// Columns of a file, and names that are not among them, for all threads that read its objects.
struct Objects {
    file: String,
    columns: Vec<String>,
    index: HashMap<String, usize>,
    unknown: Mutex<UnknownNames>,
    /// Whether numbers have decimal commas; JSON numbers are rewritten to match.
    has_decimal_commas: bool,
}

/// Names that are not columns. They are collected in the order of blocks, whichever thread reads
/// them, so that the first ones are always the same.
#[derive(Default)]
struct UnknownNames {
    names: BTreeSet<String>,
    /// Number of blocks collected.
    blocks: usize,
    /// Names of later blocks.
    waiting: BTreeMap<usize, BTreeSet<String>>,
}

impl UnknownNames {
    fn add(&mut self, block: usize, names: BTreeSet<String>) {
        self.waiting.insert(block, names);
        while let Some(names) = self.waiting.remove(&self.blocks) {
            self.blocks += 1;
            for name in names {
                if self.names.len() < UNKNOWN_NAMES {
                    self.names.insert(name);
                }
            }
        }
    }
}

/// Consecutive lines of a file.
struct Lines {
    /// Number of blocks before.
    block: usize,
    text: Vec<u8>,
    /// Number of each line that is not blank, and its end in the text.
    ends: Vec<(u64, usize)>,
}

impl NdjsonReader {
    pub(super) fn open(
        file: &str,
        stream: Box<dyn std::io::Read + Send>,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |source| SourceError::Read { file: file.to_owned(), source };
        let mut stream = buffered(stream);
        let head = stream.fill_buf().map_err(error)?;
        let text = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
        let bom_bytes = head.len() - text.len();
        if text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return Err(SourceError::JsonArray { file: file.to_owned() });
        }
        stream.consume(bom_bytes);
        Ok(Self {
            file: file.to_owned(),
            stream,
            objects: Arc::new(Objects {
                file: file.to_owned(),
                columns: columns.to_vec(),
                index: columns.iter().cloned().zip(0..).collect(),
                unknown: Mutex::default(),
                has_decimal_commas: options.text.decimal_comma,
            }),
            line: 0,
            blocks: 0,
            batch_rows: options.batch_rows.max(1),
        })
    }

    /// Reads the lines of a batch, and stops once they have `most_bytes` bytes; `None` at the end.
    fn next_lines(&mut self, most_bytes: usize) -> Result<Option<Lines>, SourceError> {
        let read_error = |source| SourceError::Read { file: self.file.clone(), source };
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        while ends.len() < self.batch_rows && text.len() < most_bytes {
            let begin = text.len();
            let limit = MAX_RECORD_BYTES as u64 + 1;
            let count = (&mut self.stream).take(limit).read_until(b'\n', &mut text).map_err(read_error)?;
            if count == 0 {
                break;
            }
            self.line += 1;
            if count > MAX_RECORD_BYTES {
                return Err(SourceError::RecordTooLong { file: self.file.clone(), line: self.line });
            }
            match text.get(begin..).is_none_or(|line| line.trim_ascii().is_empty()) {
                // Blank lines do not count: a batch without rows would be the end of the file.
                true => text.truncate(begin),
                false => ends.push((self.line, text.len())),
            }
        }
        if ends.is_empty() {
            drain(&mut self.stream).map_err(read_error)?;
            return Ok(None);
        }
        self.blocks += 1;
        Ok(Some(Lines { block: self.blocks - 1, text, ends }))
    }
}

impl Objects {
    /// Reads the objects of some lines.
    fn read(&self, lines: &Lines) -> RawBatch {
        let mut builders: Vec<BinaryBuilder> = self.columns.iter().map(|_| BinaryBuilder::new()).collect();
        let (mut numbers, mut broken) = (Vec::new(), Vec::new());
        let mut unknown = BTreeSet::new();
        let mut begin = 0;
        for (number, end) in &lines.ends {
            let line = lines.text.get(begin..*end).unwrap_or_default().trim_ascii();
            begin = *end;
            let mut cells: Vec<Option<Option<Cow<'_, str>>>> = vec![None; self.columns.len()];
            let object = Object {
                columns: &self.columns,
                index: &self.index,
                cells: &mut cells,
                unknown: &mut unknown,
                has_decimal_commas: self.has_decimal_commas,
            };
            // Checked as a whole, because otherwise each string and value would be checked
            // separately.
            let read = match std::str::from_utf8(line) {
                Ok(line) => object.read(serde_json::Deserializer::from_str(line)),
                Err(_) => object.read(serde_json::Deserializer::from_slice(line)),
            };
            match read {
                Ok(()) => {
                    numbers.push(*number);
                    for (builder, cell) in builders.iter_mut().zip(cells) {
                        builder.append_option(cell.flatten().as_deref().map(str::as_bytes));
                    }
                }
                Err(error) => broken.push(Reject {
                    file: self.file.clone(),
                    position: RowPosition::Line(*number),
                    column: None,
                    reason: Fault::in_row(format!("is not a JSON object: {}", plain_reason(&error))),
                    record: [("line".to_owned(), String::from_utf8_lossy(line).into())].into_iter().collect(),
                }),
            }
        }
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).add(lines.block, unknown);
        let cells =
            self.columns.iter().cloned().zip(builders.iter_mut().map(BinaryBuilder::finish)).collect();
        let (cells, positions) = (RawCells::Text(cells), Positions::Lines(numbers));
        RawBatch { cells, positions, broken, is_json: true }
    }
}

impl RawReader for NdjsonReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        Ok(self.next_lines(READ_BATCH_BYTES)?.map(|lines| self.objects.read(&lines)))
    }

    fn next_part(&mut self) -> Result<Option<RawPart>, SourceError> {
        let Some(lines) = self.next_lines(PART_BYTES)? else { return Ok(None) };
        let objects = Arc::clone(&self.objects);
        let (bytes, rows, columns) = (lines.text.len(), lines.ends.len(), objects.columns.len());
        let read = Box::new(move || vec![Ok(objects.read(&lines))]);
        Ok(Some(RawPart::Text(UnreadText::new(bytes, rows, columns, read))))
    }

    fn unknown_columns(&self) -> Vec<String> {
        let unknown = self.objects.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        unknown.names.iter().cloned().collect()
    }
}

/// Removes the line from a parser error: the parser counts lines within the one line it sees, so
/// only the column is useful.
fn plain_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    let hint = if error.is_eof() { "; write each object on one line, as 'jq -c .' does" } else { "" };
    format!("{reason} (character {}){hint}", error.column())
}

/// Collects the cells of one object.
struct Object<'a, 'line> {
    columns: &'a [String],
    index: &'a HashMap<String, usize>,
    /// `None` until the column is found.
    cells: &'a mut Vec<Option<Option<Cow<'line, str>>>>,
    unknown: &'a mut BTreeSet<String>,
    has_decimal_commas: bool,
}

impl<'line> Object<'_, 'line> {
    /// Reads a line, which must be one object.
    fn read<R: serde_json::de::Read<'line>>(
        self,
        mut line: serde_json::Deserializer<R>,
    ) -> Result<(), serde_json::Error> {
        self.deserialize(&mut line)?;
        line.end()
    }
}

impl<'de> DeserializeSeed<'de> for Object<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // Members are mostly in the order of the columns, which saves a search.
        let mut next = 0;
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let is_next = self.columns.get(next).is_some_and(|column| column == name.0.as_ref());
            let column = if is_next { Some(next) } else { self.index.get(name.0.as_ref()).copied() };
            next = column.map_or(next, |column| column + 1);
            let Some(slot) = column.and_then(|column| self.cells.get_mut(column)) else {
                if self.unknown.len() < UNKNOWN_NAMES {
                    self.unknown.insert(quote(&name.0).to_string());
                }
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let raw: &'de RawValue = map.next_value()?;
            if slot.is_some() {
                return Err(serde::de::Error::custom(format!("it names '{}' twice", quote(&name.0))));
            }
            *slot = Some(match raw.get() {
                "null" => None,
                text if text.starts_with('"') => Some(match without_escapes(text) {
                    Some(plain) => Cow::Borrowed(plain),
                    None => serde_json::from_str::<Name<'de>>(text).map_err(serde::de::Error::custom)?.0,
                }),
                text => {
                    let (is_number, value) = match extended_json::read(text) {
                        Some((kind, value)) => (kind == Kind::Number, value),
                        None => (!text.starts_with(['[', '{']), Some(Cow::Borrowed(text))),
                    };
                    match value {
                        Some(number) if is_number && self.has_decimal_commas && number.contains('.') => {
                            Some(Cow::Owned(number.replacen('.', ",", 1)))
                        }
                        value => value,
                    }
                }
            });
        }
        Ok(())
    }
}

/// The members of objects, each with the kinds of its values; objects without it count as NULL.
pub(super) type Members = Vec<(String, BTreeSet<Kind>)>;

/// Kinds of the values of each member of the first objects of a stream, in the order in which the
/// members are first seen.
///
/// # Errors
/// The problem of a line that is not an object, with its number.
pub(super) fn kinds(stream: impl BufRead, most: usize) -> Result<Members, (u64, String)> {
    let mut kinds = Kinds { members: Vec::new(), counts: Vec::new(), index: HashMap::new() };
    let (mut stream, mut text, mut line, mut count) = (stream, Vec::new(), 0, 0);
    while count < most {
        text.clear();
        line += 1;
        let read = (&mut stream).take(MAX_RECORD_BYTES as u64 + 1).read_until(b'\n', &mut text);
        if read.map_err(|error| (line, error.to_string()))? == 0 {
            break;
        }
        let object = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text).trim_ascii();
        if object.is_empty() {
            continue;
        }
        let mut deserializer = serde_json::Deserializer::from_slice(object);
        let read = deserializer.deserialize_map(&mut kinds).and_then(|()| deserializer.end());
        read.map_err(|error| (line, plain_reason(&error)))?;
        count += 1;
    }
    let Kinds { mut members, counts, .. } = kinds;
    for ((_, kinds), _) in members.iter_mut().zip(counts).filter(|(_, with_member)| *with_member < count) {
        kinds.insert(Kind::Null);
    }
    Ok(members)
}

struct Kinds {
    members: Members,
    /// Number of objects that have each member.
    counts: Vec<usize>,
    index: HashMap<String, usize>,
}

impl<'de> Visitor<'de> for &mut Kinds {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let raw: &'de RawValue = map.next_value()?;
            let kind = match raw.get().as_bytes() {
                [b'"', ..] => Kind::Text,
                [b't' | b'f', ..] => Kind::Bool,
                [b'n', ..] => Kind::Null,
                [b'{', ..] => extended_json::read(raw.get()).map_or(Kind::Nested, |(kind, _)| kind),
                [b'[', ..] => Kind::Nested,
                _ => Kind::Number,
            };
            let position = match self.index.get(name.0.as_ref()) {
                Some(position) => *position,
                None => {
                    self.index.insert(name.0.clone().into_owned(), self.members.len());
                    self.members.push((name.0.into_owned(), BTreeSet::new()));
                    self.counts.push(0);
                    self.members.len() - 1
                }
            };
            if let Some(((_, kinds), count)) =
                self.members.get_mut(position).zip(self.counts.get_mut(position))
            {
                kinds.insert(kind);
                *count += 1;
            }
        }
        Ok(())
    }
}

/// Returns the text of a valid JSON string that has no escapes.
fn without_escapes(string: &str) -> Option<&str> {
    let text = string.strip_prefix('"')?.strip_suffix('"')?;
    (!text.as_bytes().contains(&b'\\')).then_some(text)
}

/// A string, borrowed from the line if it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
#[path = "ndjson_tests.rs"]
mod tests;
