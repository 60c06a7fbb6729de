//! Sentences on whether joins stay within the partitions of their tables.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::HashJoinExec;
use serde::Serialize;

use crate::query::local_joins::locality::{self, Obstacle, scanned};
use crate::query::scan::named_table::NamedTable;
use crate::query::walk::Walk;

/// Whether a join, and a grouping of its rows, stay within the partitions of tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JoinSummary {
    /// Tables of the left side.
    pub left: Vec<String>,
    /// Tables of the right side, possibly none.
    pub right: Vec<String>,
    /// Whether rows are joined partition by partition.
    pub is_local: bool,
    /// Whether the joined rows are grouped partition by partition, too.
    pub is_grouped: bool,
    /// Reason why they are not joined so; the numbers of partitions if they are.
    pub reason: String,
}

impl fmt::Display for JoinSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |tables: &[String]| match tables.is_empty() {
            true => "other rows".to_owned(),
            false => tables.join(" and "),
        };
        let (left, right) = (side(&self.left), side(&self.right));
        let grouped = if self.is_grouped { " and grouped" } else { "" };
        match self.is_local {
            true => write!(
                f,
                "{left} with {right}: joined{grouped} within partitions, without a shuffle ({})",
                self.reason
            ),
            false => write!(f, "{left} with {right}: not joined within partitions, because {}", self.reason),
        }
    }
}

fn tables_of(plan: &Arc<dyn ExecutionPlan>, tables: &[NamedTable]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // The visit cannot fail.
    let _ = plan.apply_dyn(|node| {
        Ok(match scanned(node, tables) {
            Some(named) => {
                if !names.iter().any(|name| name == named.name()) {
                    names.push(named.name().to_owned());
                }
                TreeNodeRecursion::Jump
            }
            None => TreeNodeRecursion::Continue,
        })
    });
    names
}

fn joins_of(
    plan: &Arc<dyn ExecutionPlan>,
    tables: &[NamedTable],
    is_local: bool,
    reason: impl Fn(&HashJoinExec) -> String,
) -> Vec<JoinSummary> {
    let mut summaries = Vec::new();
    let mut is_grouped = false;
    // The visit cannot fail.
    let _ = plan.apply_dyn(|node| {
        is_grouped |= node.is::<AggregateExec>();
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            let (left, right) = (tables_of(join.left(), tables), tables_of(join.right(), tables));
            let is_grouped = is_grouped && is_local;
            summaries.push(JoinSummary { left, right, is_local, is_grouped, reason: reason(join) });
        }
        Ok(TreeNodeRecursion::Continue)
    });
    summaries
}

/// Describes the joins of a part that is computed partition by partition.
pub(super) fn local_part_joins(plan: &Arc<dyn ExecutionPlan>, tables: &[NamedTable]) -> Vec<JoinSummary> {
    let counts = |join: &HashJoinExec| {
        let names: BTreeSet<String> =
            [join.left(), join.right()].into_iter().flat_map(|side| tables_of(side, tables)).collect();
        let partitions = tables.iter().filter(|named| names.contains(named.name()));
        let partitions: BTreeSet<u32> =
            partitions.map(|named| named.table.snapshot().spec().partitions().get()).collect();
        let counts: Vec<String> = partitions.iter().map(ToString::to_string).collect();
        format!("{} partitions", counts.join(" and "))
    };
    joins_of(plan, tables, true, counts)
}

/// Describes the joins of a part that could be computed partition by partition but for an obstacle.
pub(super) fn part_joins(
    plan: &Arc<dyn ExecutionPlan>,
    obstacle: &Obstacle,
    tables: &[NamedTable],
) -> Vec<JoinSummary> {
    joins_of(plan, tables, false, |_| obstacle.to_string())
}

/// Describes one join of tables that cannot be computed partition by partition.
pub(super) fn join_summary(plan: &Arc<dyn ExecutionPlan>, tables: &[NamedTable]) -> Option<JoinSummary> {
    let join = plan.downcast_ref::<HashJoinExec>()?;
    let (left, right) = (tables_of(join.left(), tables), tables_of(join.right(), tables));
    if left.is_empty() && right.is_empty() {
        return None;
    }
    let reason = locality::join_locality(join, tables).err()?.to_string();
    Some(JoinSummary { left, right, is_local: false, is_grouped: false, reason })
}
