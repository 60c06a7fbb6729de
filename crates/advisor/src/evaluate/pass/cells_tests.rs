//! Counts by cell and window, their sums by partition, and their merge.

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use evenkeel_model::table::{ColumnType, PlacementFunction};
use evenkeel_model::wire::{seal, unseal};
use evenkeel_stats::windows::WindowedRows;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::evaluate::pass::batch::KeyParts;

/// Windows of a batch, by their numbers. Rows in the fourth have no time.
const WINDOWS: [i64; 3] = [70, 10, 71];

/// A row: the number of its key, the position of its window, its bytes.
type Row = (u32, u32, u32);

/// Rows by remainder: four cells make the partitions of `[4, 2]`.
fn counter(counts: &[u64]) -> GroupCounter {
    let counts: Vec<PartitionCount> =
        counts.iter().map(|count| PartitionCount::new(*count).unwrap()).collect();
    let joint = JointPlacement::group(PlacementFunction::YdbModulo, &counts, &[ColumnType::Uint64]);
    let mut counter = GroupCounter::new(Arc::new(joint.into_iter().next().unwrap()));
    counter.weigh_windows();
    // Numbers 1 and 4 share a cell.
    counter.cell_of_number = [2, 0, 3, 1, 0].map(PartitionId).to_vec();
    counter
}

fn batch(rows: &[Row]) -> KeyedBatch {
    let keys: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| u64::from(row.0))));
    let batch = RecordBatch::try_from_iter([("key", keys)]).unwrap();
    let slot = |row: &Row| if row.1 < 3 { row.1 } else { NO_WINDOW };
    let windows = WindowedRows {
        length: Micros::SECOND,
        windows: WINDOWS.to_vec(),
        slots: rows.iter().map(slot).collect(),
    };
    let mut keyed = KeyedBatch::new(&batch, 0, &KeyParts::default(), false).unwrap();
    keyed.row_bytes = rows.iter().map(|row| row.2).collect();
    keyed.windows = Some(windows);
    keyed
}

fn add(counter: &mut GroupCounter, rows: &[Row]) {
    let numbers: Vec<u32> = rows.iter().map(|row| row.0).collect();
    counter.look_up(&numbers);
    counter.add(&batch(rows));
    counter.end_batch();
}

fn add_runs(counter: &mut GroupCounter, rows: &[Row]) {
    let runs: Vec<(u32, u32)> =
        rows.chunk_by(|a, b| a.0 == b.0).map(|run| (run[0].0, run.len() as u32)).collect();
    counter.add_runs(&batch(rows), &runs);
    counter.end_batch();
}

/// Everything that is counted, with windows of a minute.
fn counted(counter: &GroupCounter) -> String {
    let loads: Vec<_> = counter.loads(Micros::MINUTE).collect();
    format!("{:?} {:?} {loads:?} {:?}", counter.rows, counter.bytes, counter.placements)
}

proptest! {
    #[test]
    fn rows_are_counted_by_cell_and_window_one_by_one_or_in_runs(
        runs in proptest::collection::vec((0u32..6, 1usize..6), 0..20),
        slots in proptest::collection::vec((0u32..4, 0u32..9), 100),
    ) {
        let numbers = runs.iter().flat_map(|(number, rows)| std::iter::repeat_n(*number, *rows));
        let rows: Vec<Row> = numbers.zip(&slots).map(|(number, row)| (number, row.0, row.1)).collect();
        let (mut single, mut in_runs) = (counter(&[4, 2]), counter(&[4, 2]));
        add(&mut single, &rows);
        add_runs(&mut in_runs, &rows);
        prop_assert_eq!(counted(&single), counted(&in_runs));
        // Rows and bytes of each cell, in total and in each window. A number without a cell is
        // in the first one.
        let (mut total, mut by_window) = ([[0u64; 2]; 4], [[[0u64; 2]; 4]; 3]);
        for (number, slot, bytes) in &rows {
            let cell = single.cell_of_number.get(*number as usize).map_or(0, |cell| cell.index());
            let of_window = by_window.get_mut(*slot as usize).map(|window| &mut window[cell]);
            for [rows, sum] in [Some(&mut total[cell]), of_window].into_iter().flatten() {
                *rows += 1;
                *sum += u64::from(*bytes);
            }
        }
        prop_assert_eq!(single.rows.clone(), total.map(|[rows, _]| rows));
        prop_assert_eq!(single.bytes.clone(), total.map(|[_, bytes]| bytes));
        let loads: Vec<_> = single.loads(Micros::SECOND).collect();
        prop_assert_eq!(loads.len(), 2);
        for (count, windows) in loads {
            for window in windows {
                let slot = WINDOWS.iter().position(|number| number * 1_000_000 == window.start_micros);
                let mut expected = vec![[0; 2]; count.len()];
                for (cell, [rows, bytes]) in by_window[slot.unwrap()].iter().enumerate() {
                    expected[cell % count.len()][0] += rows;
                    expected[cell % count.len()][1] += bytes;
                }
                let found: Vec<[u64; 2]> =
                    window.rows.iter().zip(&window.bytes).map(|(rows, bytes)| [*rows, *bytes]).collect();
                prop_assert!(found == expected, "{:?} and {:?}", found, expected);
            }
        }
    }
}

#[test]
fn cells_are_summed_by_partition_and_none_is_left_out() {
    let ids = |ids: &[u32]| ids.iter().map(|id| PartitionId(*id)).collect::<Vec<_>>();
    assert_eq!(by_partition(&[1, 2, 4, 8], &ids(&[0, 1, 1, 3])), [1, 6, 0, 8]);
    assert_eq!(by_partition(&[5], &ids(&[2])), [0, 0, 5]);
    assert!(by_partition(&[], &[]).is_empty());
}

#[test]
fn figures_of_a_batch_are_those_of_its_own_rows() {
    let mut counter = counter(&[4, 2]);
    // Cells 2, 2 and 0; then 1 and 3, which are one of two partitions; then nothing.
    for rows in [[(0, 0, 1), (0, 1, 1), (1, 0, 1)].as_slice(), &[(3, 3, 1), (2, 3, 1)], &[]] {
        add(&mut counter, rows);
    }
    let [four, two] = counter.placements.as_slice() else { panic!("{:?}", counter.placements) };
    assert_eq!(four.partitions_written, [2.0, 2.0, 0.0]);
    assert_eq!(four.share_of_fullest, [2.0 / 3.0, 0.5, 0.0]);
    assert_eq!(two.partitions_written, [1.0, 1.0, 0.0]);
    assert_eq!(two.share_of_fullest, [1.0, 1.0, 0.0]);
}

#[test]
fn parts_merge_to_the_whole_and_travel_as_bytes() {
    let rows: Vec<Row> = (0..90).map(|row| (row % 5, row * row % 4, row % 7)).collect();
    let mut whole = counter(&[4, 2]);
    rows.chunks(30).for_each(|rows| add(&mut whole, rows));
    let mut merged = counter(&[4, 2]);
    add(&mut merged, &rows[..30]);
    let mut later = counter(&[4, 2]);
    rows[30..].chunks(30).for_each(|rows| add(&mut later, rows));
    merged.merge(later, Micros::MINUTE, None);
    assert_eq!(counted(&merged), counted(&whole));
    assert_eq!(merged.rows_before_batch, whole.rows_before_batch);
    let sealed = seal(|bytes| whole.put(bytes));
    let mut left = unseal(&sealed).unwrap();
    let taken = counter(&[4, 2]).take(&mut left).unwrap();
    left.end().unwrap();
    let windows =
        |counter: &GroupCounter| counter.windows.windows(Micros::SECOND, &counter.joint.partitions()[0]);
    assert_eq!((&taken.rows, &taken.bytes), (&whole.rows, &whole.bytes));
    assert_eq!(windows(&taken), windows(&whole));
    assert_eq!(format!("{:?}", taken.placements), format!("{:?}", whole.placements));
    // Another number of cells, or of placements of as many cells.
    for counts in [[8].as_slice(), &[4], &[2, 4, 4]] {
        let taken = counter(counts).take(&mut unseal(&sealed).unwrap());
        assert!(taken.is_err(), "{counts:?}");
    }
}
