//! Rows in the formats of `COPY ... TO STDOUT`: text, CSV and binary.

use arrow::datatypes::Schema;
use bytes::{BufMut, BytesMut};

use crate::failure::{Failure, SqlState};
use crate::values::{Column, Format, ValueError};

/// First bytes of the binary format: its mark, no flags, and no extension of the header.
const BINARY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Last bytes of the binary format: a row of -1 columns.
const BINARY_END: &[u8] = b"\xff\xff";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CopyFormat {
    #[default]
    Text,
    Csv,
    Binary,
}

/// Options of one COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyOptions {
    pub(crate) format: CopyFormat,
    /// Delimiter; by default a tab in text and a comma in CSV.
    pub(crate) delimiter: Option<char>,
    /// Text for NULL; by default `\N` in text and nothing in CSV.
    pub(crate) null: Option<String>,
    pub(crate) has_header: bool,
    pub(crate) quote: char,
    /// Escape character; by default the quote.
    pub(crate) escape: Option<char>,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            format: CopyFormat::Text,
            delimiter: None,
            null: None,
            has_header: false,
            quote: '"',
            escape: None,
        }
    }
}

/// Writes the rows of one COPY.
#[derive(Debug)]
pub(crate) struct CopyWriter {
    format: CopyFormat,
    delimiter: u8,
    null: Vec<u8>,
    quote: u8,
    escape: u8,
    has_header: bool,
}

impl CopyWriter {
    pub(crate) fn new(options: &CopyOptions) -> Result<Self, Failure> {
        let is_csv = options.format == CopyFormat::Csv;
        let one_byte = |name: &str, character: char| {
            let fits = u8::try_from(character).ok().filter(|byte| byte.is_ascii() && !b"\r\n".contains(byte));
            fits.ok_or_else(|| {
                let message = format!("COPY {name} must be a single one-byte character, and no line break");
                Failure::new(SqlState::INVALID_PARAMETER, message)
            })
        };
        let delimiter = options.delimiter.unwrap_or(if is_csv { ',' } else { '\t' });
        let null = options.null.clone().unwrap_or_else(|| if is_csv { "" } else { "\\N" }.to_owned());
        let invalid = |message: &str| Err(Failure::new(SqlState::INVALID_PARAMETER, message));
        if null.contains(['\r', '\n']) {
            return invalid("COPY null representation cannot use newline or carriage return");
        }
        if is_csv && delimiter == options.quote {
            return invalid("COPY delimiter and quote must be different");
        }
        if options.format == CopyFormat::Text && "\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(delimiter)
        {
            return invalid("COPY delimiter cannot be a letter, a digit, a point or a backslash");
        }
        if null.contains(delimiter) {
            let message = "COPY delimiter must not appear in the NULL specification";
            return Err(Failure::new(SqlState::INVALID_PARAMETER, message));
        }
        if options.format == CopyFormat::Binary
            && (options.delimiter.is_some() || options.null.is_some() || options.has_header)
        {
            let message = "DELIMITER, NULL and HEADER do not apply to COPY BINARY";
            return Err(Failure::new(SqlState::SYNTAX, message));
        }
        let quote = one_byte("quote", options.quote)?;
        Ok(Self {
            format: options.format,
            delimiter: one_byte("delimiter", delimiter)?,
            null: null.into_bytes(),
            quote,
            escape: options.escape.map_or(Ok(quote), |escape| one_byte("escape", escape))?,
            has_header: options.has_header,
        })
    }

    /// Format of the values that it accepts.
    pub(crate) fn values(&self) -> Format {
        if self.format == CopyFormat::Binary { Format::Binary } else { Format::Text }
    }

    /// Appends the header before the first row.
    pub(crate) fn begin(&self, schema: &Schema, out: &mut BytesMut) {
        if self.format == CopyFormat::Binary {
            out.put_slice(BINARY_HEADER);
        } else if self.has_header {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            for (at, name) in names.iter().enumerate() {
                self.separate(at, out);
                self.cell(name.as_bytes(), names.len() == 1, out);
            }
            out.put_u8(b'\n');
        }
    }

    /// Appends the trailer after the last row.
    pub(crate) fn end(&self, out: &mut BytesMut) {
        if self.format == CopyFormat::Binary {
            out.put_slice(BINARY_END);
        }
    }

    /// Appends a row.
    pub(crate) fn row(&self, columns: &[Column], row: usize, out: &mut BytesMut) -> Result<(), ValueError> {
        if self.format == CopyFormat::Binary {
            out.put_i16(i16::try_from(columns.len()).unwrap_or(i16::MAX));
            return columns.iter().try_for_each(|column| column.write_with_length(row, out));
        }
        let mut value = BytesMut::new();
        for (at, column) in columns.iter().enumerate() {
            self.separate(at, out);
            if column.is_null(row) {
                out.put_slice(&self.null);
                continue;
            }
            value.clear();
            column.write(row, &mut value)?;
            self.cell(&value, columns.len() == 1, out);
        }
        out.put_u8(b'\n');
        Ok(())
    }

    fn separate(&self, at: usize, out: &mut BytesMut) {
        if at > 0 {
            out.put_u8(self.delimiter);
        }
    }

    fn cell(&self, value: &[u8], is_alone: bool, out: &mut BytesMut) {
        if self.format == CopyFormat::Csv {
            self.csv_cell(value, is_alone, out);
        } else {
            self.text_cell(value, out);
        }
    }

    fn text_cell(&self, value: &[u8], out: &mut BytesMut) {
        for byte in value {
            let escaped = match byte {
                0x08 => b'b',
                0x0b => b'v',
                0x0c => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                b'\\' => b'\\',
                byte if *byte == self.delimiter => *byte,
                byte => {
                    out.put_u8(*byte);
                    continue;
                }
            };
            out.put_slice(&[b'\\', escaped]);
        }
    }

    fn csv_cell(&self, value: &[u8], is_alone: bool, out: &mut BytesMut) {
        let is_special = |byte: &u8| [self.delimiter, self.quote, b'\n', b'\r'].contains(byte);
        // A lone \. would end the data.
        let needs_quotes =
            value == self.null || (is_alone && value == b"\\.") || value.iter().any(is_special);
        if !needs_quotes {
            out.put_slice(value);
            return;
        }
        out.put_u8(self.quote);
        for byte in value {
            if *byte == self.quote || *byte == self.escape {
                out.put_u8(self.escape);
            }
            out.put_u8(*byte);
        }
        out.put_u8(self.quote);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::values::columns;

    fn copied(options: &CopyOptions) -> String {
        let texts = vec![Some("a,b"), None, Some(""), Some("say \"hi\"\n\tx\\y")];
        let batch = RecordBatch::try_from_iter([
            ("name, of it", Arc::new(StringArray::from(texts)) as ArrayRef),
            ("n", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
        ])
        .unwrap();
        let writer = CopyWriter::new(options).unwrap();
        let columns = columns(&batch, &[writer.values()]).unwrap();
        let mut out = BytesMut::new();
        writer.begin(batch.schema_ref(), &mut out);
        (0..4).for_each(|row| writer.row(&columns, row, &mut out).unwrap());
        writer.end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn rows_are_written_as_postgres_writes_them() {
        let text = copied(&CopyOptions::default());
        assert_eq!(text, "a,b\t1\n\\N\t2\n\t3\nsay \"hi\"\\n\\tx\\\\y\t4\n");
        let csv = CopyOptions { format: CopyFormat::Csv, has_header: true, ..CopyOptions::default() };
        let csv = copied(&csv);
        assert_eq!(csv, "\"name, of it\",n\n\"a,b\",1\n,2\n\"\",3\n\"say \"\"hi\"\"\n\tx\\y\",4\n");
        let other = CopyOptions {
            format: CopyFormat::Csv,
            delimiter: Some(';'),
            null: Some("-".to_owned()),
            quote: '\'',
            escape: Some('\\'),
            ..CopyOptions::default()
        };
        assert_eq!(copied(&other), "a,b;1\n-;2\n;3\n'say \"hi\"\n\tx\\\\y';4\n");
        let binary = copied(&CopyOptions { format: CopyFormat::Binary, ..CopyOptions::default() });
        assert!(binary.starts_with("PGCOPY\n"));
    }

    #[test]
    fn options_that_contradict_are_refused() {
        for options in [
            CopyOptions { delimiter: Some('\n'), ..CopyOptions::default() },
            CopyOptions { delimiter: Some('N'), ..CopyOptions::default() },
            CopyOptions { delimiter: Some('n'), ..CopyOptions::default() },
            CopyOptions { delimiter: Some('.'), ..CopyOptions::default() },
            CopyOptions { null: Some("a\nb".to_owned()), ..CopyOptions::default() },
            CopyOptions { format: CopyFormat::Csv, delimiter: Some('"'), ..CopyOptions::default() },
            CopyOptions { quote: 'ß', ..CopyOptions::default() },
            CopyOptions { format: CopyFormat::Binary, has_header: true, ..CopyOptions::default() },
        ] {
            assert!(CopyWriter::new(&options).is_err(), "{options:?}");
        }
    }
}
