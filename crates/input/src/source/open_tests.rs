//! Formats by content and by name, damaged inputs, and pipes.

use std::io::Write;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use flate2::write::GzEncoder;

use super::*;
use crate::source::raw::RawCells;

const CSV: &[u8] = b"id,n\n1,7\n2,8\n";
const NDJSON: &[u8] = b"{\"id\": 1, \"n\": 7}\n{\"id\": 2, \"n\": 8}\n";

fn batch() -> RecordBatch {
    let column = |values: [i64; 2]| -> ArrayRef { Arc::new(Int64Array::from_iter_values(values)) };
    RecordBatch::try_from_iter([("id", column([1, 2])), ("n", column([7, 8]))]).unwrap()
}

fn parquet() -> Vec<u8> {
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch().schema(), None).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

fn arrow(is_file: bool) -> Vec<u8> {
    let schema = batch().schema();
    if is_file {
        let mut writer = arrow::ipc::writer::FileWriter::try_new(Vec::new(), &schema).unwrap();
        writer.write(&batch()).unwrap();
        return writer.into_inner().unwrap();
    }
    let mut writer = arrow::ipc::writer::StreamWriter::try_new(Vec::new(), &schema).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Opens bytes as a file of this name, and as a pipe, which has no name.
fn opened(name: &str, bytes: &[u8]) -> [Result<Input, SourceError>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let columns = ["id".to_owned(), "n".to_owned()];
    let options = InputOptions::default();
    let pipe = Box::new(io::Cursor::new(bytes.to_vec()));
    [
        Input::open(&InputPath::File(path), &columns, &options),
        Input::open_reader("pipe", pipe, &columns, &options),
    ]
}

fn rows(input: &mut Input) -> usize {
    let mut rows = 0;
    while let Some(batch) = input.next_batch().unwrap() {
        rows += match batch.cells {
            RawCells::Text(columns) => columns.first().map_or(0, |(_, cells)| cells.len()),
            RawCells::Arrow(batch) => batch.num_rows(),
        };
    }
    rows
}

#[test]
fn the_content_decides_on_the_format_whatever_the_name() {
    let inputs = [
        (InputFormat::Parquet, parquet()),
        (InputFormat::Arrow, arrow(true)),
        (InputFormat::Arrow, arrow(false)),
        (InputFormat::Ndjson, NDJSON.to_vec()),
        (InputFormat::Csv, CSV.to_vec()),
    ];
    for (format, bytes) in inputs {
        for bytes in [bytes.clone(), gzip(&bytes), zstd::encode_all(bytes.as_slice(), 1).unwrap()] {
            for input in opened("rows.data", &bytes) {
                let mut input = input.unwrap();
                assert_eq!((input.format(), rows(&mut input)), (format, 2), "{}", input.name());
            }
        }
    }
}

#[test]
fn a_name_decides_only_if_the_content_may_be_of_any_format() {
    // A single column has no separator.
    let [file, pipe] = opened("rows.csv", b"id\n1\n");
    assert_eq!(file.unwrap().format(), InputFormat::Csv);
    assert!(matches!(pipe, Err(SourceError::UnknownFormat { file }) if file == "pipe"));
    let [file, _] = opened("rows.csv", &parquet());
    assert_eq!(file.unwrap().format(), InputFormat::Parquet);
    let [file, _] = opened("rows.tsv", b"id\tn\n1\t7\n");
    assert_eq!(file.unwrap().column_names().unwrap(), ["id", "n"]);
}

#[test]
fn an_empty_or_cut_input_is_an_error() {
    for bytes in [Vec::new(), gzip(b"")] {
        for input in opened("rows.csv", &bytes) {
            assert!(matches!(input, Err(SourceError::Empty { .. })), "{input:?}");
        }
    }
    let parquet = parquet();
    for input in opened("rows.parquet", &parquet[..parquet.len() - 8]) {
        assert!(matches!(input, Err(SourceError::Format { .. })), "{input:?}");
    }
    let nothing = InputPath::File(PathBuf::from("/no/such/rows.csv"));
    let error = Input::open(&nothing, &[], &InputOptions::default()).unwrap_err();
    assert!(matches!(error, SourceError::Read { file, .. } if file == "/no/such/rows.csv"));
}

#[test]
fn a_pipe_has_the_fingerprint_of_a_file_once_it_was_read_to_its_end() {
    for bytes in [CSV.to_vec(), gzip(CSV), parquet()] {
        let [file, pipe] = opened("rows", &bytes).map(Result::unwrap);
        let mut pipe = pipe;
        rows(&mut pipe);
        let hash = twox_hash::XxHash3_128::oneshot(&bytes);
        let expected = Fingerprint { bytes: bytes.len() as u64, xxh3: format!("{hash:032x}") };
        assert_eq!((file.fingerprint(), pipe.fingerprint()), (Some(expected.clone()), Some(expected)));
    }
    // More than is read ahead when the pipe is opened.
    let [_, pipe] = opened("rows", &[b"id,n\n".as_slice(), &b"1,7\n".repeat(1 << 18)].concat());
    assert_eq!(pipe.unwrap().fingerprint(), None);
}

#[test]
fn rows_after_a_long_gap_are_read() {
    let [first, second] = [NDJSON, CSV].map(|text| text.iter().position(|byte| *byte == b'2').unwrap());
    let (first, second) = (first - "{\"id\": ".len(), second);
    let gap = |text: &[u8], at: usize, gap: &str| {
        [&text[..at], gap.repeat(18 << 20).as_bytes(), &text[at..]].concat()
    };
    let schema = batch().schema();
    let mut writer = arrow::ipc::writer::StreamWriter::try_new(Vec::new(), &schema).unwrap();
    for batch in [batch().slice(0, 1), batch().slice(0, 0), batch().slice(0, 0), batch().slice(1, 1)] {
        writer.write(&batch).unwrap();
    }
    let stream = writer.into_inner().unwrap();
    for (name, bytes) in [
        ("lines.ndjson", gap(NDJSON, first, "\n")),
        ("spaces.ndjson", gap(NDJSON, first, " ")),
        ("x.csv", gap(CSV, second, "\n")),
        ("x.arrows", stream),
    ] {
        let columns = ["id".to_owned(), "n".to_owned()];
        let reader = Box::new(std::io::Cursor::new(bytes));
        let options = InputOptions { format: format_of_name(Path::new(name)), ..InputOptions::default() };
        let mut input = Input::open_reader(name, reader, &columns, &options).unwrap();
        let mut rows = 0;
        while let Some(raw) = input.next_batch().unwrap() {
            rows += match &raw.cells {
                RawCells::Arrow(batch) => batch.num_rows(),
                RawCells::Text(columns) => columns[0].1.len(),
            };
        }
        assert_eq!(rows, 2, "{name}");
    }
}
