//! Files read by blocks, against the same files read record by record.

use std::io::Cursor;

use arrow::array::{Array, BinaryArray};
use proptest::prelude::*;

use super::*;
use crate::source::csv::CsvReader;
use crate::source::options::{InputOptions, PART_BYTES};
use crate::source::raw::{Positions, RawCells, RawPart, RawReader};
use crate::source::reject::RowPosition;

/// A stream that returns few bytes at a time.
struct Slow {
    bytes: Cursor<Vec<u8>>,
    most: usize,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(self.most);
        self.bytes.read(&mut buffer[..most])
    }
}

#[derive(Debug, Default, PartialEq)]
struct Contents {
    /// Lines and cells of rows.
    rows: Vec<(u64, Vec<Option<String>>)>,
    /// Lines and reasons of records that are no rows.
    broken: Vec<(u64, String)>,
    error: Option<String>,
    /// Number of blocks that another thread could have read.
    blocks: usize,
}

impl Contents {
    fn add(&mut self, batch: &RawBatch) {
        let (RawCells::Text(columns), Positions::Lines(lines)) = (&batch.cells, &batch.positions) else {
            panic!("CSV is text in lines");
        };
        for (row, line) in lines.iter().enumerate() {
            let cell = |(_, cells): &(String, BinaryArray)| {
                cells.is_valid(row).then(|| String::from_utf8_lossy(cells.value(row)).into_owned())
            };
            self.rows.push((*line, columns.iter().map(cell).collect()));
        }
        for reject in &batch.broken {
            let RowPosition::Line(line) = reject.position else { panic!("CSV has lines") };
            self.broken.push((line, reject.reason.to_string()));
        }
    }

    fn without_blocks(self) -> Self {
        Self { blocks: 0, ..self }
    }

    fn without_lines(mut self) -> Self {
        self.rows.iter_mut().for_each(|(line, _)| *line = 0);
        self.broken.iter_mut().for_each(|(line, _)| *line = 0);
        self
    }
}

/// How a file is read: a number of batches record by record, and the rest by blocks.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Bytes that the stream returns at a time.
    at_a_time: usize,
    batch_rows: usize,
    /// Number of batches of records before the first block.
    batches: usize,
    /// Size of blocks; `None` if all batches are of records.
    block: Option<usize>,
}

fn contents(text: &[u8], reading: Reading) -> Contents {
    contents_with(text, reading, InputOptions::default())
}

fn contents_with(text: &[u8], reading: Reading, options: InputOptions) -> Contents {
    let stream = Box::new(Slow { bytes: Cursor::new(text.to_vec()), most: reading.at_a_time });
    contents_of(stream, reading, options)
}

fn contents_of(stream: Box<dyn Read + Send>, reading: Reading, options: InputOptions) -> Contents {
    let columns = ["a", "b"].map(str::to_owned);
    let options = InputOptions { batch_rows: reading.batch_rows, ..options };
    let delimiter = options.delimiter.unwrap_or(b',');
    let mut reader = CsvReader::open("x.csv", stream, delimiter, false, &columns, &options).unwrap();
    reader.block_bytes = reading.block.unwrap_or(0);
    let mut contents = Contents::default();
    for number in 0.. {
        let read = if number < reading.batches || reading.block.is_none() {
            reader.next_batch().map(|batch| batch.map(|batch| vec![Ok(batch)]))
        } else {
            let part = reader.next_part();
            contents.blocks += usize::from(matches!(part, Ok(Some(RawPart::Text(_)))));
            part.map(|part| part.map(RawPart::read))
        };
        let batches = match read {
            Ok(Some(batches)) => batches,
            Ok(None) => break,
            Err(error) => vec![Err(error)],
        };
        for batch in batches {
            match batch {
                Ok(batch) => contents.add(&batch),
                Err(error) => return Contents { error: Some(error.to_string()), ..contents },
            }
        }
    }
    contents
}

/// Reads all records from the stream.
fn expected(text: &[u8], batch_rows: usize) -> Contents {
    contents(text, Reading { at_a_time: 1_000, batch_rows, batches: 0, block: None })
}

fn reading() -> impl Strategy<Value = Reading> {
    // One row at a time, so that as many rows precede a failure.
    let reading = (1usize..30, 0usize..4, 1usize..40);
    reading.prop_map(|(at_a_time, batches, block)| Reading {
        at_a_time,
        batch_rows: 1,
        batches,
        block: Some(block),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn blocks_have_the_records_and_lines_of_the_stream(
        text in "(a|b|,|,|\"|\"\"|\n|\n|\n\n|,\"|\",|\"\n|\u{feff}|\\\\N){0,60}",
        is_crlf in any::<bool>(),
        reading in reading(),
    ) {
        let text = format!("a,b\n{text}");
        let text = if is_crlf { text.replace('\n', "\r\n") } else { text };
        let expected = expected(text.as_bytes(), 1);
        prop_assert_eq!(&contents(text.as_bytes(), reading).without_blocks(), &expected);
        if expected.error.is_none() {
            let several = Reading { batch_rows: 3, ..reading };
            prop_assert_eq!(&contents(text.as_bytes(), several).without_blocks(), &expected);
        }
    }

    #[test]
    fn records_may_end_in_any_way(
        text in "(a|b|,|\"|\"\"|\n|\r|\r\n|,\"|\",|\"\r|\u{feff}){0,60}",
        reading in reading(),
    ) {
        let text = format!("a,b\r{text}");
        // Which line a record has depends on what counts as the end of a line.
        let expected = expected(text.as_bytes(), 1).without_lines();
        let found = contents(text.as_bytes(), reading).without_lines();
        prop_assert_eq!(found.error.is_some(), expected.error.is_some());
        prop_assert_eq!((found.rows, found.broken), (expected.rows, expected.broken));
    }
}

#[test]
fn long_files_have_many_blocks_and_the_rows_of_the_stream() {
    let row = |row: u64| match row % 97 {
        0 => format!("\"{row}\n,\"\"x\"\"\",{row}\n"),
        1 => format!("{row}\n"),
        2 => format!("\n\n{row},\n"),
        3 => format!("\"{row}\"x,1\n"),
        _ => format!("{row},some text of row {row}\n"),
    };
    let text: String = std::iter::once("a,b\n".to_owned()).chain((0..60_000).map(row)).collect();
    let expected = expected(text.as_bytes(), 1_000);
    assert!(expected.rows.len() > 58_000 && expected.broken.len() > 1_200 && expected.error.is_none());
    for (block, batch_rows, least_blocks) in
        [(10_000, 1_000, 100), (PART_BYTES, 20_000, 2), (PART_BYTES, 500, 100)]
    {
        let reading = Reading { at_a_time: usize::MAX, batch_rows, batches: 1, block: Some(block) };
        let found = contents(text.as_bytes(), reading);
        assert!(found.blocks >= least_blocks, "{block} {batch_rows}: {}", found.blocks);
        assert_eq!(found.without_blocks(), expected);
    }
}

#[test]
fn blocks_are_read_with_the_options_of_the_file() {
    let row = |row: u64| match row % 5 {
        0 => format!("\"{row}\\\"\n;\";NULL\n"),
        1 => ";\"\"\n".to_owned(),
        2 => "NULL;\"NULL\"\n".to_owned(),
        _ => format!("{row};x\n"),
    };
    let text = |rows: &dyn Fn(&u64) -> bool| -> String {
        std::iter::once("a;b\n".to_owned()).chain((0..20_000).filter(rows).map(row)).collect()
    };
    let (with_escapes, without) = (text(&|_| true), text(&|row| row % 5 != 0));
    let plain = InputOptions { delimiter: Some(b';'), ..InputOptions::default() };
    let escaped = InputOptions { escape: Some(b'\\'), ..plain.clone() };
    let quoted = InputOptions { quoted_empty: true, null_values: vec!["NULL".to_owned()], ..escaped.clone() };
    let named =
        InputOptions { headerless: true, names: vec!["a".to_owned(), "b".to_owned()], ..plain.clone() };
    for (options, text) in
        [(plain, &without), (escaped, &with_escapes), (quoted, &with_escapes), (named, &without)]
    {
        let records = Reading { at_a_time: usize::MAX, batch_rows: 100, batches: 0, block: None };
        let expected = contents_with(text.as_bytes(), records, options.clone());
        assert!(expected.rows.len() > 10_000);
        let found =
            contents_with(text.as_bytes(), Reading { batches: 2, block: Some(5_000), ..records }, options);
        assert!(found.blocks >= 20 && found.error.is_none());
        assert_eq!(found.without_blocks(), expected);
    }
}

#[test]
fn a_file_separated_by_line_ends_is_read_by_records() {
    for (delimiter, text) in [(b'\n', "a\nb\r1\n2\r3\n4\r"), (b'\r', "a\rb\n1\r2\n3\r4\n")] {
        let options = InputOptions { delimiter: Some(delimiter), ..InputOptions::default() };
        let records = Reading { at_a_time: 3, batch_rows: 1, batches: 0, block: None };
        let expected = contents_with(text.as_bytes(), records, options.clone());
        let found = contents_with(text.as_bytes(), Reading { block: Some(1), ..records }, options);
        assert_eq!(found.blocks, 0);
        assert_eq!(found, expected);
    }
}

/// A stream that fails after some bytes.
struct Failing(Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(std::io::Error::other("the disk is gone")),
            count => Ok(count),
        }
    }
}

#[test]
fn a_stream_that_fails_is_no_end() {
    let text: String =
        std::iter::once("a,b\n".to_owned()).chain((0..5_000).map(|n| format!("{n},1\n"))).collect();
    for block in [100, 10_000, PART_BYTES] {
        let reading = Reading { at_a_time: 0, batch_rows: 10, batches: 2, block: Some(block) };
        let stream = Box::new(Failing(Cursor::new(text.clone().into_bytes())));
        let found = contents_of(stream, reading, InputOptions::default());
        assert!(found.error.is_some_and(|error| error.contains("the disk is gone")));
        assert!(found.rows.len() >= 20 && found.rows.len() < 5_000);
    }
}

#[test]
fn a_record_without_an_end_is_refused_with_its_line() {
    let mut text = "a,b\n1,2\n3,4\n\n5,\"".to_owned();
    text.push_str(&"x".repeat(MAX_RECORD_BYTES + 3 * PART_BYTES));
    for block in [None, Some(PART_BYTES)] {
        let reading = Reading { at_a_time: usize::MAX, batch_rows: 1, batches: 1, block };
        let error = contents(text.as_bytes(), reading).error.unwrap();
        assert!(error.contains("line 5"), "{error}");
    }
}
