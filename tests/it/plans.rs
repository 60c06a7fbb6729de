//! Golden plans: what a condition leaves to be read.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::query::Params;
use evenkeel::report;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;

fn batch(range: std::ops::Range<i64>) -> RecordBatch {
    let at: Int64Array = range.clone().collect::<Vec<_>>().into();
    let user: StringArray = range.clone().map(|i| Some(format!("u{}", i % 5))).collect();
    let value: Int64Array = range.map(|i| i * 10).collect::<Vec<_>>().into();
    RecordBatch::try_from_iter([
        ("at", Arc::new(at) as ArrayRef),
        ("user", Arc::new(user) as ArrayRef),
        ("value", Arc::new(value) as ArrayRef),
    ])
    .unwrap()
}

/// Three portions per partition; the last two overlap.
async fn table(dir: &tempfile::TempDir) -> Table {
    let spec = TableSpec::new(TableDefinition {
        name: "events".into(),
        columns: vec![
            Column::required("at", ColumnType::Int64),
            Column::required("user", ColumnType::Utf8),
            Column::nullable("value", ColumnType::Int64),
        ],
        primary_key: vec!["at".into(), "user".into()],
        partition_key: vec!["user".into()],
        partitions: PartitionCount::new(2).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap();
    let mut table = Table::create(dir.path().join("t"), &spec).await.unwrap();
    for range in [0..100, 100..200, 150..250] {
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch(range))]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    table
}

/// File names are random; what is read of how many is not.
fn without_names(plan: &str) -> String {
    let parts: Vec<&str> = plan.split("partition=").collect();
    let mut text = parts[0].to_owned();
    for part in &parts[1..] {
        let (partition, rest) = part.split_once('/').unwrap();
        let (_, rest) = rest.split_once(".parquet").unwrap();
        text.push_str(&format!("{partition}/*{rest}"));
    }
    text
}

async fn explained(sql: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let table = table(&dir).await;
    let session = table.session().unwrap();
    session.context().state_ref().write().config_mut().options_mut().execution.target_partitions = 2;
    let (scans, plan) = session.explain(sql, &Params::default()).await.unwrap();
    format!("{sql}\n\n{}\n{}", report::scans(&scans), without_names(&plan))
}

macro_rules! golden {
    ($name:ident, $sql:expr) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            insta::assert_snapshot!(explained($sql).await);
        }
    };
}

golden!(no_condition_reads_everything_and_merges_only_what_overlaps, "SELECT at, user, value FROM t");
golden!(equality_on_the_partition_key_reads_one_partition, "SELECT value FROM t WHERE user = 'u3'");
golden!(
    a_list_of_partition_keys_reads_their_partitions,
    "SELECT value FROM t WHERE user IN ('u0', 'u1', 'u2')"
);
golden!(a_range_of_the_primary_key_excludes_portions, "SELECT value FROM t WHERE at < 50");
golden!(a_condition_on_another_column_stays_above_the_merge, "SELECT at FROM t WHERE value = 1700");
golden!(an_inequality_on_the_partition_key_reads_all_partitions, "SELECT value FROM t WHERE user > 'u3'");
golden!(a_contradiction_reads_nothing, "SELECT value FROM t WHERE user = 'u1' AND at < 0");
golden!(counting_does_not_trust_rows_that_may_be_replaced, "SELECT count(*) FROM t");
