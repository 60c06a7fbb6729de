//! The type of a column of text, from its values.

use arrow::array::{Array, AsArray, BinaryArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use evenkeel_model::note::{Fault, Note};
use evenkeel_model::table::ColumnType;
use evenkeel_model::text_value::{TextFormat, TimestampFormat, parse_text_column};
use evenkeel_model::time_reading::formats_like;

/// Types that a column may still have, the most specific first; Utf8, which fits everything, is
/// last.
pub(super) struct Guess {
    candidates: Vec<ColumnType>,
    pub(super) seen_value: bool,
    /// Whether the values are strings of JSON, so that a number was in quotes.
    is_quoted: bool,
    /// Whether the value is in the path of the file, and its name is not in the header.
    pub(super) is_of_path: bool,
    /// Whether some numbers have a fraction, and more digits than a Double keeps.
    has_long_fractions: bool,
    /// First type that fits all but a few values.
    nearly: Option<Nearly>,
    /// Whether all values are numbers if commas are decimal points, and some are not numbers
    /// otherwise; `None` if all values are numbers either way.
    decimal_commas: Option<bool>,
    /// Whether some numbers have a decimal point.
    has_points: bool,
    /// Formats with which all values are points in time; `None` before the first value.
    time_formats: Option<Vec<String>>,
}

/// A type that a column would have if not for a few values.
struct Nearly {
    column_type: ColumnType,
    first: Fault,
}

/// A type nearly fits a column if at most one in this number of values does not fit.
const NEARLY: usize = 100;
/// Number of values among which some decimals begin with a zero if they are decimals.
const MANY: usize = 100;

impl Guess {
    fn among(groups: &[&[ColumnType]]) -> Self {
        Self {
            candidates: groups.concat(),
            seen_value: false,
            is_quoted: false,
            is_of_path: false,
            has_long_fractions: false,
            nearly: None,
            decimal_commas: None,
            has_points: false,
            time_formats: None,
        }
    }

    pub(super) fn any() -> Self {
        Self::among(&[&NUMBERS, &[ColumnType::Bool], &TIMES, &[ColumnType::Utf8]])
    }

    pub(super) fn number() -> Self {
        Self::among(&[&NUMBERS, &[ColumnType::Utf8]])
    }

    pub(super) fn text() -> Self {
        Self::among(&[&TIMES, &[ColumnType::Utf8]])
    }

    /// Text of JSON, in which ClickHouse and others write whole numbers of 64 bits.
    pub(super) fn json_text() -> Self {
        let text = Self::among(&[&WHOLE_NUMBERS, &TIMES, &[ColumnType::Utf8]]);
        Self { is_quoted: true, ..text }
    }

    /// Values that are ObjectIds in JSON.
    pub(super) fn object_ids() -> Self {
        Self::among(&[&[ColumnType::ObjectId, ColumnType::Utf8]])
    }

    /// Values in the path of the file.
    pub(super) fn in_path() -> Self {
        Self { is_of_path: true, ..Self::any() }
    }

    pub(super) fn only(column_type: ColumnType) -> Self {
        Self::among(&[&[column_type]])
    }

    pub(super) fn look_at(&mut self, cells: &BinaryArray, format: &TextFormat) {
        if cells.null_count() == cells.len() {
            return;
        }
        self.seen_value = true;
        self.look_for_local_forms(cells, format);
        if self.candidates.len() == 1 {
            return;
        }
        self.has_points |= cells.iter().flatten().any(|cell| cell.contains(&b'.'));
        let loses_characters = cells.iter().flatten().any(loses_characters)
            || self.is_quoted && cells.iter().flatten().any(has_blanks);
        let many_digits = cells.iter().flatten().any(has_more_digits_than_double);
        self.has_long_fractions |= cells.iter().flatten().any(is_long_fraction);
        // A point in time at midnight is not a date, even if it parses as one.
        let clock = cells.iter().flatten().any(|cell| cell.contains(&b':'));
        let values = cells.len() - cells.null_count();
        let are_pairs = cells.iter().flatten().all(is_number_and_time)
            || values >= MANY && cells.iter().flatten().all(is_time_and_number);
        let words = cells.iter().flatten().all(is_true_or_false);
        let nearly = &mut self.nearly;
        self.candidates.retain(|column_type| match column_type {
            ColumnType::Int64 | ColumnType::Uint64 if loses_characters => false,
            ColumnType::Double if loses_characters || many_digits || are_pairs => false,
            ColumnType::Bool if !words => false,
            ColumnType::Date | ColumnType::Date32 if clock => false,
            _ => match holds(cells, *column_type, format) {
                Ok(()) => true,
                Err(misfit) => {
                    if let Some(first) = misfit.first
                        && nearly.is_none()
                        && misfit.values * NEARLY <= values
                    {
                        *nearly = Some(Nearly { column_type: *column_type, first });
                    }
                    false
                }
            },
        });
    }

    /// Looks for numbers and times that an option would read.
    fn look_for_local_forms(&mut self, cells: &BinaryArray, format: &TextFormat) {
        let first_cells = self.time_formats.is_none();
        if first_cells && (format.decimal_comma || !self.candidates.contains(&ColumnType::Double)) {
            self.decimal_commas = Some(false);
        }
        if self.decimal_commas != Some(false) {
            let format = TextFormat { decimal_comma: true, ..format.clone() };
            let loses = cells.iter().flatten().any(loses_characters);
            if loses || holds(cells, ColumnType::Double, &format).is_err() {
                self.decimal_commas = Some(false);
            } else if cells.iter().flatten().any(has_decimal_comma) {
                self.decimal_commas = Some(true);
            }
        }
        let first = || cells.iter().flatten().next().and_then(|cell| std::str::from_utf8(cell).ok());
        let is_open = format.timestamps == TimestampFormat::Usual;
        let formats = self
            .time_formats
            .get_or_insert_with(|| first().filter(|_| is_open).map(formats_like).unwrap_or_default());
        formats.retain(|strftime| {
            let timestamps = TimestampFormat::Strftime(strftime.clone());
            holds(cells, ColumnType::Timestamp, &TextFormat { timestamps, ..format.clone() }).is_ok()
        });
    }

    /// Whether the column has numbers with decimal points.
    pub(super) fn has_decimal_points(&self) -> bool {
        self.has_points && self.column_type() == ColumnType::Double
    }

    /// Whether several types remain.
    pub(super) fn is_open(&self) -> bool {
        self.candidates.len() > 1
    }

    /// Returns a remark if the column is text because of a few values, or of how numbers and times
    /// are written.
    pub(super) fn note(&self, name: &str) -> Option<Note> {
        let column_type = self.column_type();
        if self.is_quoted && WHOLE_NUMBERS.contains(&column_type) {
            return Some(Note::QuotedNumbers { column: name.to_owned(), column_type });
        }
        if self.is_quoted
            && self.nearly.as_ref().is_some_and(|nearly| WHOLE_NUMBERS.contains(&nearly.column_type))
        {
            return None;
        }
        if self.has_long_fractions && column_type == ColumnType::Double {
            return Some(Note::DigitsLost { column: name.to_owned() });
        }
        if column_type != ColumnType::Utf8 {
            return None;
        }
        if self.decimal_commas == Some(true) {
            return Some(Note::DecimalCommas { columns: vec![name.to_owned()] });
        }
        if let Some(formats) = self.time_formats.as_ref().filter(|formats| !formats.is_empty()) {
            return Some(Note::LocalTimes { columns: vec![name.to_owned()], formats: formats.clone() });
        }
        let nearly = self.nearly.as_ref()?;
        Some(Note::ReadAsText {
            column: name.to_owned(),
            column_type: nearly.column_type,
            first: Some(nearly.first.clone()),
        })
    }

    /// Returns the most specific remaining type; Utf8 if no value was seen and several types
    /// remain.
    pub(super) fn column_type(&self) -> ColumnType {
        let first = self.candidates.first().copied().unwrap_or(ColumnType::Utf8);
        if self.seen_value || self.candidates.len() == 1 { first } else { ColumnType::Utf8 }
    }
}

const WHOLE_NUMBERS: [ColumnType; 2] = [ColumnType::Int64, ColumnType::Uint64];
pub(super) const NUMBERS: [ColumnType; 3] = [ColumnType::Int64, ColumnType::Uint64, ColumnType::Double];
pub(super) const TIMES: [ColumnType; 4] =
    [ColumnType::Date, ColumnType::Date32, ColumnType::Timestamp, ColumnType::Timestamp64];

/// Values that do not fit a type.
pub(super) struct Misfit {
    values: usize,
    /// The first of these values; `None` if they are of the type but outside its range.
    first: Option<Fault>,
}

/// Checks that every value parses as the type and is in its range.
pub(super) fn holds(cells: &BinaryArray, column_type: ColumnType, format: &TextFormat) -> Result<(), Misfit> {
    let parsed = parse_text_column(cells, column_type, format);
    if let Some(first) = parsed.faults.first() {
        return Err(Misfit { values: parsed.faults.len(), first: Some(first.fault.clone()) });
    }
    let Some(range) = column_type.value_range() else { return Ok(()) };
    let outside = Misfit { values: 0, first: None };
    let Ok(numbers) = cast(&parsed.values, &DataType::Int64) else { return Err(outside) };
    let mut numbers = numbers.as_primitive::<Int64Type>().iter().flatten();
    if numbers.all(|value| (range.min..=range.max).contains(&value)) { Ok(()) } else { Err(outside) }
}

/// Whether the comma of a number cannot group thousands: `0,125`, `12,5`, `1234,567`, `1.234,567`.
fn has_decimal_comma(cell: &[u8]) -> bool {
    let mut parts = cell.trim_ascii().splitn(2, |byte| *byte == b',');
    let (Some(whole), Some(fraction)) = (parts.next(), parts.next()) else { return false };
    let whole = whole.strip_prefix(b"-").or(whole.strip_prefix(b"+")).unwrap_or(whole);
    fraction.len() != 3 || whole == b"0" || whole.len() > 3
}

/// Whether a whole number exceeds 2^53, above which Double skips some whole numbers. With a
/// fraction of zeros, only if Double skips it: writers of Doubles spell the others that way, too.
pub(super) fn has_more_digits_than_double(cell: &[u8]) -> bool {
    let digits = cell.trim_ascii();
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    let Some((whole, fraction)) = std::str::from_utf8(digits).ok().map(|text| match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    }) else {
        return false;
    };
    let is_whole = !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit());
    if !is_whole || whole.parse::<u64>().is_ok_and(|number| number <= 1 << 53) {
        return false;
    }
    match fraction {
        None => true,
        Some(fraction) if fraction.bytes().any(|byte| byte != b'0') => false,
        Some(_) => {
            whole.parse::<f64>().is_ok_and(|number| format!("{number:.0}") != whole.trim_start_matches('0'))
        }
    }
}

/// Whether a value is a number and a time in seconds since 1970 with a dot between them, as
/// Google Analytics identifies browsers: 1234567.1699999999.
fn is_number_and_time(cell: &[u8]) -> bool {
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    match cell
        .iter()
        .position(|byte| *byte == b'.')
        .and_then(|at| Some((cell.get(..at)?, cell.get(at + 1..)?)))
    {
        Some((number, time)) => {
            number.len() >= 4 && time.len() == 10 && time.starts_with(b"1") && digits(number) && digits(time)
        }
        None => false,
    }
}

/// Whether a value is a time in seconds since 1970 and a number with a dot between them, as
/// Asterisk identifies calls: 1664765557.91001.
fn is_time_and_number(cell: &[u8]) -> bool {
    let Some(at) = cell.iter().position(|byte| *byte == b'.') else { return false };
    let (Some(time), Some(number)) = (cell.get(..at), cell.get(at + 1..)) else { return false };
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    time.len() == 10
        && time.starts_with(b"1")
        && matches!(number, [b'1'..=b'9', ..])
        && digits(time)
        && digits(number)
}

/// Whether a string has blanks around a number.
fn has_blanks(cell: &[u8]) -> bool {
    cell.trim_ascii() != cell
}

/// Whether a number with a fraction has more than the 17 digits that identify a Double.
fn is_long_fraction(cell: &[u8]) -> bool {
    if cell.len() <= 18 || !cell.contains(&b'.') {
        return false;
    }
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let digits = || cell.iter().filter(|byte| byte.is_ascii_digit()).skip_while(|digit| **digit == b'0');
    cell.iter().all(is_of_number) && digits().count() > 17
}

/// Whether a number would lose characters that may matter: leading zeros, or the plus sign of a
/// telephone number.
pub(super) fn loses_characters(cell: &[u8]) -> bool {
    let digits = cell.trim_ascii();
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    matches!(digits, [b'0', b'0'..=b'9', ..] | [b'+', ..])
}

fn is_true_or_false(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    cell.eq_ignore_ascii_case(b"true") || cell.eq_ignore_ascii_case(b"false")
}

/// Returns the most specific type that fits all these values of a text column; `None` if there are
/// no values. In NDJSON, strings may hold whole numbers, dates and times.
pub(super) fn type_of_values<'a>(
    cells: impl Iterator<Item = &'a BinaryArray>,
    format: &TextFormat,
    json: bool,
) -> Option<ColumnType> {
    let mut guess = if json { Guess::json_text() } else { Guess::any() };
    cells.for_each(|cells| guess.look_at(cells, format));
    guess.seen_value.then(|| guess.column_type())
}

#[cfg(test)]
#[path = "guess_tests.rs"]
mod tests;
