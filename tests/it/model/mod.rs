//! Random tables against a map: newest wins, pruning loses nothing, every row is in one partition.

mod conditions;
mod histories;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use evenkeel::Table;
use evenkeel::query::Params;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;
use proptest::prelude::{Just, Strategy, prop_oneof};

type Row = (i64, String, Option<i64>);

fn spec(partitions: u64, partition_key: &str) -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "model".into(),
        columns: vec![
            Column::nullable("value", ColumnType::Int64),
            Column::required("at", ColumnType::Int64),
            Column::required("user", ColumnType::Utf8),
        ],
        primary_key: vec!["at".into(), "user".into()],
        partition_key: partition_key.split(',').map(str::to_owned).collect(),
        partitions: PartitionCount::new(partitions).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let at: Int64Array = rows.iter().map(|row| Some(row.0)).collect();
    let user: StringArray = rows.iter().map(|row| Some(row.1.as_str())).collect();
    let value: Int64Array = rows.iter().map(|row| row.2).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("value", Arc::new(value) as ArrayRef, true),
        ("at", Arc::new(at) as ArrayRef, false),
        ("user", Arc::new(user) as ArrayRef, false),
    ])
    .unwrap()
}

async fn found(table: &Table, condition: &str) -> Vec<Row> {
    let sql = format!("SELECT at, user, value FROM t WHERE {condition} ORDER BY at, user");
    let session = table.session().unwrap();
    // More cores than portions, and files that may be cut anywhere: neither may touch a merge.
    let state = session.context().state_ref();
    let mut config = state.read().config().clone();
    config.options_mut().execution.target_partitions = 9;
    config.options_mut().optimizer.repartition_file_min_size = 1;
    *state.write().config_mut() = config;
    let batches = session.collect(&sql, &Params::default()).await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let at = batch.column(0).as_primitive::<Int64Type>().clone();
        let user = batch.column(1).as_string_view().clone();
        let value = batch.column(2).as_primitive::<Int64Type>().clone();
        rows.extend((0..batch.num_rows()).map(|row| {
            let value = value.is_valid(row).then(|| value.value(row));
            (at.value(row), user.value(row).to_owned(), value)
        }));
    }
    rows
}

/// A condition that is both SQL and a function.
#[derive(Debug, Clone)]
enum Condition {
    User(String),
    Users(Vec<String>),
    At(i64),
    AtBelow(i64),
    AtFrom(i64),
    Value(i64),
    NoValue,
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    fn sql(&self) -> String {
        match self {
            Self::User(user) => format!("user = '{user}'"),
            Self::Users(users) => {
                let list: Vec<String> = users.iter().map(|user| format!("'{user}'")).collect();
                format!("user IN ({})", list.join(", "))
            }
            Self::At(at) => format!("at = {at}"),
            Self::AtBelow(at) => format!("at < {at}"),
            Self::AtFrom(at) => format!("at >= {at}"),
            Self::Value(value) => format!("value = {value}"),
            Self::NoValue => "value IS NULL".to_owned(),
            Self::And(a, b) => format!("({} AND {})", a.sql(), b.sql()),
            Self::Or(a, b) => format!("({} OR {})", a.sql(), b.sql()),
        }
    }

    fn holds(&self, row: &Row) -> bool {
        match self {
            Self::User(user) => row.1 == *user,
            Self::Users(users) => users.contains(&row.1),
            Self::At(at) => row.0 == *at,
            Self::AtBelow(at) => row.0 < *at,
            Self::AtFrom(at) => row.0 >= *at,
            Self::Value(value) => row.2 == Some(*value),
            Self::NoValue => row.2.is_none(),
            Self::And(a, b) => a.holds(row) && b.holds(row),
            Self::Or(a, b) => a.holds(row) || b.holds(row),
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        "[abc]{0,2}".prop_map(Condition::User),
        proptest::collection::vec("[abc]{0,2}", 1..4).prop_map(Condition::Users),
        (-3i64..13).prop_map(Condition::At),
        (-3i64..13).prop_map(Condition::AtBelow),
        (-3i64..13).prop_map(Condition::AtFrom),
        (0i64..5).prop_map(Condition::Value),
        Just(Condition::NoValue),
    ];
    leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Condition::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Condition::Or(Box::new(a), Box::new(b))),
        ]
    })
}

/// Each partition holds exactly the rows that the placement sends there.
async fn assert_rows_are_placed(table: &Table, all: &[Row]) {
    let columns = batch(all);
    let key: Vec<ArrayRef> =
        table.spec().partition_key().iter().map(|index| Arc::clone(columns.column(*index))).collect();
    let mut expected = vec![0u64; table.spec().partitions().len()];
    for partition in table.placement().assign(&key).unwrap() {
        expected[partition.index()] += 1;
    }
    let overview = table.inspect().await.unwrap();
    assert_eq!(overview.partitions.iter().map(|p| p.rows).collect::<Vec<_>>(), expected);
}
