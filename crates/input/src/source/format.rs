//! Formats of inputs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum length of a record in a text file. A longer one is most likely an unclosed quote.
pub(super) const MAX_RECORD_BYTES: usize = 64 << 20;

/// Input formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputFormat {
    /// Parquet.
    Parquet,
    /// Comma-separated values with a header line.
    Csv,
    /// Newline-delimited JSON objects.
    Ndjson,
    /// Arrow IPC, file or stream.
    Arrow,
    /// Tab-separated text with backslash escapes, as COPY, ClickHouse and MySQL write it.
    Tsv,
    /// Avro object container files.
    Avro,
    /// ORC.
    Orc,
    /// Rows of a table in a dump of PostgreSQL as text.
    PgDump,
    /// Data files of a YDB dump: text without a header.
    YdbDump,
}

impl fmt::Display for InputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parquet => "Parquet",
            Self::Csv => "CSV",
            Self::Ndjson => "NDJSON",
            Self::Arrow => "Arrow IPC",
            Self::Tsv => "tab-separated text",
            Self::Avro => "Avro",
            Self::Orc => "ORC",
            Self::PgDump => "a dump of PostgreSQL",
            Self::YdbDump => "a data file of a YDB dump",
        })
    }
}
