//! Batches of parts that do not fit together, and files that several readers share.

use std::io::Write;

use arrow::array::Int64Array;
use arrow::datatypes::{DataType, Field};

use super::*;

fn batch(rows: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

/// Joins what two parts send.
fn joined(left: Vec<Part>, right: Vec<Part>) -> ColumnParts {
    let received = |batches: Vec<Part>| {
        let (sender, receiver) = sync_channel(batches.len());
        batches.into_iter().for_each(|batch| sender.send(batch).unwrap());
        Decoder::Thread(receiver)
    };
    let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int64, true));
    ColumnParts {
        decoders: vec![received(left), received(right)],
        has_started: false,
        has_ended: false,
        schema: Arc::new(Schema::new(fields.to_vec())),
        places: vec![(1, 0), (0, 0)],
    }
}

#[test]
fn parts_of_different_lengths_and_decoders_that_stop_are_errors() {
    let rows = |rows: i64| Ok(Some(batch(rows)));
    let mut parts = joined(vec![rows(2), rows(1), Ok(None)], vec![rows(2), rows(1), Ok(None)]);
    let found: Vec<usize> = std::iter::from_fn(|| Some(parts.next_batch().unwrap()?.num_rows())).collect();
    assert_eq!(found, [2, 1]);
    assert!(parts.next_batch().unwrap().is_none());
    for (left, right) in [(rows(2), rows(1)), (rows(2), Ok(None)), (Ok(None), rows(1))] {
        let error = joined(vec![left], vec![right]).next_batch().unwrap_err().to_string();
        assert!(error.contains("different numbers of rows"), "{error}");
    }
    let error = joined(vec![rows(2)], vec![]).next_batch().unwrap_err().to_string();
    assert!(error.contains("stopped"), "{error}");
}

#[test]
fn readers_of_a_shared_file_have_places_of_their_own() {
    let mut file = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    file.write_all(&bytes).unwrap();
    let shared = SharedFile::new(file).unwrap();
    assert_eq!(shared.len(), 400_000);
    let mut readers = [shared.get_read(10).unwrap(), shared.get_read(7_000).unwrap()];
    for step in 0..1_000 {
        for (reader, start) in readers.iter_mut().zip([10, 7_000]) {
            let mut read = [0; 100];
            reader.read_exact(&mut read).unwrap();
            assert_eq!(read, bytes[start + step * 100..][..100]);
        }
        assert_eq!(shared.get_bytes(step as u64, 50_000).unwrap(), bytes[step..step + 50_000]);
    }
    assert!(shared.get_bytes(399_999, 2).is_err());
}
