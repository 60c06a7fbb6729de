//! Deletes, and what an ingest refuses. How rows become visible is tested beside, in `tests.rs`.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::ingest::options::MIN_MEMORY;
use crate::ingest::tests::table_with;
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::units::Version;

/// A table whose text may not be NULL, so that deletes have to fill it.
async fn table() -> (TableLog, Snapshot) {
    table_with(vec![Column::required("v", ColumnType::Utf8), Column::required("k", ColumnType::Int64)]).await
}

fn start(log: &TableLog, base: &Snapshot, mode: IngestMode) -> Ingest {
    Ingest::new(log.clone(), base.clone(), &IngestOptions { mode, memory: MIN_MEMORY }).unwrap()
}

fn batch(base: &Snapshot, rows: &[(i64, &str)]) -> RecordBatch {
    let keys = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
    let values = StringArray::from_iter_values(rows.iter().map(|row| row.1));
    RecordBatch::try_new(Arc::clone(base.spec().schema()), vec![Arc::new(values), Arc::new(keys)]).unwrap()
}

fn keys(base: &Snapshot, keys: &[i64]) -> RecordBatch {
    let key = Schema::new(vec![base.spec().schema().field(1).clone()]);
    RecordBatch::try_new(Arc::new(key), vec![Arc::new(Int64Array::from(keys.to_vec()))]).unwrap()
}

/// Visible rows: of each key the newest row, unless it is a delete.
async fn rows(log: &TableLog, snapshot: &Snapshot) -> BTreeMap<i64, String> {
    let mut portions = snapshot.portions();
    portions.sort_by_key(|portion| portion.sequence);
    let mut rows = BTreeMap::new();
    for portion in portions {
        let bytes = log.storage().read(&portion.path).await.unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let (values, keys) = (batch.column(0).as_string::<i32>(), batch.column(1));
            let keys = keys.as_primitive::<Int64Type>().values();
            for (row, key) in keys.iter().enumerate() {
                match portion.deletes {
                    true => rows.remove(key),
                    false => rows.insert(*key, values.value(row).to_owned()),
                };
            }
        }
    }
    rows
}

fn expected(rows: &[(i64, &str)]) -> BTreeMap<i64, String> {
    rows.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

async fn portion_files(log: &TableLog) -> usize {
    let files = log.storage().list_all().await.unwrap();
    files.iter().filter(|file| file.path.starts_with("partition=")).count()
}

/// A table with the rows 1 to 4.
async fn table_with_rows() -> (TableLog, Snapshot) {
    let (log, base) = table().await;
    let mut ingest = start(&log, &base, IngestMode::Upsert);
    ingest.push(batch(&base, &[(1, "a"), (2, "b"), (3, "c"), (4, "d")])).await.unwrap();
    (log, ingest.finish(Vec::new()).await.unwrap().snapshot)
}

#[tokio::test]
async fn rows_and_deletes_of_one_ingest_count_in_the_order_in_which_they_came() {
    let (log, base) = table_with_rows().await;
    let mut ingest = start(&log, &base, IngestMode::Upsert).with_deletes().with_deletes();
    ingest.push(batch(&base, &[(2, "B"), (5, "e")])).await.unwrap();
    ingest.delete(&keys(&base, &[1, 5, 6])).await.unwrap();
    // Row 1 comes back, row 3 is deleted and row 7 is added.
    let marks = BooleanArray::from(vec![false, true, false]);
    ingest.push_marked(batch(&base, &[(1, "A"), (3, ""), (7, "g")]), Some(marks)).await.unwrap();
    assert_eq!(ingest.rows(), 2 + 3 + 3);
    let committed = ingest.finish(Vec::new()).await.unwrap();
    let visible = rows(&log, &committed.snapshot).await;
    assert_eq!(visible, expected(&[(1, "A"), (2, "B"), (4, "d"), (7, "g")]));
    // Rows 1, 2 and 7, and deletes of 3, 5 and 6.
    assert_eq!((committed.rows_per_partition().iter().sum::<u64>(), committed.deletes()), (3, 3));
}

#[tokio::test]
async fn in_an_ingest_of_deletes_rows_are_deletes_unless_they_are_marked_otherwise() {
    let (log, base) = table_with_rows().await;
    let mut ingest = start(&log, &base, IngestMode::Delete);
    ingest.push(batch(&base, &[(1, "any value"), (9, "")])).await.unwrap();
    ingest.delete(&keys(&base, &[4])).await.unwrap();
    let marks = BooleanArray::from(vec![false]);
    ingest.push_marked(batch(&base, &[(2, "kept")]), Some(marks)).await.unwrap();
    let committed = ingest.finish(Vec::new()).await.unwrap();
    assert_eq!(rows(&log, &committed.snapshot).await, expected(&[(2, "kept"), (3, "c")]));
    assert_eq!(committed.snapshot.commits().last().unwrap().info.operation, Operation::Delete);
}

#[tokio::test]
async fn an_ingest_of_rows_refuses_deletes_and_goes_on() {
    let (log, base) = table_with_rows().await;
    let mut ingest = start(&log, &base, IngestMode::Upsert);
    let error = ingest.delete(&keys(&base, &[1])).await.unwrap_err();
    assert!(error.to_string().contains("accepts no deletes"), "{error}");
    // Nothing is to be deleted.
    ingest.delete(&keys(&base, &[])).await.unwrap();
    ingest.push(batch(&base, &[(1, "A")])).await.unwrap();
    let committed = ingest.finish(Vec::new()).await.unwrap();
    assert_eq!((committed.rows, committed.deletes()), (1, 0));
    let visible = rows(&log, &committed.snapshot).await;
    assert_eq!(visible, expected(&[(1, "A"), (2, "b"), (3, "c"), (4, "d")]));
}

#[tokio::test]
async fn text_may_come_as_views_and_other_columns_are_refused() {
    let (log, base) = table().await;
    let mut ingest = start(&log, &base, IngestMode::Upsert);
    let plain = batch(&base, &[(1, "a text that is longer than a view holds"), (2, "")]);
    let views = view_schema(plain.schema_ref());
    let cast = |(column, field): (&Arc<dyn Array>, &Arc<arrow::datatypes::Field>)| {
        arrow::compute::cast(column, field.data_type()).unwrap()
    };
    let columns = plain.columns().iter().zip(views.fields()).map(cast).collect();
    ingest.push(RecordBatch::try_new(views, columns).unwrap()).await.unwrap();
    let turned = plain.project(&[1, 0]).unwrap();
    let error = ingest.push(turned).await.unwrap_err().to_string();
    assert_eq!(error, "a batch has the columns (k Int64, v Utf8), the table has (v Utf8, k Int64)");
    let committed = ingest.finish(Vec::new()).await.unwrap();
    let expected = expected(&[(1, "a text that is longer than a view holds"), (2, "")]);
    assert_eq!(rows(&log, &committed.snapshot).await, expected);
}

#[tokio::test]
async fn an_ingest_on_its_base_alone_fails_if_other_rows_changed_in_the_meantime() {
    let (log, base) = table_with_rows().await;
    let writer = async |mode: IngestMode, row: (i64, &str)| {
        let mut ingest = start(&log, &base, mode);
        ingest.push(batch(&base, &[row])).await.unwrap();
        ingest
    };
    let other = writer(IngestMode::Delete, (1, "")).await;
    let (strict, lenient) =
        (writer(IngestMode::Upsert, (2, "B")).await, writer(IngestMode::Upsert, (3, "C")).await);
    let strict = strict.only_on_base();
    let changed = other.finish(Vec::new()).await.unwrap().version;
    let files = portion_files(&log).await;
    let error = strict.finish(Vec::new()).await.unwrap_err();
    assert!(matches!(&error, IngestError::ChangedMeanwhile { version } if *version == changed), "{error}");
    assert_eq!(portion_files(&log).await, files, "what it wrote is deleted");
    let committed = lenient.finish(Vec::new()).await.unwrap();
    assert_eq!(committed.version, Version(3));
    assert_eq!(rows(&log, &committed.snapshot).await, expected(&[(2, "b"), (3, "C"), (4, "d")]));
    // Without another writer, it commits.
    let mut alone = start(&log, &committed.snapshot, IngestMode::Upsert).only_on_base();
    alone.push(batch(&base, &[(2, "B")])).await.unwrap();
    assert_eq!(alone.finish(Vec::new()).await.unwrap().version, Version(4));
}

#[tokio::test]
async fn an_abandoned_ingest_deletes_what_it_wrote() {
    let (log, base) = table_with_rows().await;
    let files = portion_files(&log).await;
    let mut ingest = start(&log, &base, IngestMode::Upsert);
    ingest.push(batch(&base, &[(1, "A"), (8, "h")])).await.unwrap();
    // Rows are written before the ingest is given up.
    ingest.write(&[]).await.unwrap();
    assert!(portion_files(&log).await > files);
    ingest.abandon().await;
    assert_eq!(portion_files(&log).await, files);
    assert_eq!(log.newest().await.unwrap().version(), base.version());
}
