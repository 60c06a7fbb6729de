//! Batches of Arrow IPC files and streams, whole, in pieces and cut off.

use std::io::Cursor;
use std::path::Path;

use arrow::array::{ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::ipc::writer::{FileWriter, StreamWriter};

use super::*;
use crate::source::raw::{Positions, RawCells};

/// Batches of these numbers of rows, with a number, a name and a kind of a dictionary in each row.
fn batches(rows: &[usize]) -> Vec<RecordBatch> {
    // A file has one dictionary for all batches.
    let kinds: ArrayRef = Arc::new(StringArray::from_iter_values(["even", "odd"]));
    let mut next = 0_i64;
    let mut batch = |rows: usize| {
        let numbers = next..next + rows as i64;
        next = numbers.end;
        let texts = numbers.clone().map(|n| (n % 3 > 0).then(|| format!("name {n}")));
        let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
        let keys = Int32Array::from_iter_values(numbers.clone().map(|n| (n % 2) as i32));
        let of_kind = DictionaryArray::<Int32Type>::new(keys, Arc::clone(&kinds));
        let of_kind: ArrayRef = Arc::new(of_kind);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        let columns = [("n", numbers, true), ("name", texts, true), ("kind", of_kind, true)];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    };
    rows.iter().map(|rows| batch(*rows)).collect()
}

fn file_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn stream_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

type Opened<R> = Result<R, SourceError>;

fn open_file_of(path: &Path, bytes: &[u8], columns: &[&str]) -> Opened<ArrowFileReader> {
    std::fs::write(path, bytes).unwrap();
    ArrowFileReader::open("x.arrow", SeekableFile::Kept(path.to_owned()), &names(columns))
}

fn open_stream_of(bytes: &[u8], columns: &[&str]) -> Opened<ArrowStreamReader> {
    ArrowStreamReader::open("x.arrows", Box::new(Cursor::new(bytes.to_vec())), &names(columns))
}

/// Reads to the end; returns the numbers of the first rows of the batches, too.
fn read(reader: &mut dyn RawReader) -> Result<(Vec<u64>, Vec<RecordBatch>), SourceError> {
    let (mut firsts, mut batches) = (Vec::new(), Vec::new());
    while let Some(batch) = reader.next_batch()? {
        let RawBatch { cells, positions, .. } = batch;
        let (RawCells::Arrow(cells), Positions::RowsFrom(first)) = (cells, positions) else {
            panic!("batches of Arrow are arrays");
        };
        firsts.push(first);
        batches.push(cells);
    }
    Ok((firsts, batches))
}

#[test]
fn files_and_streams_give_back_the_requested_columns_with_numbers_of_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.arrow");
    let written = batches(&[5, 0, 3, 7]);
    for (columns, positions, unknown) in [
        (&["kind", "nope", "n"][..], &[0, 2][..], &["name"][..]),
        (&["n", "name", "kind"], &[0, 1, 2], &[]),
        (&["name"], &[1], &["n", "kind"]),
    ] {
        let expected: Vec<RecordBatch> =
            written.iter().map(|batch| batch.project(positions).unwrap()).collect();
        let mut file = open_file_of(&path, &file_of(&written), columns).unwrap();
        let mut stream = open_stream_of(&stream_of(&written), columns).unwrap();
        let readers: [&mut dyn RawReader; 2] = [&mut file, &mut stream];
        for reader in readers {
            assert_eq!(reader.unknown_columns(), names(unknown), "{columns:?}");
            assert_eq!(reader.column_names(), Some(names(&["n", "name", "kind"])), "{columns:?}");
            let (firsts, batches) = read(reader).unwrap();
            assert_eq!(firsts, [1, 6, 6, 9], "{columns:?}");
            assert_eq!(batches, expected, "{columns:?}");
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.arrow");
    let whole = file_of(&batches(&[3, 2]));
    for end in 0..whole.len() {
        let opened = open_file_of(&path, &whole[..end], &["n"]);
        let error = opened.err().map(|error| error.to_string());
        let is_refused = error.is_some_and(|error| error.contains("is not readable as Arrow IPC"));
        assert!(is_refused, "the first {end} of {} bytes", whole.len());
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_gives_only_batches_that_it_has_whole() {
    let written = batches(&[3, 2, 4]);
    let whole = stream_of(&written);
    let mut most = 0;
    for end in 0..=whole.len() {
        let Ok(mut reader) = open_stream_of(&whole[..end], &["n", "name", "kind"]) else {
            assert_eq!(most, 0, "the schema is at the beginning, and {end} bytes have it");
            continue;
        };
        let mut found = Vec::new();
        while let Ok(Some(batch)) = reader.next_batch() {
            let RawCells::Arrow(cells) = batch.cells else { panic!("batches of Arrow are arrays") };
            found.push(cells);
        }
        assert_eq!(found, written[..found.len()], "{end}");
        assert!(found.len() >= most, "{end}");
        most = found.len();
    }
    assert_eq!(most, written.len());
    let error = open_stream_of(&[], &["n"]).err().unwrap().to_string();
    assert!(error.contains("the stream has no schema"), "{error}");
}

#[test]
fn the_pieces_of_a_batch_are_the_batch_and_none_is_large() {
    let text = |count: usize, bytes: usize| {
        let rows = (0..count).map(|row| format!("{row}{}", "x".repeat(bytes)));
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(rows));
        RecordBatch::try_from_iter([("t", array)]).unwrap()
    };
    let most = READ_BATCH_BYTES / 100 * 101;
    for (what, batch, pieces) in [
        ("no rows", text(0, 1), 1),
        ("a small batch", text(100, 10), 1),
        ("a row that is too large alone", text(3, READ_BATCH_BYTES + 1), 3),
        ("a part of a batch", text(5, READ_BATCH_BYTES / 4).slice(1, 2), 1),
        ("a large batch", text(3 * READ_BATCH_BYTES / 1_000, 1_000), 4),
    ] {
        let mut remainder = BatchRemainder { rest: Some(batch.clone()) };
        let found: Vec<RecordBatch> = std::iter::from_fn(|| remainder.take()).collect();
        for piece in &found {
            let is_small = piece.num_rows() <= 1 || batch_bytes(piece) <= most;
            assert!(is_small, "{what}: {} rows", piece.num_rows());
        }
        assert_eq!(found.len(), pieces, "{what}");
        assert_eq!(concat_batches(&batch.schema(), &found).unwrap(), batch, "{what}");
    }
}

#[test]
fn rows_are_numbered_on_across_the_pieces_of_a_batch() {
    let rows = READ_BATCH_BYTES / 8 + 10;
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=rows as i64));
    let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let mut reader = open_stream_of(&stream_of(&[batch]), &["n"]).unwrap();
    let (firsts, pieces) = read(&mut reader).unwrap();
    assert!(pieces.len() > 1, "{firsts:?}");
    for (first, piece) in firsts.iter().zip(&pieces) {
        let numbers = piece.column(0).as_primitive::<Int64Type>();
        assert_eq!(u64::try_from(numbers.value(0)), Ok(*first));
    }
    assert_eq!(pieces.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
}

#[test]
fn lengths_beyond_the_file_are_refused_before_they_are_allocated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    std::fs::write(&path, b"0123456789").unwrap();
    let mut source = File::open(&path).unwrap();
    assert_eq!(read_range(&mut source, 10, 3, 4).unwrap(), b"3456");
    assert_eq!(read_range(&mut source, 10, 10, 0).unwrap(), b"");
    for (at, count) in [(0, 11), (10, 1), (11, 0), (0, u64::MAX), (u64::MAX, 1), (1, u64::MAX)] {
        assert!(read_range(&mut source, 10, at, count).is_err(), "{count} bytes from {at}");
    }
    let block = read_block(&mut source, 10, &Block::new(2, 3, 4)).unwrap();
    assert_eq!(block.as_slice(), b"2345678");
    for (offset, metadata, body) in
        [(-1, 1, 1), (0, -1, 1), (0, 1, -1), (0, i32::MAX, i64::MAX), (i64::MAX, 1, 1), (8, 2, 1)]
    {
        let block = Block::new(offset, metadata, body);
        assert!(read_block(&mut source, 10, &block).is_err(), "{block:?}");
    }
}

#[test]
fn a_panic_of_a_decoder_is_an_error_and_only_then_is_it_said_to_be_caught() {
    assert!(!panics_are_caught());
    let mut was_said = false;
    let error = guarded(|| -> Result<(), ArrowError> {
        was_said = panics_are_caught();
        panic!("a decoder did not expect this");
    });
    assert!(error.unwrap_err().to_string().contains("the file is damaged"));
    assert!(was_said && !panics_are_caught());
    assert!(guarded(|| Ok(panics_are_caught())).unwrap());
    assert!(!panics_are_caught());
    let error = guarded(|| -> Result<(), ArrowError> { Err(ArrowError::IpcError("x".to_owned())) });
    assert!(error.is_err() && !panics_are_caught());
}
