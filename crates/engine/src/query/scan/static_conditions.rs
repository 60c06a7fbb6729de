//! Drops statistics of files that cannot exclude any file.

use std::sync::Arc;

use datafusion::common::ColumnStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::query::scan::ordered_scan::OrderedScan;

/// Removes the statistics of files from scans whose conditions do not change while a query runs.
/// Portions were left out by the same ranges when the scan was planned; for each file with
/// statistics, DataFusion would evaluate the conditions on them again. Statistics are kept if files
/// form one stream, whose order they prove, and if a column has one value in a file, which then
/// need not be read.
#[derive(Debug)]
pub(in crate::query) struct StaticConditions;

impl PhysicalOptimizerRule for StaticConditions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let settled = plan.transform_up(|node| {
            Ok(match without_file_statistics(node.as_ref()) {
                Some(scan) => Transformed::yes(scan),
                None => Transformed::no(node),
            })
        })?;
        Ok(settled.data)
    }

    fn name(&self) -> &'static str {
        "StaticConditions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a scan without the statistics of its files; `None` if it may still need them, or has no
/// statistics.
fn without_file_statistics(node: &dyn ExecutionPlan) -> Option<Arc<dyn ExecutionPlan>> {
    let (scan, config) = OrderedScan::from_plan(node).zip(OrderedScan::config_of(node))?;
    let conditions = config.file_source().filter()?;
    let is_static = matches!(DynamicFilterTracking::classify(&conditions), DynamicFilterTracking::Static);
    let is_needless = |group: &FileGroup| group.len() == 1 && !group.iter().any(has_constant);
    if !is_static || !config.file_groups.iter().any(is_needless) {
        return None;
    }
    let stripped = |group: &FileGroup| {
        if !is_needless(group) {
            return group.clone();
        }
        let mut files = group.files().to_vec();
        files.iter_mut().for_each(|file| file.statistics = None);
        FileGroup::new(files)
    };
    let groups = config.file_groups.iter().map(stripped).collect();
    Some(scan.with_config(FileScanConfigBuilder::from(config.clone()).with_file_groups(groups).build()))
}

/// Whether a column has one value in all rows of a file: such a column is not decoded.
fn has_constant(file: &PartitionedFile) -> bool {
    let is_constant = |column: &ColumnStatistics| match (&column.min_value, &column.max_value) {
        (Precision::Exact(min), Precision::Exact(max)) => min == max,
        _ => false,
    };
    file.statistics.as_ref().is_some_and(|known| known.column_statistics.iter().any(is_constant))
}

#[cfg(test)]
mod tests {
    use datafusion::common::tree_node::TreeNodeRecursion;

    use super::*;
    use crate::query::Params;
    use crate::testing::scores;

    /// Returns the number of files with statistics in all scans of a query, and the number of all
    /// files.
    async fn files(sql: &str, games: i64) -> (usize, usize) {
        let rows: Vec<_> = (0..400i64).map(|row| (row, row % games, row)).collect();
        let (_folder, table) = scores(&[rows]).await;
        let session = table.session().unwrap();
        let plan = session.physical_plan(sql, &Params::default()).await.unwrap();
        let (mut known, mut all) = (0, 0);
        plan.apply(|node| {
            for file in OrderedScan::config_of(node.as_ref()).iter().flat_map(|scan| &scan.file_groups) {
                known += file.iter().filter(|file| file.statistics.is_some()).count();
                all += file.len();
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        (known, all)
    }

    #[tokio::test]
    async fn only_conditions_that_change_while_a_query_runs_keep_statistics() {
        assert_eq!(files("SELECT sum(points) FROM t WHERE game > 3", 7).await, (0, 4));
        assert_eq!(files("SELECT sum(points) FROM t", 7).await, (4, 4));
        assert_eq!(files("SELECT * FROM t WHERE game > 3 ORDER BY points LIMIT 2", 7).await, (4, 4));
        // A game that all rows share is not read.
        assert_eq!(files("SELECT sum(game) FROM t WHERE points > 3", 1).await, (4, 4));
    }
}
