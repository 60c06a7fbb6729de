//! The rule that replaces aggregations.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use crate::query::dictionary_groups::exec::DictionaryGroupsExec;
use crate::query::scan::dictionaries::{Readable, used_once, with_dictionary};
use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::walk::Walk;

/// Replaces aggregations that group the rows of a scan by texts. Runs after all rules that move
/// parts of plans, since scans then return other types.
#[derive(Debug)]
pub(in crate::query) struct GroupByDictionaries;

impl PhysicalOptimizerRule for GroupByDictionaries {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let replaced = plan.transform_up_dyn(|node| match node.downcast_ref::<AggregateExec>() {
            Some(aggregation) => Ok(match replaced(aggregation)? {
                Some(replaced) => Transformed::yes(replaced),
                None => Transformed::no(node),
            }),
            None => Ok(Transformed::no(node)),
        })?;
        Ok(replaced.data)
    }

    fn name(&self) -> &'static str {
        "GroupByDictionaries"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a plan with the rows of an aggregation; `None` if it does not group the rows of a scan
/// by texts that have dictionaries.
fn replaced(aggregation: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_plain = aggregation.group_expr().is_single()
        && aggregation.limit_options().is_none()
        && *aggregation.input_order_mode() == InputOrderMode::Linear
        && aggregation
            .aggr_expr()
            .iter()
            .all(|aggregate| aggregate.groups_accumulator_supported() && aggregate.order_bys().is_empty());
    let reads_rows = match aggregation.mode() {
        AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned => true,
        AggregateMode::Final | AggregateMode::FinalPartitioned | AggregateMode::PartialReduce => false,
    };
    let Some(scan) = OrderedScan::from_plan(aggregation.input().as_ref()).filter(|_| is_plain && reads_rows)
    else {
        return Ok(None);
    };
    let keys = keys_with_dictionaries(aggregation);
    if keys.is_empty() {
        return Ok(None);
    }
    let columns = keys.iter().map(|(_, column)| *column).collect();
    let keys: Arc<[usize]> = keys.iter().map(|(key, _)| *key).collect();
    let input = scan.with_dictionaries(columns);
    Ok(Some(Arc::new(DictionaryGroupsExec::try_new(aggregation, keys, input)?)))
}

/// Returns the keys that a scan can return with dictionaries, as positions among the keys and among
/// the columns of the scan: columns that nothing else uses in the aggregation, and that the scan
/// can read with dictionaries.
fn keys_with_dictionaries(aggregation: &AggregateExec) -> Vec<(usize, usize)> {
    let Some(config) = OrderedScan::config_of(aggregation.input().as_ref()) else { return Vec::new() };
    let Some(projection) = config.file_source().projection() else { return Vec::new() };
    let keys = aggregation.group_expr().expr();
    let arguments = aggregation.aggr_expr().iter().flat_map(|aggregate| aggregate.expressions());
    let filters = aggregation.filter_expr().iter().flatten().cloned();
    let grouped_once = used_once(keys.iter().map(|(key, _)| Arc::clone(key)).chain(arguments).chain(filters));
    let readable = Readable::new(projection, config.file_source().filter().as_ref());
    let with_dictionaries = keys.iter().enumerate().filter_map(|(position, (key, _))| {
        let column = key.downcast_ref::<Column>()?;
        let read = &projection.as_ref().get(column.index())?.expr;
        let is_text = with_dictionary(&key.data_type(&aggregation.input_schema()).ok()?).is_some();
        let is_only = grouped_once.contains(column) && readable.has(read.downcast_ref::<Column>()?);
        (is_text && is_only).then(|| (position, column.index()))
    });
    with_dictionaries.collect()
}
