//! Tables of earlier formats stay readable.

use evenkeel::Table;
use evenkeel::query::Params;
use evenkeel::table::ColumnType;

use crate::common::{project, rows};

/// Written by the first format: every kind of column, two upserts whose keys overlap, an insert.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_format_1_is_read() {
    let table = Table::open(project("tests/fixtures/format-1")).await.unwrap();
    let spec = table.spec();
    assert_eq!(spec.name(), "every_type");
    assert_eq!(spec.partitions().get(), 3);
    assert_eq!(spec.columns().len(), 26);
    assert_eq!(spec.primary_key_types(), [ColumnType::Timestamp, ColumnType::Utf8]);
    assert_eq!(table.snapshot().version().0, 3);
    let session = table.session().unwrap();
    let found = session.collect("SELECT * FROM t ORDER BY at, k", &Params::default()).await.unwrap();
    let text: Vec<String> = rows(&found).into_iter().map(|row| row.join(" | ")).collect();
    insta::assert_snapshot!(text.join("\n"));
    // Where rows lie is part of the format.
    let placed: Vec<u64> = table.inspect().await.unwrap().partitions.iter().map(|p| p.rows).collect();
    assert_eq!(placed, [2, 3, 0]);
}
