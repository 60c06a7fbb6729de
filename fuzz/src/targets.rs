//! Targets for bytes from outside. No bytes may make a target panic, and what it reads must survive
//! being written and read again.

use std::io::Cursor;

use evenkeel::evaluate::Profile;
use evenkeel::log::{LogEntry, fold, read_checkpoint, read_entries, write_entries};
use evenkeel::placement::{Placement, parse_key};
use evenkeel::portion::PortionFooter;
use evenkeel::source::{
    Conform, Input, InputFormat, InputOptions, Section, read_ddl, read_describe, read_scheme,
};
use evenkeel::table::{
    Column, ColumnType, PlacementFunction, TableDefinition, TableSpec, Ttl, parse_create_table,
    write_create_table,
};
use evenkeel::text_value::TimestampFormat;
use evenkeel::units::{ByteSize, Micros, PartitionCount, Version};
use evenkeel_model::wire::seal;

/// A target: its name, which is also the folder of its corpus, and the function.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Every target.
pub(crate) const TARGETS: [Target; 18] = [
    ("commit", commit),
    ("commit_lines", commit_lines),
    ("checkpoint", checkpoint),
    ("ddl", ddl),
    ("csv", csv),
    ("ndjson", ndjson),
    ("csv_quotes", csv_quotes),
    ("tsv", tsv),
    ("pg_dump", pg_dump),
    ("avro", avro),
    ("avro_rows", avro_rows),
    ("orc", orc),
    ("ydb_dump", ydb_dump),
    ("scheme", scheme),
    ("statements", statements),
    ("literals", literals),
    ("footer", footer),
    ("profile", profile),
];

fn types() -> Vec<ColumnType> {
    let names = [
        "Bool",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "Uint8",
        "Uint16",
        "Uint32",
        "Uint64",
        "Float",
        "Double",
        "Utf8",
        "String",
        "Json",
        "JsonDocument",
        "Yson",
        "Uuid",
        "Date",
        "Date32",
        "Datetime",
        "Datetime64",
        "Timestamp",
        "Timestamp64",
        "Interval",
        "Interval64",
        "Decimal(22,9)",
    ];
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// A table with a column of every type, and a key of some.
fn spec() -> TableSpec {
    let mut columns = vec![
        Column::required("at", ColumnType::Timestamp),
        Column::required("user", ColumnType::Utf8),
        Column::required("id", ColumnType::Uint64),
    ];
    columns.extend(
        types()
            .into_iter()
            .enumerate()
            .map(|(index, column_type)| Column::nullable(format!("c{index}"), column_type)),
    );
    let definition = TableDefinition {
        name: "t".to_owned(),
        columns,
        primary_key: vec!["at".to_owned(), "user".to_owned(), "id".to_owned()],
        partition_key: vec!["user".to_owned()],
        partitions: PartitionCount::new(3).expect("3 is a count"),
        placement: PlacementFunction::Ydb,
        ttl: None,
    };
    TableSpec::new(definition).expect("the declaration is right")
}

/// Bytes as a whole commit.
fn commit(data: &[u8]) {
    if let Ok(entries) = read_entries("t", Version(1), data) {
        let written = write_entries(&entries).expect("what was read can be written");
        assert_eq!(read_entries("t", Version(1), &written).expect("and read again"), entries);
    }
}

/// Bytes as the lines of a commit whose end line is right, so that what lies behind the checksum is
/// reached.
fn commit_lines(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = text.lines().filter_map(|line| serde_json::from_str::<LogEntry>(line).ok());
    let first = LogEntry::Table(spec().definition().clone());
    let mut entries: Vec<LogEntry> = lines.filter(|entry| !matches!(entry, LogEntry::End { .. })).collect();
    for version in [0, 1] {
        if let Some(LogEntry::Commit(info)) = entries.first_mut() {
            info.version = Version(version);
        }
        let mut of_version = entries.clone();
        if version == 0 {
            of_version.push(first.clone());
        }
        let bytes = write_entries(&of_version).expect("entries can be written");
        let create = write_entries(&[commit_zero(), first.clone()]).expect("entries can be written");
        let commits = if version == 0 { vec![bytes] } else { vec![create, bytes] };
        if let Ok(snapshot) = fold("t", &commits) {
            let checkpoint = evenkeel::log::write_checkpoint(&snapshot).expect("a snapshot can be written");
            let restored = read_checkpoint("t", snapshot.version(), &checkpoint).expect("and read again");
            assert_eq!(restored.portions(), snapshot.portions());
            assert_eq!(restored.commits(), snapshot.commits());
        }
    }
}

fn commit_zero() -> LogEntry {
    let line = r#"{"commit":{"format":1,"version":0,"id":"x","operation":"create","at_micros":0}}"#;
    serde_json::from_str(line).expect("the line is right")
}

/// Bytes as a checkpoint.
fn checkpoint(data: &[u8]) {
    let _ = read_checkpoint("t", Version(64), data);
    // The same lines with a right checksum.
    let lines =
        data.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<LogEntry>(line).ok());
    let lines: Vec<LogEntry> = lines.filter(|entry| !matches!(entry, LogEntry::End { .. })).collect();
    let bytes = write_entries(&lines).expect("entries can be written");
    if let Ok(snapshot) = read_checkpoint("t", Version(64), &bytes) {
        let written = evenkeel::log::write_checkpoint(&snapshot).expect("a snapshot can be written");
        let again = read_checkpoint("t", Version(64), &written).expect("and read again");
        assert_eq!(again.portions(), snapshot.portions());
    }
}

/// Text as a declaration in YQL.
fn ddl(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(create) = parse_create_table(text) else { return };
    let Ok(spec) = TableSpec::new(create.definition) else { return };
    let written = write_create_table(&spec);
    let again = parse_create_table(&written).unwrap_or_else(|error| panic!("{written}\n{error}"));
    let again = TableSpec::new(again.definition).expect("what was right stays right");
    assert_eq!(again.definition(), spec.definition(), "{written}");
}

/// Bytes as rows of a text file: each row is taken or rejected, and none is lost.
fn rows(data: &[u8], format: InputFormat) {
    rows_with(data, InputOptions { format: Some(format), ..InputOptions::default() });
}

fn rows_with(data: &[u8], options: InputOptions) {
    let spec = spec();
    let columns: Vec<String> = spec.columns().iter().map(|column| column.name.clone()).collect();
    let mut options = InputOptions { batch_rows: 7, ..options };
    match options.format {
        Some(InputFormat::YdbDump) => {
            options.declared = Some(spec.columns().to_vec());
            options.text.timestamps = TimestampFormat::YdbDump;
        }
        Some(InputFormat::PgDump) => {
            options.section = Some(Section { tables: vec!["public.t".to_owned()], columns: columns.clone() });
        }
        _ => {}
    }
    let reader = Box::new(Cursor::new(data.to_vec()));
    let Ok(mut input) = Input::open_reader("fuzz", reader, &columns, &options) else { return };
    let conform = Conform::new("fuzz", &spec, &options);
    if let Some(names) = input.column_names()
        && conform.check_names(&names).is_err()
    {
        return;
    }
    let placement = Placement::for_table(&spec);
    while let Ok(Some(raw)) = input.next_batch() {
        let Ok(conformed) = conform.conform(raw) else { return };
        let batch = conformed.batch;
        assert_eq!(batch.schema().fields(), spec.schema().fields());
        let key: Vec<_> = spec.partition_key().iter().map(|index| batch.column(*index).clone()).collect();
        let placed = placement.assign(&key).expect("taken rows can be placed");
        assert_eq!(placed.len(), batch.num_rows());
    }
}

/// Bytes as CSV.
fn csv(data: &[u8]) {
    rows(data, InputFormat::Csv);
}

/// Bytes as CSV in which quotes tell text from NULL, and are escaped by backslashes.
fn csv_quotes(data: &[u8]) {
    let options =
        InputOptions { format: Some(InputFormat::Csv), quoted_empty: true, ..InputOptions::default() };
    rows_with(data, options.clone());
    rows_with(data, InputOptions { escape: Some(b'\\'), ..options });
}

/// Bytes as a dump of PostgreSQL.
fn pg_dump(data: &[u8]) {
    rows(data, InputFormat::PgDump);
}

/// Bytes as an Avro file.
fn avro(data: &[u8]) {
    rows(data, InputFormat::Avro);
}

/// Bytes as the rows of an Avro file whose framing is right; the first one is their number.
fn avro_rows(data: &[u8]) {
    const SCHEMA: &str = r#"{"type":"record","name":"t","fields":[{"name":"at","type":"long"},{"name":"user","type":["null","string"]},{"name":"id","type":"int"},
        {"name":"c9","type":["double","null"]},{"name":"c11","type":{"type":"enum","name":"e","symbols":["a","b"]}},{"name":"c12","type":{"type":"fixed","name":"f","size":3}},
        {"name":"c25","type":["null",{"type":"bytes","logicalType":"decimal","precision":22,"scale":9}]},{"name":"l","type":{"type":"array","items":["null","string"]}},
        {"name":"m","type":{"type":"map","values":"long"}}]}"#;
    let Some((count, rows_of)) = data.split_first() else { return };
    let long = |value: usize, file: &mut Vec<u8>| {
        let mut rest = value << 1;
        while rest >= 0x80 {
            file.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        file.push(rest as u8);
    };
    let mut file = b"Obj\x01\x02\x16avro.schema".to_vec();
    long(SCHEMA.len(), &mut file);
    file.extend_from_slice(SCHEMA.as_bytes());
    file.push(0);
    file.extend_from_slice(&[7; 16]);
    long(usize::from(*count), &mut file);
    long(rows_of.len(), &mut file);
    file.extend_from_slice(rows_of);
    file.extend_from_slice(&[7; 16]);
    rows(&file, InputFormat::Avro);
}

/// Bytes as an ORC file.
fn orc(data: &[u8]) {
    rows(data, InputFormat::Orc);
}

/// Bytes as NDJSON.
fn ndjson(data: &[u8]) {
    rows(data, InputFormat::Ndjson);
}

/// Bytes as tab-separated text with escapes.
fn tsv(data: &[u8]) {
    rows(data, InputFormat::Tsv);
}

/// Bytes as a data file of a YDB dump.
fn ydb_dump(data: &[u8]) {
    rows(data, InputFormat::YdbDump);
}

/// Text as the schema of a YDB dump, or as the description of a table: keys have columns, and no
/// column is there twice.
fn scheme(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = match text.starts_with('{') {
        true => read_describe(text, "t.json"),
        false => read_scheme(text, "scheme.pb", "t"),
    };
    let Ok(table) = read else { return };
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert!(!names.is_empty());
    for (position, name) in names.iter().enumerate() {
        assert!(!names[..position].contains(name), "{name}");
    }
    assert!(table.primary_key.iter().chain(&table.partition_key).all(|name| names.contains(&name.as_str())));
}

/// Text as statements of other systems: keys have columns.
fn statements(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(table) = read_ddl(text, "fuzz.sql", None) else { return };
    let has = |name: &String| table.columns.iter().any(|column| column.name == *name);
    assert!(!table.columns.is_empty());
    assert!(table.partition_key.iter().all(has), "{table:?}");
}

/// Text as the literals of a key, and as the small values of options.
fn literals(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for column_type in types() {
        if let Ok(key) = parse_key(&[column_type], &[text.to_owned()]) {
            let partitions = PartitionCount::new(5).expect("5 is a count");
            let placement = Placement::new(PlacementFunction::Ydb, partitions, vec![column_type]);
            assert_eq!(placement.assign(&key).map_or(1, |placed| placed.len()), 1);
        }
    }
    if let Ok(length) = text.parse::<Micros>() {
        assert_eq!(length.to_string().parse(), Ok(length));
        assert_eq!(
            Micros::from_iso(&length.iso()).map(|l| l.seconds().round()),
            Some(length.seconds().round())
        );
    }
    let _ = Micros::from_iso(text);
    let _ = text.parse::<ByteSize>();
    if let Ok(ttl) = text.parse::<Ttl>() {
        assert_eq!(ttl.to_string().parse(), Ok(ttl));
    }
    if let Ok(column_type) = text.parse::<ColumnType>() {
        assert_eq!(column_type.to_string().parse(), Ok(column_type));
    }
    if let Ok(function) = text.parse::<PlacementFunction>() {
        assert_eq!(function.to_string().parse(), Ok(function));
    }
}

/// Bytes as the end of a portion's file.
fn footer(data: &[u8]) {
    let _ = PortionFooter::read(&data.to_vec().into(), data.len() as u64);
}

/// A profile of an evaluation: the bytes as they are, and as its content with a right checksum.
fn profile(data: &[u8]) {
    let _ = Profile::from_bytes("x.ek", data);
    let content = seal(|bytes| bytes.extend_from_slice(data));
    let Ok(compressed) = zstd::encode_all(content.as_slice(), 1) else { return };
    let length = (content.len() as u64).to_le_bytes();
    let file = [b"evenkeel profile \x01\0\0\0".as_slice(), &length, &compressed].concat();
    if let Ok(profile) = Profile::from_bytes("x.ek", &file) {
        let again = profile.to_bytes().map(|bytes| Profile::from_bytes("x.ek", &bytes).is_ok());
        assert!(matches!(again, Ok(true)), "what is read must be written and read again");
    }
}
