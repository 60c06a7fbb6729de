//! Tables, bars and numbers.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{Cell, CellAlignment, Table};

use evenkeel_input::sink::readable_bytes;
pub use evenkeel_model::units::{count, counted};

/// Layout of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Columns in a terminal.
    Plain,
    /// Markdown.
    Markdown,
}

/// Heading of a column, which determines its alignment.
#[derive(Debug, Clone, Copy)]
pub struct Heading {
    name: &'static str,
    is_number: bool,
}

impl Heading {
    /// Creates the heading of a column of text, aligned to the left.
    #[must_use]
    pub const fn text(name: &'static str) -> Self {
        Self { name, is_number: false }
    }

    /// Creates the heading of a column of numbers, aligned to the right.
    #[must_use]
    pub const fn number(name: &'static str) -> Self {
        Self { name, is_number: true }
    }
}

/// Draws rows under headings.
#[must_use]
pub fn grid(layout: Layout, headings: &[Heading], rows: Vec<Vec<String>>) -> String {
    let names: Vec<(String, bool)> =
        headings.iter().map(|heading| (heading.name.to_owned(), heading.is_number)).collect();
    draw(layout, &names, rows)
}

/// Draws a table like [`grid`], with headings that are known only at run time.
pub(super) fn draw(layout: Layout, headings: &[(String, bool)], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(match layout {
        Layout::Plain => NOTHING,
        Layout::Markdown => ASCII_MARKDOWN,
    });
    let align = |numeric: bool| if numeric { CellAlignment::Right } else { CellAlignment::Left };
    let cell = |text: &str, numeric: bool| Cell::new(one_line(layout, text)).set_alignment(align(numeric));
    table.set_header(headings.iter().map(|(name, numeric)| cell(name, *numeric)));
    for row in rows {
        let cells = row.into_iter().zip(headings);
        table.add_row(cells.map(|(text, (_, numeric))| cell(&text, *numeric)));
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Draws the rows of batches of one schema.
///
/// # Errors
/// [`ArrowError`] if a value has no text, such as a point in time beyond the calendar.
pub fn batches(
    layout: Layout,
    schema: &arrow::datatypes::Schema,
    batches: &[RecordBatch],
) -> Result<String, ArrowError> {
    let headings: Vec<(String, bool)> =
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().is_numeric())).collect();
    Ok(draw(layout, &headings, texts(batches)?))
}

/// Draws each row of batches of one schema as lines of a name and a value.
///
/// # Errors
/// As for [`batches`].
pub fn records(schema: &arrow::datatypes::Schema, batches: &[RecordBatch]) -> Result<String, ArrowError> {
    let names: Vec<String> =
        schema.fields().iter().map(|field| one_line(Layout::Plain, field.name())).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (row, values) in texts(batches)?.into_iter().enumerate() {
        text.push_str(&format!("-- row {} --\n", count(row as u64 + 1)));
        for (name, value) in names.iter().zip(values) {
            let line = format!("{name:width$}  {}", one_line(Layout::Plain, &value));
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    Ok(text)
}

/// Returns the values of rows as text.
fn texts(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>, ArrowError> {
    let options = FormatOptions::default().with_null("NULL").with_display_error(false);
    let mut rows = Vec::new();
    for batch in batches {
        let batch = readable_bytes(batch)?;
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).try_to_string());
            rows.push(cells.collect::<Result<_, _>>()?);
        }
    }
    Ok(rows)
}

/// Formats a cell on one line; in Markdown, bars are escaped since they would end the cell.
fn one_line(layout: Layout, text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' if layout == Layout::Markdown => line.push_str("\\|"),
            character if character.is_control() => line.extend(character.escape_default()),
            character => line.push(character),
        }
    }
    line
}

/// Draws a bar of at most `width` characters for `value` of `most`, in eighths of a character.
pub(crate) fn bar(value: f64, most: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if most <= 0.0 || value <= 0.0 {
        return String::new();
    }
    let eighths = ((value / most).min(1.0) * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS.get(eighths % 8).copied().unwrap_or_default());
    // A value above zero is always visible.
    if bar.is_empty() { "▏".to_owned() } else { bar }
}

/// Formats a fraction as a percentage with one decimal; with three if one would show nothing.
#[must_use]
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    match percent {
        nearly_nothing if nearly_nothing > 0.0 && nearly_nothing < 0.001 => "<0.001 %".to_owned(),
        little if little > 0.0 && little < 0.05 => format!("{little:.3} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// Formats a number with as few digits as necessary.
pub(super) fn number(number: f64) -> String {
    if number >= 100.0 || number.fract() == 0.0 {
        count(number.round() as u64)
    } else if number >= 1.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}

pub(crate) fn heading(layout: Layout, text: &str) -> String {
    match layout {
        Layout::Plain => format!("{}\n", text.to_uppercase()),
        Layout::Markdown => format!("## {text}\n\n"),
    }
}

pub(crate) fn section(layout: Layout, title: &str, headings: &[Heading], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() { String::new() } else { heading(layout, title) + &grid(layout, headings, rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_and_never_longer_than_their_width() {
        assert_eq!(bar(1.0, 1.0, 4), "████");
        assert_eq!(bar(9.0, 1.0, 4), "████");
        assert_eq!(bar(0.5, 1.0, 5), "██▌");
        assert_eq!(bar(0.001, 1.0, 4), "▏");
        assert_eq!(bar(0.0, 1.0, 4), "");
        assert_eq!(bar(1.0, 0.0, 4), "");
    }

    #[test]
    fn a_value_without_text_is_an_error() {
        use arrow::array::{ArrayRef, TimestampSecondArray};

        let drawn = |seconds: i64| {
            let times: ArrayRef = std::sync::Arc::new(TimestampSecondArray::from(vec![seconds]));
            let batch = RecordBatch::try_from_iter([("at", times)]).unwrap();
            batches(Layout::Plain, &batch.schema(), &[batch])
        };
        assert!(drawn(0).unwrap().contains("1970-01-01T00:00:00"));
        assert!(drawn(i64::MAX).is_err());
    }

    #[test]
    fn grids_align_numbers_to_the_right() {
        let headings = [Heading::text("name"), Heading::number("rows")];
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "1,000".to_owned()]];
        let text = grid(Layout::Plain, &headings, rows.clone());
        assert_eq!(text, " name   rows\n a         1\n long  1,000\n");
        assert!(grid(Layout::Markdown, &headings, rows).starts_with("| name |  rows |\n|---"));
    }
}
