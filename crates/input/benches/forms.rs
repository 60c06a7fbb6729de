//! Speed of reading: the same rows as each system writes them, in rows per second.
//!
//! `cargo bench -p evenkeel-input` runs all, `cargo bench -p evenkeel-input -- copy` one. The plain
//! CSV file is the measure of the others.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench that fails should stop")]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow_avro::writer::format::AvroOcfFormat;
use arrow_avro::writer::{AvroWriter, WriterBuilder};
use chrono::DateTime;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evenkeel_input::source::{Export, InputFormat, InputOptions, OnUnreadable, SourceError, find_inputs};
use orc_rust::ArrowWriterBuilder;
use parquet::arrow::ArrowWriter;

const ROWS: i64 = 300_000;
const COLUMNS: [&str; 6] = ["id", "user_id", "campaign", "note", "at", "amount"];

/// A row; the note is NULL in every fifth one, and has a byte that formats escape in every seventh.
struct Row {
    id: i64,
    user: String,
    campaign: String,
    note: Option<String>,
    at: i64,
    amount: f64,
}

impl Row {
    fn new(id: i64) -> Self {
        let mixed = id.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed());
        let note = match id {
            id if id % 5 == 0 => None,
            id if id % 7 == 0 => Some(format!("path\\to {}", id % 1000)),
            id => Some(format!("seen at {}", id % 1000)),
        };
        Self {
            id,
            user: format!("user-{}", mixed.rem_euclid(97_500)),
            campaign: format!("campaign-{}", mixed.rem_euclid(40)),
            note,
            at: 1_760_000_000_000_000 + id * 61_003,
            amount: mixed.rem_euclid(100_000) as f64 / 8.0,
        }
    }

    /// Returns the time as text, with a character between day and time, and a suffix.
    fn time(&self, between: char, suffix: &str) -> String {
        let format = format!("%Y-%m-%d{between}%H:%M:%S%.6f{suffix}");
        DateTime::from_timestamp_micros(self.at).unwrap().format(&format).to_string()
    }
}

/// Rows as lines: `line` appends the fields of one.
fn lines(path: &Path, before: &str, after: &str, line: impl Fn(&mut String, &Row)) {
    let mut text = before.to_owned();
    for id in 0..ROWS {
        line(&mut text, &Row::new(id));
        text.push('\n');
    }
    text.push_str(after);
    fs::write(path, text).unwrap();
}

fn comma(text: &mut String, row: &Row, null: &str, time: &str) {
    let note = row.note.as_ref().map_or(null.to_owned(), |note| format!("\"{note}\""));
    let Row { id, user, campaign, amount, .. } = row;
    write!(text, "{id},\"{user}\",\"{campaign}\",{note},{time},{amount}").unwrap();
}

fn tabs(text: &mut String, row: &Row) {
    let note = row.note.as_ref().map_or("\\N".to_owned(), |note| note.replace('\\', "\\\\"));
    let Row { id, user, campaign, amount, .. } = row;
    let time = row.time(' ', "");
    write!(text, "{id}\t{user}\t{campaign}\t{note}\t{time}\t{amount}").unwrap();
}

fn json(text: &mut String, row: &Row, number: impl Fn(i64) -> String, time: &str) {
    let note = row.note.as_ref().map_or("null".to_owned(), |note| format!("{note:?}"));
    let Row { user, campaign, amount, .. } = row;
    let id = number(row.id);
    write!(
        text,
        "{{\"id\":{id},\"user_id\":\"{user}\",\"campaign\":\"{campaign}\",\"note\":{note},\"at\":{time},\"amount\":{amount}}}"
    )
    .unwrap();
}

fn batches() -> Vec<RecordBatch> {
    let numbers: Vec<i64> = (0..ROWS).collect();
    let of_rows = |ids: &[i64]| {
        let rows: Vec<Row> = ids.iter().copied().map(Row::new).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| Some(row.id)).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| Some(row.user.as_str())).collect::<StringArray>()),
            Arc::new(rows.iter().map(|row| Some(row.campaign.as_str())).collect::<StringArray>()),
            Arc::new(rows.iter().map(|row| row.note.as_deref()).collect::<StringArray>()),
            Arc::new(
                rows.iter()
                    .map(|row| Some(row.at))
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("UTC"),
            ),
            Arc::new(rows.iter().map(|row| Some(row.amount)).collect::<Float64Array>()),
        ];
        let fields = COLUMNS.iter().zip(&columns);
        let fields = fields.map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        RecordBatch::try_new(schema, columns).unwrap()
    };
    numbers.chunks(16_384).map(of_rows).collect()
}

/// Rows with times as text, as Spanner exports them.
fn with_text_times(batch: &RecordBatch) -> RecordBatch {
    let mut columns = batch.columns().to_vec();
    let ids = batch.column(0).as_primitive::<Int64Type>().values().iter();
    let times = ids.map(|id| Some(Row::new(*id).time('T', "Z")));
    *columns.get_mut(4).unwrap() = Arc::new(times.collect::<StringArray>());
    let mut fields: Vec<Field> = batch.schema().fields().iter().map(|field| (**field).clone()).collect();
    *fields.get_mut(4).unwrap() = Field::new("at", DataType::Utf8, true);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn avro(path: &Path, batches: &[RecordBatch], schema: Option<&str>) {
    let first = batches.first().unwrap().schema();
    let metadata: HashMap<String, String> =
        schema.map(|schema| ("avro.schema".to_owned(), schema.to_owned())).into_iter().collect();
    let described = Schema::clone(&first).with_metadata(metadata);
    let file = File::create(path).unwrap();
    let writer = WriterBuilder::new(described);
    let mut writer: AvroWriter<File> = writer.build::<_, AvroOcfFormat>(file).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

fn spanner(folder: &Path, batches: &[RecordBatch]) {
    fs::create_dir(folder).unwrap();
    let field = |name: &str, avro: &str, sql: &str| {
        format!("{{\"name\":\"{name}\",\"type\":[\"null\",\"{avro}\"],\"sqlType\":\"{sql}\"}}")
    };
    let fields = [
        field("id", "long", "INT64"),
        field("user_id", "string", "STRING(MAX)"),
        field("campaign", "string", "STRING(MAX)"),
        field("note", "string", "STRING(MAX)"),
        field("at", "string", "TIMESTAMP"),
        field("amount", "double", "FLOAT64"),
    ];
    let schema = format!(
        "{{\"type\":\"record\",\"name\":\"events\",\"namespace\":\"spannerexport\",\"fields\":[{}],\
         \"googleStorage\":\"CloudSpanner\",\"spannerPrimaryKey\":\"`id` ASC\",\"spannerParent\":\"\",\
         \"spannerPrimaryKey_0\":\"`id` ASC\",\"googleFormatVersion\":\"1.0.0\"}}",
        fields.join(",")
    );
    let rows: Vec<RecordBatch> = batches.iter().map(with_text_times).collect();
    let name = "events.avro-00000-of-00001";
    avro(&folder.join(name), &rows, Some(&schema));
    let export = "{\"tables\":[{\"name\":\"events\",\"manifestFile\":\"events-manifest.json\"}]}";
    fs::write(folder.join("spanner-export.json"), export).unwrap();
    let manifest = format!("{{\"files\":[{{\"name\":\"{name}\"}}]}}");
    fs::write(folder.join("events-manifest.json"), manifest).unwrap();
}

fn ydb(folder: &Path, is_packed: bool) {
    fs::create_dir(folder).unwrap();
    let types = ["INT64", "UTF8", "UTF8", "UTF8", "TIMESTAMP", "DOUBLE"];
    let columns = COLUMNS.iter().zip(types).map(|(name, type_id)| {
        format!(
            "columns {{ name: \"{name}\" type {{ optional_type {{ item {{ type_id: {type_id} }} }} }} }}\n"
        )
    });
    fs::write(folder.join("scheme.pb"), columns.collect::<String>() + "primary_key: \"id\"\n").unwrap();
    let path = folder.join("data_00.csv");
    lines(&path, "", "", |text, row| {
        let quoted = |value: &str| value.replace('\\', "%5C").replace(' ', "+");
        let note = row.note.as_ref().map(|note| quoted(note));
        let row = Row { note, ..Row::new(row.id) };
        comma(text, &row, "null", &row.time('T', "Z"));
    });
    if is_packed {
        let text = fs::read(&path).unwrap();
        let mut packed = File::create(folder.join("data_00.csv.zst")).unwrap();
        text.chunks(1 << 20).for_each(|part| packed.write_all(&zstd::encode_all(part, 1).unwrap()).unwrap());
        fs::remove_file(path).unwrap();
    }
}

fn open(path: &Path, options: &InputOptions) -> Export {
    let inputs = find_inputs(&[path.display().to_string()], None).unwrap();
    Export::open(&inputs.paths, inputs.options(options.clone()), &BTreeMap::new()).unwrap()
}

/// Reads all rows, and returns their number.
fn read(export: &Export) -> i64 {
    let mut rows = 0;
    let each = |_: &_, batch: RecordBatch| {
        rows += i64::try_from(black_box(batch).num_rows()).unwrap();
        Ok::<_, SourceError>(true)
    };
    export.read(OnUnreadable::Fail, each).unwrap();
    rows
}

/// A file: the name of its form, its path, and the options to read it with.
type Sample = (&'static str, PathBuf, InputOptions);

/// Writes files whose rows are lines of fields.
fn texts(folder: &Path) -> Vec<Sample> {
    let at = |name: &str| folder.join(name);
    let header = COLUMNS.join(",") + "\n";
    let tab_header = COLUMNS.join("\t") + "\n";
    let mut all = Vec::new();
    let plain = InputOptions::default();
    let tsv = InputOptions { format: Some(InputFormat::Tsv), ..plain.clone() };

    let path = at("plain.csv");
    lines(&path, &header, "", |text, row| comma(text, row, "", &row.time(' ', "")));
    all.push(("CSV", path, plain.clone()));

    let path = at("cqlsh.csv");
    lines(&path, &header, "", |text, row| {
        let note = row.note.as_ref().map(|note| note.replace('\\', "\\\\"));
        let row = Row { note, ..Row::new(row.id) };
        comma(text, &row, "", &row.time(' ', "+0000"));
    });
    all.push((
        "CSV of cqlsh, backslash escapes",
        path,
        InputOptions { escape: Some(b'\\'), ..plain.clone() },
    ));

    let path = at("quoted.csv");
    lines(&path, &header, "", |text, row| comma(text, row, "", &row.time(' ', "")));
    all.push(("CSV with quoted empty text", path, InputOptions { quoted_empty: true, ..plain.clone() }));

    let path = at("copy.tsv");
    lines(&path, &tab_header, "", tabs);
    all.push(("COPY text", path, tsv.clone()));

    let path = at("types.tsv");
    let types = "Int64\tString\tString\tNullable(String)\tDateTime64(6, 'UTC')\tFloat64\n";
    lines(&path, &(tab_header.clone() + types), "", tabs);
    all.push(("ClickHouse, names and types", path, tsv));

    let path = at("dump.sql");
    let before = "--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE public.events (\n    id bigint NOT NULL,\n    \
         user_id text,\n    campaign text,\n    note text,\n    at timestamp without time zone,\n    amount double precision\n);\n\n\
         COPY public.events (id, user_id, campaign, note, at, amount) FROM stdin;\n";
    lines(&path, before, "\\.\n\n--\n-- PostgreSQL database dump complete\n--\n", tabs);
    all.push(("pg_dump", path, plain.clone()));

    let path = at("ydb");
    ydb(&path, false);
    all.push(("YDB dump", path, plain.clone()));
    let path = at("ydb-zst");
    ydb(&path, true);
    all.push(("YDB dump, zst", path, plain));
    all
}

/// Writes files of JSON.
fn jsons(folder: &Path) -> Vec<Sample> {
    let at = |name: &str| folder.join(name);
    let mut all = Vec::new();
    let plain = InputOptions::default();

    let path = at("plain.ndjson");
    lines(&path, "", "", |text, row| {
        json(text, row, |id| id.to_string(), &format!("\"{}\"", row.time(' ', "")));
    });
    all.push(("NDJSON", path, plain.clone()));
    let path = at("quoted.ndjson");
    lines(&path, "", "", |text, row| {
        json(text, row, |id| format!("\"{id}\""), &format!("\"{}\"", row.time(' ', "")));
    });
    all.push(("NDJSON, integers in quotes", path, plain.clone()));
    let path = at("extended.ndjson");
    lines(&path, "", "", |text, row| {
        let time = format!("{{\"$date\":{{\"$numberLong\":\"{}\"}}}}", row.at / 1000);
        json(text, row, |id| format!("{{\"$numberLong\":\"{id}\"}}"), &time);
    });
    all.push(("Extended JSON", path, plain));
    all
}

/// Writes files of binary formats.
fn binaries(folder: &Path) -> Vec<Sample> {
    let at = |name: &str| folder.join(name);
    let batches = batches();
    let mut all = Vec::new();
    let plain = InputOptions::default();

    let path = at("plain.avro");
    avro(&path, &batches, None);
    all.push(("Avro", path, plain.clone()));
    let path = at("spanner");
    spanner(&path, &batches);
    all.push(("Spanner's Avro", path, plain.clone()));

    let path = at("plain.orc");
    let mut writer = ArrowWriterBuilder::new(File::create(&path).unwrap(), batches.first().unwrap().schema())
        .try_build()
        .unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    all.push(("ORC", path, plain.clone()));

    let path = at("plain.parquet");
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), batches.first().unwrap().schema(), None).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    all.push(("Parquet", path, plain));
    all
}

fn forms(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let all = [texts(folder.path()), jsons(folder.path()), binaries(folder.path())].concat();
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Elements(ROWS.unsigned_abs())).sample_size(10);
    for (name, path, options) in &all {
        // Types are found once, from a part of the rows.
        let export = open(path, options);
        group.bench_function(*name, |bench| bench.iter(|| assert_eq!(read(&export), ROWS)));
    }
}

criterion_group!(benches, forms);
criterion_main!(benches);
