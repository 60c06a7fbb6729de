//! Keys and entries of designs, and their order.

use std::cmp::{Ordering, Reverse};

use arrow::array::{RecordBatch, StringArray, TimestampMicrosecondArray};
use proptest::prelude::{Strategy as _, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::simulate::index::IndexShard;
use evenkeel_model::table::ColumnType;

/// A row: a number, a text and a time, each of which may be NULL.
type Row = (Option<i64>, Option<String>, Option<i64>);

const NUMBER: usize = 0;
const TEXT: usize = 1;
const TIME: usize = 2;

fn columns() -> Vec<Column> {
    vec![
        Column::nullable("number", ColumnType::Int64),
        Column::nullable("text", ColumnType::Utf8),
        Column::nullable("time", ColumnType::Timestamp),
    ]
}

fn batch(rows: &[Row]) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new(rows.iter().map(|row| row.1.clone()).collect::<StringArray>());
    let times: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<TimestampMicrosecondArray>());
    RecordBatch::try_from_iter([("number", numbers), ("text", texts), ("time", times)]).unwrap()
}

fn arrived(rows: &[Row]) -> Arrived {
    let (times, bytes) = (vec![0; rows.len()], vec![10; rows.len()]);
    Arrived { source: 0, batch: batch(rows), windows: times.clone(), times, bytes }
}

fn column(column: usize, descending: bool) -> KeyColumn {
    KeyColumn { column, descending }
}

fn index(columns: &[KeyColumn]) -> Index {
    Index {
        name: "index".to_owned(),
        columns: columns.to_vec(),
        storing: Vec::new(),
        null_filtered: false,
        interleaved: false,
        shard: None,
    }
}

fn design(strategy: &str, key: &[KeyColumn], indexes: &[Index]) -> Design {
    let partition_key: Vec<usize> = key.iter().map(|part| part.column).collect();
    let hashed = Hashed { partition_key: &partition_key, shard: None };
    Design::new(strategy.parse().unwrap(), &columns(), key, hashed, indexes, 1).unwrap()
}

/// Returns the keys of the entries of each plan; `None` if a row has no entry.
fn keys(design: &mut Design, rows: &[Row]) -> Vec<Vec<Option<Vec<u8>>>> {
    let entries = design.entries(&arrived(rows)).unwrap();
    let key = |entries: &Entries, row| entries.entry(row, &mut Vec::new()).map(|(key, _)| key.bytes.to_vec());
    entries.iter().map(|entries| (0..rows.len()).map(|row| key(entries, row)).collect()).collect()
}

fn rows() -> impl proptest::strategy::Strategy<Value = Vec<Row>> {
    let number = prop_oneof![any::<Option<i64>>(), (-2i64..3).prop_map(Some)];
    let text = proptest::option::of("[ab\u{0}é]{0,3}");
    proptest::collection::vec((number, text, proptest::option::of(-3i64..9)), 1..30)
}

proptest! {
    #[test]
    fn keys_sort_like_their_columns(rows in rows(), falls in any::<[bool; 3]>()) {
        let key: Vec<KeyColumn> = (0..3).map(|at| column(at, falls[at])).collect();
        let keys = keys(&mut design("declared", &key, &[]), &rows);
        let turn = |order: Ordering, falls: bool| if falls { order.reverse() } else { order };
        for (a, of_a) in rows.iter().zip(&keys[0]) {
            for (b, of_b) in rows.iter().zip(&keys[0]) {
                let expected = turn(a.0.cmp(&b.0), falls[0])
                    .then(turn(a.1.cmp(&b.1), falls[1]))
                    .then(turn(a.2.cmp(&b.2), falls[2]));
                prop_assert_eq!(of_a.cmp(of_b), expected, "{:?} {:?}", a, b);
            }
        }
    }

    #[test]
    fn a_read_visits_exactly_the_rows_that_meet_its_conditions(rows in rows(), falls: bool, first in -3i64..6, length in 1i64..4) {
        let key = [column(TIME, falls), column(NUMBER, false)];
        // The values of the last row are looked up.
        let wanted = rows.last().unwrap();
        let after = first + length;
        let bounds: ArrayRef =
            Arc::new(TimestampMicrosecondArray::from(vec![first, after, first - 1, after - 1]));
        let values = batch(std::slice::from_ref(wanted));
        let of_time = ReadConditions { fixed: Vec::new(), values: values.clone(), range: Some((TIME, bounds)) };
        let of_number = ReadConditions { fixed: vec![NUMBER], values: values.clone(), range: None };
        let of_row = ReadConditions { fixed: vec![TIME, NUMBER], values, range: None };
        let in_time = |row: &Row| row.2.is_some_and(|time| (first..after).contains(&time));
        let has_number = |row: &Row| row.0 == wanted.0;
        let is_row = |row: &Row| row.0 == wanted.0 && row.2 == wanted.2;
        // The number of key ranges that each read needs, if it need not visit everything.
        for (strategy, time, number, row) in [
            ("declared", Some(1), None, Some(1)),
            ("swapped", None, Some(1), Some(1)),
            ("shard-3", Some(3), None, Some(1)),
            ("generated-3", Some(5), None, Some(1)),
            ("hash-4", Some(4), None, Some(1)),
            ("uuid4", None, None, None),
        ] {
            let mut design = design(strategy, &key, &[]);
            // A generated shard of a NULL is a NULL, which no shard of a read is.
            let is_read = |row: &Row| row.0.is_some() && row.2.is_some();
            let keys = keys(&mut design, &rows);
            for (conditions, meets, count) in [
                (&of_time, &in_time as &dyn Fn(&Row) -> bool, time),
                (&of_number, &has_number, number),
                (&of_row, &is_row, row),
            ] {
                let ranges = design.ranges(&design.plans[0], conditions).unwrap();
                prop_assert_eq!(ranges.as_ref().map(Vec::len), count, "{}", strategy);
                let Some(ranges) = ranges else { continue };
                let visits = |key: &Vec<u8>| {
                    ranges.iter().any(|range| range.start <= *key && range.end.as_ref().is_none_or(|end| key < end))
                };
                for (row, key) in rows.iter().zip(&keys[0]).filter(|(row, _)| is_read(row)) {
                    prop_assert_eq!(visits(key.as_ref().unwrap()), meets(row), "{} {:?}", strategy, row);
                }
            }
        }
    }

    #[test]
    fn entries_of_an_interleaved_index_stand_behind_the_rows_of_their_root(rows in rows()) {
        let own = Index { interleaved: true, ..index(&[column(NUMBER, true), column(TIME, false)]) };
        let mut design = design("declared", &[column(NUMBER, true), column(TEXT, false)], &[own]);
        prop_assert_eq!(&design.spaces, &["table"]);
        let keys = keys(&mut design, &rows);
        // By hand: the number, the table before its index, and then the order of each.
        let of_rows = rows.iter().map(|row| (Reverse(row.0), 0, row.1.clone(), None, None));
        let of_index = rows.iter().map(|row| (Reverse(row.0), 1, None, row.2, row.1.clone()));
        let mut expected: Vec<_> = of_rows.chain(of_index).zip(keys.concat()).collect();
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        let in_order: Vec<_> = expected.into_iter().map(|(_, key)| key).collect();
        prop_assert!(in_order.is_sorted());
    }
}

#[test]
fn an_index_has_its_own_space_and_leaves_out_nulls_only_if_filtered() {
    let rows: Vec<Row> = vec![(Some(1), None, Some(5)), (Some(2), Some("a".to_owned()), Some(4))];
    let filtered = Index { null_filtered: true, ..index(&[column(TEXT, false)]) };
    let sharded = Index {
        shard: Some(IndexShard { shards: 7, columns: vec![NUMBER], signed: true }),
        ..index(&[column(TEXT, false)])
    };
    let key = [column(NUMBER, false)];
    let mut design = design("shard-3", &key, &[filtered, sharded]);
    assert_eq!(design.spaces, ["table", "index", "index"]);
    assert_eq!(design.plans.iter().map(|plan| plan.space).collect::<Vec<_>>(), [0, 1, 2]);
    let entries = design.entries(&arrived(&rows)).unwrap();
    let sizes: Vec<Vec<Option<u32>>> = entries
        .iter()
        .map(|entries| {
            (0..2).map(|row| entries.entry(row, &mut Vec::new()).map(|(_, bytes)| bytes)).collect()
        })
        .collect();
    // The rows have 10 bytes, and 8 for their shard; so has an entry, and 8 for its own shard.
    assert_eq!(sizes[0], [Some(18), Some(18)]);
    assert_eq!((sizes[1][0], sizes[1][1].is_some()), (None, true));
    assert_eq!(sizes[2][1].unwrap(), sizes[1][1].unwrap() + 8);
}

#[test]
fn generated_columns_go_on_from_batch_to_batch() {
    let rows: Vec<Row> = vec![(Some(1), None, None); 300];
    for (strategy, ascends) in [("sequence", true), ("bit-reversed", false), ("uuid4", false)] {
        let mut design = design(strategy, &[column(NUMBER, false)], &[]);
        let mut all = keys(&mut design, &rows)[0].clone();
        all.extend(keys(&mut design, &rows)[0].clone());
        assert_eq!(all.is_sorted(), ascends, "{strategy}");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 600, "{strategy}");
    }
}

#[test]
fn a_batch_without_the_key_columns_is_refused() {
    let mut design = design("declared", &[column(TIME, false)], &[]);
    let mut rows = arrived(&[(Some(1), None, None)]);
    rows.batch = rows.batch.project(&[0]).unwrap();
    assert!(matches!(design.entries(&rows), Err(SimulateError::Columns)));
}

#[test]
fn hash_partitions_begin_where_their_number_does() {
    let rows: Vec<Row> = (0..400).map(|number| (Some(number), None, None)).collect();
    let mut design = design("hash-8", &[column(NUMBER, false)], &[]);
    let boundaries = design.partition_boundaries().unwrap();
    let starts: Vec<&[u8]> = boundaries.iter().map(|start| start.bytes.as_slice()).collect();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..400));
    let expected = design.placement.as_ref().unwrap().assign(&[numbers]).unwrap();
    let keys = keys(&mut design, &rows);
    for (key, partition) in keys[0].iter().flatten().zip(expected) {
        let at = starts.iter().filter(|start| **start <= key.as_slice()).count();
        assert_eq!(at, partition.0 as usize);
    }
}
