//! Blocks that pass from a reader to its receiver.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};

use super::*;

fn block(number: usize) -> Vec<RecordBatch> {
    let rows: ArrayRef = Arc::new(Int32Array::from(vec![0; number]));
    vec![RecordBatch::try_from_iter([("x", rows)]).unwrap()]
}

#[test]
fn blocks_arrive_in_order_and_the_reader_returns_its_result() {
    std::thread::scope(|scope| {
        let (receiver, reading) = read_ahead(scope, |send| {
            for number in 1..=5 {
                assert!(send(block(number)));
            }
            "read"
        });
        let rows: Vec<usize> = receiver.iter().map(|block| block[0].num_rows()).collect();
        assert_eq!(rows, [1, 2, 3, 4, 5]);
        assert_eq!(reading.join().unwrap(), "read");
    });
}

#[test]
fn a_reader_without_a_receiver_is_told_to_end() {
    std::thread::scope(|scope| {
        let (receiver, reading) =
            read_ahead(scope, |send| (1..).take_while(|number| send(block(*number))).count());
        assert_eq!(receiver.recv().unwrap()[0].num_rows(), 1);
        drop(receiver);
        // One more may wait, unclaimed.
        assert!((1..=2).contains(&reading.join().unwrap()));
    });
}
