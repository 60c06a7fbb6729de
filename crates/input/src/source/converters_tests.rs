//! Batches that are converted on other threads, against those that one thread converts.

use std::io::Cursor;
use std::time::Duration;

use arrow::array::BinaryArray;

use super::*;
use crate::source::options::InputOptions;
use crate::source::raw::Positions;

/// A batch of one row with this number.
fn batch(number: u64) -> RawBatch {
    let cell = BinaryArray::from_iter_values([number.to_string()]);
    RawBatch {
        cells: RawCells::Text(vec![("n".to_owned(), cell)]),
        positions: Positions::Lines(vec![number]),
        broken: Vec::new(),
        is_json: false,
    }
}

fn number_of(raw: &RawBatch) -> u64 {
    let Positions::Lines(lines) = &raw.positions else { panic!("a batch of lines") };
    lines[0]
}

fn broken() -> SourceError {
    SourceError::Empty { file: "broken".to_owned() }
}

/// Converts `count` batches, the last of which may be a failure, and returns the results up to
/// `most`, and how the conversion ended.
fn converted(
    threads: usize,
    count: u64,
    fails: bool,
    most: usize,
    convert: impl Fn(RawBatch) -> u64 + Sync,
) -> (Vec<u64>, Result<bool, SourceError>) {
    let (mut read, mut found) = (0, Vec::new());
    let mut next = || {
        read += 1;
        match read {
            read if read < count || (read == count && !fails) => Ok(Some(RawPart::Read(batch(read)))),
            read if read == count => Err(broken()),
            _ => Ok(None),
        }
    };
    let ended = std::thread::scope(|scope| {
        Converters::start(scope, threads, &convert).convert_rest(&mut next, &mut |result| {
            found.push(result);
            Ok(found.len() < most)
        })
    });
    (found, ended)
}

/// Converts batches by turns quickly and slowly.
fn unevenly(raw: RawBatch) -> u64 {
    let number = number_of(&raw);
    std::thread::sleep(Duration::from_micros(number * 7 % 11 * 50));
    number
}

#[test]
fn results_come_in_the_order_of_the_batches_and_before_a_failure() {
    // With none, the reading thread converts.
    for threads in 0..=5 {
        for (count, fails) in [(0, false), (1, false), (1, true), (2, true), (60, false), (61, true)] {
            let (found, ended) = converted(threads, count, fails, usize::MAX, unevenly);
            let expected: Vec<u64> = (1..=count - u64::from(fails)).collect();
            assert_eq!(found, expected, "{threads} {count}");
            match fails {
                true => assert!(matches!(ended, Err(SourceError::Empty { file }) if file == "broken")),
                false => assert!(ended.unwrap()),
            }
        }
    }
}

#[test]
fn a_receiver_that_has_enough_ends_the_reading() {
    for threads in 1..=4 {
        let (found, ended) = converted(threads, 1_000_000_000, false, 7, unevenly);
        assert_eq!((found, ended.unwrap()), ((1..=7).collect(), false));
    }
}

#[test]
fn a_panic_of_a_converter_reaches_the_reader() {
    let hook = std::panic::catch_unwind(|| {
        converted(3, 50, false, usize::MAX, |raw| match number_of(&raw) {
            20 => std::panic::resume_unwind(Box::new("batch 20")),
            number => number,
        })
    });
    assert_eq!(hook.unwrap_err().downcast_ref::<&str>(), Some(&"batch 20"));
}

#[test]
fn few_batches_are_in_memory_at_one_time() {
    let large = |_: u64| {
        let cell = BinaryArray::from_iter_values([vec![b'x'; READ_BATCH_BYTES / 2]]);
        RawBatch { cells: RawCells::Text(vec![("n".to_owned(), cell)]), ..batch(1) }
    };
    let (mut read, mut taken) = (0u64, 0u64);
    let mut most_ahead = 0;
    let read_so_far = std::cell::Cell::new(0u64);
    let mut next = || {
        read += 1;
        read_so_far.set(read);
        Ok((read <= 20).then(|| RawPart::Read(large(read))))
    };
    // Slower than reading, so that the bound is reached.
    let convert = |raw: RawBatch| {
        std::thread::sleep(Duration::from_millis(20));
        raw.bytes()
    };
    let ended = std::thread::scope(|scope| {
        Converters::start(scope, 8, &convert).convert_rest(&mut next, &mut |_| {
            most_ahead = most_ahead.max(read_so_far.get() - taken);
            taken += 1;
            Ok::<bool, SourceError>(true)
        })
    });
    assert!(ended.unwrap());
    assert_eq!(taken, 20);
    assert!(most_ahead <= 5, "{most_ahead}");
}

/// The lines of a batch, and its cells one after another.
type Rows = (Vec<u64>, Vec<Vec<u8>>);

fn rows(raw: RawBatch) -> Rows {
    let (RawCells::Text(columns), Positions::Lines(lines)) = (raw.cells, raw.positions) else {
        panic!("CSV is text in lines");
    };
    let cells = columns.iter().map(|(_, cells)| cells.iter().flatten().collect::<Vec<_>>().join(&b'|'));
    (lines, cells.collect())
}

fn add(found: &mut Rows, (lines, cells): Rows) {
    found.0.extend(lines);
    found.1.resize(cells.len(), Vec::new());
    for (all, cells) in found.1.iter_mut().zip(cells) {
        all.push(b'|');
        all.extend(cells);
    }
}

#[test]
fn the_rows_of_text_are_those_that_one_thread_reads() {
    // Several blocks.
    let text: String = (0..60_000).map(|row| format!("{row},\"a {row:010}\nb\"\n")).collect();
    // A field without a closing quote is found at the end of the file.
    for tail in ["", "1,\"open"] {
        let open = |batch_rows: usize| {
            let bytes = Cursor::new(format!("n,t\n{text}{tail}"));
            let options = InputOptions { batch_rows, ..InputOptions::default() };
            let columns = ["n".to_owned(), "t".to_owned()];
            Input::open_reader("x.csv", Box::new(bytes), &columns, &options).unwrap()
        };
        let (mut expected, mut input) = (Rows::default(), open(20_000));
        let expected_end = loop {
            match input.next_batch() {
                Ok(Some(raw)) => add(&mut expected, rows(raw)),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.to_string()),
            }
        };
        for batch_rows in [7, 400, 20_000] {
            let mut found = Rows::default();
            let end: Result<bool, SourceError> = open(batch_rows).convert_batches(rows, |rows| {
                add(&mut found, rows);
                Ok(true)
            });
            match end {
                Ok(is_complete) => {
                    assert!(is_complete && expected_end.is_ok() && tail.is_empty());
                    assert!(found == expected, "{batch_rows}");
                    assert_eq!(found.0.len(), 60_000);
                }
                // Some rows of the last block precede the failure.
                Err(error) => {
                    assert_eq!(Err(error.to_string()), expected_end);
                    assert!(found.0.len() >= 40_000);
                    let lines: Vec<u64> = (0..found.0.len() as u64).map(|row| 2 * row + 2).collect();
                    assert_eq!(found.0, lines);
                }
            }
        }
    }
}
