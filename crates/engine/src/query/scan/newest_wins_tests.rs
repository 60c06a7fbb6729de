//! Merges of portions: the newest row of each key, compared with a map.

use std::collections::BTreeMap;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, col, lit};
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::filter_pushdown::PushedDown;
use datafusion::physical_plan::{ReplaceChildrenOptions, collect_partitioned};
use proptest::prelude::{prop_assert_eq, proptest};

use super::*;

/// Values by key.
type Portion = BTreeMap<i64, i64>;

fn schema() -> SchemaRef {
    let field = |name: &str| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("key"), field("value")]))
}

fn input(portions: &[Portion]) -> Arc<dyn ExecutionPlan> {
    let batch = |portion: &Portion| {
        let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as _;
        let (keys, values) = portion.iter().unzip();
        RecordBatch::try_new(schema(), vec![column(keys), column(values)]).unwrap()
    };
    let partitions: Vec<_> = portions.iter().map(|portion| vec![batch(portion)]).collect();
    MemorySourceConfig::try_new_exec(&partitions, schema(), None).unwrap()
}

/// Merges portions, newest first, in these runs.
fn merge(portions: &[Portion], runs: &[Vec<usize>]) -> NewestWinsExec {
    merge_with_deletes(portions, runs, &[])
}

/// Merges portions, some of which are deletes.
fn merge_with_deletes(portions: &[Portion], runs: &[Vec<usize>], deletes: &[usize]) -> NewestWinsExec {
    let ranked = |index: &usize| RankedInput {
        input: *index,
        rank: u32::try_from(*index).unwrap(),
        deletes: deletes.contains(index),
    };
    let runs = runs.iter().map(|run| run.iter().map(ranked).collect()).collect();
    let overlapping =
        Overlapping { plan: input(portions), key: vec![0], output: vec![0, 1], keeps_deletes: false };
    let inputs = Inputs { plain: None, overlapping: Some(overlapping) };
    NewestWinsExec::new(schema(), &[Some(0)], inputs, Arc::new(vec![vec![Piece::Merged(runs)]]))
}

/// Packs portions into runs, each into the first one that ends before it begins.
fn chained(portions: &[Portion]) -> Vec<Vec<usize>> {
    let mut by_key: Vec<usize> = (0..portions.len()).collect();
    by_key.sort_by_key(|index| portions[*index].first_key_value());
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for index in by_key {
        let ends_before = |run: &&mut Vec<usize>| {
            let last = &portions[run[run.len() - 1]];
            last.last_key_value().map(|(key, _)| key) < portions[index].first_key_value().map(|(key, _)| key)
        };
        match runs.iter_mut().find(ends_before) {
            Some(run) => run.push(index),
            None => runs.push(vec![index]),
        }
    }
    runs
}

fn rows(node: NewestWinsExec) -> Vec<Vec<(i64, i64)>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let collected = collect_partitioned(Arc::new(node), Arc::default());
    let of_batch = |batch: &RecordBatch| {
        let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values().to_vec();
        column(0).into_iter().zip(column(1)).collect::<Vec<_>>()
    };
    let partitions = runtime.block_on(collected).unwrap();
    partitions.iter().map(|batches| batches.iter().flat_map(of_batch).collect()).collect()
}

proptest! {
    #[test]
    fn the_newest_row_of_each_key_is_returned(
        portions in proptest::collection::vec(
            proptest::collection::btree_map(0i64..60, proptest::num::i64::ANY, 1..8), 1..9
        ),
    ) {
        let mut newest = Portion::new();
        portions.iter().rev().for_each(|portion| newest.extend(portion));
        let newest: Vec<(i64, i64)> = newest.into_iter().collect();
        let alone: Vec<Vec<usize>> = (0..portions.len()).map(|index| vec![index]).collect();
        prop_assert_eq!(&rows(merge(&portions, &alone))[0], &newest);
        prop_assert_eq!(&rows(merge(&portions, &chained(&portions)))[0], &newest);
    }

    #[test]
    fn the_newest_row_of_each_key_decides_whether_it_is_deleted(
        portions in proptest::collection::vec(
            (proptest::collection::btree_map(0i64..60, proptest::num::i64::ANY, 1..8), proptest::bool::ANY), 1..9
        ),
    ) {
        let mut newest = Portion::new();
        for (portion, deletes) in portions.iter().rev() {
            match deletes {
                true => newest.retain(|key, _| !portion.contains_key(key)),
                false => newest.extend(portion),
            }
        }
        let newest: Vec<(i64, i64)> = newest.into_iter().collect();
        let deletes: Vec<usize> = (0..portions.len()).filter(|index| portions[*index].1).collect();
        let portions: Vec<Portion> = portions.into_iter().map(|(portion, _)| portion).collect();
        let alone: Vec<Vec<usize>> = (0..portions.len()).map(|index| vec![index]).collect();
        for runs in [alone, chained(&portions)] {
            prop_assert_eq!(&rows(merge_with_deletes(&portions, &runs, &deletes))[0], &newest);
        }
    }
}

#[test]
fn pieces_follow_each_other_and_partitions_stay_apart() {
    let portion = |keys: &[i64], value| Portion::from_iter(keys.iter().map(|key| (*key, value)));
    let plain = input(&[portion(&[1, 2], 10), portion(&[7], 20), portion(&[0], 30)]);
    let overlapping = input(&[portion(&[3, 5], 1), portion(&[3, 4], 2)]);
    let overlapping =
        Overlapping { plan: overlapping, key: vec![0], output: vec![0, 1], keeps_deletes: false };
    let inputs = Inputs { plain: Some(plain), overlapping: Some(overlapping) };
    let runs = vec![
        vec![RankedInput { input: 0, rank: 0, deletes: false }],
        vec![RankedInput { input: 1, rank: 1, deletes: false }],
    ];
    let pieces = vec![vec![Piece::Plain(0), Piece::Merged(runs), Piece::Plain(1)], vec![Piece::Plain(2)]];
    let node = NewestWinsExec::new(schema(), &[Some(0)], inputs, Arc::new(pieces));
    assert_eq!(rows(node), [vec![(1, 10), (2, 10), (3, 1), (4, 2), (5, 1), (7, 20)], vec![(0, 30)]]);
}

#[test]
fn inputs_that_were_not_planned_are_refused() {
    let portions = [Portion::from([(1, 1)]), Portion::from([(1, 2)])];
    let node = Arc::new(merge(&portions, &[vec![0], vec![1]]));
    let context = Arc::new(TaskContext::default());
    assert!(node.execute(0, Arc::clone(&context)).is_ok());
    assert!(node.execute(1, Arc::clone(&context)).is_err());
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    assert!(Arc::clone(&node).replace_children(vec![], options).is_err());
    let joined = node.replace_children(vec![input(&portions[..1])], options).unwrap();
    assert!(joined.execute(0, context).is_err());
}

#[test]
fn only_filters_on_the_key_pass_below_a_merge() {
    let mut node = merge(&[Portion::from([(1, 1)])], &[vec![0]]);
    node.inputs.plain = Some(input(&[Portion::from([(2, 2)])]));
    let filter = |column: &str| {
        let column = col(column, &schema()).unwrap();
        Arc::new(BinaryExpr::new(column, Operator::Eq, lit(1i64))) as Arc<dyn PhysicalExpr>
    };
    let filters = vec![filter("key"), filter("value")];
    let description = node
        .gather_filters_for_pushdown(FilterPushdownPhase::Pre, filters, &ConfigOptions::default())
        .unwrap();
    let pushed: Vec<Vec<bool>> = description
        .parent_filters()
        .iter()
        .map(|child| child.iter().map(|f| matches!(f.discriminant, PushedDown::Yes)).collect())
        .collect();
    assert_eq!(pushed, [vec![true, true], vec![true, false]]);
}

#[test]
fn the_number_of_merged_rows_is_only_an_upper_bound() {
    let mut node = merge(&[Portion::from([(1, 1)]), Portion::from([(1, 2)])], &[vec![0], vec![1]]);
    let rows = |rows| {
        Arc::new(Statistics { num_rows: Precision::Exact(rows), ..Statistics::new_unknown(&schema()) })
    };
    let number = |node: &NewestWinsExec, inputs: &[Arc<Statistics>]| {
        node.statistics_from_inputs(inputs, &StatisticsArgs::new()).unwrap().num_rows
    };
    assert_eq!(number(&node, &[rows(2)]), Precision::Inexact(2));
    node.inputs.plain = Some(input(&[Portion::from([(2, 2)])]));
    assert_eq!(number(&node, &[rows(5), rows(2)]), Precision::Inexact(7));
    node.inputs.overlapping = None;
    assert_eq!(number(&node, &[rows(5)]), Precision::Exact(5));
}
