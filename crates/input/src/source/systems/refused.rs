//! Files of other systems that are not read: they are recognised, so that they are refused by name,
//! with advice, and never misread.

use crate::source::error::SourceError;
use crate::source::systems::listing::Listing;
use crate::source::systems::postgres::is_script;

/// Advice to write rows as Parquet with another program.
const AS_PARQUET: &str = "write its rows as Parquet or CSV first";

fn foreign(file: String, what: &str, advice: &str) -> SourceError {
    SourceError::Foreign { file, what: what.to_owned(), advice: advice.to_owned() }
}

/// A file whose name identifies the kind of a folder.
struct Sign {
    is_sign: fn(&str) -> bool,
    what: &'static str,
    advice: &'static str,
}

const FOLDERS: [Sign; 5] = [
    Sign {
        is_sign: |name| name == "toc.dat",
        what: "a pg_dump in the directory format",
        advice: "write the table as CSV: psql -c \"\\copy TABLE TO 'TABLE.csv' CSV HEADER\"",
    },
    Sign {
        is_sign: |name| name.ends_with(".bson") || name.ends_with(".bson.gz"),
        what: "a mongodump",
        advice: "export the collection as JSON: mongoexport --db DB --collection NAME --out NAME.ndjson",
    },
    Sign {
        is_sign: |name| name.ends_with("-schema.sql"),
        what: "a dump by mydumper",
        advice: "write the table with a header: mysql --batch -e 'SELECT * FROM table' > table.tsv, and read it with --input-format tsv --null-value NULL",
    },
    Sign {
        is_sign: |name| name.ends_with("-Data.db"),
        what: "SSTables of Cassandra",
        advice: "unload the table: dsbulk unload -k KEYSPACE -t TABLE -url FOLDER",
    },
    Sign {
        is_sign: |name| name.ends_with(".metadata.json") && name.starts_with(['v', '0']),
        what: "an Iceberg table",
        advice: "its data files may hold deleted rows; write the rows with an engine that reads Iceberg, as Parquet",
    },
];

/// Refuses a folder of another system, if its files alone do not determine the rows.
///
/// # Errors
/// [`SourceError::Foreign`] for such a folder.
pub(super) fn refused_folder(listing: &Listing) -> Result<(), SourceError> {
    for Sign { is_sign, what, advice } in FOLDERS {
        if let Some(file) = listing.first_named(is_sign) {
            let advice = format!("{advice} ({} describes it)", file.path);
            return Err(foreign(listing.name.clone(), what, &advice));
        }
    }
    Ok(())
}

/// Refuses a file of a format that is not read; `head` holds its first bytes, decompressed.
///
/// # Errors
/// [`SourceError::Foreign`] for such a file.
pub(in crate::source) fn refused_content(file: &str, head: &[u8]) -> Result<(), SourceError> {
    match binary(head).or_else(|| text(head)) {
        Some((what, advice)) => Err(foreign(file.to_owned(), what, advice)),
        None => Ok(()),
    }
}

/// Returns an error for a folder that is a table with its own log: only the log knows which rows of
/// its files are visible. `has` says whether it contains a folder of a name.
pub(in crate::source) fn refused_table(folder: &str, has: impl Fn(&str) -> bool) -> Option<SourceError> {
    const ADVICE: &str =
        "its files may hold deleted rows; write the rows with an engine that reads such tables, as Parquet";
    let tables = [("_delta_log", "a Delta table"), (".hoodie", "a Hudi table")];
    let (_, what) = tables.into_iter().find(|(name, _)| has(name))?;
    Some(foreign(folder.to_owned(), what, ADVICE))
}

type Refusal = (&'static str, &'static str);

/// Formats with a magic number.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (b"evenkeel profile ", "a profile that 'evaluate --save' wrote", "name it after --merge"),
    (
        b"PGDMP",
        "a pg_dump in the custom format",
        "write the table as CSV: psql -c \"\\copy TABLE TO 'TABLE.csv' CSV HEADER\"",
    ),
    (
        b"PGCOPY\n\xff\r\n\0",
        "the binary format of COPY",
        "it has neither names nor types; use COPY ... CSV HEADER",
    ),
    (b"PARE", "an encrypted Parquet file", "decrypt it first"),
    (
        b"\x6d\xe2\x99\x81",
        "an archive by mongodump",
        "export the collection: mongoexport --db DB --collection NAME --out NAME.ndjson",
    ),
    (
        b"SQLite format 3\0",
        "a SQLite database",
        "write a table as CSV: sqlite3 -header -csv FILE 'SELECT * FROM table'",
    ),
    (b"PK\x03\x04", "a ZIP archive or an Excel file", "unpack it, or save the sheet as CSV in UTF-8"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel file", "save the sheet as CSV in UTF-8"),
    (b"BZh", "compressed with bzip2", "decompress it first: bunzip2 -k FILE"),
    (b"\xfd7zXZ\0", "compressed with xz", "decompress it first: xz -dk FILE"),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "decompress it first: lz4 -d FILE"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", AS_PARQUET),
    (b"%PDF-", "a PDF document", "export the data that it shows"),
    (b"\xff\xfe", "text in UTF-16", "convert it: iconv -f utf-16 -t utf-8 FILE > NEW"),
    (b"\xfe\xff", "text in UTF-16", "convert it: iconv -f utf-16 -t utf-8 FILE > NEW"),
];

fn binary(head: &[u8]) -> Option<Refusal> {
    let known = MAGIC.iter().find(|(magic, ..)| head.starts_with(magic));
    // BZh could also begin a line of text.
    let is_text = || head.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace());
    let known = known.filter(|(magic, ..)| !magic.iter().all(u8::is_ascii_alphanumeric) || !is_text());
    if let Some((_, what, advice)) = known {
        return Some((what, advice));
    }
    if head.get(8..12) == Some(b"DUCK") {
        return Some(("a DuckDB database", "write a table as Parquet: COPY table TO 'table.parquet'"));
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some(("a tar archive", "unpack it first"));
    }
    if is_bson(head) {
        return Some(("BSON", "write it as JSON: bsondump FILE > FILE.ndjson, or mongoexport"));
    }
    if is_utf16(head) {
        let advice = "convert it: iconv -f utf-16le -t utf-8 FILE > NEW, or -f utf-16be";
        return Some(("text in UTF-16 without a byte order mark", advice));
    }
    is_clickhouse_binary(head).then_some((
        "the Native or RowBinary format of ClickHouse",
        "write it as Parquet: clickhouse-client --query 'SELECT ... FORMAT Parquet'",
    ))
}

/// Whether the file begins with a document of BSON: its length, the type and name of its first
/// element, and 0 at its end.
fn is_bson(head: &[u8]) -> bool {
    let Some((length, document)) = head.split_first_chunk::<4>() else { return false };
    let length = u32::from_le_bytes(*length) as usize;
    let Some((kind, rest)) = document.split_first() else { return false };
    let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_named = !name.is_empty()
        && name.len() < rest.len()
        && std::str::from_utf8(name).is_ok_and(|name| !name.contains(char::is_control));
    // A document has at most 16 MiB, plus at most the same for additions of a server.
    let is_length = (12..=32 << 20).contains(&length);
    let is_ended = head.get(length.saturating_sub(1)).is_none_or(|last| *last == 0);
    is_length && matches!(kind, 0x01..=0x13 | 0x7f | 0xff) && is_named && is_ended
}

/// Whether every other byte of a text is 0.
fn is_utf16(head: &[u8]) -> bool {
    let (pairs, _) = head.as_chunks::<2>();
    let is_letter = |byte: u8| byte >= b' ' || byte.is_ascii_whitespace();
    let are_most = |is_latin: &dyn Fn(&[u8; 2]) -> bool| {
        pairs.iter().filter(|pair| is_latin(pair)).count() * 10 >= pairs.len() * 9
    };
    let little = |[low, high]: &[u8; 2]| *high == 0 && is_letter(*low);
    let big = |[high, low]: &[u8; 2]| *high == 0 && is_letter(*low);
    pairs.len() >= 4 && (are_most(&little) || are_most(&big))
}

/// Whether the second line is the rule that psql and Markdown draw below the names of columns.
fn is_ruled(text: &str) -> bool {
    let mut lines = text.lines();
    let (Some(names), Some(rule)) = (lines.next(), lines.next()) else { return false };
    let consists_of = |characters: &str| rule.chars().all(|character| characters.contains(character));
    let bars = names.matches('|').count();
    let is_psql = consists_of("-+") && rule.starts_with("--") && rule.matches('+').count() == bars;
    let is_markdown = consists_of("|-: ") && rule.starts_with('|') && rule.contains('-');
    (is_psql && (bars > 0 || names.starts_with(' '))) || is_markdown
}

/// Beginnings of the names of ClickHouse types.
const CLICKHOUSE_TYPES: [&str; 14] = [
    "UInt",
    "Int",
    "Float",
    "String",
    "FixedString(",
    "Date",
    "DateTime",
    "Nullable(",
    "LowCardinality(",
    "Array(",
    "Decimal",
    "UUID",
    "Enum",
    "Bool",
];

/// Whether the file begins with counts as variable-length numbers and then the name and the type of
/// a column: the header of a Native block, or of RowBinaryWithNamesAndTypes.
fn is_clickhouse_binary(head: &[u8]) -> bool {
    let is_type = |text: &[u8]| CLICKHOUSE_TYPES.iter().any(|name| text.starts_with(name.as_bytes()));
    let native = || {
        let (_, rest) = number(head)?;
        let (_, rest) = number(rest)?;
        let (_, rest) = text_of_length(rest)?;
        text_of_length(rest).map(|(text, _)| is_type(text))
    };
    let rows = || {
        let (columns, mut rest) = number(head)?;
        for _ in 0..columns.min(64) {
            rest = text_of_length(rest)?.1;
        }
        text_of_length(rest).map(|(text, _)| is_type(text))
    };
    native() == Some(true) || rows() == Some(true)
}

/// Reads a number of seven bits per byte.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().take(9).position(|byte| *byte < 0x80)?;
    let (digits, rest) = bytes.split_at_checked(end + 1)?;
    let value = digits.iter().rev().fold(0u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, rest))
}

/// Reads a non-empty name after its length.
fn text_of_length(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    let length = usize::try_from(length).ok().filter(|length| (1..=256).contains(length))?;
    let (text, rest) = rest.split_at_checked(length)?;
    text.iter().all(|byte| *byte >= b' ').then_some((text, rest))
}

fn text(head: &[u8]) -> Option<Refusal> {
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start();
    const INSERTS: &str = "write the table with a header: mysql --batch -e 'SELECT * FROM table' > table.tsv, and read it with --input-format tsv --null-value NULL";
    if ["-- MySQL dump", "-- MariaDB dump", "/*M!999999", "-- Host:"]
        .iter()
        .any(|sign| text.starts_with(sign))
    {
        return Some(("a dump of MySQL as statements", INSERTS));
    }
    let is_insert =
        |line: &str| line.get(..12).is_some_and(|start| start.eq_ignore_ascii_case("insert into "));
    if is_insert(text) || (is_script(text) && text.lines().any(is_insert)) {
        return Some(("a list of INSERT statements", "write the rows of the table as CSV or Parquet"));
    }
    if text.starts_with("--") && text.contains("-- PostgreSQL database cluster dump") {
        return Some(("a pg_dumpall of several databases", "dump one of them: pg_dump DATABASE > FILE.sql"));
    }
    let json = |start: &str| text.chars().filter(|c| !c.is_whitespace()).take(start.len()).eq(start.chars());
    if json("{\"meta\":[{\"name\":") {
        return Some((
            "the JSON format of ClickHouse, one object for all rows",
            "write one row per line: FORMAT JSONEachRow",
        ));
    }
    let is_printed = text.starts_with(['\u{250c}', '\u{250f}', '\u{2554}'])
        || (text.starts_with("+--")
            && text.lines().next().is_some_and(|line| line.bytes().all(|b| b"+-".contains(&b))))
        || is_ruled(&String::from_utf8_lossy(head));
    if let Some(separator) = text.strip_prefix("sep=").and_then(|rest| rest.lines().next())
        && separator.chars().count() == 1
    {
        return Some((
            "CSV with a line 'sep=' for Excel before the names",
            "remove that line, and name the separator: tail -n +2 FILE > NEW.csv, and --delimiter",
        ));
    }
    is_printed.then_some(("a table printed for people", "write it as CSV with a header, or as Parquet"))
}

#[cfg(test)]
#[path = "refused_tests.rs"]
mod tests;
