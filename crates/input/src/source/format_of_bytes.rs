//! The format of a file, from its first bytes.

use std::path::Path;

use crate::source::escaped::is_escaped_text;
use crate::source::format::InputFormat;
use crate::source::options::InputOptions;
use crate::source::separator::other_separator;
use crate::source::systems::postgres::is_dump as is_pg_dump;

/// Detects the format of a file from its first bytes, if they leave no doubt.
pub(super) fn format_of_content(head: &[u8]) -> Option<InputFormat> {
    if head.starts_with(b"PAR1") {
        Some(InputFormat::Parquet)
    } else if head.starts_with(b"ARROW1") || head.starts_with(&[0xff, 0xff, 0xff, 0xff]) {
        Some(InputFormat::Arrow)
    } else if head.starts_with(b"Obj\x01") {
        Some(InputFormat::Avro)
    } else if head.starts_with(b"ORC") && !is_text(head) {
        Some(InputFormat::Orc)
    } else if is_pg_dump(head) {
        Some(InputFormat::PgDump)
    } else {
        None
    }
}

/// Recognises tab-separated text by its escapes, unless the options give the delimiter.
pub(super) fn format_of_escapes(head: &[u8], options: &InputOptions) -> Option<InputFormat> {
    let is_free = options.delimiter.is_none_or(|delimiter| delimiter == b'\t');
    (is_free && is_escaped_text(head)).then_some(InputFormat::Tsv)
}

/// Whether bytes are printable text.
fn is_text(head: &[u8]) -> bool {
    head.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace())
}

/// Whether a file has the name of a file by dsbulk of Cassandra, which escapes quotes by
/// backslashes: `output-000001.csv`.
pub(super) fn is_of_dsbulk(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let number = name.strip_prefix("output-").and_then(|rest| rest.split_once(".csv"));
    number.is_some_and(|(digits, _)| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Guesses the format of text whose name gives none.
pub(super) fn format_of_text(head: &[u8]) -> Option<InputFormat> {
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace())?;
    let text = is_text(head);
    match first {
        b'{' => Some(InputFormat::Ndjson),
        _ if text && (head.contains(&b',') || other_separator(head).is_some()) => Some(InputFormat::Csv),
        _ => None,
    }
}
