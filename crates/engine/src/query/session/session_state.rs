//! DataFusion's state for queries on tables: rules and functions.

use std::sync::Arc;

use datafusion::config::ConfigNonZeroUsize;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::query::analysis::checked::CheckedArithmetic;
use crate::query::analysis::dates_as_times::DatesAsTimes;
use crate::query::analysis::drawn_values::DrawnValues;
use crate::query::analysis::exact_subqueries::ExactSubqueries;
use crate::query::analysis::float_frames::FloatFrames;
use crate::query::analysis::interval_literals::IntervalsAsDurations;
use crate::query::analysis::later_values::LaterValues;
use crate::query::analysis::nested_comparisons::NestedComparisons;
use crate::query::analysis::opaque_casts::OpaqueCasts;
use crate::query::analysis::plain_nans::PlainNans;
use crate::query::analysis::repeated_orders::RepeatedOrders;
use crate::query::analysis::signless_zeros::SignlessZeros;
use crate::query::analysis::unnested_rows::UnnestedRows;
use crate::query::analysis::whole_division::WholeDivision;
use crate::query::analysis::window_frames::FramesWithoutOffsets;
use crate::query::computed_once::OncePlanner;
use crate::query::dictionary_groups::GroupByDictionaries;
use crate::query::functions::{aggregates, functions, window_functions};
use crate::query::local_joins::partition_aware::PartitionAware;
use crate::query::local_joins::{Joins, LocalJoins, Rules, ShowPartitions};
use crate::query::optimization::fewer_streams::FewerStreams;
use crate::query::optimization::optimizer_rules::{corrected_logical_rules, corrected_rules};
use crate::query::optimization::yielding::YieldingJoins;
use crate::query::scan::first_rows::FindFirstRows;
use crate::query::scan::named_table::NamedTable;

/// Rows that one core puts into a hash table while others would distribute the rows of both sides.
const ROWS_OF_ONE_CORE: usize = 1 << 21;
/// Bytes of such rows.
const BYTES_OF_ONE_CORE: usize = 128 << 20;
/// Range of the keys for which a join has an array instead of a hash table.
const KEYS_OF_ARRAY: usize = 1 << 18;
/// Share of the memory of a query that one such array may take for its keys, as a divisor. A join
/// has one for each of its partitions.
const SHARE_OF_ARRAY: usize = 64;
/// Share of the memory of a query that one table for all cores may take, as a divisor.
const SHARE_OF_TABLE: usize = 8;
/// Bytes of a row in such a table (assumed).
const BYTES_PER_ROW: usize = 64;

/// Sets when a join builds one table for all cores, and when that is an array.
///
/// The rows of the other side then need not be distributed, and its scans look keys up in one table
/// rather than finding the right one for each row. With more cores, the time of building matters
/// more, as the time of all else is divided among them.
fn tune_hash_joins(config: &mut SessionConfig, runtime: &RuntimeEnv) {
    let memory = match runtime.memory_pool.memory_limit() {
        MemoryLimit::Finite(memory) => memory,
        MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
    };
    let options = config.options_mut();
    let cores = options.execution.target_partitions.max(1);
    let optimizer = &mut options.optimizer;
    let (rows, bytes) = (
        &mut optimizer.hash_join_single_partition_threshold_rows,
        &mut optimizer.hash_join_single_partition_threshold,
    );
    let at_most = memory / SHARE_OF_TABLE;
    *rows = (ROWS_OF_ONE_CORE / cores).min(at_most / BYTES_PER_ROW).max(*rows);
    *bytes = (BYTES_OF_ONE_CORE / cores).min(at_most).max(*bytes);
    let keys = &mut options.execution.perfect_hash_join_small_build_threshold;
    *keys = (memory / SHARE_OF_ARRAY / size_of::<u32>()).min(KEYS_OF_ARRAY).max(*keys);
}

/// Lets MIN and MAX read all rows.
///
/// DataFusion 55 makes the least values so far a condition of the scan, but forgets those that are
/// no columns or still NULL: `SELECT min(a), min(b + 1)` leaves out rows whose `a` is not less, even
/// if their `b` is.
pub fn without_filters_of_extremes(config: &mut SessionConfig) {
    config.options_mut().optimizer.enable_aggregate_dynamic_filter_pushdown = false;
}

/// Has each spilled batch written to a file of its own, which is complete at once.
///
/// DataFusion 55 waits forever if two inputs of a repartitioning write spilled batches to a file
/// each, and the reader waits for one that nobody writes to.
pub fn spill_without_waiting(config: &mut SessionConfig) {
    if let Ok(one_batch) = ConfigNonZeroUsize::try_new(1) {
        config.options_mut().execution.max_spill_file_size_bytes = one_batch;
    }
}

/// Returns the state for queries that run in this process. The summaries of their joins are added
/// to `joins`.
pub(in crate::query) fn local_state(
    tables: &[NamedTable],
    runtime: Arc<RuntimeEnv>,
    joins: &Joins,
) -> SessionState {
    let mut config = SessionConfig::new().with_information_schema(true);
    config.options_mut().sql_parser.enable_ident_normalization = false;
    config.options_mut().execution.parquet.pushdown_filters = true;
    // DataFusion 55 ends windows early that LEAD looks beyond.
    config.options_mut().optimizer.enable_window_limits = false;
    without_filters_of_extremes(&mut config);
    spill_without_waiting(&mut config);
    tune_hash_joins(&mut config, &runtime);
    let mut rules = corrected_rules(PhysicalOptimizer::new().rules);
    rules.extend([
        Arc::new(FewerStreams) as _,
        Arc::new(FindFirstRows) as _,
        Arc::new(GroupByDictionaries) as _,
        Arc::new(YieldingJoins) as _,
    ]);
    let snapshots = tables.iter().map(|named| Arc::clone(&named.table)).collect();
    let local_joins = LocalJoins::new(tables.to_vec(), Rules::new(rules.clone()), Arc::clone(joins));
    rules.splice(0..0, [Arc::new(local_joins) as _, Arc::new(PartitionAware::new(snapshots)) as _]);
    rules.push(Arc::new(ShowPartitions));
    SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rules(rules)
        .with_query_planner(Arc::new(OncePlanner))
        .build()
}

/// Returns a context in a given state, with the logical rules and the functions of all queries.
pub(in crate::query) fn corrected_context(state: SessionState) -> SessionContext {
    let mut rules = Analyzer::new().rules;
    let first: [Arc<dyn AnalyzerRule + Send + Sync>; 6] = [
        Arc::new(FramesWithoutOffsets),
        Arc::new(LaterValues::new()),
        Arc::new(IntervalsAsDurations),
        Arc::new(DatesAsTimes),
        Arc::new(WholeDivision::new()),
        Arc::new(RepeatedOrders),
    ];
    rules.splice(0..0, first);
    let optimizers = corrected_logical_rules(state.optimizers());
    let state = SessionStateBuilder::new_from_existing(state)
        .with_analyzer_rules(rules)
        .with_optimizer_rules(optimizers)
        .build();
    let context = SessionContext::new_with_state(state);
    functions().for_each(|function| context.register_udf(function));
    aggregates().for_each(|function| context.register_udaf(function));
    window_functions().for_each(|function| context.register_udwf(function));
    context.add_analyzer_rule(Arc::new(UnnestedRows::new()));
    context.add_analyzer_rule(Arc::new(CheckedArithmetic::new()));
    context.add_analyzer_rule(Arc::new(FloatFrames));
    context.add_analyzer_rule(Arc::new(PlainNans::new()));
    context.add_analyzer_rule(Arc::new(OpaqueCasts::new()));
    context.add_analyzer_rule(Arc::new(NestedComparisons::new()));
    context.add_analyzer_rule(Arc::new(DrawnValues::new()));
    context.add_analyzer_rule(Arc::new(SignlessZeros::Lookups));
    context.add_analyzer_rule(Arc::new(ExactSubqueries));
    context
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;

    use super::*;

    #[test]
    fn fewer_cores_and_more_memory_build_larger_tables_at_once() {
        let tuned = |cores: usize, memory: usize| {
            let mut config = SessionConfig::new().with_target_partitions(cores);
            let pool = Arc::new(GreedyMemoryPool::new(memory));
            let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build().unwrap();
            tune_hash_joins(&mut config, &runtime);
            let rows = config.options().optimizer.hash_join_single_partition_threshold_rows;
            (rows, config.options().execution.perfect_hash_join_small_build_threshold)
        };
        assert_eq!(tuned(2, 1 << 30), (1 << 20, 1 << 18));
        // DataFusion's own limits.
        assert_eq!(tuned(64, 1 << 10), (1 << 17, 1 << 10));
        assert_eq!(tuned(16, 16 << 20), (1 << 17, 1 << 16));
    }
}
