//! Random conditions on random tables.

use std::collections::BTreeMap;

use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::storage::TableStorage;
use evenkeel::table::TableSpec;
use proptest::prelude::{ProptestConfig, any, proptest};

use crate::common::objects;
use crate::model::{Row, assert_rows_are_placed, batch, condition, found, spec};

async fn table(spec: &TableSpec, ingests: &[Vec<Row>]) -> Table {
    let storage = TableStorage::new(objects(), "model".into());
    let mut table = Table::create_at(storage, spec).await.unwrap();
    for rows in ingests {
        // Batches of seven, so that one ingest has several.
        let batches = rows.chunks(7).map(|rows| Ok::<_, std::io::Error>(batch(rows)));
        table.ingest(futures::stream::iter(batches), &IngestOptions::default()).await.unwrap();
    }
    table
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_table_equals_a_map_under_every_condition(
        ingests in proptest::collection::vec(
            proptest::collection::vec((0i64..12, "[abc]{0,2}", proptest::option::of(0i64..5)), 1..40),
            1..5,
        ),
        conditions in proptest::collection::vec(condition(), 6),
        partitions in 1u64..6,
        by_user in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let spec = spec(partitions, if by_user { "user" } else { "user,at" });
            let table = table(&spec, &ingests).await;
            let mut map = BTreeMap::new();
            for (at, user, value) in ingests.iter().flatten() {
                map.insert((*at, user.clone()), *value);
            }
            let all: Vec<Row> = map.into_iter().map(|((at, user), value)| (at, user, value)).collect();
            for condition in &conditions {
                let expected: Vec<Row> = all.iter().filter(|row| condition.holds(row)).cloned().collect();
                assert_eq!(found(&table, &condition.sql()).await, expected, "{}", condition.sql());
            }
            let overview = table.inspect().await.unwrap();
            assert_eq!(overview.rows, all.len() as u64);
            assert_eq!(table.skew().await.unwrap().figures.rows, all.len() as u64);
            assert_rows_are_placed(&table, &all).await;
        });
    }
}
