//! Rows that cannot be accepted, with their places.

use std::fmt;

use serde::{Deserialize, Serialize};

use evenkeel_model::bounded::quote;
use evenkeel_model::note::Fault;

/// Place of a row in its input, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowPosition {
    /// A line of a text file; for a CSV record that spans several lines, the first.
    Line(u64),
    /// A row of a columnar file or a stream.
    Row(u64),
}

impl fmt::Display for RowPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// A rejected row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reject {
    /// Name of the input.
    pub file: String,
    /// Place in the input.
    #[serde(flatten)]
    pub position: RowPosition,
    /// The column at fault; `None` if no single column is.
    pub column: Option<String>,
    /// Reason for the rejection.
    pub reason: Fault,
    /// Values of the table's columns as text; for a broken record, all of it.
    pub record: serde_json::Map<String, serde_json::Value>,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.reason)
    }
}

impl Reject {
    /// Removes the values of the row; its place stays.
    pub fn mask(&mut self) {
        self.reason = Fault::in_row("cannot be read; its values are masked");
        self.record.clear();
    }

    /// Returns the approximate size in memory.
    pub(super) fn bytes(&self) -> usize {
        let of_text = |value: &serde_json::Value| value.as_str().map_or(0, str::len);
        let cell = |(name, value): (&String, &serde_json::Value)| 100 + name.len() + of_text(value);
        200 + self.file.len() + self.record.iter().map(cell).sum::<usize>()
    }

    /// Returns the place of the row: `x.csv, line 7, column 'n'`.
    #[must_use]
    pub fn place(&self) -> String {
        let column = self.column.as_ref().map(|column| format!(", column '{}'", quote(column)));
        format!("{}, {}{}", self.file, self.position, column.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reject(position: RowPosition, column: Option<&str>) -> Reject {
        Reject {
            file: "x.csv".to_owned(),
            position,
            column: column.map(str::to_owned),
            reason: Fault::in_value(b"secret", "is not of type Int64"),
            record: serde_json::Map::from_iter([("n".to_owned(), "secret".into())]),
        }
    }

    #[test]
    fn a_reject_names_its_place_and_reason() {
        let text = reject(RowPosition::Line(7), Some("n")).to_string();
        assert_eq!(text, "x.csv, line 7, column 'n': 'secret' is not of type Int64");
        assert_eq!(reject(RowPosition::Row(1), None).place(), "x.csv, row 1");
        // A line break in a name does not break the message.
        assert_eq!(reject(RowPosition::Row(1), Some("a\nb")).place(), "x.csv, row 1, column 'a\\nb'");
    }

    #[test]
    fn a_masked_reject_keeps_its_place_and_none_of_its_values() {
        let mut masked = reject(RowPosition::Line(7), Some("n"));
        let place = masked.place();
        masked.mask();
        assert_eq!(masked.place(), place);
        let json = serde_json::to_string(&masked).unwrap();
        assert!(!json.contains("secret") && !masked.to_string().contains("secret"), "{json}");
    }

    #[test]
    fn a_reject_is_written_and_read_as_json() {
        for position in [RowPosition::Line(7), RowPosition::Row(u64::MAX)] {
            let reject = reject(position, None);
            let json = serde_json::to_string(&reject).unwrap();
            assert_eq!(serde_json::from_str::<Reject>(&json).unwrap(), reject, "{json}");
        }
        let json = serde_json::to_value(reject(RowPosition::Line(7), None)).unwrap();
        assert_eq!((json["line"].as_u64(), json["column"].is_null()), (Some(7), true));
    }
}
