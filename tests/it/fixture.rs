//! Tables of earlier formats stay readable.

use evenkeel::Table;
use evenkeel::maintenance::CheckScope;
use evenkeel::query::Params;
use evenkeel::table::ColumnType;
use evenkeel::units::Version;

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

/// Written by the third format: the first one's rows after three commits with deletes, one of which
/// also added rows. The first two are behind a checkpoint, and nothing is compacted.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_format_3_is_read() {
    let table = Table::open(project("tests/fixtures/format-3")).await.unwrap();
    assert_eq!(table.snapshot().version().0, 6);
    let deletes: Vec<u64> = table.snapshot().commits().iter().map(|commit| commit.deletes).collect();
    assert_eq!(deletes, [0, 0, 0, 0, 1, 2, 1]);
    let session = table.session().unwrap();
    let found = session.collect("SELECT k, c4 FROM t ORDER BY at, k", &Params::default()).await.unwrap();
    let text: Vec<String> = rows(&found).into_iter().map(|row| row.join(" ")).collect();
    assert_eq!(text, ["text 0 é 9", "text 2 é NULL", "text 4 é 3", "text 5 5"]);
    assert!(table.check(CheckScope::OneVersion, &|_| {}).await.unwrap().damaged.is_empty());
    let overview = table.inspect().await.unwrap();
    assert_eq!(overview.rows, 4);
    assert_eq!(overview.partitions.iter().map(|partition| partition.deletes).sum::<u64>(), 4);
}

/// Written by the second format: the same rows after a column was added, everything was compacted,
/// and older versions were cleaned away behind a checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_format_2_is_read() {
    let first = Table::open(project("tests/fixtures/format-1")).await.unwrap();
    let second = Table::open(project("tests/fixtures/format-2")).await.unwrap();
    assert_eq!((second.snapshot().version().0, second.spec().columns().len()), (6, 27));
    assert_eq!(second.snapshot().commits().len(), 7);
    assert!(Table::open_version(project("tests/fixtures/format-2"), Version(4)).await.is_err());
    let columns: Vec<&str> = first.spec().columns().iter().map(|column| column.name.as_str()).collect();
    let sql = format!("SELECT {} FROM t ORDER BY at, k", columns.join(", "));
    let mut texts = Vec::new();
    for table in [&first, &second] {
        let found = table.session().unwrap().collect(&sql, &Params::default()).await.unwrap();
        texts.push(rows(&found));
    }
    assert_eq!(texts[0], texts[1]);
    assert!(second.check(CheckScope::OneVersion, &|_| {}).await.unwrap().damaged.is_empty());
    let overview = second.inspect().await.unwrap();
    assert_eq!(overview.rows, overview.stored_rows);
}
