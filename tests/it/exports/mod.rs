//! Files as other systems write them: read as what they are, or refused by name.

mod refused;
mod statements;
mod text;
mod ydb;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use evenkeel::generate::AdEvents;
use evenkeel::sink::{OutputFormat, Sink};
use evenkeel::source::{Export, InputOptions, OnUnreadable, SourceError, find_inputs};

use crate::common::run;

const ROWS: u64 = 3000;
const PARTITIONS: usize = 16;

fn events() -> RecordBatch {
    AdEvents { rows: ROWS, ..AdEvents::default() }.batches(ROWS as usize).unwrap().next().unwrap().unwrap()
}

/// Escapes text as YDB writes it: letters, digits and some punctuation stay, a space becomes a
/// plus.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b"!$*-./;@_~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Writes rows as lines of a dump.
fn lines(batch: &RecordBatch, rows: impl Iterator<Item = usize>) -> String {
    let options = FormatOptions::default().with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));
    let formatters: Vec<_> = batch
        .columns()
        .iter()
        .map(|array| ArrayFormatter::try_new(array.as_ref(), &options).unwrap())
        .collect();
    let mut text = String::new();
    for row in rows {
        for (position, (array, formatter)) in batch.columns().iter().zip(&formatters).enumerate() {
            let value = formatter.value(row).to_string();
            let field = match array.data_type() {
                _ if array.is_null(row) => "null".to_owned(),
                data_type if data_type.is_string() => format!("\"{}\"", escaped(&value)),
                _ => value,
            };
            text.push_str(if position == 0 { "" } else { "," });
            text.push_str(&field);
        }
        text.push('\n');
    }
    text
}

/// Declares columns as `scheme.pb` does.
fn columns(columns: &[(&str, &str, bool)]) -> String {
    let mut text = String::new();
    for (name, column_type, is_nullable) in columns {
        let item = format!("type_id: {column_type}");
        let item = if *is_nullable { format!("optional_type {{ item {{ {item} }} }}") } else { item };
        let _ = writeln!(text, "columns {{\n  name: \"{name}\"\n  type {{\n    {item}\n  }}\n}}");
    }
    text
}

const AD_EVENTS: [(&str, &str, bool); 6] = [
    ("user_id", "UTF8", false),
    ("event_timestamp", "TIMESTAMP", false),
    ("event_id", "UINT64", true),
    ("campaign_id", "UINT64", false),
    ("ad_id", "UINT64", true),
    ("event_type", "UTF8", true),
];

fn scheme() -> String {
    format!(
        "{}primary_key: \"event_timestamp\"\nprimary_key: \"user_id\"\nprimary_key: \"campaign_id\"\n\
         partitioning_settings {{\n  partition_by: \"user_id\"\n  min_partitions_count: {PARTITIONS}\n}}\n\
         ttl_settings {{ date_type_column {{ column_name: \"event_timestamp\" expire_after_seconds: 31536000 }} }}\n\
         store_type: STORE_TYPE_COLUMN\n",
        columns(&AD_EVENTS)
    )
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Writes a dump of the ad events in three data files, the second of which is empty.
fn dump(folder: &Path, ending: &str) {
    write(folder, "scheme.pb", scheme());
    write(folder, "permissions.pb", "actions {\n  change_owner: \"root\"\n}\n");
    let batch = events();
    for (number, rows) in [0..1000, 0..0, 1000..batch.num_rows()].into_iter().enumerate() {
        let name = format!("data_{number:02}.{ending}");
        let bytes = match ending {
            "parquet" => {
                let mut sink = Sink::new(Vec::new(), OutputFormat::Parquet, &batch.schema()).unwrap();
                sink.write(&batch.slice(rows.start, rows.len())).unwrap();
                sink.finish().unwrap()
            }
            "csv" => lines(&batch, rows).into_bytes(),
            // YDB ends a frame at each flush.
            _ => rows
                .collect::<Vec<_>>()
                .chunks(300)
                .flat_map(|chunk| {
                    zstd::encode_all(lines(&batch, chunk.iter().copied()).as_bytes(), 1).unwrap()
                })
                .collect(),
        };
        write(folder, &name, bytes);
    }
}

/// Reads all values of an export as text.
fn values(folder: &Path) -> Result<Vec<Vec<String>>, SourceError> {
    let inputs = find_inputs(&[folder.display().to_string()], None)?;
    let export = Export::open(&inputs.paths, inputs.options(InputOptions::default()), &BTreeMap::new())?;
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    export.read::<SourceError>(OnUnreadable::Fail, |_, batch| {
        let formatters: Vec<_> = batch
            .columns()
            .iter()
            .map(|array| ArrayFormatter::try_new(array.as_ref(), &options).unwrap())
            .collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            formatters.iter().map(|formatter| formatter.value(row).to_string()).collect::<Vec<_>>()
        }));
        Ok(true)
    })?;
    Ok(rows)
}

/// Evaluates a text and returns the types of its columns and the number of rows.
fn types(name: &str, text: &str, options: &str) -> Result<(Vec<String>, u64), String> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), name, text);
    let found = run(dir.path(), &format!("evaluate {{}}/{name} --format json{options}"));
    if found.code != 0 {
        return Err(found.stderr);
    }
    let report: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    let columns = report["columns"].as_array().unwrap().iter();
    let types = columns.map(|column| format!("{} {}", column["name"], column["type"]).replace('"', ""));
    Ok((types.collect(), report["rows"].as_u64().unwrap()))
}
